//! Who claims the original, counted for each item (4.2 step 3).

use super::check::{Live, Offer};
use super::spellings::{are_spelled_apart, name_one_item};
use super::{ArchiveId, Claimed, Suspects};
use crate::answer::State;
use crate::forms::Forms;

/// An offer, and whose it is.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) archive: ArchiveId,
    pub(super) live: &'a Live,
    pub(super) offer: &'a Offer,
}

/// Whether two offers of what one question asks for lead to the same item.
pub(super) fn is_same(a: &Whose<'_>, b: &Whose<'_>) -> bool {
    match (&a.offer.ibi, &b.offer.ibi) {
        // The item itself: both answers are about the label asked for, whatever they call it, unless
        // they spell it as two items (1.3).
        _ if a.offer.relation.is_empty() => !are_spelled_apart(a.live, b.live),
        (Some(a), Some(b)) => name_one_item(a, b),
        // An item without a name is taken for the one that the others lead to.
        _ => a.offer.relation == b.offer.relation,
    }
}

/// The claims of the original among these, by item: each Archive once for each, with the first of its offers that leads
/// somewhere.
pub(super) fn claims<'a>(offers: impl Iterator<Item = Whose<'a>>) -> Vec<Vec<Whose<'a>>> {
    let mut items: Vec<Vec<Whose<'a>>> = Vec::new();
    for claim in offers.filter(|whose| whose.offer.state == Some(State::Original)) {
        // It may be what ties two items together that had no name in common.
        let (same, other): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.iter().any(|other| is_same(other, &claim)));
        items = other;
        items.push(same.into_iter().flatten().chain([claim]).collect());
    }
    items.into_iter().map(each_archive_once).collect()
}

fn each_archive_once(claims: Vec<Whose<'_>>) -> Vec<Whose<'_>> {
    let mut once: Vec<Whose<'_>> = Vec::new();
    for claim in claims {
        match once.iter_mut().find(|other| other.archive == claim.archive) {
            None => once.push(claim),
            Some(other) if other.offer.url.is_none() => *other = claim,
            Some(_) => {}
        }
    }
    once
}

/// The items whose original several Archives claim.
pub(super) fn suspects(items: &[Vec<Whose<'_>>], counts: bool) -> Vec<Suspects> {
    let several = items.iter().filter(|claims| claims.len() > 1);
    several
        .map(|claims| {
            let mut labels = Vec::new();
            for label in claims.iter().filter_map(|claim| claim.offer.ibi.as_ref()).flat_map(Forms::labels) {
                if !labels.contains(label) {
                    labels.push(label.clone());
                }
            }
            let claims = claims.iter().map(|&Whose { archive, offer, .. }| Claimed {
                archive,
                url: offer.url.clone(),
                timestamp: offer.timestamp.clone(),
            });
            Suspects { ibi: Forms::new(labels), claims: claims.collect(), counts }
        })
        .collect()
}
