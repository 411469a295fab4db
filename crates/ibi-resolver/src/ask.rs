//! Asking an Archive: the seam between resolving and the network, so that tests can play Archives and time.

pub(crate) mod health;
pub mod network;

use bytes::Bytes;

use crate::archive::Archive;

pub use health::Health;

/// Asks Archives.
pub trait Ask: Send + Sync + 'static {
    /// Sends one query (what stands after the `?`) to the service of an Archive and gives the body of its answer. It is the
    /// caller who stops waiting.
    fn ask(
        &self,
        archive: &Archive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static;

    /// Gets something at the Archive's address that is not its service: a path from its `/` on.
    fn fetch(
        &self,
        _archive: &Archive,
        _path: &str,
    ) -> impl Future<Output = Result<Bytes, AskFailed>> + Send + 'static {
        std::future::ready(Err(AskFailed("nothing else is asked here".to_owned())))
    }
}

/// Why an Archive gave no answer that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AskFailed(pub String);
