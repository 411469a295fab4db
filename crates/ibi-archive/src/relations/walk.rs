//! Follows a relation for one client among what this Archive holds: the rules of 4.2, applied by an
//! Archive to itself.
//!
//! Parts are processed from left to right (clause 2.4). Where one part offers several items, each
//! is tried in the client's order until one leads to something that exists; one that ends in a
//! removed item is skipped (4.2 step 6).

use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{Language, Relation, RelationPart};
use ibi_store::journal::State;

use super::{HeldTarget, METADATA_FORMATS, TargetPart};
use crate::ArchiveError;
use crate::archive::Holdings;

/// The destination of a relation.
#[derive(Debug)]
pub enum RelationDestination {
    /// Something that is here. `vouched` is false where a Copy says that there is no next edition:
    /// another Archive may know better (4.2 step 4).
    Here {
        /// The target.
        led: HeldTarget,
        /// Whether this Archive's answer is final.
        vouched: bool,
    },
    /// Only something removed.
    Removed(HeldTarget),
    /// No such translation or format here; the available ones.
    Missing(Vec<String>),
}

impl Holdings {
    /// Follows a relation for a client with these language preferences.
    pub fn follow_relation(
        &self,
        from: &HeldTarget,
        relation: &Relation,
        accepted: &AcceptedLanguages,
    ) -> Result<RelationDestination, ArchiveError> {
        walk_parts(self, from, relation.parts(), accepted, true)
    }
}

fn walk_parts(
    holdings: &Holdings,
    from: &HeldTarget,
    parts: &[RelationPart],
    accepted: &AcceptedLanguages,
    vouched: bool,
) -> Result<RelationDestination, ArchiveError> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(match from.holding.state {
            State::Deleted => RelationDestination::Removed(from.clone()),
            State::Original | State::Copy => RelationDestination::Here { led: from.clone(), vouched },
        });
    };
    let alone = Relation::new(vec![part.clone()]).unwrap_or_default();
    let mut offered: Vec<(RelationPart, HeldTarget)> = Vec::new();
    let offers = holdings.relation_offers(from, &alone)?;
    for (relation, led) in offers.whole {
        offered.extend(relation.parts().first().cloned().map(|part| (part, led)));
    }
    let there = available_names(part, &offered, holdings, from)?;
    let mut vouched = vouched;
    let tried = match part {
        RelationPart::LastEdition => {
            let ends_in_copy = |(_, led): &(RelationPart, HeldTarget)| {
                led.what == TargetPart::Item && led.holding.state == State::Copy
            };
            vouched &= !offered.iter().any(ends_in_copy);
            offered
        }
        RelationPart::Metadata(_) => offered,
        RelationPart::Translation(Some(wanted)) => exact_first(offered, *wanted),
        RelationPart::Translation(None) => by_preference(offered, accepted, from),
    };
    // The best translation may be in another Archive, which a resolver finds.
    let elsewhere: Vec<Language> =
        offers.elsewhere.iter().filter_map(|(relation, _)| language(relation.parts().first()?)).collect();
    if *part == RelationPart::Translation(None) && !elsewhere.is_empty() {
        let here = tried.iter().filter_map(|(part, _)| language(part));
        let best = accepted.choose(here.chain(elsewhere.iter().copied()));
        if best.is_some_and(|best| elsewhere.contains(&best)) {
            return Ok(RelationDestination::Missing(there));
        }
    }
    let mut removed = None;
    for (_, led) in tried {
        match walk_parts(holdings, &led, rest, accepted, vouched)? {
            RelationDestination::Removed(led) => removed = removed.or(Some(led)),
            found => return Ok(found),
        }
    }
    Ok(removed.map_or(RelationDestination::Missing(there), RelationDestination::Removed))
}

/// The available alternatives, as named in a URL.
fn available_names(
    part: &RelationPart,
    offered: &[(RelationPart, HeldTarget)],
    holdings: &Holdings,
    from: &HeldTarget,
) -> Result<Vec<String>, ArchiveError> {
    match part {
        RelationPart::Metadata(_) => Ok(METADATA_FORMATS.iter().map(|format| (*format).to_owned()).collect()),
        RelationPart::Translation(Some(_)) if offered.is_empty() => {
            let any = Relation::new(vec![RelationPart::Translation(None)]).unwrap_or_default();
            let all = holdings.relation_offers(from, &any)?.whole.into_iter();
            Ok(all
                .filter_map(|(relation, _)| language(relation.parts().first()?))
                .map(|l| l.to_string())
                .collect())
        }
        RelationPart::Translation(_) | RelationPart::LastEdition => Ok(Vec::new()),
    }
}

fn language(part: &RelationPart) -> Option<Language> {
    match part {
        RelationPart::Translation(language) => *language,
        RelationPart::LastEdition | RelationPart::Metadata(_) => None,
    }
}

/// `+(pt)` is satisfied by `pt`, else by a `pt-XX` (4.2 step 6).
fn exact_first(
    mut offered: Vec<(RelationPart, HeldTarget)>,
    wanted: Language,
) -> Vec<(RelationPart, HeldTarget)> {
    offered.sort_by_key(|(part, _)| language(part) != Some(wanted));
    offered
}

/// Orders by the client's preference; if none fits, the bare translation, else the item itself.
fn by_preference(
    offered: Vec<(RelationPart, HeldTarget)>,
    accepted: &AcceptedLanguages,
    from: &HeldTarget,
) -> Vec<(RelationPart, HeldTarget)> {
    let mut left = offered;
    let mut tried = Vec::new();
    while let Some(best) = accepted.choose(left.iter().filter_map(|(part, _)| language(part))) {
        let Some(at) = left.iter().position(|(part, _)| language(part) == Some(best)) else { break };
        tried.push(left.remove(at));
    }
    let bare = left.into_iter().find(|(part, _)| language(part).is_none());
    tried.push(bare.unwrap_or_else(|| (RelationPart::Translation(None), from.clone())));
    tried
}
