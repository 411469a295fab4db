//! Which answers are about the very item that was asked for. Two spellings of one identifier may
//! have been brought in as two items, which are kept apart (1.3); they need not be in one Archive.

use ibi_id::Label;

use super::ArchiveId;
use super::Tombstone;
use super::check::Live;
use super::plan::{PlanWait, Voice};
use crate::forms::Forms;

/// The label among these that is the one asked for: in the same spelling, if there is one.
fn meant<'a>(labels: impl Iterator<Item = &'a Label> + Clone, asked: &Label) -> Option<&'a Label> {
    let mut same = labels.filter(|label| *label == asked);
    same.clone().find(|label| is_spelled_alike(label, asked)).or_else(|| same.next())
}

/// Whether two labels of one identifier are spelled alike, but for case: legacy labels that differ in
/// case are not equal in the first place.
fn is_spelled_alike(a: &Label, b: &Label) -> bool {
    a.spelling().eq_ignore_ascii_case(b.spelling())
}

fn is_canonical(label: &Label) -> bool {
    label.spelling().eq_ignore_ascii_case(&label.to_string())
}

/// All names of the item in an answer: its labels, and the alias that was asked for.
fn names(said: &Live) -> impl Iterator<Item = &Label> + Clone {
    said.item.labels().iter().chain(&said.alias)
}

/// Whether two answers are about items that are spelled apart: they have an identifier in common, but
/// none in one spelling.
pub(super) fn are_spelled_apart(a: &Live, b: &Live) -> bool {
    are_apart(names(a), names(b))
}

/// Whether these name one item: they have a label in common, and are not spelled apart.
pub(super) fn name_one_item(a: &Forms, b: &Forms) -> bool {
    a.labels().iter().any(|label| b.hold(label)) && !are_apart(a.labels().iter(), b.labels().iter())
}

fn are_apart<'a>(a: impl Iterator<Item = &'a Label>, b: impl Iterator<Item = &'a Label> + Clone) -> bool {
    let mut is_apart = false;
    for label in a {
        match meant(b.clone(), label) {
            Some(other) if is_spelled_alike(other, label) => return false,
            Some(_) => is_apart = true,
            None => {}
        }
    }
    is_apart
}

/// How the item that the answers of a round are about is spelled, by the side of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpellingFit {
    /// In the same way.
    Exact,
    /// In another way, and one of both is the canonical spelling.
    Canonical,
    /// In another way, and neither is: who has not answered yet may hold the item in the spelling
    /// asked for.
    Explicit,
}

impl SpellingFit {
    /// What is waited for before an item that is spelled so is taken for the one asked for.
    pub(super) const fn wait(self) -> PlanWait {
        match self {
            SpellingFit::Exact => PlanWait::Nothing,
            SpellingFit::Canonical => PlanWait::Grace,
            SpellingFit::Explicit => PlanWait::AllAnswers,
        }
    }

    pub(super) fn of(item: &Forms, asked: &Label) -> Self {
        Self::between(meant(item.labels().iter(), asked), asked)
    }

    /// Who names no such label (a removed item that was asked for by an alias, 3.4) is believed.
    fn between(own: Option<&Label>, asked: &Label) -> Self {
        match own {
            Some(own) if is_spelled_alike(own, asked) => SpellingFit::Exact,
            Some(own) if is_canonical(own) || is_canonical(asked) => SpellingFit::Canonical,
            Some(_) => SpellingFit::Explicit,
            None => SpellingFit::Exact,
        }
    }
}

/// Keeps those answers that are about the item asked for: an exact spelling wins; else those of the
/// one spelling that lives. Where several do, they are added to the alternatives.
pub(super) fn keep_apart(
    asked: &Label,
    voices: &mut Vec<Voice<'_>>,
    tombstones: &mut Vec<(ArchiveId, Tombstone)>,
    alternatives: &mut Vec<Forms>,
) -> SpellingFit {
    let fit = |said: &Live| SpellingFit::between(meant(names(said), asked), asked);
    let is_named_so =
        |said: &Live| names(said).any(|label| label == asked) && fit(said) == SpellingFit::Exact;
    if voices.iter().any(|voice| is_named_so(voice.said)) {
        voices.retain(|voice| fit(voice.said) == SpellingFit::Exact);
        tombstones.retain(|(_, tombstone)| fit(&tombstone.links) == SpellingFit::Exact);
        alternatives.clear();
        return SpellingFit::Exact;
    }
    let mut living: Vec<&Live> = Vec::new();
    for voice in voices.iter().filter(|voice| voice.is_live) {
        if living.iter().all(|other| are_spelled_apart(other, voice.said)) {
            living.push(voice.said);
        }
    }
    match living[..] {
        [one] if alternatives.is_empty() => {
            voices.retain(|voice| !are_spelled_apart(voice.said, one));
            tombstones.retain(|(_, tombstone)| !are_spelled_apart(&tombstone.links, one));
        }
        _ => living.into_iter().for_each(|said| add(alternatives, &named_first(said, asked), asked)),
    }
    voices.first().map_or(SpellingFit::Exact, |voice| fit(voice.said))
}

/// The forms of an item, the one that is meant first: it may be an alias.
fn named_first(said: &Live, asked: &Label) -> Forms {
    let own = meant(names(said), asked);
    let others = said.item.labels().iter().filter(|label| own.is_none_or(|own| own != *label));
    Forms::new(own.into_iter().chain(others).cloned())
}

/// Adds an item to those of which the spelling asked for is canonical, once for each spelling.
pub(super) fn add(alternatives: &mut Vec<Forms>, item: &Forms, asked: &Label) {
    let own = meant(item.labels().iter(), asked);
    let is_it = |other: &Forms| match (meant(other.labels().iter(), asked), own) {
        (Some(other), Some(own)) => is_spelled_alike(other, own),
        _ => false,
    };
    if !alternatives.iter().any(is_it) {
        alternatives.push(item.clone());
    }
}
