//! Who claims the original, counted for each item (4.2 step 3).

use super::Suspects;
use super::choice::Candidate;
use crate::answer::State;
use crate::forms::Forms;

/// Those who claim the original of one item, each Archive once, the best first.
pub(super) type Claims<'a, 'b> = Vec<&'b Candidate<'a>>;

/// Whether two offers lead to the same item.
pub(super) fn is_same(a: &Candidate<'_>, b: &Candidate<'_>) -> bool {
    match (&a.offer.ibi, &b.offer.ibi) {
        // Both answers are about the label asked for, whatever they call it.
        _ if a.offer.relation.is_empty() && b.offer.relation.is_empty() => true,
        (Some(a), Some(b)) => b.labels().iter().any(|label| a.hold(label)),
        // An item without a name is taken for the one that the others lead to.
        _ => a.offer.relation == b.offer.relation,
    }
}

/// The claims of the original among these, by item.
pub(super) fn claims<'a, 'b>(candidates: &'b [Candidate<'a>]) -> Vec<Claims<'a, 'b>> {
    let mut items: Vec<Claims<'a, 'b>> = Vec::new();
    for claim in candidates.iter().filter(|candidate| candidate.offer.state == Some(State::Original)) {
        // It may be what ties two items together that had no name in common.
        let (same, other): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.iter().any(|other| is_same(other, claim)));
        items = other;
        items.push(same.into_iter().flatten().chain([claim]).collect());
    }
    items.into_iter().map(each_archive_once).collect()
}

fn each_archive_once<'a, 'b>(mut claims: Claims<'a, 'b>) -> Claims<'a, 'b> {
    // Those with a URL are the better ones, so that of one Archive's claims the one stays that leads somewhere.
    claims.sort_by(|a, b| (&a.rank, a.order).cmp(&(&b.rank, b.order)));
    let mut once: Claims<'a, 'b> = Vec::new();
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
pub(super) fn suspects(items: &[Claims<'_, '_>], counts: bool) -> Vec<Suspects> {
    let several = items.iter().filter(|claims| claims.len() > 1);
    several
        .map(|claims| {
            let mut labels = Vec::new();
            for label in claims.iter().filter_map(|claim| claim.offer.ibi.as_ref()).flat_map(Forms::labels) {
                if !labels.contains(label) {
                    labels.push(label.clone());
                }
            }
            let archives = claims.iter().map(|claim| claim.archive).collect();
            Suspects { ibi: Forms::new(labels), archives, counts }
        })
        .collect()
}
