//! What is done to the Archives, at random.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::asking::Answer;
use super::count::Wrong;
use super::node::Node;
use super::{Federation, Known, Patience, family};
use crate::archive::jobs::{text, write};
use crate::machine::{Chance, Ended, finish};

/// Longer than a hand-over takes of which both sides are up. Stopped, the command's hand-over goes
/// on by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Items that are looked at for one that an operation is of use to.
const TRIES: usize = 6;

/// Gives a hand-over up.
const CANCEL: &str = r#"{"cancel":true}"#;

impl Federation {
    /// One operation after the other, until there were enough or time is up.
    pub(super) fn work(&self, time: &Patience) {
        while time.lasts() {
            let operation = self.begun.fetch_add(1, Ordering::Relaxed);
            if operation >= self.rounds {
                return;
            }
            let mut chance = self.chance(operation);
            let mut item = self.pick(operation, &mut chance);
            let mut what = None;
            // Items that were removed, or have no copy, are of no use to some operations.
            for _ in 0..TRIES {
                what = self.operate(operation, item, &mut chance);
                if what.is_some() {
                    break;
                }
                item = chance.below(self.items.len() as u64) as usize;
            }
            let what = what.unwrap_or("without an item for them");
            self.with(|count| *count.done.entry(what).or_default() += 1);
            self.check_leads(item, &mut chance);
        }
    }

    fn operate(&self, operation: usize, item: usize, chance: &mut Chance) -> Option<&'static str> {
        let path = self.path(item);
        let at = format!("/items/{path}");
        let other = chance.below(self.nodes.len() as u64) as usize;
        let what = match chance.below(100) {
            0..5 => {
                self.new_edition(item, chance)?;
                "new editions"
            }
            5..25 => {
                let from = self.holder(&path, &["Original", "Copy"], chance)?;
                let body = format!(
                    r#"{{"from":"{}","token":"{}"}}"#,
                    self.nodes[from].url, self.nodes[from].holders[other]
                );
                self.ask(other, "POST", &format!("{at}/copy"), &body);
                "copies"
            }
            25..38 => {
                let copy = self.holder(&path, &["Copy"], chance)?;
                self.refresh(copy, &path);
                "refreshes"
            }
            38..40 => {
                self.judge(&self.nodes[other].run(&["archive", "refresh", "--json"]));
                "refreshes of all"
            }
            40..66 => {
                let giver = self.holder(&path, &["Original"], chance)?;
                self.transfer(operation, (giver, other), &path, chance);
                if chance.below(3) == 0 {
                    // Thought better of, while it goes on: it is to go elsewhere, or to stay.
                    std::thread::sleep(Duration::from_millis(chance.below(900)));
                    match chance.below(2) {
                        0 => self.transfer(operation, (giver, (other + 1) % self.nodes.len()), &path, chance),
                        _ => drop(self.ask(giver, "POST", &format!("{at}/transfer"), CANCEL)),
                    }
                }
                "transfers"
            }
            66..69 => {
                let giver = self.holder(&path, &["Original", "Copy"], chance)?;
                self.ask(giver, "POST", &format!("{at}/transfer"), CANCEL);
                "cancels"
            }
            69..82 => {
                let original = self.holder(&path, &["Original"], chance)?;
                self.update(operation, original, item, chance);
                "updates"
            }
            82..86 => {
                let original = self.holder(&path, &["Original"], chance)?;
                // Noted before: killed in between, nobody knows whether it was done.
                self.note(item, |known| known.doomed = true);
                let body = format!(r#"{{"reason":"torture","purge":{}}}"#, chance.below(2) == 0);
                let answer = self.ask(original, "DELETE", &at, &body);
                if answer.is_some_and(|answer| answer.status == 200) {
                    self.note(item, |known| known.removed = true);
                }
                "removals"
            }
            86..95 => {
                let copy = self.holder(&path, &["Copy"], chance)?;
                self.ask(copy, "POST", &format!("{at}/drop"), "{}");
                "drops"
            }
            95..98 => {
                self.expect(self.nodes[other].stop(false, Some(Duration::from_millis(chance.below(400)))));
                "kills"
            }
            _ => {
                self.expect(self.nodes[other].stop(true, Some(Duration::from_millis(chance.below(400)))));
                "stops"
            }
        };
        Some(what)
    }

    pub(super) fn refresh(&self, copy: usize, path: &str) -> Option<Answer> {
        // Of a removed item, files that the copy lacks are given to holders alone: each source
        // knows us by a token.
        let source = self.nodes[copy].stand(path)?.source;
        let source = self.nodes.iter().find(|node| Some(&node.url) == source.as_ref());
        let token =
            source.map_or_else(String::new, |source| format!(r#"{{"token":"{}"}}"#, source.holders[copy]));
        self.ask(copy, "POST", &format!("/items/{path}/refresh"), &token)
    }

    fn transfer(&self, operation: usize, (giver, taker): (usize, usize), path: &str, chance: &mut Chance) {
        let keep = if chance.below(3) == 0 { "nothing" } else { "copy" };
        let (node, to) = (&self.nodes[giver], &self.nodes[taker].url);
        let token = &self.nodes[taker].holders[giver];
        if chance.below(8) > 0 {
            let body = format!(r#"{{"to":"{to}","token":"{token}","keep":"{keep}"}}"#);
            self.ask(giver, "POST", &format!("/items/{path}/transfer"), &body);
            return;
        }
        let file = node.data.with_file_name(format!("token {operation}"));
        fs::write(&file, token).expect("room");
        let mut command = node.command(&["archive", "transfer", path, "--to", to, "--keep", keep]);
        command.args(["--token-file", &text(&file)]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let time = Patience::new(PATIENCE);
        while child.try_wait().expect("our child").is_none() && time.lasts() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        if child.wait().expect("our child").code() == Some(101) {
            self.wrong(Wrong::Broken, format!("a transfer of {path} panicked"));
        }
    }

    /// A new version: of the metadata over the API, or of the files by the command.
    fn update(&self, operation: usize, original: usize, item: usize, chance: &mut Chance) {
        let (path, node) = (self.path(item), &self.nodes[original]);
        let done = if chance.below(4) == 0 {
            let file = node.data.with_file_name(format!("update {operation}"));
            let length = 1 + chance.below(5000);
            write(&file, length, chance);
            let ended = finish(&mut node.command(&["archive", "update", &path, &text(&file)]));
            self.judge(&ended);
            ended.status == Some(0)
        } else {
            let body = format!(r#"{{"metadata":[{{"element":"title","value":"operation {operation}"}}]}}"#);
            let answer = self.ask(original, "PATCH", &format!("/items/{path}"), &body);
            answer.is_some_and(|answer| answer.status == 200)
        };
        if done {
            self.note(item, |known| known.updates += 1);
        }
    }

    /// States that an item that stands alone is the next edition of the last edition of another
    /// one.
    fn new_edition(&self, of: usize, chance: &mut Chance) -> Option<()> {
        let alone = family::one_alone(&self.kin(), chance)?;
        let original = self.holder(&self.path(alone), &["Original"], chance)?;
        // Noted before: who is killed in between may have heard of it.
        let older = family::choose_edition(&mut self.kin(), alone, of)?;
        let (path, older_path) = (self.path(alone), self.path(older));
        let body = format!(r#"{{"next_edition_of":"{older_path}"}}"#);
        let answer = self.ask(original, "PATCH", &format!("/items/{path}"), &body);
        if answer.is_some_and(|answer| answer.status == 200) {
            self.note(alone, |known| known.updates += 1);
            family::acknowledge(&mut self.kin(), older);
            self.with(|count| count.linked += 1);
        }
        Some(())
    }

    fn note(&self, item: usize, note: impl FnOnce(&mut Known)) {
        note(&mut self.items[item].lock().expect("nobody failed"));
    }

    /// An Archive where the item is one of these, or mostly: some are asked who have to refuse.
    fn holder(&self, path: &str, wanted: &[&str], chance: &mut Chance) -> Option<usize> {
        let all = self.nodes.len() as u64;
        let first = chance.below(all) as usize;
        if chance.below(12) == 0 {
            return Some(first);
        }
        let order = (0..self.nodes.len()).map(|step| (first + step) % self.nodes.len());
        let is = |node: &Node| node.stand(path).is_some_and(|stand| wanted.contains(&stand.state.as_str()));
        order.into_iter().find(|number| is(&self.nodes[*number]))
    }

    /// Asks, and counts what was refused. That is no harm; to break is, and the logs are searched
    /// for that in the end.
    fn ask(&self, node: usize, method: &str, path: &str, body: &str) -> Option<Answer> {
        let answer = self.nodes[node].ask(method, path, body);
        self.with(|count| match &answer {
            None => count.unanswered += 1,
            Some(answer) if answer.status >= 400 => *count.refused.entry(answer.status).or_default() += 1,
            Some(_) => {}
        });
        answer
    }

    /// A command may be refused; to break is another thing.
    fn judge(&self, ended: &Ended) {
        // Others are down now and then.
        let nobody = ended.status == Some(3) && ended.said.contains("does not answer");
        if !(nobody || matches!(ended.status, Some(0 | 1 | 4))) || ended.said.contains("panicked") {
            self.wrong(Wrong::Broken, format!("a command ended with {:?}: {}", ended.status, ended.said));
        }
    }
}
