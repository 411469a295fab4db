//! The listener: accepts connections within limits until shutdown.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use crate::client::ConnectionPeer;
use crate::connection_slots::{ConnectionSlots, HeldConnection};
use crate::descriptors::is_exhausted;
use crate::stall_guard::StallGuard;
use crate::{ServerLimits, ServerTls};

/// Pause before retrying to accept a connection when no descriptors are left.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Minimum interval between log lines about connections that cannot be accepted.
const ACCEPT_WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// A response of at most this many bytes fits into the system's buffers and counts as sent at once.
const MAX_BUFFERED_RESPONSE_BYTES: u64 = 64 << 10;

/// Handles requests before routing; `None` passes the request on.
type FastPathHandler = dyn Fn(&Method, &Uri) -> Option<Response<Body>> + Send + Sync;

/// A router, with an optional fast path in front of it for the most frequent requests.
#[derive(Clone)]
pub struct ServerHandler {
    first: Option<Arc<FastPathHandler>>,
    router: Router,
}

impl From<Router> for ServerHandler {
    fn from(router: Router) -> Self {
        Self { first: None, router }
    }
}

impl ServerHandler {
    /// Tries this handler first. It blocks the connection's thread and records its own requests
    /// ([`crate::telemetry::record_request`]).
    #[must_use]
    pub fn with_fast_path(
        self,
        first: impl Fn(&Method, &Uri) -> Option<Response<Body>> + Send + Sync + 'static,
    ) -> Self {
        Self { first: Some(Arc::new(first)), ..self }
    }
}

/// Serves until `stop` completes, then drains the requests in progress.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerTls>,
    limits: ServerLimits,
    answers: impl Into<ServerHandler>,
    stop: impl Future<Output = ()>,
) {
    let answers = answers.into();
    let graceful = GracefulShutdown::new();
    let slots = ConnectionSlots::new(&limits);
    let mut retry = AcceptRetry::default();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if is_exhausted(&error) {
                    slots.evict_idle();
                }
                retry.wait_after(&error).await;
                continue;
            }
        };
        slots.wait_for_evictions().await;
        let Some(slot) = slots.take_slot(peer.ip()) else {
            metrics::counter!("ibi_connections_refused_total").increment(1);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (tls, answers, watcher) = (tls.clone(), answers.clone(), graceful.watcher());
        let held = Arc::clone(slot.connection());
        let serving = async move {
            match tls {
                None => serve_connection(stream, peer, &limits, answers, watcher, held).await,
                Some(tls) => {
                    let accepted = tls.acceptor().accept(stream);
                    if let Ok(Ok(stream)) = timeout(limits.head_time, accepted).await {
                        serve_connection(stream, peer, &limits, answers, watcher, held).await;
                    }
                }
            }
        };
        tokio::spawn(slot.run(serving));
    }
    // Accept no new connections.
    drop(listener);
    if timeout(limits.drain_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("aborted requests that took too long");
    }
}

/// Retry policy of a listener after a failed accept: it never gives up.
#[derive(Debug, Default)]
pub struct AcceptRetry {
    last_warning: Option<Instant>,
}

impl AcceptRetry {
    /// Waits until a retry makes sense.
    pub async fn wait_after(&mut self, error: &io::Error) {
        // The client gave up before it was accepted: retry at once.
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            return;
        }
        metrics::counter!("ibi_accept_failures_total").increment(1);
        if self.last_warning.is_none_or(|last_warning| last_warning.elapsed() >= ACCEPT_WARNING_INTERVAL) {
            self.last_warning = Some(Instant::now());
            tracing::warn!(%error, "accept failed, retrying");
        }
        // Out of descriptors: open connections must close first.
        tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
    }
}

async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    limits: &ServerLimits,
    answers: ServerHandler,
    watcher: hyper_util::server::graceful::Watcher,
    held: Arc<HeldConnection>,
) {
    let stream = TokioIo::new(StallGuard::new(stream, limits));
    let answers = Arc::new(answers);
    let service = service_fn(move |request| {
        handle_request(Arc::clone(&answers), peer.ip(), request, Arc::clone(&held))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head.max(8192))
        .serve_connection(stream, service);
    // Connection errors concern only the client.
    let _ = watcher.watch(connection).await;
}

/// Handles a request and tracks the phase of its connection.
async fn handle_request(
    answers: Arc<ServerHandler>,
    peer: IpAddr,
    request: Request<Incoming>,
    held: Arc<HeldConnection>,
) -> Result<Response<Body>, Infallible> {
    let has_body = !request.body().is_end_stream();
    held.set_receiving(has_body);
    let request = if has_body {
        let held = Arc::clone(&held);
        request.map(|body| Body::new(TrackedRequestBody { body, held }))
    } else {
        request.map(Body::new)
    };
    let mut response = dispatch(answers, peer, request).await?;
    if held.is_evicted() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let is_long = response.body().size_hint().upper().is_none_or(|bytes| bytes > MAX_BUFFERED_RESPONSE_BYTES);
    held.set_answered(is_long);
    if is_long {
        response = response.map(|body| Body::new(TrackedResponseBody { body, held }));
    }
    Ok(response)
}

/// A request body that tracks its arrival.
struct TrackedRequestBody {
    body: Incoming,
    held: Arc<HeldConnection>,
}

impl HttpBody for TrackedRequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.held.set_handling();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A long response that tracks its completion.
struct TrackedResponseBody {
    body: Body,
    held: Arc<HeldConnection>,
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TrackedResponseBody {
    fn drop(&mut self) {
        self.held.set_idle();
    }
}

/// Refuses ambiguous requests (RFC 9112 §3.2) and dispatches all others. If a length is given in
/// two ways, hyper uses the chunks and closes the connection after the response (§6.3).
async fn dispatch(
    answers: Arc<ServerHandler>,
    peer: IpAddr,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let headers = request.headers();
    let hosts = headers.get_all(header::HOST).iter().count();
    let plain = |host: &HeaderValue| {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_~:[]".contains(byte);
        host.as_bytes().iter().all(allowed)
    };
    let odd = headers.get(header::HOST).is_some_and(|host| !plain(host));
    if odd || hosts > 1 || (hosts == 0 && request.version() == http::Version::HTTP_11) {
        let mut response = Response::new(Body::from("the request can be read in more than one way\n"));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return Ok(response);
    }
    if let Some(first) = &answers.first
        && let Some(response) = first(request.method(), request.uri())
    {
        return Ok(response);
    }
    let mut request = request;
    request.extensions_mut().insert(ConnectionPeer(peer));
    answers.router.clone().oneshot(request).await
}
