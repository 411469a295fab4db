//! Asking many others at once, fast, and only where it is allowed: GET over HTTP/1.1 on connections that stay open.
//!
//! What is asked comes from us, where it goes to from strangers (an Archive says where it is). So a host is looked up once,
//! each address it leads to is checked, and the connection is made to the very address that was checked; nobody is followed
//! elsewhere, and size and number of everything are bounded (threat K5). How long to wait is the caller's business.

mod address;
mod connection;
mod guard;
mod lookup;
mod metered;
mod pool;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use tokio::net::TcpStream;

pub use address::{Address, AddressError, Host};
pub use guard::{Refusal, refusal};
pub use lookup::{Lookup, SystemLookup};

use connection::{Connection, Failed};
use lookup::Names;
use pool::{Pool, Room};

/// The longest answer that is read, in bytes.
pub const LONGEST: usize = 256 * 1024;

/// How long a connection may take to be made, over all addresses of a host.
const CONNECT: Duration = Duration::from_secs(3);

/// Asks others.
#[derive(Clone)]
pub struct Asker(Arc<Shared>);

struct Shared {
    allow_private: bool,
    lookup: Arc<dyn Lookup>,
    room: Arc<Room>,
}

/// Whom to ask: prepared once, asked often.
#[derive(Clone)]
pub struct Target(Arc<Prepared>);

struct Prepared {
    address: Address,
    host: HeaderValue,
    names: Names,
    pool: Arc<Pool>,
}

impl Asker {
    /// Asks over the names that the system knows. `allow_private`: also on private and loopback addresses.
    pub fn new(allow_private: bool) -> Self {
        Self::with(allow_private, Arc::new(SystemLookup))
    }

    /// The same with another way to look up names.
    pub fn with(allow_private: bool, lookup: Arc<dyn Lookup>) -> Self {
        Self(Arc::new(Shared { allow_private, lookup, room: Arc::default() }))
    }

    /// Prepares for asking at `host` or `host:port`.
    pub fn target(&self, address: &str) -> Result<Target, AddressError> {
        let address = Address::parse(address)?;
        // The text of an address is ASCII without spaces.
        let host = HeaderValue::from_str(&address.to_string()).map_err(|_| AddressError)?;
        let pool = Pool::new(&self.0.room);
        Ok(Target(Arc::new(Prepared { address, host, names: Names::default(), pool })))
    }

    /// Asks for a path and query (`/a/b?c=d`). Gives the status, whatever it is, and the body. The future may be dropped at
    /// any time: what was begun ends there, and its connection is closed.
    pub fn get(
        &self,
        target: &Target,
        path: String,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), AskError>> + Send + use<> {
        let (shared, target) = (self.0.clone(), target.0.clone());
        async move {
            let path = PathAndQuery::from_maybe_shared(Bytes::from(path))
                .map_err(|error| AskError::Path(error.to_string()))?;
            let _place = target.pool.place().await;
            if let Some(mut connection) = target.pool.idle() {
                match connection.ask(path.clone(), target.host.clone()).await {
                    Ok(answer) => {
                        target.pool.keep(connection);
                        return Ok(answer);
                    }
                    // The other side had hung up meanwhile: a GET can be repeated, on a new connection.
                    Err(Failed::Unanswered(_)) => {}
                    Err(Failed::Answered(error)) => return Err(error),
                }
            }
            target.pool.tidy_all();
            let mut connection = connect(&shared, &target).await?;
            let answer = connection.ask(path, target.host.clone()).await.map_err(Failed::into_inner)?;
            target.pool.keep(connection);
            Ok(answer)
        }
    }
}

/// Looks up the host, checks each address, and connects to one of those that were checked.
async fn connect(shared: &Shared, target: &Prepared) -> Result<Connection, AskError> {
    let looked_up;
    let port = target.address.port;
    let ips = match &target.address.host {
        Host::Ip(ip) => std::slice::from_ref(ip),
        Host::Name(name) => {
            looked_up = target.names.find(name, &shared.lookup).await?;
            &*looked_up
        }
    };
    let mut failed = AskError::Silent("its name leads to no address".to_owned());
    for ip in ips {
        // One that hangs leaves time for the others.
        let patience = CONNECT / ips.len() as u32;
        match tokio::time::timeout(patience, connect_to(shared, *ip, port)).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = AskError::Silent("no connection in time".to_owned()),
        }
    }
    Err(failed)
}

async fn connect_to(shared: &Shared, ip: IpAddr, port: u16) -> Result<Connection, AskError> {
    if let Some(refusal) = refusal(ip).filter(|refusal| !(shared.allow_private && refusal.is_private())) {
        return Err(AskError::Refused { ip, refusal });
    }
    let silent = |error: std::io::Error| AskError::Silent(format!("no connection: {error}"));
    // To this address: a second lookup could lead elsewhere.
    let stream = TcpStream::connect(SocketAddr::new(ip, port)).await.map_err(silent)?;
    stream.set_nodelay(true).map_err(silent)?;
    Connection::new(stream).await
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asker(allow_private: {})", self.0.allow_private)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.0.address)
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Nothing that can be asked for.
    #[error("it cannot be asked: {0}")]
    Path(String),
    /// Not an address to which anything is sent.
    #[error("{ip} is not asked: it is {refusal}")]
    Refused {
        /// The address.
        ip: IpAddr,
        /// Why.
        refusal: Refusal,
    },
    /// Nobody is there, or nothing comes that can be read.
    #[error("no answer: {0}")]
    Silent(String),
    /// More than is read.
    #[error("the answer has more than {most} bytes")]
    TooLong {
        /// As many as are read.
        most: usize,
    },
}

#[cfg(test)]
mod tests;
