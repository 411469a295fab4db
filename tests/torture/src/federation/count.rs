//! What is counted, and what must not happen.

use std::collections::BTreeMap;
use std::fmt;

/// Things that must not happen, by kind, as they are told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// Two Archives answered Original at the same time, while things went on.
    SeenTwice,
    /// Two do in the end.
    Twice,
    /// No Archive has the Original, and no tombstone tells why.
    Lost,
    /// An item that was removed has an Original, or there is a Copy that should know better.
    Revived,
    /// An acknowledged change is not there.
    Forgotten,
    /// Holders of one version have different bytes, or damaged ones.
    Differ,
    /// A copy is behind a source that answers, or has none.
    Behind,
    /// A hand-over does not end.
    Pending,
    /// A persistent URL led to another item than it should.
    Misled,
    /// Rebuilding changed or found something.
    Rebuilt,
    /// A server broke, or said that it did.
    Broken,
}

const NAMES: [(Wrong, &str); 11] = [
    (Wrong::SeenTwice, "seen with two Originals"),
    (Wrong::Twice, "with two Originals in the end"),
    (Wrong::Lost, "with none"),
    (Wrong::Revived, "revived"),
    (Wrong::Forgotten, "changes lost"),
    (Wrong::Differ, "different or damaged"),
    (Wrong::Behind, "copies behind"),
    (Wrong::Pending, "hand-overs that do not end"),
    (Wrong::Misled, "misled"),
    (Wrong::Rebuilt, "changed by rebuilding"),
    (Wrong::Broken, "breakdowns"),
];

#[derive(Default)]
pub struct Count {
    pub archives: usize,
    pub items: usize,
    /// Operations by kind.
    pub done: BTreeMap<&'static str, usize>,
    /// Those that were refused, and those that nobody answered.
    pub refused: BTreeMap<u16, usize>,
    pub unanswered: usize,
    /// Hand-overs that were accepted.
    pub accepted: usize,
    pub removed: usize,
    pub copies: usize,
    /// Times that all Archives were asked for one item.
    pub looks: usize,
    /// Times that a persistent URL led where it should, and times that it led nowhere while
    /// Archives were down. Editions that were stated meanwhile.
    pub linked: usize,
    pub leads: usize,
    pub nowhere: usize,
    pub wrongs: Vec<(Wrong, String)>,
}

impl Count {
    pub fn wrong(&mut self, kind: Wrong, what: String) {
        self.wrongs.push((kind, what));
    }

    pub fn holds(&self) -> bool {
        self.wrongs.is_empty() && self.accepted > 0 && self.looks > 0 && self.leads > self.nowhere
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { archives, items, accepted, removed, copies, looks, leads, nowhere, linked, .. } = self;
        let operations: usize = self.done.values().sum();
        write!(f, "{archives} Archives, {items} items; {operations} operations (")?;
        let each: Vec<String> = self.done.iter().map(|(what, times)| format!("{times} {what}")).collect();
        let refused: Vec<String> =
            self.refused.iter().map(|(status, times)| format!("{times} x {status}")).collect();
        write!(f, "{}), refused {}, unanswered {}; ", each.join(", "), refused.join(", "), self.unanswered)?;
        write!(
            f,
            "{accepted} Originals handed over, {removed} removed, {copies} copies in the end, {linked} new editions, {looks} looks, {leads} times \
             led right, {nowhere} nowhere for a while; "
        )?;
        let wrongs = NAMES.iter().map(|(kind, name)| {
            let times = self.wrongs.iter().filter(|(wrong, _)| wrong == kind).count();
            format!("{times} {name}")
        });
        write!(f, "{}", wrongs.collect::<Vec<_>>().join(", "))?;
        self.wrongs.iter().take(40).try_for_each(|(kind, what)| {
            let name = NAMES.iter().find(|(known, _)| known == kind).map_or("", |(_, name)| name);
            write!(f, "\n  WRONG: {name}: {what}")
        })
    }
}
