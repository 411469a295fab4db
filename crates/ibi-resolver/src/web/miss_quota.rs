//! A quota on resolutions that find nothing: each of them queries all Archives in vain.
//!
//! Only a resolution that finds nothing counts. A client that has exhausted its quota is still
//! redirected to items that any client found recently.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use ibi_http::Problem;
use ibi_http::rate::{RateCharge, RatePolicy, RatedClient};

use crate::resolve::{ResolutionOutcome, ResolutionRequest, ResolutionResult};
use crate::web::site::ResolverSite;

/// Number of remembered labels that were found recently; a power of two.
const MAX_FOUND_LABELS: usize = 1 << 14;

/// Hashes of recently found labels; a newer one may overwrite another.
pub(super) struct FoundLabels {
    slots: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for FoundLabels {
    fn default() -> Self {
        let slots = (0..MAX_FOUND_LABELS).map(|_| AtomicU64::new(0)).collect();
        Self { slots, hasher: RandomState::new() }
    }
}

impl FoundLabels {
    fn digest(&self, label: &str) -> u64 {
        self.hasher.hash_one(label)
    }

    fn slot(&self, digest: u64) -> Option<&AtomicU64> {
        self.slots.get(usize::try_from(digest).unwrap_or(0) % MAX_FOUND_LABELS)
    }

    fn contains(&self, digest: u64) -> bool {
        self.slot(digest).is_some_and(|slot| slot.load(Ordering::Relaxed) == digest)
    }

    fn remember(&self, digest: u64) {
        if let Some(slot) = self.slot(digest) {
            slot.store(digest, Ordering::Relaxed);
        }
    }
}

impl ResolverSite {
    /// Resolves, unless the client has exhausted its quota. Only a resolution that finds nothing is
    /// charged.
    pub(super) async fn resolve_rated(
        &self,
        asked: ResolutionRequest,
    ) -> Result<(ResolutionResult, RateCharge), Problem> {
        let client = asked.client.first().copied().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        let digest = self.found.digest(asked.url.label.spelling());
        let quota = (RatePolicy::UnknownAddress, RatedClient::Address(client));
        let charge = match self.rates.charge(client, &[quota], 1) {
            Ok(charge) => charge,
            Err(_) if self.found.contains(digest) => RateCharge::default(),
            Err(problem) => return Err(problem),
        };
        let resolution = self.resolver.resolve(asked).await;
        if matches!(resolution.outcome, ResolutionOutcome::NotFound(_) | ResolutionOutcome::Incomplete { .. })
        {
            return Ok((resolution, charge));
        }
        self.rates.give_back(&charge);
        self.found.remember(digest);
        Ok((resolution, RateCharge::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_lately_is_remembered_in_bounded_memory() {
        let found = FoundLabels::default();
        for number in 0..100_000 {
            found.remember(found.digest(&number.to_string()));
        }
        assert_eq!(found.slots.len(), MAX_FOUND_LABELS);
        assert!(found.contains(found.digest("99999")));
        assert!(!found.contains(found.digest("none")));
    }
}
