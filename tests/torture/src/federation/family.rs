//! Editions and translations that are spread over the Archives, and where they should lead (clause
//! 2.4).

use super::Known;
use super::asking::text;
use super::node::Node;
use crate::archive::jobs::{Job, Row};
use crate::machine::{Chance, Machine};

/// What an item is among its kin.
#[derive(Debug, Clone)]
pub struct Kin {
    language: &'static str,
    /// Its next edition, which everybody knows of who has it.
    next: Option<usize>,
    /// One that was stated since: who has heard of that is not known.
    stated: Option<usize>,
    /// Whether that was acknowledged.
    is_acknowledged: bool,
    /// Translations of one another have one number.
    group: usize,
    /// Whether nothing links to it or from it yet.
    is_alone: bool,
}

/// Rows of a table that are the same in all Archives: kind of link, its language, and what it leads
/// to: an item of the level before, so many rows down and so many Archives further on.
type Level = &'static [(&'static str, &'static str, usize, usize)];

/// Ten items in each Archive: those of a chain of three editions, of one of two, of a group of
/// three translations, and two that stand alone.
const LEVELS: [Level; 3] = [
    &[("", "en", 0, 0), ("", "en", 0, 0), ("", "en", 0, 0), ("", "en", 0, 0), ("", "en", 0, 0)],
    &[("edition", "en", 0, 3), ("edition", "en", 1, 0), ("translation", "pt", 2, 6)],
    &[("edition", "en", 0, 5), ("translation", "fr", 2, 1)],
];

/// Deposits `times` ten items in each Archive: what is known of each, and its kin.
pub fn deposit(machine: &mut Machine, nodes: &[Node], times: usize) -> (Vec<Known>, Vec<Kin>) {
    let (mut items, mut kin): (Vec<Known>, Vec<Kin>) = (Vec::new(), Vec::new());
    // Where the items of the level before begin, and how many there are in each Archive.
    let mut before = (0, 0);
    for (depth, level) in LEVELS.into_iter().enumerate() {
        let first = items.len();
        for (number, node) in nodes.iter().enumerate() {
            let mut rows = Vec::new();
            for (place, (kind, language, down, further)) in (0..times).flat_map(|_| level.iter()).enumerate()
            {
                let repeat = place / level.len();
                let older =
                    before.0 + (number + further) % nodes.len() * before.1 + repeat * before.1 / times + down;
                let mut row = Row::new(format!("of {number} at level {depth} in {place}"));
                row.language = language;
                let index = first + number * level.len() * times + place;
                let mut one = Kin {
                    language,
                    next: None,
                    stated: None,
                    is_acknowledged: false,
                    group: index,
                    is_alone: kind.is_empty(),
                };
                match *kind {
                    "edition" => {
                        row.edition_of.clone_from(&items[older].path);
                        kin[older].next = Some(index);
                        kin[older].is_alone = false;
                    }
                    "translation" => {
                        row.translation_of.clone_from(&items[older].path);
                        one.group = kin[older].group;
                        kin[older].is_alone = false;
                    }
                    _ => {}
                }
                rows.push(row);
                kin.push(one);
            }
            let folder = machine.home.join(format!("sources/{number}-{depth}"));
            let job = Job::table_of(&folder, &rows, &mut machine.chance);
            let printed = node.must(&job.arguments());
            let listed = node.must(&["archive", "list", "--json"]);
            for path in job.acknowledged(&printed) {
                let path = path.expect("all are deposited");
                let metadata = metadata(&listed, &path).expect("each has metadata");
                items.push(Known { path, metadata, updates: 0, doomed: false, removed: false });
            }
        }
        before = (first, level.len() * times);
    }
    (items, kin)
}

/// The label of the metadata of an item, among those that are listed.
fn metadata(listed: &str, path: &str) -> Option<String> {
    let item = listed.lines().find(|line| text(line, "path") == Some(path))?;
    let (_, metadata) = item.split_once("\"metadata\":")?;
    text(metadata, "rep").map(str::to_owned)
}

/// The items that modifiers may lead to; more than one while it is not known who has heard of a new
/// edition. Nothing if there is no such translation.
pub fn leads(kin: &[Kin], from: usize, modifiers: &[&str]) -> Vec<usize> {
    let mut at = vec![from];
    for modifier in modifiers {
        at = match *modifier {
            "!" => at.into_iter().flat_map(|item| last_editions(kin, item)).collect(),
            ":" | "+" => at,
            language => {
                let is = |one: &Kin, item: usize| one.group == kin[item].group && one.language == language;
                at.into_iter().filter_map(|item| kin.iter().position(|one| is(one, item))).collect()
            }
        };
    }
    at
}

fn last_editions(kin: &[Kin], mut at: usize) -> Vec<usize> {
    while let Some(next) = kin[at].next {
        at = next;
    }
    match kin[at].stated {
        None => vec![at],
        Some(stated) => [vec![at], last_editions(kin, stated)].concat(),
    }
}

/// An item that nothing links to or from, if there is one.
pub fn one_alone(kin: &[Kin], chance: &mut Chance) -> Option<usize> {
    let first = chance.below(kin.len() as u64) as usize;
    (0..kin.len()).map(|step| (first + step) % kin.len()).find(|item| kin[*item].is_alone)
}

/// Chooses an item that nothing links to or from, for the next edition of the last edition of
/// another: both are nobody else's.
pub fn choose_edition(kin: &mut [Kin], alone: usize, of: usize) -> Option<usize> {
    let older = leads(kin, of, &["!"]).pop()?;
    if !kin[alone].is_alone || older == alone || kin[older].stated.is_some() {
        return None;
    }
    kin[alone].is_alone = false;
    kin[older].is_alone = false;
    kin[older].stated = Some(alone);
    Some(older)
}

/// The next edition of this item was acknowledged.
pub fn acknowledge(kin: &mut [Kin], older: usize) {
    kin[older].is_acknowledged = true;
}

/// In the end everybody has heard of what was acknowledged; but of what was removed meanwhile
/// nobody knows.
pub fn settle(kin: &mut [Kin], is_doomed: impl Fn(usize) -> bool) {
    for (item, one) in kin.iter_mut().enumerate() {
        let is_heard = |stated: &usize| one.is_acknowledged && !is_doomed(*stated) && !is_doomed(item);
        if let Some(stated) = one.stated.filter(is_heard) {
            one.next = Some(stated);
            one.stated = None;
        }
    }
}

/// The languages of the items that are translations of an item, its own left out.
pub fn other_languages(kin: &[Kin], item: usize) -> Vec<&'static str> {
    let others = kin.iter().enumerate().filter(|(other, one)| *other != item && one.group == kin[item].group);
    others.map(|(_, one)| one.language).collect()
}
