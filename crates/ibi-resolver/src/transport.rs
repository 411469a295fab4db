//! The transport to Archives: the interface between resolution and the network, so that tests can
//! simulate Archives and time.

mod breaker;
pub(crate) mod health;
pub mod network;

use bytes::Bytes;

use crate::archive::RegisteredArchive;

pub use breaker::BreakerState;
pub use health::ArchiveHealth;

/// Sends requests to Archives.
pub trait ArchiveTransport: Send + Sync + 'static {
    /// Sends one query (the text after `?`) to the service of an Archive and returns the response
    /// body. Timeouts are up to the caller.
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static;

    /// Sends the callback to an Archive that says it is online (3.3). It shows that the Archive is
    /// there, not that it answers questions.
    fn call_back(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        self.ask(archive, query)
    }

    /// Whether Archives respond, if this transport records it.
    fn health(&self) -> Option<&ArchiveHealth> {
        None
    }

    /// Gets a path, from its `/`, at the Archive's address, outside its service.
    fn fetch(
        &self,
        _archive: &RegisteredArchive,
        _path: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        std::future::ready(Err(ArchiveTransportError("nothing else is asked here".to_owned())))
    }
}

/// Why there is no readable response from an Archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveTransportError(pub String);
