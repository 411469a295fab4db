//! The possible next steps after a round, best first (4.2 steps 4 to 6).
//!
//! The relation is processed from left to right. Each part is fixed by what Archives offer for it:
//! a translation without a language becomes the one that best matches the client, before the next
//! part is considered (2.4). Steps other than the best are kept as fallbacks.

use super::check::LiveAnswer;
use super::claims::ArchiveOffer;
use super::deciders::{
    CountedAnswers, LinkDeciders, common_labels, has_links, is_minted_by, know_different_things, minters,
    name_different_items, name_different_translations, names_in_common,
};
use super::trail::{NextQuery, QueryTrail};
use super::{ArchiveId, ItemQuery, RequeryReason, RoundQuery};
use crate::answer::State;
use crate::forms::LabelForms;
use crate::language::Language;
use crate::relation::{Relation, RelationPart};
use crate::verb::Verbs;

/// One Archive's answer about the item, held or removed.
#[derive(Clone, Copy)]
pub(super) struct ItemAnswer<'a> {
    pub(super) archive: ArchiveId,
    pub(super) details: &'a LiveAnswer,
    /// Whether the Archive holds the item; a tombstone contributes only links.
    pub(super) is_live: bool,
}

impl<'a> ItemAnswer<'a> {
    /// The offer for exactly this relation.
    pub(super) fn offer(&self, relation: &[RelationPart]) -> Option<ArchiveOffer<'a>> {
        let offer = self.details.offers.iter().find(|offer| offer.relation.parts() == relation)?;
        Some(ArchiveOffer { archive: self.archive, live: self.details, offer })
    }

    /// Whether any offer is for this relation or continues it.
    pub(super) fn mentions(&self, relation: &[RelationPart]) -> bool {
        self.details.offers.iter().any(|offer| offer.relation.parts().starts_with(relation))
    }
}

/// A possible next step.
pub(super) struct RoundPlan<'a> {
    pub(super) step: PlanStep<'a>,
    pub(super) wait: PlanWait,
    /// See [`super::trail::QueryFallback`].
    pub(super) despite_silence: bool,
    pub(super) ends_chain: bool,
    pub(super) only_if_unheld: bool,
    /// Whether it leads to an edition newer than the item.
    pub(super) to_newer: bool,
    /// The translations chosen in this round; see [`QueryTrail::language_choices`].
    pub(super) language_choices: Vec<usize>,
}

pub(super) enum PlanStep<'a> {
    /// Redirect to one of these equivalent offers, Originals first.
    Go(Vec<ArchiveOffer<'a>>),
    Ask(Box<NextQuery>),
}

/// How long to wait before a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlanWait {
    /// No wait: nothing better can arrive.
    Nothing,
    /// The grace period, if the Archive with the label's prefix is outstanding: it may hold the
    /// Original that another claims (4.4).
    MinterGrace,
    /// The grace period: a better answer may arrive.
    Grace,
    /// All answers or the deadline: a Copy states that there is no next edition (step 4).
    AllAnswers,
}

impl<'a> RoundPlan<'a> {
    fn new(step: PlanStep<'a>, wait: PlanWait) -> Self {
        Self {
            step,
            wait,
            despite_silence: false,
            ends_chain: false,
            only_if_unheld: false,
            to_newer: false,
            language_choices: Vec::new(),
        }
    }

    pub(super) fn ask(question: ItemQuery, why: RequeryReason, trail: QueryTrail, wait: PlanWait) -> Self {
        let step = PlanStep::Ask(Box::new(NextQuery { question, why, trail }));
        Self::new(step, wait)
    }

    /// A claimed next edition or translation is accepted if the item's Original does not contradict
    /// it within the grace period.
    pub(super) fn wait_for_original(&mut self) {
        self.wait = self.wait.max(PlanWait::Grace);
    }

    /// See [`super::trail::QueryFallback`].
    pub(super) fn if_unheld(self) -> Self {
        Self { only_if_unheld: true, ..self }
    }

    /// The preferred redirect target.
    pub(super) fn goes_to(&self) -> Option<&ArchiveOffer<'a>> {
        match &self.step {
            PlanStep::Go(candidates) => candidates.first(),
            PlanStep::Ask(_) => None,
        }
    }
}

/// Whether both share a label, and so identify one item.
pub(super) fn share_label(a: &LabelForms, b: &LabelForms) -> bool {
    a.labels().iter().any(|label| b.contains(label))
}

/// Derives the possible next steps from the answers.
pub(super) struct RoundPlanner<'a> {
    pub(super) query: &'a RoundQuery,
    /// The answers under consideration.
    pub(super) answers: &'a [ItemAnswer<'a>],
    /// Whether they come from holders of the item's Original.
    pub(super) are_final: bool,
    /// A question that would close a circle.
    pub(super) circle: Option<ItemQuery>,
    /// Whether Archives disagree on the item's editions or translations and the decider is unknown.
    pub(super) is_disputed: bool,
    /// An item that was already queried on another path without success, and the alternative to it.
    pub(super) dead_end: Option<(LabelForms, Option<ItemQuery>)>,
}

impl<'a> RoundPlanner<'a> {
    pub(super) fn new(query: &'a RoundQuery, counted: &'a CountedAnswers<'a>) -> Self {
        let CountedAnswers { answers, are_final, .. } = counted;
        let are_final = *are_final;
        Self { query, answers, are_final, circle: None, is_disputed: false, dead_end: None }
    }

    /// All possible steps, best first.
    pub(super) fn all_plans(&mut self) -> Vec<RoundPlan<'a>> {
        let mut plans = self.plans(self.answers, &[]);
        if plans.is_empty() {
            // No Archive offers the part before a translation; the item without that translation
            // may exist.
            let untagged = self.parts().iter().position(|part| *part == RelationPart::Translation(None));
            plans.extend(
                untagged.and_then(|index| self.plan_without_translation(&self.parts()[..index], index)),
            );
        }
        plans
    }

    pub(super) fn parts(&self) -> &'a [RelationPart] {
        self.query.verbs.relation.parts()
    }

    /// The possible steps, given the leading parts already fixed.
    pub(super) fn plans(&mut self, answers: &[ItemAnswer<'a>], fixed: &[RelationPart]) -> Vec<RoundPlan<'a>> {
        let minters = match self.is_linked(answers, fixed) {
            true => minters(answers, fixed, &common_labels(answers, fixed)),
            false => Vec::new(),
        };
        let answers = if minters.is_empty() { answers } else { &minters };
        let is_translation = matches!(fixed.last(), Some(RelationPart::Translation(_)));
        if is_translation && self.is_linked(answers, fixed) && know_different_things(answers, fixed) {
            // The item's own Archive decides, so the item is queried (ADR 13).
            let known = self.known_item_plans(answers, fixed);
            if !known.is_empty() {
                return known;
            }
        }
        let mut plans = match self.parts().get(fixed.len()) {
            None => self.url_plans(answers, fixed),
            Some(RelationPart::LastEdition) => self.edition_plans(answers, fixed),
            Some(RelationPart::Translation(requested)) => self.translation_plans(answers, fixed, *requested),
            Some(part @ RelationPart::Metadata(_)) => self.plans(answers, &with_part(fixed, part.clone())),
        };
        if plans.is_empty() {
            plans = self.known_item_plans(answers, fixed);
        }
        let depth = fixed.len();
        let is_known = depth == 0 || answers.iter().any(|answer| answer.mentions(fixed));
        if is_known && self.parts().get(depth) == Some(&RelationPart::Translation(None)) {
            plans.extend(self.plan_without_translation(fixed, depth));
        }
        plans
    }

    /// Whether a relation ends with a link to an item other than the queried one.
    fn is_linked(&self, answers: &[ItemAnswer<'a>], fixed: &[RelationPart]) -> bool {
        let is_link = match fixed {
            [RelationPart::LastEdition | RelationPart::Translation(_)] => true,
            [before, RelationPart::LastEdition | RelationPart::Translation(_)] => {
                !matches!(before, RelationPart::Metadata(_))
            }
            _ => false,
        };
        let items =
            || answers.iter().filter_map(|answer| Some((answer, answer.offer(fixed)?.offer.ibi.as_ref()?)));
        let is_other = |(answer, item): (&ItemAnswer<'a>, &LabelForms)| {
            !answer.details.is_same_item(item) && !item.contains(&self.query.label)
        };
        is_link && items().any(is_other)
    }

    /// Whether the decider about the item's links is unknown and can still be queried.
    pub(super) fn can_be_decided(&self) -> bool {
        has_links(self.parts()) && !self.are_final && LinkDeciders::of(self.query).is_none()
    }

    /// Step 6: the offered languages, with or without a URL, best match first; then offers without
    /// a language.
    fn translation_plans(
        &mut self,
        answers: &[ItemAnswer<'a>],
        fixed: &[RelationPart],
        requested: Option<Language>,
    ) -> Vec<RoundPlan<'a>> {
        let depth = fixed.len();
        let is_contradicted =
            name_different_translations(answers, fixed, &RelationPart::Translation(requested));
        if is_contradicted && self.is_linked(answers, fixed) {
            // That edition's own Archive decides.
            return self.known_item_plans(answers, fixed);
        }
        if is_contradicted && self.can_be_decided() {
            self.is_disputed = true;
            return Vec::new();
        }
        let mut offered: Vec<Option<Language>> = Vec::new();
        for answer in answers {
            let offers = answer.details.offers.iter().map(|offer| offer.relation.parts());
            let next = answer.details.translated_next.iter().map(|(relation, _)| relation.parts());
            for parts in offers.chain(next).filter(|parts| parts.starts_with(fixed)) {
                match parts.get(depth) {
                    Some(RelationPart::Translation(language)) if !offered.contains(language) => {
                        offered.push(*language);
                    }
                    _ => {}
                }
            }
        }
        if is_contradicted && self.are_final {
            // Several Archives claim the Original: follow only translations that all of them know.
            offered.retain(|language| {
                let relation = with_part(fixed, RelationPart::Translation(*language));
                let shared = answers.iter().all(|answer| answer.mentions(&relation));
                shared && !name_different_translations(answers, fixed, &RelationPart::Translation(*language))
            });
        }
        let rank = |language: Option<Language>| self.rank(requested, language);
        let mut ranked: Vec<_> =
            offered.into_iter().filter_map(|language| Some((rank(language)?, language))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut plans = Vec::new();
        for (choice, (_, language)) in ranked.into_iter().enumerate() {
            let mut found = self.plans(answers, &with_part(fixed, RelationPart::Translation(language)));
            found.iter_mut().for_each(|plan| plan.language_choices.insert(0, choice));
            // The holder of the Original knows all translations; otherwise a better one may arrive.
            if !self.are_final {
                found.iter_mut().for_each(RoundPlan::wait_for_original);
            }
            plans.extend(found);
        }
        plans
    }

    /// How well an offered language matches; smaller is better. The first element says whether it
    /// is only second choice.
    fn rank(&self, requested: Option<Language>, offered: Option<Language>) -> Option<(bool, usize, u8)> {
        let languages = &self.query.languages;
        match (requested, offered) {
            (Some(requested), Some(offered)) if requested == offered => Some((false, 0, 0)),
            (Some(requested), Some(offered)) if offered.matches(requested) => {
                let (index, closeness) = languages.fit(offered).unwrap_or((usize::MAX, u8::MAX));
                Some((true, index, closeness))
            }
            (Some(_), _) => None,
            (None, Some(offered)) => {
                let fit = languages.fit(offered)?;
                Some((false, fit.0, fit.1))
            }
            (None, None) => Some((true, usize::MAX, u8::MAX)),
        }
    }

    /// Step 4: the Archives with a URL for the whole relation. An Original is used at once, a Copy
    /// after the grace period. Of two Originals, the one of the Archive that minted the label is
    /// used (4.4); while that Archive is outstanding, another's claim waits like a Copy.
    fn url_plans(&self, answers: &[ItemAnswer<'a>], fixed: &[RelationPart]) -> Vec<RoundPlan<'a>> {
        let has_url = |answer: &&ItemAnswer<'a>| {
            answer.offer(fixed).is_some_and(|candidate| candidate.offer.url.is_some())
        };
        let mut candidates: Vec<ItemAnswer<'a>> = answers.iter().filter(has_url).copied().collect();
        let links = fixed.iter().take_while(|part| !matches!(part, RelationPart::Metadata(_))).count();
        let item = match &fixed[..links] {
            [] => vec![self.query.label.clone()],
            links => common_labels(&candidates, links),
        };
        let is_original = |candidate: &ArchiveOffer<'_>| candidate.offer.state == Some(State::Original);
        let holds_original =
            |answer: &ItemAnswer<'a>| answer.offer(fixed).is_some_and(|candidate| is_original(&candidate));
        candidates.sort_by_key(|answer| (!holds_original(answer), !is_minted_by(answer, &item)));
        let Some(best) = candidates.first() else { return Vec::new() };
        let is_by_decider = self.are_final || links == 0 && is_minted_by(best, &item);
        let wait = match (holds_original(best), is_by_decider) {
            (false, _) => PlanWait::Grace,
            (true, false) => PlanWait::MinterGrace,
            (true, true) => PlanWait::Nothing,
        };
        let step = PlanStep::Go(candidates.iter().filter_map(|answer| answer.offer(fixed)).collect());
        vec![RoundPlan::new(step, wait)]
    }

    /// Step 6: queries the item itself, without the translation that is not available.
    fn plan_without_translation(&mut self, fixed: &[RelationPart], depth: usize) -> Option<RoundPlan<'a>> {
        let rest = &self.parts()[depth + 1..];
        // A removed item leads on to its next edition (2.4), in whatever language.
        let leads_on = |answer: &ItemAnswer<'a>| {
            rest.first() == Some(&RelationPart::LastEdition) && answer.details.next_edition.is_some()
        };
        if !self.answers.iter().any(|answer| answer.is_live || leads_on(answer)) {
            return None;
        }
        let parts = fixed.iter().chain(rest).cloned().collect();
        let question = self.question(self.query.label.clone(), Relation::new(parts).ok()?);
        if self.query.asked.contains(&question) || question == self.query.question() {
            return None;
        }
        let trail = QueryTrail { path: self.path(), fallbacks: Vec::new(), ..self.query.trail.clone() };
        Some(RoundPlan::ask(question, RequeryReason::WithoutTranslation, trail, PlanWait::Grace))
    }

    /// Step 5: queries the items known for a leading part with the verbs after it.
    fn known_item_plans(&mut self, answers: &[ItemAnswer<'a>], fixed: &[RelationPart]) -> Vec<RoundPlan<'a>> {
        let depth = fixed.len();
        let whole = &self.query.verbs.relation;
        let Ok(leading) = Relation::new(self.parts()[..depth].to_vec()) else { return Vec::new() };
        let Some(rest) = whole.after(&leading).filter(|_| depth > 0) else { return Vec::new() };
        let is_metadata = matches!(fixed.last(), Some(RelationPart::Metadata(_)));
        if is_metadata && self.can_be_decided() && name_different_items(answers, fixed) {
            self.is_disputed = true;
            return Vec::new();
        }
        let (mut seen, mut plans): (Vec<&LabelForms>, Vec<RoundPlan<'a>>) = (Vec::new(), Vec::new());
        for answer in answers {
            let Some(ibi) = answer.offer(fixed).and_then(|candidate| candidate.offer.ibi.as_ref()) else {
                continue;
            };
            // The same question about the item itself would change nothing.
            let is_repeat = rest == *whole && answer.details.is_same_item(ibi);
            if is_repeat || seen.iter().any(|other| share_label(other, ibi)) {
                continue;
            }
            seen.push(ibi);
            let ibi = names_in_common(answers, fixed, ibi);
            let trail = self.trail(fixed, depth, answer, Some(&ibi));
            if let Some(question) = self.new_query(&ibi, answer, rest.clone(), &trail) {
                let why = RequeryReason::Leading(leading.clone());
                plans.push(RoundPlan::ask(question, why, trail, PlanWait::Grace));
            }
        }
        plans
    }

    /// The trail to what `fixed` leads to. The alternative is the same relation without its last
    /// part.
    pub(super) fn trail(
        &self,
        fixed: &[RelationPart],
        depth: usize,
        answer: &ItemAnswer<'a>,
        to: Option<&LabelForms>,
    ) -> QueryTrail {
        let (last, before) = fixed.split_last().map_or((None, fixed), |(last, before)| (Some(last), before));
        let rest = match last {
            Some(RelationPart::Metadata(_)) => &[],
            _ => self.parts().get(depth..).unwrap_or_default(),
        };
        let without = Relation::new(before.iter().chain(rest).cloned().collect());
        let is_held = self.answers.iter().any(|answer| answer.is_live);
        let older = match without {
            Ok(without) if is_held => Some(self.question(self.query.label.clone(), without)),
            _ => self.query.trail.older.clone(),
        };
        let skipped = || {
            let next = answer
                .details
                .next_edition_after(before)
                .filter(|next| to.is_some_and(|to| !share_label(next, to)))?;
            let editions = [RelationPart::LastEdition].iter().chain(rest).cloned().collect();
            Some(self.question(next.labels().first()?.clone(), Relation::new(editions).ok()?))
        };
        let skipped = if last == Some(&RelationPart::LastEdition) { skipped() } else { None };
        let removed = self.query.trail.removed.clone();
        let (path, fallbacks) = (self.path(), Vec::new());
        let language_choices = self.query.trail.language_choices.clone();
        QueryTrail {
            path,
            by_link: true,
            older,
            skipped,
            removed,
            deciders: None,
            language_choices,
            fallbacks,
        }
    }

    /// The questions up to and including this round's.
    fn path(&self) -> Vec<ItemQuery> {
        self.query.trail.path.iter().cloned().chain([self.query.question()]).collect()
    }

    /// The question about an item, unless it was asked before: a question is never repeated (step
    /// 5).
    pub(super) fn new_query(
        &mut self,
        ibi: &LabelForms,
        answer: &ItemAnswer<'a>,
        relation: Relation,
        trail: &QueryTrail,
    ) -> Option<ItemQuery> {
        let question = self.question(ibi.labels().first()?.clone(), relation);
        let is_same_question = |requested: &ItemQuery| {
            ibi.contains(&requested.label)
                && requested.verbs == question.verbs
                && requested.file == question.file
        };
        let query = self.query;
        let is_repeat =
            question.verbs == query.verbs && (answer.details.is_same_item(ibi) || ibi.contains(&query.label));
        if is_repeat || query.trail.path.iter().any(is_same_question) {
            self.circle.get_or_insert(question);
            return None;
        }
        if query.asked.iter().any(is_same_question) {
            self.dead_end.get_or_insert((ibi.clone(), trail.older.clone()));
            return None;
        }
        Some(question)
    }

    fn question(&self, label: ibi_id::Label, relation: Relation) -> ItemQuery {
        let verbs = Verbs { relation, file_list: self.query.verbs.file_list };
        ItemQuery { label, verbs, file: self.query.file.clone() }
    }
}

/// Appends a part.
pub(super) fn with_part(fixed: &[RelationPart], part: RelationPart) -> Vec<RelationPart> {
    fixed.iter().cloned().chain([part]).collect()
}
