//! Copies here whose Original nobody claims (clause 2.1), reported to the operator while the Archive is online.

use std::sync::Arc;
use std::time::Duration;

use ibi_store::journal::State;

use super::HolderError;
use super::original_claim::OriginalClaim;
use super::peer::Peer;
use crate::service::Desk;

/// After a start, so that others can start too; and between two looks at all copies.
const FIRST_LOOK: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_secs(86_400);

/// Between two questions: a resolver has other clients.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);

/// Copies that the log names at each look; all are counted.
const MAX_LOGGED_ORPHANS: u64 = 20;

/// Items that are read at a time.
const PAGE: usize = 200;

/// Looks for such copies daily, for as long as the Archive is online.
pub async fn report(desk: Arc<Desk>, resolver: String) {
    tokio::time::sleep(FIRST_LOOK).await;
    loop {
        if let Err(error) = look_at_all(&desk, &resolver).await {
            tracing::warn!(%error, "cannot look for copies without an Original; tried again");
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

async fn look_at_all(desk: &Desk, resolver: &str) -> Result<(), HolderError> {
    let resolver = Peer::new(resolver, None)?;
    let settings = desk.read()?.settings().clone();
    let (mut after, mut orphans) = (String::new(), 0);
    loop {
        let page = desk.read()?.list(&after, PAGE)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for holding in page.iter().filter(|holding| holding.state == State::Copy) {
            tokio::time::sleep(QUESTION_INTERVAL).await;
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
