//! Where persistent URLs lead: no operation but a removal changes it, and none ever leads to an
//! older edition than it should (clause 2.4).

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::asking::Led;
use super::count::Wrong;
use super::family::{self, Kin};
use super::{Federation, Patience, WORKERS};
use crate::machine::Chance;

/// By then all Archives have told each other of all links, and found each other again after a kill.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Times that a URL is followed while things go on, if it leads nowhere: its item may be between
/// two Archives, or one of those is down.
const TRIES_AMID_OPERATIONS: usize = 4;

const PAUSE_BETWEEN_TRIES: Duration = Duration::from_millis(250);

/// Compositions of modifiers are followed for one item in so many: they go along the same links.
const COMPOSED_STEP: usize = 7;

/// A persistent URL: the item, and the modifiers after its label, as the model reads them.
struct Question {
    item: usize,
    modifiers: Vec<&'static str>,
}

/// What came of following a URL.
enum Outcome {
    Right,
    /// Nowhere, as when an Archive is down or an item is on its way.
    Nowhere(String),
    /// To another item, or to what nobody may be told.
    Wrong(String),
}

impl Question {
    fn url(&self, path: &str) -> String {
        let modifier = |modifier: &&str| match *modifier {
            "!" | ":" | "+" => (*modifier).to_owned(),
            language => format!("+({language})"),
        };
        path.to_owned() + &self.modifiers.iter().map(modifier).collect::<String>()
    }
}

impl Federation {
    /// What each link of an item leads to.
    fn questions(&self, item: usize) -> Vec<Question> {
        let languages = family::other_languages(&self.kin(), item);
        let languages = languages.into_iter().map(|language| vec![language]);
        let all = [vec!["!"]].into_iter().chain(languages);
        all.map(|modifiers| Question { item, modifiers }).collect()
    }

    /// All other compositions of editions, translations and metadata that lead somewhere: the 14 of
    /// clause 4.1 for each language. A `+` after `:` is the metadata in any language.
    fn composed_questions(&self, item: usize) -> Vec<Question> {
        let kin = self.kin();
        let mut all = vec![vec![":"], vec![":", "+"], vec!["!", ":"], vec!["!", ":", "+"]];
        for language in family::other_languages(&kin, item) {
            all.extend([
                vec![language, "!"],
                vec![language, ":"],
                vec![language, ":", "+"],
                vec![language, "!", ":"],
                vec![language, "!", ":", "+"],
                vec!["!", language],
                vec!["!", language, ":"],
                vec!["!", language, ":", "+"],
            ]);
        }
        all.retain(|modifiers| !family::leads(&kin, item, modifiers).is_empty());
        all.into_iter().map(|modifiers| Question { item, modifiers }).collect()
    }

    pub(super) fn kin(&self) -> std::sync::MutexGuard<'_, Vec<Kin>> {
        self.kin.lock().expect("nobody failed")
    }

    fn is_doomed(&self, item: usize) -> bool {
        self.items[item].lock().expect("nobody failed").doomed
    }

    /// Follows a URL once.
    fn follow(&self, question: &Question) -> Outcome {
        let url = question.url(&self.path(question.item));
        let before = family::leads(&self.kin(), question.item, &question.modifiers);
        let led = self.resolver.follow(&url);
        // An edition may have been stated while it was followed.
        let mut right = family::leads(&self.kin(), question.item, &question.modifiers);
        right.extend(before);
        let metadata = question.modifiers.contains(&":");
        let label = |item: usize| {
            let known = self.items[item].lock().expect("nobody failed");
            if metadata { known.metadata.clone() } else { known.path.clone() }
        };
        let labels: Vec<String> = right.iter().map(|item| label(*item)).collect();
        match led {
            None => Outcome::Nowhere(format!("{url}: nobody answers")),
            Some(Led { status: 302, location }) => {
                let found = location.split_once("/col/").map_or("", |(_, found)| found);
                let is_it = |label: &String| {
                    found.strip_prefix(label.as_str()).is_some_and(|rest| rest.starts_with('/'))
                };
                match labels.iter().any(is_it) {
                    true => Outcome::Right,
                    false => Outcome::Wrong(format!("{url} leads to {location} and not to {labels:?}")),
                }
            }
            // Removed: it, or an item on the way to its translation.
            Some(Led { status: 404 | 410, .. })
                if right.iter().chain([&question.item]).any(|item| self.is_doomed(*item)) =>
            {
                Outcome::Right
            }
            Some(Led { status: status @ (404 | 410 | 503), .. }) => {
                Outcome::Nowhere(format!("{url} leads to {labels:?}, and is answered {status}"))
            }
            Some(Led { status, .. }) => Outcome::Wrong(format!("{url}: {status}")),
        }
    }

    /// After an operation: where its item leads by every composition, and another one.
    pub(super) fn check_leads(&self, item: usize, chance: &mut Chance) {
        let other = chance.below(self.items.len() as u64) as usize;
        let questions = self.questions(item).into_iter().chain(self.composed_questions(item));
        // An Archive that is down is waited for once, not for each question.
        let mut tries = TRIES_AMID_OPERATIONS;
        for question in questions.chain([Question { item: other, modifiers: vec!["!"] }]) {
            let mut outcome = self.follow(&question);
            for _ in 1..tries {
                if !matches!(outcome, Outcome::Nowhere(_)) {
                    break;
                }
                std::thread::sleep(PAUSE_BETWEEN_TRIES);
                outcome = self.follow(&question);
            }
            match outcome {
                Outcome::Right => self.with(|count| count.leads += 1),
                // Archives that are down make it so. In the end all are up.
                Outcome::Nowhere(_) => {
                    tries = 1;
                    self.with(|count| count.nowhere += 1);
                }
                Outcome::Wrong(what) => self.wrong(Wrong::Misled, what),
            }
        }
    }

    /// Follows the URLs of all items until each leads where it should; those that do not are wrong.
    pub(super) fn check_all_leads(&self, when: &str) {
        let time = Patience::new(SETTLE_TIMEOUT);
        let mut open: Vec<Question> = (0..self.items.len()).flat_map(|item| self.questions(item)).collect();
        let some = (0..self.items.len()).step_by(COMPOSED_STEP);
        open.extend(some.flat_map(|item| self.composed_questions(item)));
        loop {
            let (next, left) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            std::thread::scope(|scope| {
                for _ in 0..WORKERS {
                    scope.spawn(|| {
                        while let Some(question) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                            match self.follow(question) {
                                Outcome::Right => self.with(|count| count.leads += 1),
                                Outcome::Nowhere(what) | Outcome::Wrong(what) => {
                                    let Question { item, modifiers } = question;
                                    let again = Question { item: *item, modifiers: modifiers.clone() };
                                    left.lock().expect("nobody failed").push((again, what));
                                }
                            }
                        }
                    });
                }
            });
            let left = left.into_inner().expect("nobody failed");
            if left.is_empty() {
                return;
            }
            if !time.lasts() {
                return left
                    .into_iter()
                    .for_each(|(_, what)| self.wrong(Wrong::Misled, format!("{when}: {what}")));
            }
            open = left.into_iter().map(|(question, _)| question).collect();
            std::thread::sleep(PAUSE_BETWEEN_TRIES);
        }
    }

    /// What was stated meanwhile counts from now on.
    pub(super) fn settle_links(&self) {
        family::settle(&mut self.kin(), |item| self.is_doomed(item));
    }

    /// Withdraws the link to a next edition, which nobody should: that must be found.
    pub(super) fn plant_older_edition(&self) {
        let pairs: Vec<(usize, usize)> = {
            let kin = self.kin();
            let last = |item| family::leads(&kin, item, &["!"])[0];
            (0..kin.len()).map(|item| (item, last(item))).filter(|(item, last)| item != last).collect()
        };
        for (older, newer) in pairs {
            let body = format!(r#"{{"newer":"{}","older":"{}"}}"#, self.path(newer), self.path(older));
            if self.is_doomed(older) || self.is_doomed(newer) {
                continue;
            }
            // Without a Copy elsewhere, which would still know of it.
            let path = self.path(older);
            let holders: Vec<_> = self.nodes.iter().filter(|node| node.stand(&path).is_some()).collect();
            let [only] = holders[..] else { continue };
            let withdrawn = only.ask("POST", "/links/withdraw", &body).filter(|answer| answer.status == 200);
            if withdrawn.is_none() {
                continue;
            }
            let question = Question { item: older, modifiers: vec!["!"] };
            match self.follow(&question) {
                Outcome::Wrong(what) => self.wrong(Wrong::Misled, what),
                Outcome::Right => eprintln!("torture: {path} still leads to {}", self.path(newer)),
                Outcome::Nowhere(what) => eprintln!("torture: {what}"),
            }
            return;
        }
    }
}
