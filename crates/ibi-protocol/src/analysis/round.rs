//! One round: the answers to one question, and what follows from them (4.2 steps 3 to 6).

use super::check::{Live, Offered};
use super::claims::{Whose, claims, is_same, suspects};
use super::plan::{Plan, PlanStep, PlanWait, Planner, Voice};
use super::spellings::{SpellingFit, add, keep_apart};
use super::trail::{AskAgain, Fallback, FallbackStep, NextQuestion, RemovedEdition, Trail};
use super::{
    Answer, ArchiveId, Decision, Endless, Found, KnownCopy, MOST_ROUNDS, NotFound, Purpose, Question, Said,
    Suspects, Tombstone, Wanted, Why,
};
use crate::forms::Forms;
use crate::relation::{Part, Relation};
use crate::verb::Verbs;

/// The answers, sorted out.
pub(super) struct Round<'a> {
    wanted: &'a Wanted,
    /// Of those who hold the item, and of those who removed it.
    voices: Vec<Voice<'a>>,
    tombstones: Vec<(ArchiveId, Tombstone)>,
    /// Items of which the spelling asked for is canonical.
    alternatives: Vec<Forms>,
    /// How the item is spelled that the answers are about (1.3).
    fit: SpellingFit,
    reserved: Option<&'a Forms>,
    failed: Vec<(ArchiveId, String)>,
    /// Whether somebody may still say something.
    waiting: bool,
}

impl<'a> Round<'a> {
    pub(super) fn new(answers: &'a [Answer], wanted: &'a Wanted) -> Self {
        let mut round = Self {
            wanted,
            voices: Vec::new(),
            tombstones: Vec::new(),
            alternatives: Vec::new(),
            fit: SpellingFit::Exact,
            reserved: None,
            failed: Vec::new(),
            waiting: false,
        };
        for &Answer { archive, ref said } in answers {
            match said {
                Said::Offered(Offered::Live(said)) => {
                    round.voices.push(Voice { archive, said, is_live: true });
                }
                Said::Offered(Offered::Deleted(tombstone)) => {
                    round.tombstones.push((archive, tombstone.clone()));
                    round.voices.push(Voice { archive, said: &tombstone.links, is_live: false });
                }
                Said::Offered(Offered::Several(items)) => {
                    items.iter().for_each(|item| add(&mut round.alternatives, item, &wanted.label));
                }
                Said::Offered(Offered::Reserved(item)) => round.reserved = Some(item),
                Said::Nothing => {}
                Said::Failed(why) => round.failed.push((archive, why.clone())),
                Said::Waiting => round.waiting = true,
            }
        }
        let Round { voices, tombstones, alternatives, .. } = &mut round;
        round.fit = keep_apart(&wanted.label, voices, tombstones, alternatives);
        round
    }

    pub(super) fn decide(&self) -> Decision {
        // For the original all answers are taken (step 3).
        if self.wanted.original && self.waiting {
            return Decision::Wait;
        }
        let waits = self.waiting && !self.wanted.grace_over;
        match &self.wanted.purpose {
            Purpose::NameOffers { .. } if waits => return Decision::Wait,
            Purpose::LastLiving { .. } if self.waiting => return Decision::Wait,
            Purpose::NameOffers { missed } => return Decision::NotFound(self.offers(missed)),
            Purpose::LastLiving { tombstones, living } => return self.last_living(tombstones, living),
            Purpose::Find | Purpose::Recount => {}
        }
        if !self.alternatives.is_empty() {
            return if waits { Decision::Wait } else { Decision::Ambiguous(self.alternatives.clone()) };
        }
        let mut planner = Planner::new(self.wanted, &self.voices);
        let mut plans = planner.all().into_iter();
        if let Some(plan) = plans.next() {
            let is_early = match plan.wait.max(self.fit.wait()) {
                PlanWait::Nothing => false,
                PlanWait::Grace => waits,
                PlanWait::AllAnswers => self.waiting,
            };
            return if is_early { Decision::Wait } else { self.follow(plan, plans) };
        }
        if self.waiting {
            return Decision::Wait;
        }
        match (planner.circle, planner.dead_end) {
            (Some(question), _) => self.endless(question, Endless::Repeats),
            (None, Some((item, older))) => self.or_fallback(NotFound::Unheld { item, older }, true),
            (None, None) => self.not_found(),
        }
    }

    pub(super) fn suspects(&self) -> Vec<Suspects> {
        suspects(&self.claims(&[]), self.is_recount())
    }

    fn relation(&self) -> &'a Relation {
        &self.wanted.verbs.relation
    }

    fn is_recount(&self) -> bool {
        self.wanted.purpose == Purpose::Recount
    }

    fn lives(&self) -> impl Iterator<Item = &'a Live> {
        self.voices.iter().filter(|voice| voice.is_live).map(|voice| voice.said)
    }

    /// Whether an item that is not to be had, and is spelled so, is the one asked for: in another
    /// spelling it is, unless somebody who did not answer may hold the very one (1.3).
    fn is_meant(&self, fit: SpellingFit) -> bool {
        fit == SpellingFit::Exact || self.failed.is_empty()
    }

    /// Does the best of what can be done, and remembers the rest.
    fn follow(&self, plan: Plan<'a>, others: impl Iterator<Item = Plan<'a>>) -> Decision {
        let to_newer = plan.to_newer;
        let NextQuestion { question, why, mut trail } = match plan.step {
            PlanStep::Go(candidates) => return self.found(&candidates),
            PlanStep::Ask(next) => *next,
        };
        trail.fallbacks.clone_from(&self.wanted.trail.fallbacks);
        if to_newer {
            // Somebody knows a newer edition: what was taken for the last one is no longer given.
            trail.fallbacks.retain(|fallback| !fallback.ends_chain);
        }
        trail.add_fallbacks(others.filter_map(|plan| self.fallback(plan)));
        self.ask(question, why, trail)
    }

    fn fallback(&self, plan: Plan<'a>) -> Option<Fallback> {
        let Plan { step, despite_silence, ends_chain, .. } = plan;
        let step = match step {
            PlanStep::Ask(next) => FallbackStep::Ask(next),
            PlanStep::Go(candidates) if !self.wanted.original => {
                FallbackStep::Go(Box::new(candidates.first().and_then(|whose| found(whose, Vec::new()))?))
            }
            // Whether it is the original has to be asked of all.
            PlanStep::Go(candidates) => {
                let whose = candidates.first()?;
                let question = self.changed(whose.offer.relation.clone());
                let is_new = question != self.wanted.question();
                let path = self.wanted.trail.path.iter().cloned().chain([self.wanted.question()]).collect();
                let trail = Trail { path, fallbacks: Vec::new(), ..self.wanted.trail.clone() };
                let why = Why::Leading(whose.offer.relation.clone());
                is_new.then(|| FallbackStep::Ask(Box::new(NextQuestion { question, why, trail })))?
            }
        };
        Some(Fallback { step, despite_silence, ends_chain })
    }

    /// The claims among all offers of the relation, also those in languages that do not suit: the
    /// item is the same. Those that suit come first.
    fn claims(&self, best: &[Whose<'a>]) -> Vec<Vec<Whose<'a>>> {
        let all = self.voices.iter().flat_map(|voice| {
            let Voice { archive, said, .. } = *voice;
            said.offers.iter().map(move |offer| Whose { archive, live: said, offer })
        });
        let all = all.filter(|whose| self.relation().takes(&whose.offer.relation));
        claims(best.iter().copied().chain(all))
    }

    /// Offers with a URL, which the client can go to: equally good ones.
    fn found(&self, best: &[Whose<'a>]) -> Decision {
        let items = self.claims(best);
        let doubted = suspects(&items, self.is_recount());
        let go = |whose: &Whose<'a>| match found(whose, doubted.clone()) {
            Some(found) => Decision::Found(Box::new(found)),
            None => self.not_found(),
        };
        if !self.wanted.original {
            return best.first().map_or_else(|| self.not_found(), go);
        }
        // What is required holds for what the best offers lead to, and claims are counted item by
        // item.
        let items = || {
            items
                .iter()
                .filter(|claims| best.iter().any(|whose| claims.iter().any(|claim| is_same(whose, claim))))
        };
        let only = items().find_map(|claims| match claims.as_slice() {
            [claim] => claim.offer.url.is_some().then_some(claim),
            _ => None,
        });
        if let Some(original) = only {
            return go(original);
        }
        if !self.is_recount() {
            return self.again(self.wanted.again());
        }
        if items().any(|claims| claims.len() > 1) {
            return Decision::Alert(doubted);
        }
        let copies = best.iter().filter_map(|Whose { archive, offer, .. }| {
            Some(KnownCopy { archive: *archive, ibi: offer.ibi.clone(), url: offer.url.clone()? })
        });
        self.or_incomplete(NotFound::Original { copies: copies.collect() })
    }

    fn changed(&self, relation: Relation) -> Question {
        let verbs = Verbs { relation, file_list: self.wanted.verbs.file_list };
        Question { verbs, ..self.wanted.question() }
    }

    /// All have answered, and none leads anywhere.
    fn not_found(&self) -> Decision {
        if self.waiting {
            return Decision::Wait;
        }
        if self.lives().next().is_some() {
            return self.or_fallback(self.offers(&self.wanted.question()), false);
        }
        let Trail { by_link, older, .. } = &self.wanted.trail;
        let is_it = |item: &&Forms| self.is_meant(SpellingFit::of(item, &self.wanted.label));
        let reserved = self.reserved.filter(is_it);
        match () {
            () if !self.tombstones.is_empty() && self.is_meant(self.fit) => {
                self.next_fallback(false, false).unwrap_or_else(|| self.deleted())
            }
            () if reserved.is_some() => self
                .next_fallback(false, false)
                .unwrap_or_else(|| Decision::Reserved(reserved.cloned().unwrap_or_default())),
            () if *by_link => {
                let item = Forms::new([self.wanted.label.clone()]);
                self.or_fallback(NotFound::Unheld { item, older: older.clone() }, false)
            }
            () => self.or_fallback(NotFound::Item, false),
        }
    }

    /// The next best way; without one, what is not there: named, if it can be.
    fn or_fallback(&self, missing: NotFound, knows_newer: bool) -> Decision {
        if let Some(decision) = self.next_fallback(!self.failed.is_empty(), knows_newer) {
            return decision;
        }
        if let Some(RemovedEdition { tombstones, living }) = self.wanted.trail.removed.clone() {
            return Decision::Deleted { tombstones, living };
        }
        let bare = self.relation().parts().iter().map(|part| match part {
            Part::LastEdition => Part::LastEdition,
            Part::Translation(_) => Part::Translation(None),
            Part::Metadata(_) => Part::Metadata(None),
        });
        if let (NotFound::Related { .. } | NotFound::File { .. }, Ok(bare)) =
            (&missing, Relation::new(bare.collect()))
        {
            let question = Question { file: None, ..self.changed(bare) };
            let is_new = question != self.wanted.question() && !self.wanted.asked.contains(&question);
            if is_new && self.failed.is_empty() && self.wanted.round < MOST_ROUNDS {
                let purpose = Purpose::NameOffers { missed: self.wanted.question() };
                let trail = self.wanted.trail.clone();
                return Decision::AskAgain(Box::new(AskAgain { question, why: Why::Offers, purpose, trail }));
            }
        }
        self.or_incomplete(missing)
    }

    /// The next of what may be tried instead. While somebody who did not answer might have what was
    /// looked for, only what is no second choice.
    fn next_fallback(&self, somebody_is_silent: bool, knows_newer: bool) -> Option<Decision> {
        let all = &self.wanted.trail.fallbacks;
        let is_usable = |fallback: &Fallback| {
            let is_new = match &fallback.step {
                FallbackStep::Go(_) => true,
                FallbackStep::Ask(next) => {
                    let question = &next.question;
                    !self.wanted.asked.contains(question) && *question != self.wanted.question()
                }
            };
            let is_over = fallback.ends_chain && knows_newer;
            is_new && !is_over && (fallback.despite_silence || !somebody_is_silent)
        };
        let at = all.iter().position(is_usable)?;
        Some(match &all[at].step {
            FallbackStep::Go(found) => Decision::Found(found.clone()),
            FallbackStep::Ask(next) => {
                let NextQuestion { question, why, mut trail } = (**next).clone();
                trail.fallbacks = all[at + 1..].to_vec();
                trail.removed.clone_from(&self.wanted.trail.removed);
                if all[at].despite_silence && !self.tombstones.is_empty() {
                    let (tombstones, living) = (self.tombstones.clone(), self.wanted.trail.older.clone());
                    trail.removed = Some(RemovedEdition { tombstones, living });
                }
                let why = match why {
                    Why::WithoutTranslation => Why::WithoutTranslation,
                    why => Why::NextBest(Box::new(why)),
                };
                self.ask(question, why, trail)
            }
        })
    }

    /// The item was removed. Where the way jumped over editions, the last one that lives is looked
    /// for.
    fn deleted(&self) -> Decision {
        let Trail { older, skipped, removed, .. } = &self.wanted.trail;
        // Another way may have come nearer to it.
        if let Some(RemovedEdition { tombstones, living }) = removed
            && living != older
        {
            return Decision::Deleted { tombstones: tombstones.clone(), living: living.clone() };
        }
        let (tombstones, living) = (self.tombstones.clone(), older.clone());
        if let (Some(living), Some(next)) = (older, skipped) {
            let living = living.clone();
            if let Some(again) = self.look_at(next.clone(), &tombstones, living) {
                return again;
            }
        }
        Decision::Deleted { tombstones, living }
    }

    /// The round is about an edition before one that was removed.
    fn last_living(&self, tombstones: &[(ArchiveId, Tombstone)], living: &Question) -> Decision {
        let mut living = living.clone();
        if self.lives().next().is_some() {
            let rest = self.relation().parts().get(1..).unwrap_or_default().to_vec();
            living = self.changed(Relation::new(rest).unwrap_or_default());
        }
        let next = self.voices.iter().find_map(|voice| voice.said.next_edition.as_ref()?.labels().first());
        let next = next.map(|label| Question { label: label.clone(), ..self.wanted.question() });
        let again = next.and_then(|next| self.look_at(next, tombstones, living.clone()));
        again.unwrap_or_else(|| Decision::Deleted { tombstones: tombstones.to_vec(), living: Some(living) })
    }

    /// To ask whether an edition lives, unless it is the one that was removed.
    fn look_at(
        &self,
        question: Question,
        tombstones: &[(ArchiveId, Tombstone)],
        living: Question,
    ) -> Option<Decision> {
        let is_removed = tombstones.iter().any(|(_, tombstone)| tombstone.ibi.hold(&question.label));
        let was_asked = question == self.wanted.question() || self.wanted.asked.contains(&question);
        if is_removed || was_asked || self.wanted.round >= MOST_ROUNDS {
            return None;
        }
        let purpose = Purpose::LastLiving { tombstones: tombstones.to_vec(), living };
        let trail = self.wanted.trail.clone();
        Some(Decision::AskAgain(Box::new(AskAgain { question, why: Why::LastLiving, purpose, trail })))
    }

    /// What there is, of an item of which this is not there.
    fn offers(&self, missed: &Question) -> NotFound {
        let item = self.lives().next().map(|live| live.item.clone());
        let item = item.unwrap_or_else(|| Forms::new([missed.label.clone()]));
        let with_url = self.lives().flat_map(|live| &live.offers).filter(|offer| offer.url.is_some());
        let mut offered: Vec<Relation> = with_url.map(|offer| offer.relation.clone()).collect();
        // Where there is metadata it is also there as `oai_dc` (4.1), which those who filter do not
        // mention.
        for relation in offered.clone() {
            if let Some((Part::Metadata(None), before)) = relation.parts().split_last() {
                let format = Part::Metadata(Some("oai_dc".to_owned()));
                offered.extend(Relation::new(before.iter().cloned().chain([format]).collect()));
            }
        }
        offered.sort();
        offered.dedup();
        let is_there = |relation: &Relation| missed.verbs.relation.takes(relation);
        if missed.file.is_some() && self.wanted.file.is_none() && offered.iter().any(is_there) {
            NotFound::File { item, offered }
        } else {
            NotFound::Related { item, offered }
        }
    }

    fn or_incomplete(&self, not_found: NotFound) -> Decision {
        match self.failed.is_empty() {
            true => Decision::NotFound(not_found),
            false => Decision::Incomplete { failed: self.failed.clone(), otherwise: not_found },
        }
    }

    fn ask(&self, question: Question, why: Why, trail: Trail) -> Decision {
        self.again(AskAgain { question, why, purpose: Purpose::Find, trail })
    }

    fn again(&self, again: AskAgain) -> Decision {
        if self.wanted.round >= MOST_ROUNDS {
            return self.endless(again.question, Endless::TooManyRounds);
        }
        Decision::AskAgain(Box::new(again))
    }

    fn endless(&self, last: Question, why: Endless) -> Decision {
        let path = self.wanted.trail.path.iter().cloned();
        let chain = path.chain([self.wanted.question(), last]).collect();
        Decision::Cycle { chain, why }
    }
}

fn found(whose: &Whose<'_>, suspects: Vec<Suspects>) -> Option<Found> {
    let Whose { archive, live, offer } = *whose;
    Some(Found {
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
