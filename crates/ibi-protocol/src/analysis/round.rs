//! One round: the answers to one question, and what follows from them (4.2 steps 3 to 6).

use super::check::{Live, Offered};
use super::choice::{Candidate, candidates};
use super::claims::{Whose, claims, is_same, suspects};
use super::{
    Answer, ArchiveId, AskAgain, Decision, Endless, Found, KnownCopy, MOST_ROUNDS, NotFound, Purpose,
    Question, Said, Suspects, Tombstone, Wanted, Why,
};
use crate::forms::Forms;
use crate::relation::{Part, Relation};
use crate::verb::Verbs;

/// The answers, sorted out.
pub(super) struct Round<'a> {
    wanted: &'a Wanted,
    lives: Vec<(ArchiveId, &'a Live)>,
    tombstones: Vec<(ArchiveId, Tombstone)>,
    failed: Vec<(ArchiveId, String)>,
    /// Whether somebody may still say something.
    waiting: bool,
}

impl<'a> Round<'a> {
    pub(super) fn new(answers: &'a [Answer], wanted: &'a Wanted) -> Self {
        let mut round =
            Self { wanted, lives: Vec::new(), tombstones: Vec::new(), failed: Vec::new(), waiting: false };
        for Answer { archive, said } in answers {
            match said {
                Said::Offered(Offered::Live(live)) => round.lives.push((*archive, live)),
                Said::Offered(Offered::Deleted(tombstone)) => {
                    round.tombstones.push((*archive, tombstone.clone()));
                }
                Said::Nothing => {}
                Said::Failed(why) => round.failed.push((*archive, why.clone())),
                Said::Waiting => round.waiting = true,
            }
        }
        round
    }

    pub(super) fn decide(&self) -> Decision {
        // For the original all answers are taken (step 3).
        if self.wanted.original && self.waiting {
            return Decision::Wait;
        }
        let waits = self.waiting && !self.wanted.grace_over;
        if let Purpose::NameOffers { missed } = &self.wanted.purpose {
            return if waits { Decision::Wait } else { Decision::NotFound(self.offers(missed)) };
        }
        let whole = self.candidates(self.relation());
        let mut cycle = None;
        // Step 4 for those with a URL, step 5 for those without: they come in the order of what suits (step 6).
        for candidate in &whole {
            if let Some(next) = self.later_edition(candidate) {
                return self.ask(next, Why::NextEdition);
            }
            if waits && !candidate.is_best() {
                return Decision::Wait;
            }
            if let Some(url) = &candidate.whose.offer.url {
                return self.found(candidate, url, &whole);
            }
            match self.follow(candidate, self.relation()) {
                Step::Ask(question) => return self.ask(question, Why::Leading(self.relation().clone())),
                Step::Asked(question) => cycle = cycle.or(Some(question)),
                Step::Nowhere => {}
            }
        }
        if waits {
            return Decision::Wait;
        }
        for part in self.relation().leading() {
            for candidate in self.candidates(&part) {
                if let Some(next) = self.later_edition(&candidate) {
                    return self.ask(next, Why::NextEdition);
                }
                match self.follow(&candidate, &part) {
                    Step::Ask(question) => return self.ask(question, Why::Leading(part)),
                    Step::Asked(question) => cycle = cycle.or(Some(question)),
                    Step::Nowhere => {}
                }
            }
        }
        match self.next_edition() {
            Step::Ask(question) => return self.ask(question, Why::NextEdition),
            Step::Asked(question) => cycle = cycle.or(Some(question)),
            Step::Nowhere => {}
        }
        if let Some(question) = self.without_translation() {
            return self.ask(question, Why::WithoutTranslation);
        }
        match cycle {
            Some(question) if !self.waiting => self.endless(question, Endless::Repeats),
            _ => self.not_found(),
        }
    }

    pub(super) fn suspects(&self) -> Vec<Suspects> {
        suspects(&self.claims(&self.candidates(self.relation())), self.is_recount())
    }

    fn relation(&self) -> &'a Relation {
        &self.wanted.verbs.relation
    }

    fn is_recount(&self) -> bool {
        self.wanted.purpose == Purpose::Recount
    }

    fn candidates(&self, relation: &Relation) -> Vec<Candidate<'a>> {
        candidates(&self.lives, relation, self.wanted)
    }

    /// The claims among all offers of the relation, also those in languages that do not suit: the item is the same. Those
    /// that suit come first.
    fn claims(&self, whole: &[Candidate<'a>]) -> Vec<Vec<Whose<'a>>> {
        let all = self
            .lives
            .iter()
            .flat_map(|&(archive, live)| live.offers.iter().map(move |offer| Whose { archive, live, offer }));
        let all = all.filter(|whose| self.relation().takes(&whose.offer.relation));
        claims(whole.iter().map(|candidate| candidate.whose).chain(all))
    }

    /// An offer with a URL, which the client can go to.
    fn found(&self, best: &Candidate<'a>, url: &str, whole: &[Candidate<'a>]) -> Decision {
        let items = self.claims(whole);
        let doubted = suspects(&items, self.is_recount());
        if !self.wanted.original {
            return found(&best.whose, url, doubted);
        }
        // What is required holds for what the best offers lead to, and claims are counted item by item.
        let as_good = || whole.iter().filter(|other| other.rank == best.rank).map(|other| other.whose);
        let items = || {
            items.iter().filter(|claims| {
                as_good().any(|whose| claims.iter().any(|claim| is_same(whose.offer, claim.offer)))
            })
        };
        let only = items().find_map(|claims| match claims.as_slice() {
            [claim] => Some((claim, claim.offer.url.as_ref()?)),
            _ => None,
        });
        if let Some((original, url)) = only {
            return found(original, url, doubted);
        }
        if !self.is_recount() {
            return self.ask(self.wanted.question(), Why::Claims);
        }
        if items().any(|claims| claims.len() > 1) {
            return Decision::Alert(doubted);
        }
        let copies = as_good().filter_map(|Whose { archive, offer, .. }| {
            Some(KnownCopy { archive, ibi: offer.ibi.clone(), url: offer.url.clone()? })
        });
        self.or_incomplete(NotFound::Original { copies: copies.collect() })
    }

    /// The next edition of an item that calls itself its last, if another Archive knows one (step 4).
    fn later_edition(&self, candidate: &Candidate<'_>) -> Option<Question> {
        match self.next_edition() {
            Step::Ask(question) if candidate.rank.own_last_edition => Some(question),
            _ => None,
        }
    }

    /// Step 5: the next edition with all verbs, only if the relation begins with the last one.
    fn next_edition(&self) -> Step {
        if self.relation().parts().first() != Some(&Part::LastEdition) {
            return Step::Nowhere;
        }
        let mut step = Step::Nowhere;
        for (_, live) in &self.lives {
            match live.next_edition.as_ref().map(|next| self.step(next, live, self.relation().clone())) {
                Some(Step::Ask(question)) => return Step::Ask(question),
                Some(Step::Asked(question)) => step = Step::Asked(question),
                Some(Step::Nowhere) | None => {}
            }
        }
        step
    }

    /// Step 5: the item that a leading part leads to, with the verbs after it.
    fn follow(&self, candidate: &Candidate<'_>, part: &Relation) -> Step {
        let Whose { live, offer, .. } = candidate.whose;
        match (&offer.ibi, self.relation().after(part)) {
            // The item itself with the same verbs leads nowhere.
            (Some(ibi), Some(rest)) if rest != *self.relation() || !live.is(ibi) => {
                self.step(ibi, live, rest)
            }
            _ => Step::Nowhere,
        }
    }

    fn step(&self, ibi: &Forms, live: &Live, relation: Relation) -> Step {
        let Some(label) = ibi.labels().first().cloned() else { return Step::Nowhere };
        let verbs = Verbs { relation, file_list: self.wanted.verbs.file_list };
        let question = Question { label, verbs, file: self.wanted.file.clone() };
        let is_this = question.verbs == self.wanted.verbs && (live.is(ibi) || ibi.hold(&self.wanted.label));
        let was_asked = self.wanted.asked.iter().any(|asked| {
            ibi.hold(&asked.label) && asked.verbs == question.verbs && asked.file == question.file
        });
        if is_this || was_asked { Step::Asked(question) } else { Step::Ask(question) }
    }

    /// Step 6: no translation suits, so that the item itself will do. The last translation is the first to go: what
    /// comes before it may be there.
    fn without_translation(&self) -> Option<Question> {
        let mut parts = self.relation().parts().to_vec();
        let at = parts.iter().rposition(|part| *part == Part::Translation(None))?;
        if self.lives.is_empty() {
            return None;
        }
        parts.remove(at);
        let question = self.changed(Relation::new(parts).ok()?);
        (!self.wanted.asked.contains(&question)).then_some(question)
    }

    fn changed(&self, relation: Relation) -> Question {
        let verbs = Verbs { relation, file_list: self.wanted.verbs.file_list };
        Question { verbs, ..self.wanted.question() }
    }

    fn not_found(&self) -> Decision {
        if self.waiting {
            return Decision::Wait;
        }
        if self.lives.is_empty() {
            return match self.tombstones.is_empty() {
                true => self.or_incomplete(NotFound::Item),
                false => Decision::Deleted(self.tombstones.clone()),
            };
        }
        let bare = self.relation().parts().iter().map(|part| match part {
            Part::LastEdition => Part::LastEdition,
            Part::Translation(_) => Part::Translation(None),
            Part::Metadata(_) => Part::Metadata(None),
        });
        if let Ok(bare) = Relation::new(bare.collect()) {
            let question = Question { file: None, ..self.changed(bare) };
            let is_new = question != self.wanted.question() && !self.wanted.asked.contains(&question);
            if is_new && self.failed.is_empty() && self.wanted.round < MOST_ROUNDS {
                return Decision::AskAgain(AskAgain { question, why: Why::Offers });
            }
        }
        self.or_incomplete(self.offers(&self.wanted.question()))
    }

    /// What there is, of an item of which this is not there.
    fn offers(&self, missed: &Question) -> NotFound {
        let item = self.lives.first().map(|(_, live)| live.item.clone());
        let item = item.unwrap_or_else(|| Forms::new([missed.label.clone()]));
        let with_url =
            self.lives.iter().flat_map(|(_, live)| &live.offers).filter(|offer| offer.url.is_some());
        let mut offered: Vec<Relation> = with_url.map(|offer| offer.relation.clone()).collect();
        // Where there is metadata it is also there as `oai_dc` (4.1), which those who filter do not mention.
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

    fn ask(&self, question: Question, why: Why) -> Decision {
        if self.wanted.round >= MOST_ROUNDS {
            return self.endless(question, Endless::TooManyRounds);
        }
        Decision::AskAgain(AskAgain { question, why })
    }

    fn endless(&self, last: Question, why: Endless) -> Decision {
        let chain = self.wanted.asked.iter().cloned().chain([self.wanted.question(), last]).collect();
        Decision::Cycle { chain, why }
    }
}

/// Where an answer leads.
enum Step {
    /// To a question.
    Ask(Question),
    /// To a question that was asked before.
    Asked(Question),
    Nowhere,
}

fn found(whose: &Whose<'_>, url: &str, suspects: Vec<Suspects>) -> Decision {
    let Whose { archive, live, offer } = *whose;
    Decision::Found(Box::new(Found {
        archive,
        url: url.to_owned(),
        relation: offer.relation.clone(),
        ibi: offer.ibi.clone(),
        contenttype: offer.contenttype,
        state: offer.state,
        timestamp: offer.timestamp.clone(),
        urlkey: live.urlkey.clone(),
        suspects,
    }))
}
