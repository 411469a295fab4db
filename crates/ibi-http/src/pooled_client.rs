//! A pooled HTTP client with an address guard: GET over HTTP/1.1 on persistent connections, with
//! or without TLS. Over TLS the certificate has to be for the host of the target; a server that is
//! asked over TLS is never asked without.
//!
//! The request is ours, but its destination comes from untrusted parties (an Archive states its own
//! address). So a host is looked up once, each of its addresses is checked, and the connection is
//! made to the very address that was checked. Redirects are not followed, and sizes and counts are
//! bounded (threat K5). Timeouts are up to the caller.

mod address;
mod client_stream;
mod connection;
mod guard;
mod lookup;
mod metered_stream;
mod pool;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

pub use address::{HttpScheme, ServerAddress, ServerAddressError, ServerHost};
pub use guard::{GuardRefusal, address_refusal, port_refusal};
pub use lookup::{HostLookup, SystemLookup};

use crate::{CertificateProblem, ClientTls, TlsError};
use connection::{ClientConnection, ConnectionFailure};
use lookup::LookupCache;
use pool::{ConnectionPool, SharedPoolState};

/// Maximum response size in bytes.
pub const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Timeout for connecting, over all addresses of a host.
const POOLED_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A client that shares pooled connections.
#[derive(Clone)]
pub struct PooledClient(Arc<PooledClientState>);

struct PooledClientState {
    allow_private: bool,
    lookup: Arc<dyn HostLookup>,
    room: Arc<SharedPoolState>,
    /// What is trusted, if it is not what the process trusts.
    tls: Option<ClientTls>,
}

/// A request target: prepared once, used often.
#[derive(Clone)]
pub struct HttpTarget(Arc<HttpTargetState>);

struct HttpTargetState {
    address: ServerAddress,
    host: HeaderValue,
    /// For servers that are asked over TLS.
    tls: Option<(ClientTls, ServerName<'static>)>,
    names: LookupCache,
    pool: Arc<ConnectionPool>,
}

impl PooledClient {
    /// Resolves names through the system. `allow_private` also permits private and loopback
    /// addresses.
    pub fn new(allow_private: bool) -> Self {
        Self::with_lookup(allow_private, Arc::new(SystemLookup))
    }

    /// The same with another name lookup.
    pub fn with_lookup(allow_private: bool, lookup: Arc<dyn HostLookup>) -> Self {
        Self(Arc::new(PooledClientState { allow_private, lookup, room: Arc::default(), tls: None }))
    }

    /// The same with other trust than the process has. For a client without targets.
    pub fn trusting(self, tls: ClientTls) -> Self {
        let PooledClientState { allow_private, lookup, .. } = &*self.0;
        let (allow_private, lookup) = (*allow_private, Arc::clone(lookup));
        Self(Arc::new(PooledClientState { allow_private, lookup, room: Arc::default(), tls: Some(tls) }))
    }

    /// Prepares a target for `host` or `host:port`.
    pub fn target(&self, address: &str) -> Result<HttpTarget, ServerAddressError> {
        self.prepare(HttpScheme::Http, ServerAddress::parse(address)?, None)
    }

    /// The same over TLS: the certificate has to be for this host.
    pub fn secure_target(&self, address: &str) -> Result<HttpTarget, SecureTargetError> {
        let address = ServerAddress::parse_for(HttpScheme::Https, address)?;
        let tls = self.0.tls.clone().map_or_else(ClientTls::of_process, Ok)?;
        let name = server_name(&address.host)?;
        Ok(self.prepare(HttpScheme::Https, address, Some((tls, name)))?)
    }

    fn prepare(
        &self,
        scheme: HttpScheme,
        address: ServerAddress,
        tls: Option<(ClientTls, ServerName<'static>)>,
    ) -> Result<HttpTarget, ServerAddressError> {
        // The text of an address is ASCII without spaces.
        let host = HeaderValue::from_str(&address.authority(scheme)).map_err(|_| ServerAddressError)?;
        let pool = ConnectionPool::new(&self.0.room);
        Ok(HttpTarget(Arc::new(HttpTargetState { address, host, tls, names: LookupCache::default(), pool })))
    }

    /// Gets a path and query (`/a/b?c=d`). Returns the status, whatever it is, and the body. The
    /// future may be dropped at any time: that cancels the request and closes its connection.
    pub fn get(
        &self,
        target: &HttpTarget,
        path: String,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), PooledClientError>> + Send + use<> {
        let (shared, target) = (self.0.clone(), target.0.clone());
        async move {
            let path = PathAndQuery::from_maybe_shared(Bytes::from(path))
                .map_err(|error| PooledClientError::Path(error.to_string()))?;
            let _place = target.pool.acquire_permit().await;
            if let Some(mut connection) = target.pool.take_idle() {
                match connection.send_get(path.clone(), target.host.clone()).await {
                    Ok(answer) => {
                        target.pool.return_connection(connection);
                        return Ok(answer);
                    }
                    // The server had closed the connection: retry the GET on a new one.
                    Err(ConnectionFailure::Unanswered(_)) => {}
                    Err(ConnectionFailure::Answered(error)) => return Err(error),
                }
            }
            target.pool.close_expired_everywhere();
            let mut connection = connect(&shared, &target).await?;
            let answer = connection
                .send_get(path, target.host.clone())
                .await
                .map_err(ConnectionFailure::into_inner)?;
            target.pool.return_connection(connection);
            Ok(answer)
        }
    }
}

/// What the certificate of a host is for.
fn server_name(host: &ServerHost) -> Result<ServerName<'static>, ServerAddressError> {
    match host {
        ServerHost::Ip(ip) => Ok(ServerName::from(*ip)),
        ServerHost::Name(name) => ServerName::try_from(name.clone()).map_err(|_| ServerAddressError),
    }
}

/// Looks up the host, checks each address, and connects to one that passed.
async fn connect(
    shared: &PooledClientState,
    target: &HttpTargetState,
) -> Result<ClientConnection, PooledClientError> {
    let looked_up;
    let ips = match &target.address.host {
        ServerHost::Ip(ip) => std::slice::from_ref(ip),
        ServerHost::Name(name) => {
            looked_up = target.names.resolve_host(name, &shared.lookup).await?;
            &*looked_up
        }
    };
    let mut failed = PooledClientError::Silent("its name has no address".to_owned());
    for ip in ips {
        // An address that hangs must leave time for the others.
        let patience = POOLED_CONNECT_TIMEOUT / ips.len() as u32;
        match tokio::time::timeout(patience, connect_to(shared, target, *ip)).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => failed = error,
            // What is wrong with a certificate is of more use than that another address is silent.
            Err(_) if matches!(failed, PooledClientError::Certificate(_)) => {}
            Err(_) => failed = PooledClientError::Silent("connection timed out".to_owned()),
        }
    }
    Err(failed)
}

async fn connect_to(
    shared: &PooledClientState,
    target: &HttpTargetState,
    ip: IpAddr,
) -> Result<ClientConnection, PooledClientError> {
    let port = target.address.port;
    let refused = address_refusal(ip).filter(|refusal| !(shared.allow_private && refusal.is_private()));
    if let Some(refusal) = refused.or(port_refusal(port)) {
        return Err(PooledClientError::Refused { ip, refusal });
    }
    let silent = |error: std::io::Error| PooledClientError::Silent(format!("no connection: {error}"));
    // Connect to this very address: a second lookup could lead elsewhere.
    let stream = TcpStream::connect(SocketAddr::new(ip, port)).await.map_err(silent)?;
    stream.set_nodelay(true).map_err(silent)?;
    ClientConnection::new(stream, target.tls.as_ref()).await
}

impl fmt::Debug for PooledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asker(allow_private: {})", self.0.allow_private)
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.0.address)
    }
}

/// Why a target over TLS cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SecureTargetError {
    /// Not a valid address.
    #[error(transparent)]
    Address(#[from] ServerAddressError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PooledClientError {
    /// Not a valid path.
    #[error("invalid request: {0}")]
    Path(String),
    /// The guard refuses this address.
    #[error("connection refused by the address guard: {ip} is {refusal}")]
    Refused {
        /// The address.
        ip: IpAddr,
        /// The reason.
        refusal: GuardRefusal,
    },
    /// No connection, or a response that cannot be parsed.
    #[error("no answer: {0}")]
    Silent(String),
    /// The server cannot be asked over TLS.
    #[error("no answer: {0}")]
    Certificate(CertificateProblem),
    /// The response is too long.
    #[error("the answer has more than {most} bytes")]
    TooLong {
        /// The limit in bytes.
        most: usize,
    },
}

#[cfg(test)]
mod tests;
