//! The listener: connections within limits, until it is told to stop.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::client::Peer;
use crate::stream::Taken;
use crate::{Limits, Tls};

/// What answers before routes are looked for; nothing if it is not asked.
type First = dyn Fn(&Method, &Uri) -> Option<Response<Body>> + Send + Sync;

/// What answers: a router, and before it, if there is something that is asked all day, what answers that alone.
#[derive(Clone)]
pub struct Answers {
    first: Option<Arc<First>>,
    router: Router,
}

impl From<Router> for Answers {
    fn from(router: Router) -> Self {
        Self { first: None, router }
    }
}

impl Answers {
    /// Asks this first. It blocks the connection's thread while it answers, and tells of what it answered itself
    /// ([`crate::telemetry::tell`]).
    #[must_use]
    pub fn first(
        self,
        first: impl Fn(&Method, &Uri) -> Option<Response<Body>> + Send + Sync + 'static,
    ) -> Self {
        Self { first: Some(Arc::new(first)), ..self }
    }
}

/// Serves until `stop` is done, then lets requests that were begun end.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    limits: Limits,
    answers: impl Into<Answers>,
    stop: impl Future<Output = ()>,
) {
    let answers = answers.into();
    let graceful = GracefulShutdown::new();
    let places = Places::new(&limits);
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Some((stream, peer)) = take(accepted).await else { continue };
        let Some(place) = places.take(peer.ip()) else {
            metrics::counter!("ibi_connections_refused_total").increment(1);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (tls, answers, watcher) = (tls.clone(), answers.clone(), graceful.watcher());
        tokio::spawn(async move {
            match tls {
                None => one(stream, peer, &limits, answers, watcher).await,
                Some(Tls(acceptor)) => {
                    if let Ok(Ok(stream)) = timeout(limits.head_time, acceptor.accept(stream)).await {
                        one(stream, peer, &limits, answers, watcher).await;
                    }
                }
            }
            drop(place);
        });
    }
    // No new ones from here on.
    drop(listener);
    if timeout(limits.drain_time, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that took too long were cut off");
    }
}

async fn take(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<(TcpStream, SocketAddr)> {
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // The process has no more descriptors: those that are open must go first.
            tracing::warn!(%error, "cannot take a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

async fn one<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    limits: &Limits,
    answers: Answers,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let stream = TokioIo::new(Taken::new(stream, limits));
    let answers = Arc::new(answers);
    let service = service_fn(move |request| answer(Arc::clone(&answers), peer.ip(), request));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head.max(8192))
        .serve_connection(stream, service);
    // Whatever ends it is the client's affair.
    let _ = watcher.watch(connection).await;
}

/// Refuses what could be read in two ways (RFC 9112 §3.2), and hands everything else on. Of a length given in two ways hyper
/// takes the chunks and hangs up after the answer (§6.3).
async fn answer(
    answers: Arc<Answers>,
    peer: IpAddr,
    request: Request<Incoming>,
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
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer));
    answers.router.clone().oneshot(request).await
}

/// Places for connections, in all and of one address.
#[derive(Clone)]
struct Places {
    all: Arc<Semaphore>,
    of_one: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A place that is given back when it is dropped.
struct Place {
    places: Places,
    who: IpAddr,
    _one: OwnedSemaphorePermit,
}

impl Places {
    fn new(limits: &Limits) -> Self {
        let all = Arc::new(Semaphore::new(limits.connections));
        Self { all, of_one: limits.connections_of_one, taken: Arc::default() }
    }

    fn take(&self, ip: IpAddr) -> Option<Place> {
        let one = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let who = network(ip);
        let mut taken = self.taken.lock().ok()?;
        let count = taken.entry(who).or_default();
        if *count >= self.of_one {
            return None;
        }
        *count += 1;
        metrics::gauge!("ibi_connections").increment(1);
        Some(Place { places: self.clone(), who, _one: one })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::gauge!("ibi_connections").decrement(1);
        if let Ok(mut taken) = self.places.taken.lock()
            && let Some(count) = taken.get_mut(&self.who)
        {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.who);
            }
        }
    }
}

/// Who counts as one: an IPv4 address, an IPv6 network of the size that one customer gets.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        ip => ip,
    }
}
