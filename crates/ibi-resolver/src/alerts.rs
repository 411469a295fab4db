//! Originals claimed by several Archives (4.2 steps 3 and 4), and Copies that are no version of the
//! Original (4.4), for an operator to investigate.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ibi_id::Label;
use ibi_protocol::analysis::{AnswerClaim, ArchiveId, OriginalDispute, RoundQuery};
use ibi_protocol::{LabelForms, Verbs};
use tokio::time::Instant;

/// Minimum interval between background recounts of one item, so that a popular item with two
/// originals does not double every client's requests.
const RECOUNT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of items whose last recount is remembered.
const MAX_REMEMBERED_RECOUNTS: usize = 1024;

/// Several Archives claim the original of one item, and repeated the claim when asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedAlert {
    /// The item, in all forms that they know; empty only if none of them names it.
    pub item: LabelForms,
    /// The requested label and modifiers.
    pub asked: String,
    /// The claims: two or more, one per Archive.
    pub claims: Vec<RaisedClaim>,
}

/// An Archive has Copies that are no version of the Originals in another one: one alert for all of
/// the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedCopyAlert {
    /// The service of the Archive of the Originals.
    pub original: Label,
    /// The service of the Archive of the Copies.
    pub copy: Label,
    /// The labels of the items.
    pub items: Vec<String>,
}

/// One Archive's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedClaim {
    /// The label of its service.
    pub service: Label,
    /// The URL of the claimed original, if the Archive can serve it.
    pub url: Option<String>,
    /// The last update, as the Archive writes it.
    pub timestamp: Option<String>,
    /// When the claim was made, in seconds since the Unix epoch.
    pub seen: i64,
}

impl RaisedAlert {
    /// Names the suspects of a round.
    pub(crate) fn new(
        suspects: &OriginalDispute,
        wanted: &RoundQuery,
        seen: i64,
        service: impl Fn(ArchiveId) -> Option<Label>,
    ) -> Self {
        let claim = |claimed: &AnswerClaim| {
            let (url, timestamp) = (claimed.url.clone(), claimed.timestamp.clone());
            Some(RaisedClaim { service: service(claimed.archive)?, url, timestamp, seen })
        };
        Self {
            item: suspects.ibi.clone(),
            asked: format!("{}{}", wanted.label.spelling(), wanted.verbs.relation.modifiers()),
            claims: suspects.claims.iter().filter_map(claim).collect(),
        }
    }
}

/// The items whose claims were recounted recently.
#[derive(Default)]
pub(crate) struct RecentRecounts(Mutex<HashMap<(Label, Verbs), Instant>>);

impl RecentRecounts {
    /// Whether to recount the claims for this query now.
    pub(crate) fn begin(&self, wanted: &RoundQuery) -> bool {
        let what = (wanted.label.clone(), wanted.verbs.clone());
        let now = Instant::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(&what).is_some_and(|&at| now.duration_since(at) < RECOUNT_INTERVAL) {
            return false;
        }
        if last.len() >= MAX_REMEMBERED_RECOUNTS {
            last.retain(|_, at| now.duration_since(*at) < RECOUNT_INTERVAL);
        }
        if last.len() >= MAX_REMEMBERED_RECOUNTS {
            return false;
        }
        last.insert(what, now);
        true
    }
}
