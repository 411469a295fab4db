//! Links between items (clause 2.4): how they must stand after trouble, and whether they do.

use std::collections::BTreeMap;
use std::path::Path;

use super::collection::Collection;
use super::jobs::{Change, Version};
use super::tally::Tally;
use crate::machine::{Machine, finish};

/// By kind, older and newer item: how a link stands.
pub type LinkBook = BTreeMap<(String, String, String), String>;

/// What a change makes of a link.
#[derive(Debug, Clone)]
pub struct LinkChange {
    kind: &'static str,
    older: String,
    /// Nothing if it is the item that is changed or deposited.
    newer: Option<String>,
    status: &'static str,
}

impl LinkChange {
    /// Of a link from the item that is changed.
    pub fn of_new(kind: &'static str, older: &str, status: &'static str) -> Self {
        Self { kind, older: older.to_owned(), newer: None, status }
    }

    /// Of a link from another item, to its next edition.
    pub fn of_edition(older: &str, newer: &str, status: &'static str) -> Self {
        Self { newer: Some(newer.to_owned()), ..Self::of_new("edition", older, status) }
    }
}

/// Takes down what a change of the item at this path makes of links.
pub fn apply(book: &mut LinkBook, changes: &[LinkChange], path: &str) {
    for LinkChange { kind, older, newer, status } in changes {
        let newer = newer.clone().unwrap_or_else(|| path.to_owned());
        book.insert(((*kind).to_owned(), older.clone(), newer), (*status).to_owned());
    }
}

/// How links stand in an Archive, or what was said instead.
pub fn list(machine: &Machine, data: &Path) -> Result<LinkBook, String> {
    let ended = finish(&mut machine.at(data, &["archive", "links", "list"]));
    if ended.status != Some(0) {
        return Err(format!("{:?} {}", ended.status, ended.said));
    }
    let links = ended.printed.lines().map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [status, kind, older, newer, ..] => {
            Ok(([kind, older, newer].map(str::to_owned).into(), status.to_owned()))
        }
        _ => Err(format!("it lists {line:?}")),
    });
    links.collect()
}

impl Collection {
    /// Looks whether links stand as was acknowledged. A change that was cut off has its links if it
    /// was made, and else none of them; and no link leads to or from an item that is not there.
    /// `found` are the items as they were found.
    pub(super) fn check_links(
        &mut self,
        (machine, data): (&Machine, &Path),
        (paths, found, begun): (&[&str], &BTreeMap<String, Version>, &[Change]),
        about: &str,
        tally: &mut Tally,
    ) {
        if self.links.is_empty() && begun.iter().all(|change| change.links.is_empty()) {
            return;
        }
        let listed = match list(machine, data) {
            Ok(listed) => listed,
            Err(said) => return tally.lost(format!("{about}: links are not listed: {said}")),
        };
        for change in begun.iter().filter(|change| !change.links.is_empty()) {
            let is_new = |(_, version): &(&String, &Version)| **version == change.to;
            let path =
                change.path.clone().or_else(|| found.iter().find(is_new).map(|(path, _)| path.clone()));
            let Some(path) = path else { continue };
            let mut made = self.links.clone();
            apply(&mut made, &change.links, &path);
            // A decision changes no item: only the links tell whether it was made.
            let is_decision = self.items.get(&path) == Some(&change.to);
            let was_made = match is_decision {
                true => made == listed,
                false => found.get(&path) == Some(&change.to),
            };
            if was_made {
                self.links = made;
            }
        }
        for ((kind, older, newer), status) in &self.links {
            let key = (kind.clone(), older.clone(), newer.clone());
            match listed.get(&key) {
                Some(found) if found == status => tally.links += 1,
                found => {
                    tally.lost(format!("{about}: the {kind} {newer} of {older} is {found:?}, not {status}"))
                }
            }
        }
        for (key @ (kind, older, newer), status) in &listed {
            if let Some(gone) = [older, newer].into_iter().find(|item| !paths.contains(&item.as_str())) {
                tally.wrong(format!("{about}: a link of {older} leads to {newer}, and {gone} is not there"));
            } else if !self.links.contains_key(key) {
                tally.wrong(format!("{about}: nobody stated the {kind} {newer} of {older}, {status}"));
            }
        }
        self.links = listed;
    }
}
