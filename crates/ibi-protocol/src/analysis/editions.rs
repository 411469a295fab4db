//! Finds the end of a chain of editions, as far as it is known (4.2 steps 4 and 5).

use super::RequeryReason;
use super::claims::ArchiveOffer;
use super::deciders::{common_labels, is_equal, know_different_things, minters, shows_state};
use super::plan::{ItemAnswer, PlanStep, PlanWait, RoundPlan, RoundPlanner, share_label, with_part};
use crate::answer::State;
use crate::forms::LabelForms;
use crate::relation::{Relation, RelationPart};

/// The answers that agree on one item as the end of the chain.
struct EditionChainEnd<'a> {
    /// The item, if they name it.
    item: Option<&'a LabelForms>,
    answers: Vec<ItemAnswer<'a>>,
    plans: Vec<RoundPlan<'a>>,
    /// Whether one of them holds the item's Original, and so would know its next edition.
    by_original: bool,
}

impl EditionChainEnd<'_> {
    /// Whether the next step is to query the edition itself: no Archive that names it holds it, or
    /// holds what is requested of it.
    fn is_only_named(&self) -> bool {
        match self.plans.first().map(|plan| &plan.step) {
            None => true,
            Some(PlanStep::Go(_)) => false,
            Some(PlanStep::Ask(next)) => self.item.is_none_or(|item| item.contains(&next.question.label)),
        }
    }

    /// Whether the chain passes through `item` or ends at it.
    fn covers(&self, item: &LabelForms, start: &[RelationPart]) -> bool {
        let goes_through = |answer: &ItemAnswer<'_>| {
            answer.details.next_edition_after(start).is_some_and(|next| share_label(next, item))
        };
        self.item.is_some_and(|end| share_label(end, item)) || self.answers.iter().any(goes_through)
    }
}

impl<'a> RoundPlanner<'a> {
    /// The last edition of what `fixed` leads to. An answer that knows a later edition beats a Copy
    /// that ends at the item itself; while any later edition is known, the older one is not served
    /// in its place.
    pub(super) fn edition_plans(
        &mut self,
        answers: &[ItemAnswer<'a>],
        fixed: &[RelationPart],
    ) -> Vec<RoundPlan<'a>> {
        let (own, mut later) = self.chain_ends(answers, fixed);
        // Only the holder of the Original decides what its next edition is (2.4, *Consent*; ADR
        // 13); other Archives cannot contradict it.
        if fixed.is_empty() && self.can_be_decided() && self.is_contradicted(answers, &own, &later) {
            self.is_disputed = true;
            return Vec::new();
        }
        if own.by_original
            && !own.answers.iter().any(|answer| answer.details.next_edition_after(fixed).is_some())
        {
            return own_end(own);
        }
        let is_passed = |end: &EditionChainEnd<'a>| {
            let others = later.iter().filter(|other| !std::ptr::eq(*other, end));
            end.item.is_some_and(|item| others.clone().any(|other| other.covers(item, fixed)))
        };
        // The chain ends at a later edition whose Original is known, unless another answer
        // continues from there.
        let is_unconfirmed = |end: &EditionChainEnd<'a>| is_unconfirmed(end, answers, fixed);
        if let Some(index) =
            later.iter().position(|end| end.by_original && !is_passed(end) && !is_unconfirmed(end))
        {
            let mut plans = later.swap_remove(index).plans;
            plans.iter_mut().for_each(RoundPlan::wait_for_original);
            return plans;
        }
        let next: Vec<(ItemAnswer<'a>, &'a LabelForms)> = answers
            .iter()
            .filter_map(|answer| Some((*answer, answer.details.next_edition_after(fixed)?)))
            .filter(|(_, next)| {
                let mut covering = later.iter().filter(|end| end.covers(next, fixed)).peekable();
                covering.peek().is_none() || covering.all(is_unconfirmed)
            })
            .collect();
        // An end that another answer continues from is not an end, unless all ends form a circle.
        let mut passed = later.iter().map(is_passed).collect::<Vec<_>>().into_iter();
        let end_count = later.len();
        let (passed_ends, final_ends): (Vec<_>, Vec<_>) =
            later.into_iter().partition(|_| passed.next().unwrap_or_default());
        let later = if passed_ends.len() == end_count { passed_ends } else { final_ends };
        // An edition known only by name is queried directly (step 5) and, failing that, for the
        // editions after it.
        let (named, served): (Vec<_>, Vec<_>) = later.into_iter().partition(EditionChainEnd::is_only_named);
        let mut plans: Vec<RoundPlan<'a>> = Vec::new();
        let (unconfirmed, named): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|end| self::is_unconfirmed(end, answers, fixed));
        for mut end in named {
            let editions = self.later_editions_plan(&end, fixed);
            plans.append(&mut end.plans);
            plans.extend(editions);
        }
        for (answer, item) in next {
            plans.extend(self.next_edition_plan(
                &answer,
                item,
                fixed,
                RequeryReason::NextEdition,
                PlanWait::Grace,
            ));
        }
        for mut end in unconfirmed {
            let editions = self.later_editions_plan(&end, fixed);
            plans.extend(end.plans.drain(..).chain(editions).map(RoundPlan::if_unheld));
        }
        for end in served {
            let is_unconfirmed = self::is_unconfirmed(&end, answers, fixed);
            let found = self.confirm_copies(end, fixed).into_iter();
            plans.extend(found.map(|plan| if is_unconfirmed { plan.if_unheld() } else { plan }));
        }
        if plans.is_empty() {
            // A newer edition exists even if another path to it failed, so the item itself is not
            // the last.
            return if self.dead_end.is_none() { own_end(own) } else { Vec::new() };
        }
        plans.iter_mut().for_each(|plan| plan.to_newer = true);
        plans
    }

    /// Whether Archives contradict each other about what follows the item.
    fn is_contradicted(
        &self,
        answers: &[ItemAnswer<'a>],
        own: &EditionChainEnd<'a>,
        later: &[EditionChainEnd<'a>],
    ) -> bool {
        let leads_on = |answer: &ItemAnswer<'a>| self.after_item(answer, answers).is_some();
        // A Copy without a next edition may be outdated (step 4).
        let may_decide =
            |answer: &ItemAnswer<'a>| !leads_on(answer) && !shows_state(answer, &[], State::Copy);
        let is_end = own.by_original || own.answers.iter().any(may_decide);
        let is_denied = is_end && answers.iter().any(leads_on);
        let turns_back = |answer: &ItemAnswer<'a>| {
            answer.details.next_edition.as_ref().is_some_and(|next| self.is_start(answer, next, answers, &[]))
        };
        let is_circle = answers.iter().any(turns_back);
        answers.len() > 1 && (is_denied || is_circle || later.len() > 1 || self.names_several(answers))
    }

    /// The item that an Archive names as the successor of the queried one.
    fn after_item(&self, answer: &ItemAnswer<'a>, answers: &[ItemAnswer<'a>]) -> Option<&'a LabelForms> {
        let last =
            answer.offer(&[RelationPart::LastEdition]).and_then(|candidate| candidate.offer.ibi.as_ref());
        let mut named = answer.details.next_edition.iter().chain(last);
        named.find(|item| !self.is_start(answer, item, answers, &[]))
    }

    /// Whether Archives name different successors.
    fn names_several(&self, answers: &[ItemAnswer<'a>]) -> bool {
        let mut named = answers.iter().filter_map(|answer| self.after_item(answer, answers));
        named.next().is_some_and(|first| named.any(|other| !is_equal(first, other)))
    }

    /// Groups the answers by where the chain ends: at the item itself, and at later items.
    fn chain_ends(
        &mut self,
        answers: &[ItemAnswer<'a>],
        fixed: &[RelationPart],
    ) -> (EditionChainEnd<'a>, Vec<EditionChainEnd<'a>>) {
        let last = with_part(fixed, RelationPart::LastEdition);
        let begin =
            |item| EditionChainEnd { item, answers: Vec::new(), plans: Vec::new(), by_original: false };
        let (mut own, mut later) = (begin(None), Vec::<EditionChainEnd<'a>>::new());
        let mut unnamed = Vec::new();
        for answer in answers.iter().filter(|answer| answer.mentions(&last)) {
            let item = answer.offer(&last).and_then(|candidate| candidate.offer.ibi.as_ref());
            let is_own = match (item, answer.details.next_edition_after(fixed)) {
                (Some(item), _) => self.is_start(answer, item, answers, fixed),
                (None, next) => next.is_none_or(|next| self.is_start(answer, next, answers, fixed)),
            };
            let is_same = |end: &&mut EditionChainEnd<'a>| matches!((end.item, item), (Some(a), Some(b)) if share_label(a, b));
            let has_url = || answer.details.offers.iter().any(|offer| offer.url.is_some());
            match later.iter_mut().find(is_same) {
                _ if is_own && item.is_none() && !has_url() => unnamed.push(*answer),
                _ if is_own => own.answers.push(*answer),
                Some(end) => end.answers.push(*answer),
                None => later.push(EditionChainEnd { answers: vec![*answer], ..begin(item) }),
            }
        }
        // An answer that offers only what follows the last edition fits any end.
        later.first_mut().unwrap_or(&mut own).answers.extend(unnamed);
        for end in later.iter_mut().chain([&mut own]).filter(|end| !end.answers.is_empty()) {
            end.plans = self.plans(&end.answers, &last);
            end.by_original = self.is_by_original(end, &last);
        }
        (own, later)
    }

    /// Whether `item` is the one that the chain begins with.
    fn is_start(
        &self,
        answer: &ItemAnswer<'a>,
        item: &LabelForms,
        answers: &[ItemAnswer<'a>],
        fixed: &[RelationPart],
    ) -> bool {
        if fixed.is_empty() {
            return answer.details.is_same_item(item) || item.contains(&self.query.label);
        }
        let names = answers.iter().filter_map(|answer| answer.offer(fixed)?.offer.ibi.as_ref());
        names.into_iter().any(|name| share_label(name, item))
    }

    /// Whether an answer of this end holds the item's Original. An answer's state is that of the
    /// whole relation's target: the edition's own, unless a translation follows.
    fn is_by_original(&self, end: &EditionChainEnd<'a>, last: &[RelationPart]) -> bool {
        let is_original = |candidate: &ArchiveOffer<'a>| candidate.offer.state == Some(State::Original);
        let details = end
            .answers
            .iter()
            .filter_map(|answer| answer.offer(last))
            .any(|candidate| is_original(&candidate));
        let is_own_state = !matches!(self.parts().get(last.len()), Some(RelationPart::Translation(_)));
        details || is_own_state && end.plans.first().and_then(RoundPlan::goes_to).is_some_and(is_original)
    }

    /// Queries another edition with `!` and the verbs after it.
    fn next_edition_plan(
        &mut self,
        answer: &ItemAnswer<'a>,
        item: &LabelForms,
        fixed: &[RelationPart],
        why: RequeryReason,
        wait: PlanWait,
    ) -> Option<RoundPlan<'a>> {
        let index = fixed.len();
        let editions = Relation::new(self.parts().get(index..)?.to_vec()).ok()?;
        let last = with_part(fixed, RelationPart::LastEdition);
        let trail = self.trail(&last, index + 1, answer, Some(item));
        let question = self.new_query(item, answer, editions, &trail)?;
        Some(RoundPlan { despite_silence: true, ..RoundPlan::ask(question, why, trail, wait) })
    }

    /// Queries the editions after this end.
    fn later_editions_plan(
        &mut self,
        end: &EditionChainEnd<'a>,
        fixed: &[RelationPart],
    ) -> Option<RoundPlan<'a>> {
        let (item, answer) = end.item.zip(end.answers.first())?;
        self.next_edition_plan(answer, item, fixed, RequeryReason::CopyOfLast, PlanWait::Grace)
    }

    /// Only Copies of a later edition are known and a Copy may be outdated, so all Archives are
    /// queried for editions after it. If none is known, the Copy is used. If that query was already
    /// made on another path and failed, a later edition does exist and the Copy is not used.
    fn confirm_copies(&mut self, end: EditionChainEnd<'a>, fixed: &[RelationPart]) -> Vec<RoundPlan<'a>> {
        let earlier_dead_end = self.dead_end.take();
        let query_plan = self.later_editions_plan(&end, fixed);
        let is_passed = self.dead_end.is_some();
        self.dead_end = earlier_dead_end.or(self.dead_end.take());
        let EditionChainEnd { mut plans, .. } = end;
        match query_plan {
            None if is_passed => plans.clear(),
            None => plans.iter_mut().for_each(|plan| plan.wait = PlanWait::AllAnswers),
            Some(_) => plans.iter_mut().for_each(|plan| {
                plan.ends_chain = true;
                plan.despite_silence = true;
            }),
        }
        query_plan.into_iter().chain(plans).collect()
    }
}

/// Whether an end depends on a next edition whose own Archive decides (2.4, *Consent*): others name
/// that edition and nothing beyond, or disagree about the end.
fn is_unconfirmed(end: &EditionChainEnd<'_>, answers: &[ItemAnswer<'_>], start: &[RelationPart]) -> bool {
    let next = end.answers.iter().find_map(|answer| answer.details.next_edition_after(start));
    let Some(next_edition) = next.or(end.item) else { return false };
    let is_other = |answer: &&ItemAnswer<'_>| end.answers.iter().all(|own| own.archive != answer.archive);
    let is_named = |answer: &ItemAnswer<'_>| {
        answer.details.next_edition_after(start).is_some_and(|next| share_label(next, next_edition))
    };
    let is_only_named = answers.iter().filter(is_other).any(is_named);
    let last = with_part(start, RelationPart::LastEdition);
    let minters = || minters(&end.answers, &last, &common_labels(&end.answers, &last));
    match end.item.is_some_and(|item| share_label(next_edition, item)) {
        true => (is_only_named || know_different_things(&end.answers, &last)) && minters().is_empty(),
        false => is_only_named,
    }
}

/// The item itself is the last edition as far as known. A Copy's answer to that effect is used once
/// all have answered, an Original's at once.
fn own_end(own: EditionChainEnd<'_>) -> Vec<RoundPlan<'_>> {
    let EditionChainEnd { mut plans, by_original, .. } = own;
    let needs_all_answers = |plan: &&mut RoundPlan<'_>| match &plan.step {
        PlanStep::Go(_) => true,
        // A translation of this edition that is known only by name.
        PlanStep::Ask(next) => next.why != RequeryReason::WithoutTranslation,
    };
    for plan in plans.iter_mut().filter(|_| !by_original).filter(needs_all_answers) {
        plan.wait = PlanWait::AllAnswers;
    }
    plans
}
