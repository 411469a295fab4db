//! Which of several offers is the best for the client (4.2 steps 4 and 6).

use super::check::{Live, Offer};
use super::claims::Whose;
use super::languages::BEST;
use super::{ArchiveId, Wanted};
use crate::language::Language;
use crate::relation::{Part, Relation};

/// An offer that takes the client further.
pub(super) struct Candidate<'a> {
    pub(super) whose: Whose<'a>,
    pub(super) rank: Rank,
    /// Its place among the answers.
    order: usize,
}

/// What makes one offer better than another: the smallest is the best.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// For a leading `!`: the item calls itself its last edition, or does not say. It may be behind.
    pub(super) own_last_edition: bool,
    /// A translation into no language that the client named.
    any_language: bool,
    /// It has no URL, only the name of the item.
    only_known: bool,
    /// For each translation, how well it suits: to the letter or not, and then what the client reads.
    languages: Vec<(bool, usize, u8)>,
    /// Whether another could be better.
    could_be_better: bool,
}

impl Candidate<'_> {
    /// Whether no other offer can be better, so that nobody has to wait.
    pub(super) fn is_best(&self) -> bool {
        !self.rank.own_last_edition && !self.rank.only_known && !self.rank.could_be_better
    }
}

/// The offers of a relation, or of what it takes for it, the best first. Those in languages that do not suit the client
/// are left out, and so are those of which nothing is known.
pub(super) fn candidates<'a>(
    lives: &[(ArchiveId, &'a Live)],
    relation: &Relation,
    wanted: &Wanted,
) -> Vec<Candidate<'a>> {
    let mut found: Vec<Candidate<'a>> = Vec::new();
    for (order, &(archive, live)) in lives.iter().enumerate() {
        for offer in live.offers.iter().filter(|offer| relation.takes(&offer.relation)) {
            let rank = rank(live, offer, relation, wanted);
            found.extend(rank.map(|rank| Candidate { whose: Whose { archive, live, offer }, rank, order }));
        }
    }
    found.sort_by(|a, b| (&a.rank, a.order).cmp(&(&b.rank, b.order)));
    found
}

fn rank(live: &Live, offer: &Offer, relation: &Relation, wanted: &Wanted) -> Option<Rank> {
    if offer.url.is_none() && offer.ibi.is_none() {
        return None;
    }
    let mut rank = Rank {
        own_last_edition: relation.parts().first() == Some(&Part::LastEdition) && !leads_on(live),
        any_language: false,
        only_known: offer.url.is_none(),
        languages: Vec::new(),
        could_be_better: false,
    };
    for (wanted_part, part) in relation.parts().iter().zip(offer.relation.parts()) {
        let (Part::Translation(asked), Part::Translation(offered)) = (wanted_part, part) else { continue };
        let closeness = match (asked, offered) {
            (Some(asked), Some(offered)) => by_name(*asked, *offered, wanted),
            (None, Some(offered)) => {
                let fit = wanted.languages.fit(*offered)?;
                rank.could_be_better |= fit != BEST;
                (false, fit.0, fit.1)
            }
            (_, None) => {
                rank.any_language = true;
                rank.could_be_better |= !wanted.languages.is_empty();
                (true, usize::MAX, u8::MAX)
            }
        };
        rank.could_be_better |= asked.is_some() && closeness.0;
        rank.languages.push(closeness);
    }
    Some(rank)
}

/// `+(pt)` is satisfied by `pt`, else by a `pt-XX`: that which the client reads best.
fn by_name(asked: Language, offered: Language, wanted: &Wanted) -> (bool, usize, u8) {
    if asked == offered {
        return (false, 0, 0);
    }
    let (at, how) = wanted.languages.fit(offered).unwrap_or((usize::MAX, u8::MAX));
    (true, at, how)
}

/// Whether an answer says that the last edition is another item, or at least that there is a later one.
fn leads_on(live: &Live) -> bool {
    let is_last = |offer: &&Offer| offer.relation.parts() == [Part::LastEdition];
    let last = live.offers.iter().find(is_last).and_then(|offer| offer.ibi.as_ref());
    match last {
        Some(last) => !live.is(last),
        None => live.next_edition.is_some(),
    }
}
