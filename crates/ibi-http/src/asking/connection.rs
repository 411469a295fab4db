//! One connection, driven by whoever asks on it: no task of its own, so that nothing has to be handed to and fro.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::metered::{Left, Metered};
use super::{AskError, LONGEST};

/// The most bytes that are buffered of a head.
const HEAD: usize = 64 * 1024;

/// The most pieces that a body may come in: one that comes byte by byte costs far more than it is long.
const PIECES: usize = 1024;

/// The most bytes of one answer, whatever they are: head, interim answers, body and what divides it.
const IN_ALL: usize = HEAD + 2 * LONGEST;

pub(super) struct Connection {
    sender: http1::SendRequest<Empty<Bytes>>,
    /// Nothing once it has ended.
    driver: Option<http1::Connection<TokioIo<Metered>, Empty<Bytes>>>,
    left: Left,
}

/// Why a question has no answer.
pub(super) enum Failed {
    /// The connection ended before there was any.
    Unanswered(AskError),
    /// There was one, but not a good one.
    Answered(AskError),
}

impl Failed {
    pub(super) fn into_inner(self) -> AskError {
        match self {
            Failed::Unanswered(error) | Failed::Answered(error) => error,
        }
    }
}

impl Connection {
    pub(super) async fn new(stream: TcpStream) -> Result<Self, AskError> {
        let left = Left::default();
        let metered = TokioIo::new(Metered::new(stream, left.clone()));
        let made = http1::Builder::new().max_buf_size(HEAD).handshake(metered).await;
        let (sender, driver) = made.map_err(|error| silent(&error))?;
        Ok(Self { sender, driver: Some(driver), left })
    }

    /// Lets go on what can go on.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether the next question can be asked on it, as far as can be seen from here.
    pub(super) fn is_usable(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Asks and gives the whole answer.
    pub(super) async fn ask(
        &mut self,
        path: PathAndQuery,
        host: HeaderValue,
    ) -> Result<(StatusCode, Bytes), Failed> {
        self.left.set(IN_ALL);
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(header::HOST, host);
        let response = self.head(request).await?;
        let status = response.status();
        let body = self.body(response.into_body()).await.map_err(Failed::Answered)?;
        Ok((status, body))
    }

    async fn head(&mut self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, Failed> {
        let mut answer = pin!(self.sender.send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(cx).map_err(|error| {
                if error.is_parse() || error.is_parse_too_large() {
                    Failed::Answered(silent(&error))
                } else {
                    Failed::Unanswered(silent(&error))
                }
            })
        })
        .await
    }

    async fn body(&mut self, mut body: Incoming) -> Result<Bytes, AskError> {
        if body.size_hint().lower() > LONGEST as u64 {
            return Err(AskError::TooLong { most: LONGEST });
        }
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        let mut pieces = 0;
        poll_fn(|cx| {
            // Polling the body tells the driver that it is wanted: so once more, rather than to be woken for it.
            let mut told = false;
            loop {
                self.drive(cx);
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        pieces += 1;
                        if pieces > PIECES {
                            let many = format!("it comes in more than {PIECES} pieces");
                            return Poll::Ready(Err(AskError::Silent(many)));
                        }
                        let Ok(piece) = frame.into_data() else { continue };
                        if first.len() + all.len() + piece.len() > LONGEST {
                            return Poll::Ready(Err(AskError::TooLong { most: LONGEST }));
                        }
                        // Most answers come in one piece, which need not be copied.
                        if first.is_empty() {
                            first = piece;
                        } else {
                            all.extend_from_slice(&piece);
                        }
                    }
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(silent(&error))),
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending if told => return Poll::Pending,
                    Poll::Pending => told = true,
                }
            }
        })
        .await?;
        if all.is_empty() {
            return Ok(first);
        }
        Ok([first, all.freeze()].concat().into())
    }
}

fn silent(error: &hyper::Error) -> AskError {
    use std::error::Error as _;
    AskError::Silent(match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
