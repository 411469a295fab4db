//! One round: the answers to one question and the decision that follows (4.2 steps 3 to 6).

use super::check::{CheckedAnswer, LiveAnswer};
use super::claims::{ArchiveOffer, claims, is_same, suspects};
use super::deciders::{CountedAnswers, LinkDeciders, counted_answers, is_equal, is_minted_by};
use super::plan::{ItemAnswer, PlanStep, PlanWait, RoundPlan, RoundPlanner};
use super::spellings::{SpellingFit, add_alternative, select_spelling};
use super::trail::{FallbackStep, FollowUpQuery, NextQuery, QueryFallback, QueryTrail, RemovedEdition};
use super::{
    AnswerTombstone, ArchiveId, ArchiveReply, CycleReason, FoundUrl, ItemQuery, KnownCopy, MAX_ROUNDS,
    NotFoundReason, OriginalDispute, RequeryReason, RoundAnswer, RoundDecision, RoundPurpose, RoundQuery,
};
use crate::answer::State;
use crate::forms::LabelForms;
use crate::relation::{Relation, RelationPart};
use crate::verb::Verbs;

/// The classified answers of a round.
pub(super) struct RoundAnalysis<'a> {
    query: &'a RoundQuery,
    /// From Archives that hold the item or removed it.
    answers: Vec<ItemAnswer<'a>>,
    /// The answers among them to consider.
    considered: CountedAnswers<'a>,
    tombstones: Vec<(ArchiveId, AnswerTombstone)>,
    /// Items for which the queried spelling is canonical.
    alternatives: Vec<LabelForms>,
    /// How the answered item's spelling relates to the queried one (1.3).
    spelling_fit: SpellingFit,
    reserved: Option<&'a LabelForms>,
    failed: Vec<(ArchiveId, String)>,
    /// Whether any answer is outstanding.
    is_pending: bool,
    /// Whether an Archive with the label's prefix is outstanding.
    minter_pending: bool,
}

impl<'a> RoundAnalysis<'a> {
    pub(super) fn new(answers: &'a [RoundAnswer], query: &'a RoundQuery) -> Self {
        let mut round = Self {
            query,
            answers: Vec::new(),
            considered: counted_answers(&[], query),
            tombstones: Vec::new(),
            alternatives: Vec::new(),
            spelling_fit: SpellingFit::Exact,
            reserved: None,
            failed: Vec::new(),
            is_pending: false,
            minter_pending: false,
        };
        for &RoundAnswer { archive, said: ref reply } in answers {
            match reply {
                ArchiveReply::Offered(CheckedAnswer::Live(details)) => {
                    round.answers.push(ItemAnswer { archive, details, is_live: true });
                }
                ArchiveReply::Offered(CheckedAnswer::Deleted(tombstone)) => {
                    round.tombstones.push((archive, tombstone.clone()));
                    round.answers.push(ItemAnswer { archive, details: &tombstone.links, is_live: false });
                }
                ArchiveReply::Offered(CheckedAnswer::Several(items)) => {
                    items
                        .iter()
                        .for_each(|item| add_alternative(&mut round.alternatives, item, &query.label));
                }
                ArchiveReply::Offered(CheckedAnswer::Reserved(item)) => round.reserved = Some(item),
                ArchiveReply::Nothing => {}
                ArchiveReply::Failed(why) => round.failed.push((archive, why.clone())),
                ArchiveReply::Waiting { has_own_prefix } => {
                    round.is_pending = true;
                    round.minter_pending |= has_own_prefix;
                }
            }
        }
        let RoundAnalysis { answers, tombstones, alternatives, .. } = &mut round;
        round.spelling_fit = select_spelling(&query.label, answers, tombstones, alternatives);
        round.considered = counted_answers(&round.answers, query);
        round
    }

    pub(super) fn decide(&self) -> RoundDecision {
        // The Original requires all answers (step 3).
        if self.query.original && self.is_pending {
            return RoundDecision::Wait;
        }
        let in_grace = self.is_pending && (!self.query.grace_over || self.considered.deciders_missing);
        match &self.query.purpose {
            RoundPurpose::NameOffers { .. } if in_grace => return RoundDecision::Wait,
            RoundPurpose::LastLiving { .. } if self.is_pending => return RoundDecision::Wait,
            RoundPurpose::WhoDecides { then } => return self.find_deciders(then, in_grace),
            RoundPurpose::NameOffers { missed } => {
                return RoundDecision::NotFound(self.describe_missing(missed));
            }
            RoundPurpose::LastLiving { tombstones, living } => return self.last_living(tombstones, living),
            RoundPurpose::Find | RoundPurpose::Recount => {}
        }
        if !self.alternatives.is_empty() {
            return if in_grace {
                RoundDecision::Wait
            } else {
                RoundDecision::Ambiguous(self.alternatives.clone())
            };
        }
        if self.considered.deciders_missing && self.is_pending {
            return RoundDecision::Wait;
        }
        let mut planner = RoundPlanner::new(self.query, &self.considered);
        let mut plans = planner.all_plans().into_iter();
        if planner.is_disputed {
            return if in_grace { RoundDecision::Wait } else { self.ask_who_decides() };
        }
        if let Some(plan) = plans.next() {
            let is_early = match plan.wait.max(self.spelling_fit.wait()) {
                PlanWait::Nothing => false,
                PlanWait::MinterGrace => in_grace && self.minter_pending,
                PlanWait::Grace => in_grace,
                PlanWait::AllAnswers => self.is_pending,
            };
            return if is_early { RoundDecision::Wait } else { self.follow_plan(plan, plans) };
        }
        if self.is_pending {
            return RoundDecision::Wait;
        }
        match (planner.circle, planner.dead_end) {
            (Some(question), _) => self.cycle_decision(question, CycleReason::Repeats),
            (None, Some((item, older))) => self.or_fallback(NotFoundReason::Unheld { item, older }, true),
            (None, None) => self.not_found(),
        }
    }

    pub(super) fn suspects(&self) -> Vec<OriginalDispute> {
        suspects(&self.claims(&[]), self.is_recount())
    }

    fn relation(&self) -> &'a Relation {
        &self.query.verbs.relation
    }

    fn is_recount(&self) -> bool {
        self.query.purpose == RoundPurpose::Recount
    }

    fn live_answers(&self) -> impl Iterator<Item = &'a LiveAnswer> {
        self.considered.answers.iter().filter(|answer| answer.is_live).map(|answer| answer.details)
    }

    /// Whether an unavailable item with this spelling is the queried one. In another spelling it
    /// is, unless an Archive that did not answer may hold the exact one (1.3).
    fn is_queried_item(&self, fit: SpellingFit) -> bool {
        fit == SpellingFit::Exact || self.failed.is_empty()
    }

    /// Archives disagree on editions or translations: query the item itself to find its Original.
    fn ask_who_decides(&self) -> RoundDecision {
        let then = self.query.question();
        let question = ItemQuery { verbs: Verbs::default(), file: None, ..then.clone() };
        let (purpose, trail) = (RoundPurpose::WhoDecides { then }, self.query.trail.clone());
        RoundDecision::AskAgain(Box::new(FollowUpQuery {
            question,
            why: RequeryReason::WhoDecides,
            purpose,
            trail,
        }))
    }

    /// Determines the holders of the Original, which alone decide. Of several claimants, the
    /// Archive that minted the label (4.4).
    fn find_deciders(&self, then: &ItemQuery, in_grace: bool) -> RoundDecision {
        let is_original = |answer: &&ItemAnswer<'a>| {
            answer.offer(&[]).is_some_and(|own| own.offer.state == Some(State::Original))
        };
        let claimants: Vec<&ItemAnswer<'a>> = self.answers.iter().filter(is_original).collect();
        let label = self.query.label.clone();
        let is_minter = |answer: &&&ItemAnswer<'a>| is_minted_by(answer, std::slice::from_ref(&label));
        let minters: Vec<&ItemAnswer<'a>> = claimants.iter().filter(is_minter).copied().collect();
        let is_early = match minters.is_empty() {
            true => in_grace || claimants.is_empty() && self.is_pending,
            false => false,
        };
        if is_early {
            return RoundDecision::Wait;
        }
        let holders = if minters.is_empty() { claimants } else { minters };
        let archives = holders.into_iter().map(|answer| answer.archive).collect();
        let deciders = Some(LinkDeciders { label, archives });
        let trail = QueryTrail { deciders, ..self.query.trail.clone() };
        let (question, purpose) = (then.clone(), RoundPurpose::Find);
        RoundDecision::AskAgain(Box::new(FollowUpQuery {
            question,
            why: RequeryReason::Decided,
            purpose,
            trail,
        }))
    }

    /// Takes the best step and keeps the others as fallbacks.
    fn follow_plan(&self, plan: RoundPlan<'a>, others: impl Iterator<Item = RoundPlan<'a>>) -> RoundDecision {
        let (to_newer, choices) = (plan.to_newer, self.language_choices(&plan));
        let NextQuery { question, why, mut trail } = match plan.step {
            PlanStep::Go(candidates) => return self.decide_among(&candidates),
            PlanStep::Ask(next) => *next,
        };
        trail.language_choices = choices;
        trail.fallbacks.clone_from(&self.query.trail.fallbacks);
        if self.live_answers().next().is_some() {
            trail.fallbacks.retain(|fallback| !fallback.only_if_unheld);
        }
        if to_newer {
            // A newer edition is known, so a presumed last edition is no longer a fallback.
            trail.fallbacks.retain(|fallback| !fallback.ends_chain);
        }
        trail.add_fallbacks(others.filter_map(|plan| self.fallback(plan)));
        self.ask_query(question, why, trail)
    }

    /// The translations chosen up to and including this step.
    fn language_choices(&self, plan: &RoundPlan<'a>) -> Vec<usize> {
        self.query.trail.language_choices.iter().chain(&plan.language_choices).copied().collect()
    }

    fn fallback(&self, plan: RoundPlan<'a>) -> Option<QueryFallback> {
        let language_choices = self.language_choices(&plan);
        let RoundPlan { step, despite_silence, ends_chain, only_if_unheld, .. } = plan;
        let step = match step {
            PlanStep::Ask(next) => FallbackStep::Ask(next),
            PlanStep::Go(candidates) if !self.query.original => FallbackStep::Go(Box::new(
                candidates.first().and_then(|candidate| found_url(candidate, Vec::new()))?,
            )),
            // All Archives must be queried to know whether it is the Original.
            PlanStep::Go(candidates) => {
                let candidate = candidates.first()?;
                let question = self.query_with_relation(candidate.offer.relation.clone());
                let is_new = question != self.query.question();
                let path = self.query.trail.path.iter().cloned().chain([self.query.question()]).collect();
                let trail = QueryTrail { path, fallbacks: Vec::new(), ..self.query.trail.clone() };
                let why = RequeryReason::Leading(candidate.offer.relation.clone());
                is_new.then(|| FallbackStep::Ask(Box::new(NextQuery { question, why, trail })))?
            }
        };
        Some(QueryFallback { step, despite_silence, language_choices, ends_chain, only_if_unheld })
    }

    /// The claims among all offers for the relation, including languages that do not match: the
    /// item is the same. `best` comes first.
    fn claims(&self, best: &[ArchiveOffer<'a>]) -> Vec<Vec<ArchiveOffer<'a>>> {
        let all = self.answers.iter().flat_map(|answer| {
            let ItemAnswer { archive, details, .. } = *answer;
            details.offers.iter().map(move |offer| ArchiveOffer { archive, live: details, offer })
        });
        let all = all.filter(|candidate| self.relation().accepts(&candidate.offer.relation));
        claims(best.iter().copied().chain(all))
    }

    /// Decides among equivalent offers with a URL.
    fn decide_among(&self, best: &[ArchiveOffer<'a>]) -> RoundDecision {
        let items = self.claims(best);
        let disputes = suspects(&items, self.is_recount());
        let redirect = |candidate: &ArchiveOffer<'a>| match found_url(candidate, disputes.clone()) {
            Some(found) => RoundDecision::Found(Box::new(found)),
            None => self.not_found(),
        };
        if !self.query.original {
            return best.first().map_or_else(|| self.not_found(), redirect);
        }
        // The requirement applies to the items that the best offers lead to; claims are counted per
        // item.
        let items = || {
            items.iter().filter(|claims| {
                best.iter().any(|candidate| claims.iter().any(|claimants| is_same(candidate, claimants)))
            })
        };
        let undisputed = items().find_map(|claims| match claims.as_slice() {
            [claimants] => claimants.offer.url.is_some().then_some(claimants),
            _ => None,
        });
        if let Some(original) = undisputed {
            return redirect(original);
        }
        if !self.is_recount() {
            return self.ask_within_limit(self.query.recount_query());
        }
        if items().any(|claims| claims.len() > 1) {
            return RoundDecision::Alert(disputes);
        }
        let copies = best.iter().filter_map(|ArchiveOffer { archive, offer, .. }| {
            Some(KnownCopy { archive: *archive, ibi: offer.ibi.clone(), url: offer.url.clone()? })
        });
        self.or_incomplete(NotFoundReason::Original { copies: copies.collect() })
    }

    fn query_with_relation(&self, relation: Relation) -> ItemQuery {
        let verbs = Verbs { relation, file_list: self.query.verbs.file_list };
        ItemQuery { verbs, ..self.query.question() }
    }

    /// No answer leads anywhere.
    fn not_found(&self) -> RoundDecision {
        if self.is_pending {
            return RoundDecision::Wait;
        }
        if self.live_answers().next().is_some() && !self.is_removed_despite_claims() {
            return self.or_fallback(self.describe_missing(&self.query.question()), false);
        }
        let QueryTrail { by_link, older, .. } = &self.query.trail;
        let is_queried = |item: &&LabelForms| self.is_queried_item(SpellingFit::of(item, &self.query.label));
        let reserved = self.reserved.filter(is_queried);
        match () {
            () if !self.tombstones.is_empty() && self.is_queried_item(self.spelling_fit) => {
                self.next_fallback(false, false).unwrap_or_else(|| self.deleted())
            }
            () if reserved.is_some() => self
                .next_fallback(false, false)
                .unwrap_or_else(|| RoundDecision::Reserved(reserved.cloned().unwrap_or_default())),
            () if *by_link => {
                let item = LabelForms::new([self.query.label.clone()]);
                self.or_fallback(NotFoundReason::Unheld { item, older: older.clone() }, false)
            }
            () => self.or_fallback(NotFoundReason::Item, false),
        }
    }

    /// Whether the item itself was queried and removed, and the other answers only mention it: an
    /// Archive that holds an item offers a URL for it (3.4), so none has it live (4.3).
    fn is_removed_despite_claims(&self) -> bool {
        let is_plain = self.query.verbs.is_empty() && self.query.file.is_none();
        let has_url = |live: &LiveAnswer| {
            live.offers.iter().any(|offer| offer.relation.is_empty() && offer.url.is_some())
        };
        is_plain && !self.tombstones.is_empty() && !self.live_answers().any(has_url)
    }

    /// Takes the next fallback; without one, reports what is missing, with the available relations
    /// if they can be determined.
    fn or_fallback(&self, missing: NotFoundReason, knows_newer: bool) -> RoundDecision {
        if let Some(decision) = self.next_fallback(!self.failed.is_empty(), knows_newer) {
            return decision;
        }
        if let Some(RemovedEdition { tombstones, living }) = self.query.trail.removed.clone() {
            return RoundDecision::Deleted { tombstones, living };
        }
        let untagged = self.relation().parts().iter().map(|part| match part {
            RelationPart::LastEdition => RelationPart::LastEdition,
            RelationPart::Translation(_) => RelationPart::Translation(None),
            RelationPart::Metadata(_) => RelationPart::Metadata(None),
        });
        if let (NotFoundReason::Related { .. } | NotFoundReason::File { .. }, Ok(untagged)) =
            (&missing, Relation::new(untagged.collect()))
        {
            let question = ItemQuery { file: None, ..self.query_with_relation(untagged) };
            let is_new = question != self.query.question() && !self.query.asked.contains(&question);
            if is_new && self.failed.is_empty() && self.query.round < MAX_ROUNDS {
                let purpose = RoundPurpose::NameOffers { missed: self.query.question() };
                let trail = self.query.trail.clone();
                return RoundDecision::AskAgain(Box::new(FollowUpQuery {
                    question,
                    why: RequeryReason::Offers,
                    purpose,
                    trail,
                }));
            }
        }
        self.or_incomplete(missing)
    }

    /// The next usable fallback. While an Archive that did not answer might have the requested
    /// item, only fallbacks that are no second choice.
    fn next_fallback(&self, has_failures: bool, knows_newer: bool) -> Option<RoundDecision> {
        let all = &self.query.trail.fallbacks;
        let is_held = self.live_answers().next().is_some();
        let is_usable = |fallback: &QueryFallback| {
            let is_new = match &fallback.step {
                FallbackStep::Go(_) => true,
                FallbackStep::Ask(next) => {
                    let question = &next.question;
                    !self.query.asked.contains(question) && *question != self.query.question()
                }
            };
            let is_obsolete = fallback.ends_chain && knows_newer || fallback.only_if_unheld && is_held;
            // A worse language is no substitute for one that a silent Archive may have (step 6).
            let keeps_language = self.query.trail.language_choices.starts_with(&fallback.language_choices);
            is_new && !is_obsolete && (fallback.despite_silence && keeps_language || !has_failures)
        };
        let index = all.iter().position(is_usable)?;
        Some(match &all[index].step {
            FallbackStep::Go(found) => RoundDecision::Found(found.clone()),
            FallbackStep::Ask(next) => {
                let NextQuery { question, why, mut trail } = (**next).clone();
                trail.language_choices.clone_from(&all[index].language_choices);
                trail.fallbacks = all[index + 1..].to_vec();
                trail.fallbacks.retain(|fallback| !(fallback.only_if_unheld && is_held));
                trail.removed.clone_from(&self.query.trail.removed);
                let is_removed = !self.tombstones.is_empty() && self.live_answers().next().is_none();
                // If all fallbacks fail, it was removed, and 404 would be false (4.3).
                if is_removed && (all[index].despite_silence || trail.removed.is_none()) {
                    let (tombstones, living) = (self.tombstones.clone(), self.query.trail.older.clone());
                    trail.removed = Some(RemovedEdition { tombstones, living });
                }
                let why = match why {
                    RequeryReason::WithoutTranslation => RequeryReason::WithoutTranslation,
                    why => RequeryReason::NextBest(Box::new(why)),
                };
                self.ask_query(question, why, trail)
            }
        })
    }

    /// The item was removed. If the path skipped editions, looks for the newest that still exists.
    fn deleted(&self) -> RoundDecision {
        let QueryTrail { older, skipped, removed, .. } = &self.query.trail;
        // Another path may have come closer to it.
        if let Some(RemovedEdition { tombstones, living }) = removed
            && living != older
        {
            return RoundDecision::Deleted { tombstones: tombstones.clone(), living: living.clone() };
        }
        let (tombstones, living) = (self.tombstones.clone(), older.clone());
        if let (Some(living), Some(next)) = (older, skipped) {
            let living = living.clone();
            if let Some(again) = self.query_edition(next.clone(), &tombstones, living) {
                return again;
            }
        }
        RoundDecision::Deleted { tombstones, living }
    }

    /// The round queried an edition before a removed one.
    fn last_living(&self, tombstones: &[(ArchiveId, AnswerTombstone)], living: &ItemQuery) -> RoundDecision {
        let mut living = living.clone();
        if self.live_answers().next().is_some() {
            let rest = self.relation().parts().get(1..).unwrap_or_default().to_vec();
            living = self.query_with_relation(Relation::new(rest).unwrap_or_default());
        }
        // If Archives disagree on the next edition, the search stops here.
        let mut named =
            self.considered.answers.iter().filter_map(|answer| answer.details.next_edition.as_ref());
        let next = named.next().filter(|next| named.all(|other| is_equal(next, other)));
        let next = next
            .and_then(|next| next.labels().first())
            .map(|label| ItemQuery { label: label.clone(), ..self.query.question() });
        let again = next.and_then(|next| self.query_edition(next, tombstones, living.clone()));
        again.unwrap_or_else(|| RoundDecision::Deleted {
            tombstones: tombstones.to_vec(),
            living: Some(living),
        })
    }

    /// Queries whether an edition still exists, unless it is the removed one.
    fn query_edition(
        &self,
        question: ItemQuery,
        tombstones: &[(ArchiveId, AnswerTombstone)],
        living: ItemQuery,
    ) -> Option<RoundDecision> {
        let is_removed = tombstones.iter().any(|(_, tombstone)| tombstone.ibi.contains(&question.label));
        let was_asked = question == self.query.question() || self.query.asked.contains(&question);
        if is_removed || was_asked || self.query.round >= MAX_ROUNDS {
            return None;
        }
        let purpose = RoundPurpose::LastLiving { tombstones: tombstones.to_vec(), living };
        let trail = self.query.trail.clone();
        Some(RoundDecision::AskAgain(Box::new(FollowUpQuery {
            question,
            why: RequeryReason::LastLiving,
            purpose,
            trail,
        })))
    }

    /// Describes what is missing, with the relations that the item does have.
    fn describe_missing(&self, missed: &ItemQuery) -> NotFoundReason {
        let item = self.live_answers().next().map(|live| live.item.clone());
        let item = item.unwrap_or_else(|| LabelForms::new([missed.label.clone()]));
        let with_url = self.live_answers().flat_map(|live| &live.offers).filter(|offer| offer.url.is_some());
        let mut offered: Vec<Relation> = with_url.map(|offer| offer.relation.clone()).collect();
        // Metadata is always available as `oai_dc` too (4.1), which Archives that filter their
        // answer do not list.
        for relation in offered.clone() {
            if let Some((RelationPart::Metadata(None), before)) = relation.parts().split_last() {
                let format = RelationPart::Metadata(Some("oai_dc".to_owned()));
                offered.extend(Relation::new(before.iter().cloned().chain([format]).collect()));
            }
        }
        offered.sort();
        offered.dedup();
        let is_requested = |relation: &Relation| missed.verbs.relation.accepts(relation);
        if missed.file.is_some() && self.query.file.is_none() && offered.iter().any(is_requested) {
            NotFoundReason::File { item, offered }
        } else {
            NotFoundReason::Related { item, offered }
        }
    }

    fn or_incomplete(&self, not_found: NotFoundReason) -> RoundDecision {
        match self.failed.is_empty() {
            true => RoundDecision::NotFound(not_found),
            false => RoundDecision::Incomplete { failed: self.failed.clone(), otherwise: not_found },
        }
    }

    fn ask_query(&self, question: ItemQuery, why: RequeryReason, trail: QueryTrail) -> RoundDecision {
        self.ask_within_limit(FollowUpQuery { question, why, purpose: RoundPurpose::Find, trail })
    }

    fn ask_within_limit(&self, again: FollowUpQuery) -> RoundDecision {
        if self.query.round >= MAX_ROUNDS {
            return self.cycle_decision(again.question, CycleReason::TooManyRounds);
        }
        RoundDecision::AskAgain(Box::new(again))
    }

    fn cycle_decision(&self, last: ItemQuery, why: CycleReason) -> RoundDecision {
        let path = self.query.trail.path.iter().cloned();
        let chain = path.chain([self.query.question(), last]).collect();
        RoundDecision::Cycle { chain, why }
    }
}

fn found_url(candidate: &ArchiveOffer<'_>, suspects: Vec<OriginalDispute>) -> Option<FoundUrl> {
    let ArchiveOffer { archive, live, offer } = *candidate;
    Some(FoundUrl {
        archive,
        url: offer.url.clone()?,
        relation: offer.relation.clone(),
        ibi: offer.ibi.clone(),
        contenttype: offer.contenttype,
        state: offer.state,
        timestamp: offer.timestamp.clone(),
        urlkey: live.urlkey.clone(),
        suspects,
    })
}
