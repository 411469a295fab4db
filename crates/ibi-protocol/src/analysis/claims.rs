//! Claims to the Original, grouped by item (4.2 step 3).

use super::check::{AnswerOffer, LiveAnswer};
use super::deciders::has_links;
use super::plan::share_label;
use super::spellings::{are_spelled_apart, name_one_item};
use super::{AnswerClaim, ArchiveId, OriginalDispute};
use crate::answer::State;
use crate::forms::LabelForms;

/// An offer with the Archive that made it.
#[derive(Clone, Copy)]
pub(super) struct ArchiveOffer<'a> {
    pub(super) archive: ArchiveId,
    pub(super) live: &'a LiveAnswer,
    pub(super) offer: &'a AnswerOffer,
}

/// Whether two offers for the same question lead to the same item.
pub(super) fn is_same(a: &ArchiveOffer<'_>, b: &ArchiveOffer<'_>) -> bool {
    match (&a.offer.ibi, &b.offer.ibi) {
        // The item itself: both answers are about the queried label, whatever labels they use,
        // unless they spell it as two items (1.3).
        _ if a.offer.relation.is_empty() => !are_spelled_apart(a.live, b.live),
        (Some(a), Some(b)) if share_label(a, b) => name_one_item(a, b),
        // An item's metadata has one Original too, whatever its label.
        (Some(_), Some(_)) => {
            !has_links(a.offer.relation.parts())
                && !has_links(b.offer.relation.parts())
                && !are_spelled_apart(a.live, b.live)
        }
        // An offer without a label is taken to lead to the same item as the others.
        _ => a.offer.relation == b.offer.relation,
    }
}

/// The claims to the Original among these offers, grouped by item. Each Archive appears once per
/// item, preferably with an offer that has a URL.
pub(super) fn claims<'a>(offers: impl Iterator<Item = ArchiveOffer<'a>>) -> Vec<Vec<ArchiveOffer<'a>>> {
    let mut items: Vec<Vec<ArchiveOffer<'a>>> = Vec::new();
    for claim in offers.filter(|candidate| candidate.offer.state == Some(State::Original)) {
        // This claim may connect groups that had no label in common.
        let (matching, other): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.iter().any(|other| is_same(other, &claim)));
        items = other;
        items.push(matching.into_iter().flatten().chain([claim]).collect());
    }
    items.into_iter().map(one_per_archive).collect()
}

fn one_per_archive(claims: Vec<ArchiveOffer<'_>>) -> Vec<ArchiveOffer<'_>> {
    let mut unique: Vec<ArchiveOffer<'_>> = Vec::new();
    for claim in claims {
        match unique.iter_mut().find(|other| other.archive == claim.archive) {
            None => unique.push(claim),
            Some(other) if other.offer.url.is_none() => *other = claim,
            Some(_) => {}
        }
    }
    unique
}

/// The items whose Original several Archives claim. `counts` is set once they were queried again.
pub(super) fn suspects(items: &[Vec<ArchiveOffer<'_>>], counts: bool) -> Vec<OriginalDispute> {
    let disputed = items.iter().filter(|claims| claims.len() > 1);
    disputed
        .map(|claims| {
            let mut labels = Vec::new();
            for label in
                claims.iter().filter_map(|claim| claim.offer.ibi.as_ref()).flat_map(LabelForms::labels)
            {
                if !labels.contains(label) {
                    labels.push(label.clone());
                }
            }
            let claims = claims.iter().map(|&ArchiveOffer { archive, offer, .. }| AnswerClaim {
                archive,
                url: offer.url.clone(),
                timestamp: offer.timestamp.clone(),
            });
            OriginalDispute { ibi: LabelForms::new(labels), claims: claims.collect(), counts }
        })
        .collect()
}
