//! Request bodies: bounded in size, with a minimum transfer rate.

use std::io::{self, Read};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::{Problem, ServerLimits};

/// Grace period before the minimum transfer rate applies.
const BODY_RATE_GRACE: Duration = Duration::from_secs(20);

/// Maximum number of pieces buffered for the reader.
const MAX_BUFFERED_PIECES: usize = 4;

/// Reads a body into memory, up to a maximum size.
pub async fn read_whole_body(body: Body, most: usize, limits: &ServerLimits) -> Result<Bytes, Problem> {
    let mut pieces = PacedBody::new(body, limits);
    let mut all = Vec::new();
    while let Some(piece) = pieces.next_piece().await? {
        if all.len() + piece.len() > most {
            return Err(Problem::too_large(format!("the body has more than {most} bytes")));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// Streams a body to a reader on another thread. The future completes once the whole body has been
/// passed on.
pub fn to_reader(
    body: Body,
    limits: &ServerLimits,
) -> (BodyReader, impl Future<Output = Result<(), Problem>> + use<>) {
    let (send, receive) = mpsc::channel(MAX_BUFFERED_PIECES);
    let mut pieces = PacedBody::new(body, limits);
    let feeding = async move {
        loop {
            match pieces.next_piece().await {
                Ok(Some(piece)) => {
                    // The reader failed and reports its own error.
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
    (BodyReader { pieces: receive, piece: Bytes::new(), ended: false }, feeding)
}

/// A body, read on a thread that may block.
#[derive(Debug)]
pub struct BodyReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    ended: bool,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && !self.ended {
            // A complete body ends with an explicit end marker; a truncated one does not.
            self.piece = self
                .pieces
                .blocking_recv()
                .unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))?;
            self.ended = self.piece.is_empty();
        }
        let length = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

struct PacedBody {
    body: Body,
    piece_timeout: Duration,
    rate: u64,
    begun: Instant,
    arrived: u64,
}

impl PacedBody {
    fn new(body: Body, limits: &ServerLimits) -> Self {
        Self {
            body,
            piece_timeout: limits.body_time,
            rate: limits.body_rate,
            begun: Instant::now(),
            arrived: 0,
        }
    }

    /// The next piece; never empty.
    async fn next_piece(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let slow = || {
                let status = http::StatusCode::REQUEST_TIMEOUT;
                Problem::new(status, "too-slow", "Too slow", "the request body arrives too slowly")
            };
            let frame = timeout(self.piece_timeout, self.body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame
                .map_err(|error| Problem::bad_request(format!("the request body ended early: {error}")))?;
            let Ok(piece) = frame.into_data() else { continue };
            self.arrived += piece.len() as u64;
            let took = self.begun.elapsed();
            if took > BODY_RATE_GRACE && self.arrived < took.as_secs() * self.rate {
                return Err(slow());
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}
