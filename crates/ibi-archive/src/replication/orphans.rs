//! Reports local copies whose Original nobody claims (clause 2.1) to the operator while the Archive
//! is online.

use std::sync::Arc;
use std::time::Duration;

use ibi_store::journal::State;

use super::ReplicationError;
use super::original_claim::OriginalClaim;
use super::peer::PeerArchive;
use crate::engine::ArchiveEngine;

/// Delay after a start, so that this Archive is online itself (a silent one leaves the answer
/// open); and the interval between scans.
const FIRST_ORPHAN_SCAN_DELAY: Duration = Duration::from_secs(10);
const ORPHAN_SCAN_INTERVAL: Duration = Duration::from_secs(86_400);

/// Pause between queries: a resolver has other clients.
const RESOLVER_QUERY_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of copies logged per scan; all are counted.
const MAX_LOGGED_ORPHANS: u64 = 20;

const ORPHAN_SCAN_PAGE_ITEMS: usize = 200;

/// Scans for such copies daily while the Archive is online.
pub async fn report_orphans(desk: Arc<ArchiveEngine>, resolver: String) {
    tokio::time::sleep(FIRST_ORPHAN_SCAN_DELAY).await;
    loop {
        if let Err(error) = scan_copies(&desk, &resolver).await {
            tracing::warn!(%error, "cannot search for copies without an Original; retrying");
        }
        tokio::time::sleep(ORPHAN_SCAN_INTERVAL).await;
    }
}

async fn scan_copies(desk: &ArchiveEngine, resolver: &str) -> Result<(), ReplicationError> {
    let resolver = PeerArchive::new(resolver, None)?;
    let settings = desk.read()?.settings().clone();
    let (mut after, mut orphans) = (String::new(), 0);
    loop {
        let page = desk.read()?.list(&after, ORPHAN_SCAN_PAGE_ITEMS)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for holding in page.iter().filter(|holding| holding.state == State::Copy) {
            tokio::time::sleep(RESOLVER_QUERY_INTERVAL).await;
            let item = holding.item.labels.primary();
            let claim = OriginalClaim::ask(&resolver, &settings, item).await?;
            if !matches!(claim, OriginalClaim::Nobody | OriginalClaim::Removed) {
                continue;
            }
            orphans += 1;
            if orphans <= MAX_LOGGED_ORPHANS {
                tracing::warn!(%item, "nobody claims the Original of this copy: `ibi archive audit --resolver` lists all");
            }
        }
    }
    metrics::gauge!("ibi_orphan_copies").set(f64::from(u32::try_from(orphans).unwrap_or(u32::MAX)));
    Ok(())
}
