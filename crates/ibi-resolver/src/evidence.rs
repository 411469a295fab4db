//! Evidence from Archives that claim the same original (4.2 step 3). It is attached to the alert
//! for the operator's investigation. It comes from the public interface of our own Archives
//! (`docs/formats/holders.md`); Archives of other implementations have none and are skipped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ibi_id::Label;
use ibi_store::digests::sha512;
use ibi_store::registry::{AlertEvidence, MAX_EVIDENCE_VERSIONS, VersionDigest};
use tokio::time::Instant;

use crate::archive::RegisteredArchive;
use crate::transport::ArchiveTransport;

/// Timeout for gathering evidence from all Archives of one alert.
const EVIDENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum interval between gatherings for one item: clients can trigger alerts as often as they
/// like.
const EVIDENCE_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of items whose last gathering is remembered.
const MAX_REMEMBERED_ITEMS: usize = 1024;
/// Fetches what an Archive publishes about an item that it claims.
async fn fetch_evidence<A: ArchiveTransport>(
    ask: &A,
    archive: &RegisteredArchive,
    label: &Label,
    now: i64,
) -> Option<AlertEvidence> {
    let address = format!("/api/v1/items/{}", label.spelling());
    let account = ask.fetch(archive, &address).await.ok()?;
    let (mut evidence, last) = AlertEvidence::parse_account(&account, now)?;
    let first = last.saturating_sub(MAX_EVIDENCE_VERSIONS as u64 - 1).max(1);
    for version in first..=last {
        let Ok(inventory) = ask.fetch(archive, &format!("{address}/object/v{version}/inventory.json")).await
        else {
            continue;
        };
        evidence.versions.push(VersionDigest { version, inventory: sha512(&inventory) });
    }
    Some(evidence)
}

/// Evidence for an item, by service label. All Archives are queried at once; those that time out
/// are omitted.
pub(crate) async fn gather_evidence<A: ArchiveTransport>(
    ask: &Arc<A>,
    archives: Vec<Arc<RegisteredArchive>>,
    label: &Label,
    now: i64,
) -> Vec<(String, AlertEvidence)> {
    let deadline = Instant::now() + EVIDENCE_TIMEOUT;
    let asked = archives.into_iter().map(|archive| {
        let (ask, label) = (Arc::clone(ask), label.clone());
        tokio::spawn(async move {
            let told = tokio::time::timeout_at(deadline, fetch_evidence(&*ask, &archive, &label, now)).await;
            Some((archive.service.to_string(), told.ok()??))
        })
    });
    let mut told = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        told.extend(asked.await.ok().flatten());
    }
    told
}

/// The items for which evidence was gathered recently.
#[derive(Default)]
pub(crate) struct RecentEvidence(Mutex<HashMap<Label, Instant>>);

impl RecentEvidence {
    /// Whether to gather evidence for an item now.
    pub(crate) fn begin(&self, item: &Label) -> bool {
        let now = Instant::now();
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MAX_REMEMBERED_ITEMS {
            recent.retain(|_, at| now.duration_since(*at) < EVIDENCE_INTERVAL);
        }
        let is_recent = recent.get(item).is_some_and(|&at| now.duration_since(at) < EVIDENCE_INTERVAL);
        if is_recent || recent.len() >= MAX_REMEMBERED_ITEMS {
            return false;
        }
        recent.insert(item.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_item_is_not_asked_for_all_the_time() {
        let recent = RecentEvidence::default();
        let item: Label = "a.br/b/2009/02.16.17.46".parse().unwrap();
        assert!(recent.begin(&item) && !recent.begin(&item));
        tokio::time::advance(EVIDENCE_INTERVAL).await;
        assert!(recent.begin(&item));
    }
}
