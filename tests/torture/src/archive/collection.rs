//! What an Archive must hold, and whether it does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::jobs::{Change, Job, Version, text};
use super::links::{self, LinkBook};
use super::tally::Tally;
use crate::machine::{Ended, Machine, finish};

/// From so many items on, files are compared in the tree and not exported, where that can be.
const MANY: usize = 12;

/// What an Archive must hold.
#[derive(Default, Clone)]
pub struct Collection {
    /// By the path of its object, what was acknowledged.
    pub items: BTreeMap<String, Version>,
    /// Changes that were not acknowledged: they were made, or were not.
    pub begun: Vec<Change>,
    /// How links stand, as was acknowledged.
    pub links: LinkBook,
}

/// An item as it is listed.
pub struct Listed {
    pub path: String,
    title: String,
    state: String,
    version: String,
    purged: bool,
}

impl Collection {
    /// Takes down what a command acknowledged, and what it may have done besides.
    pub fn note(&mut self, job: &Job, ended: &Ended, tally: &mut Tally) {
        for (change, acknowledged) in job.changes.iter().zip(job.acknowledged(&ended.printed)) {
            match acknowledged {
                Some(path) => {
                    tally.acknowledged += 1;
                    links::apply(&mut self.links, &change.links, &path);
                    self.items.insert(path, change.to.clone());
                }
                None => self.begun.push(change.clone()),
            }
        }
    }

    /// Looks whether all that was acknowledged is there, and what was not is there wholly or not at
    /// all.
    pub fn check(&mut self, machine: &Machine, data: &Path, about: &str, tally: &mut Tally) {
        let listed = match list(machine, data) {
            Ok(listed) => listed,
            Err(said) => return tally.lost(format!("{about}: it does not open: {said}")),
        };
        let begun = std::mem::take(&mut self.begun);
        for path in self.items.keys() {
            if !listed.iter().any(|item| item.path == *path) {
                tally.lost(format!("{about}: {path} is gone"));
            }
        }
        let many = listed.len() > MANY;
        let mut found = BTreeMap::new();
        for item in &listed {
            let known = self.items.get(&item.path);
            let may_be = begun.iter().filter(|change| match &change.path {
                Some(path) => *path == item.path,
                None => known.is_none(),
            });
            let may_be: Vec<&Version> = known.into_iter().chain(may_be.map(|change| &change.to)).collect();
            match may_be.iter().find(|version| item.is(version)) {
                Some(version) => {
                    if let Err(what) = same_files(machine, data, item, version, many) {
                        tally.half(format!("{about}: {}: {what}", item.path));
                    }
                    found.insert(item.path.clone(), (*version).clone());
                }
                None if item.title.starts_with("Archive service") => {}
                None if known.is_some() => tally.lost(format!("{about}: {} is another version", item.path)),
                None => tally.wrong(format!("{about}: nobody deposited {} {}", item.path, item.title)),
            }
        }
        let mut titles: Vec<&str> = listed.iter().map(|item| item.title.as_str()).collect();
        titles.sort_unstable();
        if let Some(twice) = titles.windows(2).find(|pair| pair[0] == pair[1]) {
            tally.wrong(format!("{about}: {} is there twice", twice[0]));
        }
        let paths: Vec<&str> = listed.iter().map(|item| item.path.as_str()).collect();
        self.check_links((machine, data), (&paths, &found, &begun), about, tally);
        self.items.extend(found);
    }
}

impl Listed {
    fn is(&self, version: &Version) -> bool {
        self.title == version.title && (self.state == "Deleted") == version.files.is_none()
    }
}

/// All items, or what was said instead.
pub fn list(machine: &Machine, data: &Path) -> Result<Vec<Listed>, String> {
    let ended = finish(&mut machine.at(data, &["archive", "list", "--json"]));
    if ended.status != Some(0) {
        return Err(format!("{:?} {}", ended.status, ended.said));
    }
    Ok(ended.printed.lines().map(listed).collect())
}

fn listed(line: &str) -> Listed {
    let value = |name: &str| {
        let rest = line.split_once(&format!("\"{name}\":")).map_or("", |(_, rest)| rest);
        let end = if rest.starts_with('"') { "\"" } else { "," };
        rest.trim_start_matches('"').split_once(end).map_or("", |(value, _)| value).to_owned()
    };
    Listed {
        path: value("path"),
        title: value(r#"element":"title","value"#),
        state: value("state"),
        version: value("version"),
        purged: line.contains(r#""purged":true"#),
    }
}

/// All answers of an Archive, as text: the list, what is shown of each item, or of some if there
/// are many, and how links stand.
pub fn answers(machine: &Machine, data: &Path) -> String {
    let ended = finish(&mut machine.at(data, &["archive", "list", "--json"]));
    let mut answers = format!("{:?}\n{}", ended.status, ended.printed);
    let paths: Vec<String> = ended.printed.lines().map(|line| listed(line).path).collect();
    for path in paths.iter().step_by(paths.len().div_ceil(MANY).max(1)) {
        answers += &finish(&mut machine.at(data, &["archive", "show", path, "--json"])).printed;
    }
    answers + &finish(&mut machine.at(data, &["archive", "links", "list", "--json"])).printed
}

/// Whether what is given out is what was deposited, byte for byte.
fn same_files(
    machine: &Machine,
    data: &Path,
    item: &Listed,
    version: &Version,
    many: bool,
) -> Result<(), String> {
    let object = data.join("tree").join(&item.path);
    let Some(deposited) = &version.files else {
        let left = files(&object).into_keys().find(|path| text(path).contains("/content/doc/"));
        return match left.filter(|_| item.purged) {
            Some(path) => Err(format!("{} was to be destroyed", path.display())),
            None => Ok(()),
        };
    };
    if many && item.version == "1" {
        return same_folder(&object.join("v1/content/doc"), deposited);
    }
    let bag = machine.home.join("bag");
    let _ = fs::remove_dir_all(&bag);
    let ended = finish(&mut machine.at(data, &["archive", "export", &item.path, "--out", &text(&bag)]));
    if ended.status != Some(0) {
        return Err(format!("it cannot be exported: {}", ended.said));
    }
    same_folder(&bag.join("data"), deposited)
}

/// Whether two folders have the same files with the same bytes.
pub fn same_folder(one: &Path, other: &Path) -> Result<(), String> {
    let (found, expected) = (files(one), files(other));
    if !found.keys().eq(expected.keys()) {
        return Err(format!("files are {:?} and not {:?}", found.keys(), expected.keys()));
    }
    let differs = found.iter().find(|(name, bytes)| expected[*name] != **bytes);
    differs.map_or(Ok(()), |(name, _)| Err(format!("{} is not what was deposited", name.display())))
}

/// What lies below a folder.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), PathBuf::from(entry.file_name()));
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|(below, bytes)| (name.join(below), bytes)));
        } else {
            all.insert(name, fs::read(&path).expect("it is there"));
        }
    }
    all
}
