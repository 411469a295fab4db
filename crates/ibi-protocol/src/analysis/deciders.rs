//! The Archive that holds an item's Original decides about the item's links (2.4, *Consent*; ADR
//! 13).

use std::collections::BTreeSet;

use ibi_id::Label;

use super::plan::{ItemAnswer, share_label, with_part};
use super::{ArchiveId, RoundQuery};
use crate::answer::State;
use crate::forms::LabelForms;
use crate::relation::RelationPart;

/// The Archives that claim the Original of an item, found by querying all for the item itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkDeciders {
    pub(super) label: Label,
    pub(super) archives: Vec<ArchiveId>,
}

impl LinkDeciders {
    /// The known deciders of the queried item.
    pub(super) fn of(query: &RoundQuery) -> Option<&[ArchiveId]> {
        let known = query.trail.deciders.as_ref().filter(|known| known.label == query.label);
        known.map(|known| known.archives.as_slice())
    }
}

/// The answers that are considered in a round.
pub(super) struct CountedAnswers<'a> {
    pub(super) answers: Vec<ItemAnswer<'a>>,
    /// Whether they come from holders of the Original; all others are then ignored.
    pub(super) are_final: bool,
    /// Whether the known deciders have not answered; an outstanding Archive may be one of them.
    pub(super) deciders_missing: bool,
}

/// Selects the answers to consider for a query. The Original decides only about links: whether an
/// Archive holds the item, and in which formats its metadata, each Archive states for itself.
pub(super) fn counted_answers<'a>(answers: &[ItemAnswer<'a>], query: &RoundQuery) -> CountedAnswers<'a> {
    let all = || CountedAnswers { answers: answers.to_vec(), are_final: false, deciders_missing: false };
    if !has_links(query.verbs.relation.parts()) {
        return all();
    }
    let known_deciders = LinkDeciders::of(query);
    let deciding: Vec<ItemAnswer<'a>> = match known_deciders {
        Some(known) => answers.iter().filter(|answer| known.contains(&answer.archive)).copied().collect(),
        None => minters(answers, &[], std::slice::from_ref(&query.label)),
    };
    match deciding.is_empty() {
        true => CountedAnswers {
            deciders_missing: known_deciders.is_some_and(|known| !known.is_empty()),
            ..all()
        },
        false => CountedAnswers { answers: deciding, are_final: true, deciders_missing: false },
    }
}

/// Whether a relation contains editions or translations.
pub(super) fn has_links(relation: &[RelationPart]) -> bool {
    relation.iter().any(|part| !matches!(part, RelationPart::Metadata(_)))
}

/// The Archives that claim the Original of what a relation leads to, under the prefix of their own
/// service. Without other evidence they are taken for the holder (4.4).
pub(super) fn minters<'a>(
    answers: &[ItemAnswer<'a>],
    relation: &[RelationPart],
    item: &[Label],
) -> Vec<ItemAnswer<'a>> {
    let is_minter = |answer: &&ItemAnswer<'a>| {
        is_minted_by(answer, item) && shows_state(answer, relation, State::Original)
    };
    answers.iter().filter(is_minter).copied().collect()
}

/// Whether a label has the prefix of the Archive's own service.
pub(super) fn is_minted_by(answer: &ItemAnswer<'_>, item: &[Label]) -> bool {
    let service = answer.details.service.as_deref();
    service.is_some_and(|service| item.iter().any(|label| label.shares_prefix(service) == Some(true)))
}

/// Whether an answer shows that its Archive holds what a relation leads to in this state, by an
/// offer of that item or of its metadata.
pub(super) fn shows_state(answer: &ItemAnswer<'_>, relation: &[RelationPart], state: State) -> bool {
    let start = item_at(answer, relation);
    answer.details.offers.iter().filter(|offer| offer.state == Some(state)).any(|offer| {
        let Some(after) = offer.relation.parts().strip_prefix(relation) else { return false };
        let links = after.iter().take_while(|part| !matches!(part, RelationPart::Metadata(_))).count();
        let end = || item_at(answer, &offer.relation.parts()[..relation.len() + links]);
        links == 0 || matches!((start, end()), (Some(start), Some(end)) if is_equal(start, end))
    })
}

/// The item that a relation without metadata leads to.
fn item_at<'a>(answer: &ItemAnswer<'a>, relation: &[RelationPart]) -> Option<&'a LabelForms> {
    match relation {
        [] => Some(&answer.details.item),
        _ => answer.offer(relation)?.offer.ibi.as_ref(),
    }
}

/// The labels that all Archives agree on for the item that a relation leads to.
pub(super) fn common_labels(answers: &[ItemAnswer<'_>], relation: &[RelationPart]) -> Vec<Label> {
    let mut names = answers.iter().filter_map(|answer| answer.offer(relation)?.offer.ibi.as_ref());
    let Some(first) = names.next() else { return Vec::new() };
    let is_common = |label: &&Label| names.clone().all(|other| other.contains(label));
    first.labels().iter().filter(is_common).cloned().collect()
}

/// The labels of `item` that all Archives naming it agree on; an Archive may have added a label of
/// its own. Unchanged if they have none in common.
pub(super) fn names_in_common(
    answers: &[ItemAnswer<'_>],
    relation: &[RelationPart],
    item: &LabelForms,
) -> LabelForms {
    let names = answers.iter().filter_map(|answer| answer.offer(relation)?.offer.ibi.as_ref());
    let names = names.filter(|other| share_label(other, item));
    let is_common = |label: &&Label| names.clone().all(|other| other.contains(label));
    let common = LabelForms::new(item.labels().iter().filter(is_common).cloned());
    if common.labels().is_empty() { item.clone() } else { common }
}

/// Whether both have the same labels. An Archive that adds a label of its own to another's item
/// does not name the same item.
pub(super) fn is_equal(a: &LabelForms, b: &LabelForms) -> bool {
    let is_within = |a: &LabelForms, b: &LabelForms| a.labels().iter().all(|label| b.contains(label));
    is_within(a, b) && is_within(b, a)
}

/// The item named by an offer, if any, compared by all its labels.
struct NamedItem<'a>(Option<&'a LabelForms>);

impl PartialEq for NamedItem<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Some(a), Some(b)) => is_equal(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

/// Whether these Archives name different items for a relation.
pub(super) fn name_different_items(answers: &[ItemAnswer<'_>], relation: &[RelationPart]) -> bool {
    differ(answers, |answer| {
        NamedItem(answer.offer(relation).and_then(|candidate| candidate.offer.ibi.as_ref()))
    })
}

/// Whether these Archives name different translations of the item that `fixed` leads to.
pub(super) fn name_different_translations(
    answers: &[ItemAnswer<'_>],
    fixed: &[RelationPart],
    requested: &RelationPart,
) -> bool {
    differ(answers, |answer| {
        let offers = answer.details.offers.iter().map(|offer| &offer.relation);
        let relations = offers.chain(answer.details.translated_next.iter().map(|(relation, _)| relation));
        let next = relations.filter_map(|relation| relation.parts().strip_prefix(fixed)?.first());
        let named: BTreeSet<&RelationPart> = next.filter(|part| requested.accepts_part(part)).collect();
        let item = |part: &RelationPart| answer.offer(&with_part(fixed, part.clone()))?.offer.ibi.as_ref();
        named.into_iter().map(|part| (part, NamedItem(item(part)))).collect::<Vec<_>>()
    })
}

/// Whether these Archives disagree about the item that a relation leads to or about what follows
/// it: which items those are, and who holds them.
pub(super) fn know_different_things(answers: &[ItemAnswer<'_>], relation: &[RelationPart]) -> bool {
    differ(answers, |answer| {
        let offers =
            answer.details.offers.iter().filter(|offer| offer.relation.parts().starts_with(relation));
        let known: Vec<_> = offers
            .map(|offer| (&offer.relation, NamedItem(offer.ibi.as_ref()), offer.url.is_some(), offer.state))
            .collect();
        (known, NamedItem(answer.details.next_edition_after(relation)))
    })
}

fn differ<'a, T: PartialEq>(answers: &[ItemAnswer<'a>], view: impl Fn(&ItemAnswer<'a>) -> T) -> bool {
    let mut views = answers.iter().map(view);
    views.next().is_some_and(|first| views.any(|other| other != first))
}
