//! Where a relation leads for one client, among what this Archive holds: 4.2's rules, applied by an
//! Archive to itself.
//!
//! Parts are taken from left to right (clause 2.4). Where one part offers several items, each is
//! tried in the client's order until one leads to something that is there; one that ends in a
//! removed item is passed over (4.2 step 6).

use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{Language, Part, Relation};
use ibi_store::journal::State;

use super::{FORMATS, Led, What};
use crate::ArchiveError;
use crate::archive::Holdings;

/// What a relation leads to.
#[derive(Debug)]
pub enum Destination {
    /// Something that is here. `vouched`: nobody else can know better; not so where a Copy says
    /// that there is no next edition (4.2 step 4).
    Here {
        /// What it is.
        led: Led,
        /// Whether this Archive's word is enough.
        vouched: bool,
    },
    /// Only something that was removed.
    Removed(Led),
    /// No such translation or format here. What there is.
    Missing(Vec<String>),
}

impl Holdings {
    /// Follows a relation for a client that prefers these languages.
    pub fn follow(
        &self,
        from: &Led,
        relation: &Relation,
        accepted: &AcceptedLanguages,
    ) -> Result<Destination, ArchiveError> {
        walk(self, from, relation.parts(), accepted, true)
    }
}

fn walk(
    holdings: &Holdings,
    from: &Led,
    parts: &[Part],
    accepted: &AcceptedLanguages,
    vouched: bool,
) -> Result<Destination, ArchiveError> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(match from.holding.state {
            State::Deleted => Destination::Removed(from.clone()),
            State::Original | State::Copy => Destination::Here { led: from.clone(), vouched },
        });
    };
    let alone = Relation::new(vec![part.clone()]).unwrap_or_default();
    let mut offered: Vec<(Part, Led)> = Vec::new();
    let offers = holdings.offers(from, &alone)?;
    for (relation, led) in offers.whole {
        offered.extend(relation.parts().first().cloned().map(|part| (part, led)));
    }
    let there = names(part, &offered, holdings, from)?;
    let mut vouched = vouched;
    let tried = match part {
        Part::LastEdition => {
            let ends_in_copy =
                |(_, led): &(Part, Led)| led.what == What::Item && led.holding.state == State::Copy;
            vouched &= !offered.iter().any(ends_in_copy);
            offered
        }
        Part::Metadata(_) => offered,
        Part::Translation(Some(wanted)) => exact_first(offered, *wanted),
        Part::Translation(None) => preferred(offered, accepted, from),
    };
    // The best translation may be in another Archive, which a resolver finds.
    let elsewhere: Vec<Language> =
        offers.elsewhere.iter().filter_map(|(relation, _)| language(relation.parts().first()?)).collect();
    if *part == Part::Translation(None) && !elsewhere.is_empty() {
        let here = tried.iter().filter_map(|(part, _)| language(part));
        let best = accepted.choose(here.chain(elsewhere.iter().copied()));
        if best.is_some_and(|best| elsewhere.contains(&best)) {
            return Ok(Destination::Missing(there));
        }
    }
    let mut removed = None;
    for (_, led) in tried {
        match walk(holdings, &led, rest, accepted, vouched)? {
            Destination::Removed(led) => removed = removed.or(Some(led)),
            found => return Ok(found),
        }
    }
    Ok(removed.map_or(Destination::Missing(there), Destination::Removed))
}

/// What there is in the place of what was asked for, as it is named in a URL.
fn names(
    part: &Part,
    offered: &[(Part, Led)],
    holdings: &Holdings,
    from: &Led,
) -> Result<Vec<String>, ArchiveError> {
    match part {
        Part::Metadata(_) => Ok(FORMATS.iter().map(|format| (*format).to_owned()).collect()),
        Part::Translation(Some(_)) if offered.is_empty() => {
            let any = Relation::new(vec![Part::Translation(None)]).unwrap_or_default();
            let all = holdings.offers(from, &any)?.whole.into_iter();
            Ok(all
                .filter_map(|(relation, _)| language(relation.parts().first()?))
                .map(|l| l.to_string())
                .collect())
        }
        Part::Translation(_) | Part::LastEdition => Ok(Vec::new()),
    }
}

fn language(part: &Part) -> Option<Language> {
    match part {
        Part::Translation(language) => *language,
        Part::LastEdition | Part::Metadata(_) => None,
    }
}

/// `+(pt)` is satisfied by `pt`, else by a `pt-XX` (4.2 step 6).
fn exact_first(mut offered: Vec<(Part, Led)>, wanted: Language) -> Vec<(Part, Led)> {
    offered.sort_by_key(|(part, _)| language(part) != Some(wanted));
    offered
}

/// The best for the client first, then the next best; if none fits, the bare translation, else the
/// item itself.
fn preferred(offered: Vec<(Part, Led)>, accepted: &AcceptedLanguages, from: &Led) -> Vec<(Part, Led)> {
    let mut left = offered;
    let mut tried = Vec::new();
    while let Some(best) = accepted.choose(left.iter().filter_map(|(part, _)| language(part))) {
        let Some(at) = left.iter().position(|(part, _)| language(part) == Some(best)) else { break };
        tried.push(left.remove(at));
    }
    let bare = left.into_iter().find(|(part, _)| language(part).is_none());
    tried.push(bare.unwrap_or_else(|| (Part::Translation(None), from.clone())));
    tried
}
