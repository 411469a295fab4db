//! Originals that several Archives claim (4.2 steps 3 and 4): what an operator has to look into.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::{ArchiveId, Claimed, Suspects, Wanted};
use ibi_protocol::{Forms, Verbs};
use tokio::time::Instant;

/// How long claims of one item are not asked again in the background, so that a popular item with two originals does not
/// have every client's question asked twice.
const REST: Duration = Duration::from_secs(10);
/// The most items of which that is remembered.
const MOST_REMEMBERED: usize = 1024;

/// Several Archives claim the original of one item, and did so again when they were asked once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspected {
    /// The item, in all forms that they know: at least one, unless none of them says which item it is.
    pub item: Forms,
    /// What was asked for: a label and modifiers.
    pub asked: String,
    /// What they claim: two or more, one for each Archive.
    pub claims: Vec<Claim>,
}

/// One Archive's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The label of its service.
    pub service: Label,
    /// Where it has what it calls the original, if it can serve it.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// When it said so, in seconds since the Unix epoch.
    pub seen: i64,
}

impl Suspected {
    /// The suspects of a round, named.
    pub(crate) fn new(
        suspects: &Suspects,
        wanted: &Wanted,
        seen: i64,
        service: impl Fn(ArchiveId) -> Option<Label>,
    ) -> Self {
        let claim = |claimed: &Claimed| {
            let (url, timestamp) = (claimed.url.clone(), claimed.timestamp.clone());
            Some(Claim { service: service(claimed.archive)?, url, timestamp, seen })
        };
        Self {
            item: suspects.ibi.clone(),
            asked: format!("{}{}", wanted.label.spelling(), wanted.verbs.relation.modifiers()),
            claims: suspects.claims.iter().filter_map(claim).collect(),
        }
    }
}

/// The items whose claims were asked again of late.
#[derive(Default)]
pub(crate) struct Recounts(Mutex<HashMap<(Label, Verbs), Instant>>);

impl Recounts {
    /// Whether the claims of what is wanted are to be asked again now.
    pub(crate) fn begin(&self, wanted: &Wanted) -> bool {
        let what = (wanted.label.clone(), wanted.verbs.clone());
        let now = Instant::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&what).is_some_and(|&at| now.duration_since(at) < REST) {
            return false;
        }
        if last.len() >= MOST_REMEMBERED {
            last.retain(|_, at| now.duration_since(*at) < REST);
        }
        if last.len() >= MOST_REMEMBERED {
            return false;
        }
        last.insert(what, now);
        true
    }
}
