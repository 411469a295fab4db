//! Where a chain of editions ends, as far as is known (4.2 steps 4 and 5).

use super::Why;
use super::claims::Whose;
use super::plan::{Plan, PlanStep, PlanWait, Planner, Voice, same, with};
use crate::answer::State;
use crate::forms::Forms;
use crate::relation::{Part, Relation};

/// Those who say that the chain ends at one item.
struct ChainEnd<'a> {
    /// The item, where they say which.
    item: Option<&'a Forms>,
    voices: Vec<Voice<'a>>,
    plans: Vec<Plan<'a>>,
    /// Whether one of them holds the Original of it: then it knows of its next edition.
    by_original: bool,
}

impl ChainEnd<'_> {
    /// Whether the next step is to ask for the edition itself: nobody who tells of it has it, or
    /// what is wanted of it.
    fn is_only_named(&self) -> bool {
        match self.plans.first().map(|plan| &plan.step) {
            None => true,
            Some(PlanStep::Go(_)) => false,
            Some(PlanStep::Ask(next)) => self.item.is_none_or(|item| item.hold(&next.question.label)),
        }
    }

    /// Whether the chain goes through an item on its way here, or ends at it.
    fn covers(&self, item: &Forms, start: &[Part]) -> bool {
        let goes_through = |voice: &Voice<'_>| voice.said.next_of(start).is_some_and(|next| same(next, item));
        self.item.is_some_and(|end| same(end, item)) || self.voices.iter().any(goes_through)
    }
}

impl<'a> Planner<'a> {
    /// The last edition of what `fixed` leads to. Who knows a later edition beats who ends at the
    /// item itself; and as long as anybody knows one, the older one is not given in its place.
    pub(super) fn editions(&mut self, among: &[Voice<'a>], fixed: &[Part]) -> Vec<Plan<'a>> {
        let (own, mut later) = self.chain_ends(among, fixed);
        let is_passed = |end: &ChainEnd<'a>| {
            let others = later.iter().filter(|other| !std::ptr::eq(*other, end));
            end.item.is_some_and(|item| others.clone().any(|other| other.covers(item, fixed)))
        };
        // The Original's word is good at once, unless somebody goes on from there.
        if let Some(at) = later.iter().position(|end| end.by_original && !is_passed(end)) {
            return later.swap_remove(at).plans;
        }
        let next: Vec<(Voice<'a>, &'a Forms)> = among
            .iter()
            .filter_map(|voice| Some((*voice, voice.said.next_of(fixed)?)))
            .filter(|(_, next)| !later.iter().any(|end| end.covers(next, fixed)))
            .collect();
        // An end from which somebody goes on is no end, unless they go in a circle.
        let mut passed = later.iter().map(is_passed).collect::<Vec<_>>().into_iter();
        let ends = later.len();
        let (gone_through, ends_there): (Vec<_>, Vec<_>) =
            later.into_iter().partition(|_| passed.next().unwrap_or_default());
        let later = if gone_through.len() == ends { gone_through } else { ends_there };
        // What is only known by its name is asked for as it is (step 5); if that is not there, with
        // the editions after it.
        let (named, behind): (Vec<_>, Vec<_>) = later.into_iter().partition(ChainEnd::is_only_named);
        let mut plans: Vec<Plan<'a>> = Vec::new();
        for mut end in named {
            let editions = self.after(&end, fixed);
            plans.append(&mut end.plans);
            plans.extend(editions);
        }
        for (voice, item) in next {
            plans.extend(self.go_on(&voice, item, fixed, Why::NextEdition, PlanWait::Nothing));
        }
        for end in behind {
            plans.extend(self.confirm(end, fixed));
        }
        if plans.is_empty() {
            // A newer edition that came to nothing on another way is newer all the same.
            return if self.dead_end.is_none() { own_end(own) } else { Vec::new() };
        }
        plans.iter_mut().for_each(|plan| plan.to_newer = true);
        plans
    }

    /// Who says where the chain ends: at the item itself, and at later ones.
    fn chain_ends(&mut self, among: &[Voice<'a>], fixed: &[Part]) -> (ChainEnd<'a>, Vec<ChainEnd<'a>>) {
        let last = with(fixed, Part::LastEdition);
        let begin = |item| ChainEnd { item, voices: Vec::new(), plans: Vec::new(), by_original: false };
        let (mut own, mut later) = (begin(None), Vec::<ChainEnd<'a>>::new());
        let mut unnamed = Vec::new();
        for voice in among.iter().filter(|voice| voice.speaks_of(&last)) {
            let item = voice.offer(&last).and_then(|whose| whose.offer.ibi.as_ref());
            let is_own = match (item, voice.said.next_of(fixed)) {
                (Some(item), _) => self.is_start(voice, item, among, fixed),
                (None, next) => next.is_none_or(|next| self.is_start(voice, next, among, fixed)),
            };
            let is_same =
                |end: &&mut ChainEnd<'a>| matches!((end.item, item), (Some(a), Some(b)) if same(a, b));
            let has_url = || voice.said.offers.iter().any(|offer| offer.url.is_some());
            match later.iter_mut().find(is_same) {
                _ if is_own && item.is_none() && !has_url() => unnamed.push(*voice),
                _ if is_own => own.voices.push(*voice),
                Some(end) => end.voices.push(*voice),
                None => later.push(ChainEnd { voices: vec![*voice], ..begin(item) }),
            }
        }
        // Who only knows what comes after the last edition may mean any.
        later.first_mut().unwrap_or(&mut own).voices.extend(unnamed);
        for end in later.iter_mut().chain([&mut own]).filter(|end| !end.voices.is_empty()) {
            end.plans = self.plans(&end.voices, &last);
            end.by_original = self.is_by_original(end, &last);
        }
        (own, later)
    }

    /// Whether these names are of the item with which the chain begins.
    fn is_start(&self, voice: &Voice<'a>, item: &Forms, among: &[Voice<'a>], fixed: &[Part]) -> bool {
        if fixed.is_empty() {
            return voice.said.is(item) || item.hold(&self.wanted.label);
        }
        let names = among.iter().filter_map(|voice| voice.offer(fixed)?.offer.ibi.as_ref());
        names.into_iter().any(|name| same(name, item))
    }

    /// Whether the Original of an end is among those who tell of it. The state that they give is
    /// that of what the whole relation leads to: the edition's own, unless a translation follows.
    fn is_by_original(&self, end: &ChainEnd<'a>, last: &[Part]) -> bool {
        let is_original = |whose: &Whose<'a>| whose.offer.state == Some(State::Original);
        let said = end.voices.iter().filter_map(|voice| voice.offer(last)).any(|whose| is_original(&whose));
        let is_own_state = !matches!(self.parts().get(last.len()), Some(Part::Translation(_)));
        said || is_own_state && end.plans.first().and_then(Plan::goes_to).is_some_and(is_original)
    }

    /// On to another edition, with `!` and the verbs after it.
    fn go_on(
        &mut self,
        voice: &Voice<'a>,
        item: &Forms,
        fixed: &[Part],
        why: Why,
        wait: PlanWait,
    ) -> Option<Plan<'a>> {
        let at = fixed.len();
        let editions = Relation::new(self.parts().get(at..)?.to_vec()).ok()?;
        let last = with(fixed, Part::LastEdition);
        let trail = self.trail(&last, at + 1, voice, Some(item));
        let question = self.ask(item, voice, editions, &trail)?;
        Some(Plan { despite_silence: true, ..Plan::ask(question, why, trail, wait) })
    }

    /// The editions after one at which somebody ends.
    fn after(&mut self, end: &ChainEnd<'a>, fixed: &[Part]) -> Option<Plan<'a>> {
        let (item, voice) = end.item.zip(end.voices.first())?;
        self.go_on(voice, item, fixed, Why::CopyOfLast, PlanWait::Grace)
    }

    /// Only copies of a later edition are known, and a Copy may be behind: all are asked for the
    /// editions after that one. If nobody knows any, the Copy will do; if they were asked for on
    /// another way, which came to nothing, somebody does.
    fn confirm(&mut self, end: ChainEnd<'a>, fixed: &[Part]) -> Vec<Plan<'a>> {
        let before = self.dead_end.take();
        let asked = self.after(&end, fixed);
        let is_passed = self.dead_end.is_some();
        self.dead_end = before.or(self.dead_end.take());
        let ChainEnd { mut plans, .. } = end;
        match asked {
            None if is_passed => plans.clear(),
            None => plans.iter_mut().for_each(|plan| plan.wait = PlanWait::AllAnswers),
            Some(_) => plans.iter_mut().for_each(|plan| {
                plan.ends_chain = true;
                plan.despite_silence = true;
            }),
        }
        asked.into_iter().chain(plans).collect()
    }
}

/// The item itself is the last edition, as far as anybody knows. A Copy's word for it counts when
/// all have answered; an Original's at once.
fn own_end(own: ChainEnd<'_>) -> Vec<Plan<'_>> {
    let ChainEnd { mut plans, by_original, .. } = own;
    let is_beyond = |plan: &&mut Plan<'_>| match &plan.step {
        PlanStep::Go(_) => true,
        // A translation of this edition, which only its name is known of.
        PlanStep::Ask(next) => next.why != Why::WithoutTranslation,
    };
    for plan in plans.iter_mut().filter(|_| !by_original).filter(is_beyond) {
        plan.wait = PlanWait::AllAnswers;
    }
    plans
}
