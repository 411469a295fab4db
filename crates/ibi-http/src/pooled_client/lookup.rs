//! Name lookups: one at a time per name, cached briefly.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::PooledClientError;

/// Cache lifetime of found addresses, and of failures.
const LOOKUP_TTL: Duration = Duration::from_secs(30);
const FAILED_LOOKUP_TTL: Duration = Duration::from_secs(1);

/// Timeout of a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of addresses tried per name.
const MAX_HOST_ADDRESSES: usize = 8;

/// Name lookup.
pub trait HostLookup: Send + Sync + 'static {
    /// The addresses of a host.
    fn lookup(&self, host: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The system resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl HostLookup for SystemLookup {
    fn lookup(&self, host: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

type LookupResult = Result<Arc<[IpAddr]>, PooledClientError>;

/// The cached result for one name. The lock is held during a lookup, so that others wait for it.
#[derive(Default)]
pub(super) struct LookupCache(Arc<Mutex<Option<(Instant, LookupResult)>>>);

impl LookupCache {
    pub(super) async fn resolve_host(&self, host: &str, lookup: &Arc<dyn HostLookup>) -> LookupResult {
        let mut known = self.0.clone().lock_owned().await;
        if let Some((until, found)) = &*known
            && *until > Instant::now()
        {
            return found.clone();
        }
        // In its own task: if the caller gave up, the next one would otherwise start over,
        // endlessly.
        let looking = lookup.lookup(host);
        let task = tokio::spawn(async move {
            let found = match tokio::time::timeout(LOOKUP_TIMEOUT, looking).await {
                Ok(Ok(mut ips)) => {
                    ips.truncate(MAX_HOST_ADDRESSES);
                    Ok(ips.into())
                }
                Ok(Err(error)) => Err(PooledClientError::Silent(format!("name lookup failed: {error}"))),
                Err(_) => Err(PooledClientError::Silent("name lookup timed out".to_owned())),
            };
            let fresh = if found.is_ok() { LOOKUP_TTL } else { FAILED_LOOKUP_TTL };
            *known = Some((Instant::now() + fresh, found.clone()));
            found
        });
        task.await.unwrap_or_else(|_| Err(PooledClientError::Silent("name lookup failed".to_owned())))
    }
}
