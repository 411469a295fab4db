//! What Archives that claim one original tell of it to whoever asks (4.2 step 3): an alert carries
//! it, so that the operator can look into the matter. It comes from the public interface of our own
//! Archives (`docs/formats/holders.md`); one of another implementation has none, and is simply left
//! out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ibi_id::Label;
use ibi_store::digests::sha512;
use ibi_store::registry::{Evidence, MAX_EVIDENCE_VERSIONS, VersionDigest};
use tokio::time::Instant;

use crate::archive::Archive;
use crate::ask::Ask;

/// How long all Archives of one alert may take to tell what they know.
const EVIDENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one item is not asked for again: clients can have alerts raised as often as they like.
const EVIDENCE_INTERVAL: Duration = Duration::from_secs(60);
/// The most items of which that is remembered.
const MAX_REMEMBERED_ITEMS: usize = 1024;
/// What an Archive tells of an item that it claims, if it tells anything.
async fn of_archive<A: Ask>(ask: &A, archive: &Archive, label: &Label, now: i64) -> Option<Evidence> {
    let address = format!("/api/v1/items/{}", label.spelling());
    let account = ask.fetch(archive, &address).await.ok()?;
    let (mut evidence, last) = Evidence::read(&account, now)?;
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

/// What these Archives tell of an item, each by the label of its service. All are asked at once;
/// who takes too long has told nothing.
pub(crate) async fn gather<A: Ask>(
    ask: &Arc<A>,
    archives: Vec<Arc<Archive>>,
    label: &Label,
    now: i64,
) -> Vec<(String, Evidence)> {
    let deadline = Instant::now() + EVIDENCE_TIMEOUT;
    let asked = archives.into_iter().map(|archive| {
        let (ask, label) = (Arc::clone(ask), label.clone());
        tokio::spawn(async move {
            let told = tokio::time::timeout_at(deadline, of_archive(&*ask, &archive, &label, now)).await;
            Some((archive.service.to_string(), told.ok()??))
        })
    });
    let mut told = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        told.extend(asked.await.ok().flatten());
    }
    told
}

/// The items of which evidence was gathered of late.
#[derive(Default)]
pub(crate) struct RecentEvidence(Mutex<HashMap<Label, Instant>>);

impl RecentEvidence {
    /// Whether evidence of an item is to be gathered now.
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
