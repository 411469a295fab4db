//! Names looked up: once for all who wait, remembered for a moment.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::AskError;

/// How long addresses are remembered, and how long that there are none.
const FRESH: Duration = Duration::from_secs(30);
const FRESH_FAILURE: Duration = Duration::from_secs(1);

/// How long a lookup may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most addresses of one name that are tried.
const MOST: usize = 8;

/// Looks up names.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a host.
    fn lookup(&self, host: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
}

/// The system's way.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

type Found = Result<Arc<[IpAddr]>, AskError>;

/// What is known of one name. Who looks it up holds the lock, and others wait for it.
#[derive(Default)]
pub(super) struct Names(Arc<Mutex<Option<(Instant, Found)>>>);

impl Names {
    pub(super) async fn find(&self, host: &str, lookup: &Arc<dyn Lookup>) -> Found {
        let mut known = self.0.clone().lock_owned().await;
        if let Some((until, found)) = &*known
            && *until > Instant::now()
        {
            return found.clone();
        }
        // On a task of its own: who asked may give up, and the next would begin again, without end.
        let looking = lookup.lookup(host);
        let task = tokio::spawn(async move {
            let found = match tokio::time::timeout(PATIENCE, looking).await {
                Ok(Ok(mut ips)) => {
                    ips.truncate(MOST);
                    Ok(ips.into())
                }
                Ok(Err(error)) => Err(AskError::Silent(format!("its name is not found: {error}"))),
                Err(_) => Err(AskError::Silent("its name is not found in time".to_owned())),
            };
            let fresh = if found.is_ok() { FRESH } else { FRESH_FAILURE };
            *known = Some((Instant::now() + fresh, found.clone()));
            found
        });
        task.await.unwrap_or_else(|_| Err(AskError::Silent("its name was not looked up".to_owned())))
    }
}
