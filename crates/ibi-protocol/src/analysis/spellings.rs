//! Selects the answers about the queried item. Two spellings of one identifier may have been
//! imported as two items, which stay separate (1.3), possibly in different Archives.

use ibi_id::Label;

use super::AnswerTombstone;
use super::ArchiveId;
use super::check::LiveAnswer;
use super::plan::{ItemAnswer, PlanWait};
use crate::forms::LabelForms;

/// The label equal to the queried one, preferably in the same spelling.
fn matching_label<'a>(labels: impl Iterator<Item = &'a Label> + Clone, queried: &Label) -> Option<&'a Label> {
    let mut same = labels.filter(|label| *label == queried);
    same.clone().find(|label| is_spelled_alike(label, queried)).or_else(|| same.next())
}

/// Whether two equal labels have the same spelling apart from case. (Legacy labels that differ in
/// case are not equal to begin with.)
fn is_spelled_alike(a: &Label, b: &Label) -> bool {
    a.spelling().eq_ignore_ascii_case(b.spelling())
}

fn is_canonical(label: &Label) -> bool {
    label.spelling().eq_ignore_ascii_case(&label.to_string())
}

/// All labels of the item in an answer, including the queried alias.
fn names(details: &LiveAnswer) -> impl Iterator<Item = &Label> + Clone {
    details.item.labels().iter().chain(&details.alias)
}

/// Whether two answers are about separate items: they share an identifier, but never in the same
/// spelling.
pub(super) fn are_spelled_apart(a: &LiveAnswer, b: &LiveAnswer) -> bool {
    are_apart(names(a), names(b))
}

/// Whether both name one item: they share a label and are not separate spellings.
pub(super) fn name_one_item(a: &LabelForms, b: &LabelForms) -> bool {
    a.labels().iter().any(|label| b.contains(label)) && !are_apart(a.labels().iter(), b.labels().iter())
}

fn are_apart<'a>(a: impl Iterator<Item = &'a Label>, b: impl Iterator<Item = &'a Label> + Clone) -> bool {
    let mut is_apart = false;
    for label in a {
        match matching_label(b.clone(), label) {
            Some(other) if is_spelled_alike(other, label) => return false,
            Some(_) => is_apart = true,
            None => {}
        }
    }
    is_apart
}

/// How the spelling of the answered item relates to the queried one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpellingFit {
    /// Same spelling.
    Exact,
    /// Different, and one of the two is the canonical spelling.
    Canonical,
    /// Different, and neither is canonical: an outstanding Archive may hold the item in the queried
    /// spelling.
    Explicit,
}

impl SpellingFit {
    /// How long to wait before an item with this spelling is accepted.
    pub(super) const fn wait(self) -> PlanWait {
        match self {
            SpellingFit::Exact => PlanWait::Nothing,
            SpellingFit::Canonical => PlanWait::Grace,
            SpellingFit::Explicit => PlanWait::AllAnswers,
        }
    }

    pub(super) fn of(item: &LabelForms, queried: &Label) -> Self {
        Self::between(matching_label(item.labels().iter(), queried), queried)
    }

    /// An answer without a matching label is accepted: a removed item queried by an alias names
    /// only itself (3.4).
    fn between(own: Option<&Label>, queried: &Label) -> Self {
        match own {
            Some(own) if is_spelled_alike(own, queried) => SpellingFit::Exact,
            Some(own) if is_canonical(own) || is_canonical(queried) => SpellingFit::Canonical,
            Some(_) => SpellingFit::Explicit,
            None => SpellingFit::Exact,
        }
    }
}

/// Keeps the answers about the queried item. An exact spelling wins, else the only spelling that
/// still exists. If several exist, they are added to the alternatives.
pub(super) fn select_spelling(
    queried: &Label,
    answers: &mut Vec<ItemAnswer<'_>>,
    tombstones: &mut Vec<(ArchiveId, AnswerTombstone)>,
    alternatives: &mut Vec<LabelForms>,
) -> SpellingFit {
    let fit = |details: &LiveAnswer| SpellingFit::between(matching_label(names(details), queried), queried);
    let is_exact = |details: &LiveAnswer| {
        names(details).any(|label| label == queried) && fit(details) == SpellingFit::Exact
    };
    if answers.iter().any(|answer| is_exact(answer.details)) {
        answers.retain(|answer| fit(answer.details) == SpellingFit::Exact);
        tombstones.retain(|(_, tombstone)| fit(&tombstone.links) == SpellingFit::Exact);
        alternatives.clear();
        return SpellingFit::Exact;
    }
    let mut living: Vec<&LiveAnswer> = Vec::new();
    for answer in answers.iter().filter(|answer| answer.is_live) {
        if living.iter().all(|other| are_spelled_apart(other, answer.details)) {
            living.push(answer.details);
        }
    }
    match living[..] {
        [only] if alternatives.is_empty() => {
            answers.retain(|answer| !are_spelled_apart(answer.details, only));
            tombstones.retain(|(_, tombstone)| !are_spelled_apart(&tombstone.links, only));
        }
        _ => living
            .into_iter()
            .for_each(|details| add_alternative(alternatives, &named_first(details, queried), queried)),
    }
    answers.first().map_or(SpellingFit::Exact, |answer| fit(answer.details))
}

/// The labels of an item, the queried one (possibly an alias) first.
fn named_first(details: &LiveAnswer, queried: &Label) -> LabelForms {
    let own = matching_label(names(details), queried);
    let others = details.item.labels().iter().filter(|label| own.is_none_or(|own| own != *label));
    LabelForms::new(own.into_iter().chain(others).cloned())
}

/// Adds an item to those for which the queried spelling is canonical, once per spelling.
pub(super) fn add_alternative(alternatives: &mut Vec<LabelForms>, item: &LabelForms, queried: &Label) {
    let own = matching_label(item.labels().iter(), queried);
    let has_spelling = |other: &LabelForms| match (matching_label(other.labels().iter(), queried), own) {
        (Some(other), Some(own)) => is_spelled_alike(other, own),
        _ => false,
    };
    if !alternatives.iter().any(has_spelling) {
        alternatives.push(item.clone());
    }
}
