//! One connection, driven by its current user: it has no task of its own, so nothing is passed
//! between tasks.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

use super::client_stream::ClientStream;
use super::metered_stream::{MeteredStream, ReadBudget};
use super::{MAX_RESPONSE_BYTES, PooledClientError};
use crate::{CertificateProblem, ClientTls};

/// Maximum number of buffered head bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Maximum number of pieces of a body: one that arrives byte by byte costs far more than its
/// length.
const MAX_BODY_PIECES: usize = 1024;

/// Maximum number of interim responses (1xx) before a response: each costs as much as a head.
pub(super) const MAX_INTERIM_RESPONSES: usize = 8;

/// Maximum number of bytes of one response in total: head, interim responses, body and framing.
const MAX_EXCHANGE_BYTES: usize = MAX_HEAD_BYTES + 2 * MAX_RESPONSE_BYTES;

/// Maximum number of bytes that a server sends before the connection is secret.
const MAX_HANDSHAKE_BYTES: usize = 128 * 1024;

pub(super) struct ClientConnection {
    sender: http1::SendRequest<Empty<Bytes>>,
    /// `None` once the connection has ended.
    driver: Option<http1::Connection<TokioIo<ClientStream>, Empty<Bytes>>>,
    budget: ReadBudget,
}

/// Why a request has no usable response.
pub(super) enum ConnectionFailure {
    /// The connection ended before any response.
    Unanswered(PooledClientError),
    /// There was an invalid response.
    Answered(PooledClientError),
}

impl ConnectionFailure {
    pub(super) fn into_inner(self) -> PooledClientError {
        match self {
            ConnectionFailure::Unanswered(error) | ConnectionFailure::Answered(error) => error,
        }
    }
}

impl ClientConnection {
    /// Over TLS if there are settings for it and a name that the certificate has to have.
    pub(super) async fn new(
        stream: TcpStream,
        tls: Option<&(ClientTls, ServerName<'static>)>,
    ) -> Result<Self, PooledClientError> {
        let budget = ReadBudget::default();
        let metered = MeteredStream::new(stream, budget.clone());
        let stream = match tls {
            None => ClientStream::Plain(metered),
            Some((tls, name)) => {
                budget.set(MAX_HANDSHAKE_BYTES);
                let made = tls.connect(name.clone(), metered).await;
                ClientStream::Tls(Box::new(made.map_err(|error| handshake_error(&error))?))
            }
        };
        let made = http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream)).await;
        let (sender, driver) = made.map_err(|error| no_answer_error(&error))?;
        Ok(Self { sender, driver: Some(driver), budget })
    }

    /// Lets the connection make progress.
    fn poll_driver(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether the connection looks usable for another request.
    pub(super) fn is_usable(&mut self) -> bool {
        self.poll_driver(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a GET and returns the whole response.
    pub(super) async fn send_get(
        &mut self,
        path: PathAndQuery,
        host: HeaderValue,
    ) -> Result<(StatusCode, Bytes), ConnectionFailure> {
        self.budget.set(MAX_EXCHANGE_BYTES);
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(header::HOST, host);
        let (interim, budget) = (AtomicUsize::new(0), self.budget.clone());
        hyper::ext::on_informational(&mut request, move |_| {
            if interim.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM_RESPONSES {
                budget.set(0);
            }
        });
        let response = self.read_head(request).await?;
        let status = response.status();
        let body = self.read_body(response.into_body()).await.map_err(ConnectionFailure::Answered)?;
        Ok((status, body))
    }

    async fn read_head(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectionFailure> {
        let mut answer = pin!(self.sender.send_request(request));
        poll_fn(|cx| {
            self.poll_driver(cx);
            answer.as_mut().poll(cx).map_err(|error| {
                if error.is_parse() || error.is_parse_too_large() {
                    ConnectionFailure::Answered(no_answer_error(&error))
                } else {
                    ConnectionFailure::Unanswered(no_answer_error(&error))
                }
            })
        })
        .await
    }

    async fn read_body(&mut self, mut body: Incoming) -> Result<Bytes, PooledClientError> {
        if body.size_hint().lower() > MAX_RESPONSE_BYTES as u64 {
            return Err(PooledClientError::TooLong { most: MAX_RESPONSE_BYTES });
        }
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        let mut pieces = 0;
        poll_fn(|cx| {
            // Polling the body signals demand to the driver: poll it once more instead of waiting
            // to be woken.
            let mut was_polled = false;
            loop {
                self.poll_driver(cx);
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        pieces += 1;
                        if pieces > MAX_BODY_PIECES {
                            let why = format!("its body has more than {MAX_BODY_PIECES} pieces");
                            return Poll::Ready(Err(PooledClientError::Silent(why)));
                        }
                        let Ok(piece) = frame.into_data() else { continue };
                        if first.len() + all.len() + piece.len() > MAX_RESPONSE_BYTES {
                            return Poll::Ready(Err(PooledClientError::TooLong { most: MAX_RESPONSE_BYTES }));
                        }
                        // Most responses arrive in one piece, which need not be copied.
                        if first.is_empty() {
                            first = piece;
                        } else {
                            all.extend_from_slice(&piece);
                        }
                    }
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(no_answer_error(&error))),
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending if was_polled => return Poll::Pending,
                    Poll::Pending => was_polled = true,
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

fn handshake_error(error: &std::io::Error) -> PooledClientError {
    match CertificateProblem::find_io(error) {
        Some(problem) => PooledClientError::Certificate(problem),
        None => PooledClientError::Silent(format!("no TLS connection: {error}")),
    }
}

fn no_answer_error(error: &hyper::Error) -> PooledClientError {
    use std::error::Error as _;
    PooledClientError::Silent(match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
