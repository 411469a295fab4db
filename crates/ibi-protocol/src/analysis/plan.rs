//! What can be done with the answers of a round, the best first (4.2 steps 4 to 6).
//!
//! The relation is worked off from left to right. Each step is fixed by what Archives offer for it:
//! a bare translation becomes one in the language that suits the client best, and only then the
//! next step is looked at (2.4). What is not the best way is kept as a fallback.

use super::check::Live;
use super::claims::Whose;
use super::languages::BEST;
use super::trail::{NextQuestion, Trail};
use super::{ArchiveId, Question, Wanted, Why};
use crate::answer::State;
use crate::forms::Forms;
use crate::language::Language;
use crate::relation::{Part, Relation};
use crate::verb::Verbs;

/// What one Archive says of the item, be it there or removed.
#[derive(Clone, Copy)]
pub(super) struct Voice<'a> {
    pub(super) archive: ArchiveId,
    pub(super) said: &'a Live,
    /// Whether the Archive holds the item: a tombstone only tells of links.
    pub(super) is_live: bool,
}

impl<'a> Voice<'a> {
    /// What it offers for exactly this relation.
    pub(super) fn offer(&self, relation: &[Part]) -> Option<Whose<'a>> {
        let offer = self.said.offers.iter().find(|offer| offer.relation.parts() == relation)?;
        Some(Whose { archive: self.archive, live: self.said, offer })
    }

    /// Whether it says anything of what this relation leads to, or of what comes after it.
    pub(super) fn speaks_of(&self, relation: &[Part]) -> bool {
        self.said.offers.iter().any(|offer| offer.relation.parts().starts_with(relation))
    }
}

/// Something that can be done.
pub(super) struct Plan<'a> {
    pub(super) step: PlanStep<'a>,
    pub(super) wait: PlanWait,
    /// See [`super::trail::Fallback`].
    pub(super) despite_silence: bool,
    pub(super) ends_chain: bool,
    /// Whether it leads to an edition after the item's own.
    pub(super) to_newer: bool,
}

pub(super) enum PlanStep<'a> {
    /// To one of these, which are equally good but for their state: Originals first.
    Go(Vec<Whose<'a>>),
    Ask(Box<NextQuestion>),
}

/// What is waited for before something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlanWait {
    /// Nothing can be better.
    Nothing,
    /// The grace: somebody may have something better.
    Grace,
    /// All, or the deadline: a Copy's word that there is no next edition (step 4).
    AllAnswers,
}

impl<'a> Plan<'a> {
    pub(super) fn ask(question: Question, why: Why, trail: Trail, wait: PlanWait) -> Self {
        let step = PlanStep::Ask(Box::new(NextQuestion { question, why, trail }));
        Self { step, wait, despite_silence: false, ends_chain: false, to_newer: false }
    }

    /// The best of those that the client would be sent to.
    pub(super) fn goes_to(&self) -> Option<&Whose<'a>> {
        match &self.step {
            PlanStep::Go(candidates) => candidates.first(),
            PlanStep::Ask(_) => None,
        }
    }
}

/// Whether two names are of one item.
pub(super) fn same(a: &Forms, b: &Forms) -> bool {
    a.labels().iter().any(|label| b.hold(label))
}

/// Works out what can be done.
pub(super) struct Planner<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) voices: &'a [Voice<'a>],
    /// A question that would lead in a circle.
    pub(super) circle: Option<Question>,
    /// An item that was asked for on another way, which came to nothing; and what there is instead.
    pub(super) dead_end: Option<(Forms, Option<Question>)>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(wanted: &'a Wanted, voices: &'a [Voice<'a>]) -> Self {
        Self { wanted, voices, circle: None, dead_end: None }
    }

    /// All that can be done, the best first.
    pub(super) fn all(&mut self) -> Vec<Plan<'a>> {
        let mut plans = self.plans(self.voices, &[]);
        if plans.is_empty() {
            // Nobody offers what comes before a translation: the item without it may be there.
            let bare = self.parts().iter().position(|part| *part == Part::Translation(None));
            plans.extend(bare.and_then(|at| self.without(&self.parts()[..at], at)));
        }
        plans
    }

    pub(super) fn parts(&self) -> &'a [Part] {
        self.wanted.verbs.relation.parts()
    }

    /// What can be done, the first steps being fixed.
    pub(super) fn plans(&mut self, among: &[Voice<'a>], fixed: &[Part]) -> Vec<Plan<'a>> {
        let mut plans = match self.parts().get(fixed.len()) {
            None => ends(among, fixed),
            Some(Part::LastEdition) => self.editions(among, fixed),
            Some(Part::Translation(asked)) => self.translations(among, fixed, *asked),
            Some(part @ Part::Metadata(_)) => self.plans(among, &with(fixed, part.clone())),
        };
        if plans.is_empty() {
            plans = self.known(among, fixed);
        }
        let at = fixed.len();
        let is_known = at == 0 || among.iter().any(|voice| voice.speaks_of(fixed));
        if is_known && self.parts().get(at) == Some(&Part::Translation(None)) {
            plans.extend(self.without(fixed, at));
        }
        plans
    }

    /// Step 6: the languages that are offered, with or without a URL, the best for the client
    /// first; then what is offered without a language.
    fn translations(
        &mut self,
        among: &[Voice<'a>],
        fixed: &[Part],
        asked: Option<Language>,
    ) -> Vec<Plan<'a>> {
        let at = fixed.len();
        let mut offered: Vec<Option<Language>> = Vec::new();
        for voice in among {
            let offers = voice.said.offers.iter().map(|offer| offer.relation.parts());
            let next = voice.said.translated_next.iter().map(|(relation, _)| relation.parts());
            for parts in offers.chain(next).filter(|parts| parts.starts_with(fixed)) {
                match parts.get(at) {
                    Some(Part::Translation(language)) if !offered.contains(language) => {
                        offered.push(*language);
                    }
                    _ => {}
                }
            }
        }
        let rank = |language: Option<Language>| self.rank(asked, language);
        let mut ranked: Vec<_> = offered.into_iter().filter_map(|one| Some((rank(one)?, one))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut plans = Vec::new();
        for ((is_second, ..), language) in ranked {
            let mut found = self.plans(among, &with(fixed, Part::Translation(language)));
            if is_second {
                found.iter_mut().for_each(|plan| plan.wait = plan.wait.max(PlanWait::Grace));
            }
            plans.extend(found);
        }
        plans
    }

    /// How well a language suits, the smallest being the best: first, whether another could suit
    /// better.
    fn rank(&self, asked: Option<Language>, offered: Option<Language>) -> Option<(bool, usize, u8)> {
        let languages = &self.wanted.languages;
        match (asked, offered) {
            (Some(asked), Some(offered)) if asked == offered => Some((false, 0, 0)),
            (Some(asked), Some(offered)) if offered.matches(asked) => {
                let (at, how) = languages.fit(offered).unwrap_or((usize::MAX, u8::MAX));
                Some((true, at, how))
            }
            (Some(_), _) => None,
            (None, Some(offered)) => {
                let fit = languages.fit(offered)?;
                Some((fit != BEST, fit.0, fit.1))
            }
            (None, None) => Some((!languages.is_empty(), usize::MAX, u8::MAX)),
        }
    }

    /// Step 6: the item itself, asked again without the translation that cannot be.
    fn without(&mut self, fixed: &[Part], at: usize) -> Option<Plan<'a>> {
        if !self.voices.iter().any(|voice| voice.is_live) {
            return None;
        }
        let parts = fixed.iter().chain(&self.parts()[at + 1..]).cloned().collect();
        let question = self.question(self.wanted.label.clone(), Relation::new(parts).ok()?);
        if self.wanted.asked.contains(&question) || question == self.wanted.question() {
            return None;
        }
        let trail = Trail { path: self.path(), fallbacks: Vec::new(), ..self.wanted.trail.clone() };
        Some(Plan::ask(question, Why::WithoutTranslation, trail, PlanWait::Grace))
    }

    /// Step 5: the items that are known under a leading part, asked for with the verbs after it.
    fn known(&mut self, among: &[Voice<'a>], fixed: &[Part]) -> Vec<Plan<'a>> {
        let at = fixed.len();
        let whole = &self.wanted.verbs.relation;
        let Ok(leading) = Relation::new(self.parts()[..at].to_vec()) else { return Vec::new() };
        let Some(rest) = whole.after(&leading).filter(|_| at > 0) else { return Vec::new() };
        let (mut seen, mut plans): (Vec<&Forms>, Vec<Plan<'a>>) = (Vec::new(), Vec::new());
        for voice in among {
            let Some(ibi) = voice.offer(fixed).and_then(|whose| whose.offer.ibi.as_ref()) else { continue };
            // The item itself with the same verbs leads nowhere.
            let is_this = rest == *whole && voice.said.is(ibi);
            if is_this || seen.iter().any(|other| same(other, ibi)) {
                continue;
            }
            seen.push(ibi);
            let trail = self.trail(fixed, at, voice, Some(ibi));
            if let Some(question) = self.ask(ibi, voice, rest.clone(), &trail) {
                let why = Why::Leading(leading.clone());
                plans.push(Plan::ask(question, why, trail, PlanWait::Grace));
            }
        }
        plans
    }

    /// The trail to what `fixed` leads to: what there is instead is the same without its last step.
    pub(super) fn trail(&self, fixed: &[Part], at: usize, voice: &Voice<'a>, to: Option<&Forms>) -> Trail {
        let (last, before) = fixed.split_last().map_or((None, fixed), |(last, before)| (Some(last), before));
        let rest = match last {
            Some(Part::Metadata(_)) => &[],
            _ => self.parts().get(at..).unwrap_or_default(),
        };
        let without = Relation::new(before.iter().chain(rest).cloned().collect());
        let is_held = self.voices.iter().any(|voice| voice.is_live);
        let older = match without {
            Ok(without) if is_held => Some(self.question(self.wanted.label.clone(), without)),
            _ => self.wanted.trail.older.clone(),
        };
        let skipped = || {
            let next = voice.said.next_of(before).filter(|next| to.is_some_and(|to| !same(next, to)))?;
            let editions = [Part::LastEdition].iter().chain(rest).cloned().collect();
            Some(self.question(next.labels().first()?.clone(), Relation::new(editions).ok()?))
        };
        let skipped = if last == Some(&Part::LastEdition) { skipped() } else { None };
        let removed = self.wanted.trail.removed.clone();
        Trail { path: self.path(), by_link: true, older, skipped, removed, fallbacks: Vec::new() }
    }

    /// The questions up to this round's, this one among them.
    fn path(&self) -> Vec<Question> {
        self.wanted.trail.path.iter().cloned().chain([self.wanted.question()]).collect()
    }

    /// The question for an item, unless it was asked before: a question is never repeated (step 5).
    pub(super) fn ask(
        &mut self,
        ibi: &Forms,
        voice: &Voice<'a>,
        relation: Relation,
        trail: &Trail,
    ) -> Option<Question> {
        let question = self.question(ibi.labels().first()?.clone(), relation);
        let is_it = |asked: &Question| {
            ibi.hold(&asked.label) && asked.verbs == question.verbs && asked.file == question.file
        };
        let wanted = self.wanted;
        let is_this = question.verbs == wanted.verbs && (voice.said.is(ibi) || ibi.hold(&wanted.label));
        if is_this || wanted.trail.path.iter().any(is_it) {
            self.circle.get_or_insert(question);
            return None;
        }
        if wanted.asked.iter().any(is_it) {
            self.dead_end.get_or_insert((ibi.clone(), trail.older.clone()));
            return None;
        }
        Some(question)
    }

    fn question(&self, label: ibi_id::Label, relation: Relation) -> Question {
        let verbs = Verbs { relation, file_list: self.wanted.verbs.file_list };
        Question { label, verbs, file: self.wanted.file.clone() }
    }
}

/// Steps with one more.
pub(super) fn with(fixed: &[Part], part: Part) -> Vec<Part> {
    fixed.iter().cloned().chain([part]).collect()
}

/// Step 4: those who have a URL of the whole relation. An Original is taken at once, a Copy after
/// the grace.
fn ends<'a>(among: &[Voice<'a>], fixed: &[Part]) -> Vec<Plan<'a>> {
    let offers = among.iter().filter_map(|voice| voice.offer(fixed));
    let mut candidates: Vec<Whose<'a>> = offers.filter(|whose| whose.offer.url.is_some()).collect();
    let is_original = |whose: &Whose<'_>| whose.offer.state == Some(State::Original);
    candidates.sort_by_key(|whose| !is_original(whose));
    let Some(best) = candidates.first() else { return Vec::new() };
    let wait = if is_original(best) { PlanWait::Nothing } else { PlanWait::Grace };
    let step = PlanStep::Go(candidates);
    vec![Plan { step, wait, despite_silence: false, ends_chain: false, to_newer: false }]
}
