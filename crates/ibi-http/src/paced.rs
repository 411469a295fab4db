//! Bodies that arrive: bounded in size, and fast enough.

use std::io::{self, Read};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::{Limits, Problem};

/// How long a body may be slow before its rate counts.
const FREE: Duration = Duration::from_secs(20);

/// Pieces that may wait to be taken.
const AHEAD: usize = 4;

/// Reads a body into memory, up to a size.
pub async fn whole(body: Body, most: usize, limits: &Limits) -> Result<Bytes, Problem> {
    let mut pieces = Pieces::new(body, limits);
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await? {
        if all.len() + piece.len() > most {
            return Err(Problem::too_large(format!("the body has more than {most} bytes")));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// Hands a body on to a reader on another thread, piece by piece. The future is done when all has been handed on.
pub fn to_reader(
    body: Body,
    limits: &Limits,
) -> (Reading, impl Future<Output = Result<(), Problem>> + use<>) {
    let (send, receive) = mpsc::channel(AHEAD);
    let mut pieces = Pieces::new(body, limits);
    let feeding = async move {
        loop {
            match pieces.next().await {
                Ok(Some(piece)) => {
                    // The other side failed, and says so itself.
                    if send.send(Ok(piece)).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(None) => {
                    let _ = send.send(Ok(Bytes::new())).await;
                    return Ok(());
                }
                Err(problem) => {
                    let _ = send.send(Err(io::ErrorKind::ConnectionAborted.into())).await;
                    return Err(problem);
                }
            }
        }
    };
    (Reading { pieces: receive, piece: Bytes::new(), ended: false }, feeding)
}

/// A body, read on a thread that may wait.
#[derive(Debug)]
pub struct Reading {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && !self.ended {
            // A body that ends says so; one that is cut off does not.
            self.piece = self
                .pieces
                .blocking_recv()
                .unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))?;
            self.ended = self.piece.is_empty();
        }
        let taken = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..taken]);
        Ok(taken)
    }
}

struct Pieces {
    body: Body,
    patience: Duration,
    rate: u64,
    begun: Instant,
    arrived: u64,
}

impl Pieces {
    fn new(body: Body, limits: &Limits) -> Self {
        Self { body, patience: limits.body_time, rate: limits.body_rate, begun: Instant::now(), arrived: 0 }
    }

    /// The next piece, never empty.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let slow = || {
                let status = http::StatusCode::REQUEST_TIMEOUT;
                Problem::new(status, "too-slow", "Too slow", "the body arrives too slowly")
            };
            let frame = timeout(self.patience, self.body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| Problem::bad_request(format!("the body was cut off: {error}")))?;
            let Ok(piece) = frame.into_data() else { continue };
            self.arrived += piece.len() as u64;
            let took = self.begun.elapsed();
            if took > FREE && self.arrived < took.as_secs() * self.rate {
                return Err(slow());
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}
