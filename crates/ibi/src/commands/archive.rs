//! `ibi archive`: one file a command, and what they share.

pub(super) mod audit;
pub(super) mod copy;
pub(super) mod deposit;
mod describe;
pub(super) mod export;
mod holders;
pub(super) mod import;
pub(super) mod init;
pub(super) mod links;
mod links_check;
pub(super) mod list;
mod orphans;
pub(super) mod plain_tree;
pub(super) mod purge;
pub(super) mod rebuild;
pub(super) mod remove;
pub(super) mod serve;
pub(super) mod settings;
pub(super) mod show;
mod shown;
pub(super) mod stats;
pub(super) mod token;
pub(super) mod transfer;
pub(super) mod update;

use std::io::IsTerminal as _;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use ibi_archive::archive::{self, FoundOnOpening};
use ibi_archive::links::{LinkKind, LinkStatus};
use ibi_archive::service::borrow::{self, Borrowed};
use ibi_archive::{Archive, ArchiveError, Holding, Holdings};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Failure;
use crate::io::{printable, say};

/// Who runs the command, as far as the system tells.
pub(super) fn who() -> String {
    let name = ["LOGNAME", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    let name = name.map(|name| name.chars().filter(|c| !c.is_control()).collect::<String>());
    name.filter(|name| !name.trim().is_empty()).or_else(account).unwrap_or_else(|| "unknown".to_owned())
}

/// The account that this process runs under.
fn account() -> Option<String> {
    let id = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.find(|fields| fields.get(2) == Some(&id.as_str()))?;
    found.first().map(|name| (*name).to_owned())
}

/// An Archive that this command alone changes; borrowed from its server, if it is on line.
struct Opened {
    archive: Archive,
    // After the Archive: it is free when it is given back.
    _borrowed: Option<Borrowed>,
}

impl Deref for Opened {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        &self.archive
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Archive {
        &mut self.archive
    }
}

fn open(data: &Path) -> Result<Opened, Failure> {
    let mut lent = borrowed(data)?;
    let mut opened = archive::open(data, &who());
    if matches!(opened, Err(ArchiveError::Held { .. })) && lent.is_none() {
        // A server was just taking it, and is to be asked by now.
        lent = borrowed(data)?;
        opened = archive::open(data, &who());
    }
    let (archive, found) = opened?;
    tell(&found);
    Ok(Opened { archive, _borrowed: lent })
}

/// Asks the server of a folder for it, if there is one.
pub(super) fn borrowed(data: &Path) -> Result<Option<Borrowed>, Failure> {
    borrow::borrow(data).map_err(|error| Failure::NotLent { data: data.to_owned(), error })
}

pub(super) fn open_to_read(data: &Path) -> Result<Holdings, Failure> {
    let (holdings, found) = archive::open_to_read(data)?;
    tell(&found);
    if holdings.is_restored() {
        say(format_args!(
            "this Archive was restored from a backup: originals answer Copy until `ibi archive confirm`"
        ));
    }
    Ok(holdings)
}

/// Says what interrupted work had left.
fn tell(found: &FoundOnOpening) {
    if found.swept.stagings > 0 {
        say(format_args!(
            "swept what interrupted work had left: {}, {}",
            count(found.swept.stagings, "place"),
            count(found.swept.bytes, "byte")
        ));
    }
    if found.finished > 0 {
        say(format_args!("finished what was cut off: {}", count(found.finished as u64, "change")));
    }
    if found.undone > 0 {
        let changes = count(found.undone as u64, "change");
        say(format_args!("undid what was cut off: {changes} that had not been made"));
    }
}

/// So many of something.
pub(super) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Says what a person may not have meant.
fn notes(holdings: &Holdings, holding: &Holding, target_was_given: bool) -> Result<(), Failure> {
    let item = &holding.item;
    if let Some(target) = item.target.as_ref().filter(|_| !target_was_given)
        && holdings.files(&holding.path, "", 2)?.len() > 1
    {
        say(format_args!("its persistent URL opens {}; --target names another", printable(target)));
    }
    for kind in [LinkKind::Translation, LinkKind::Edition] {
        let to = match kind {
            LinkKind::Translation => &item.translation_of,
            LinkKind::Edition => &item.next_edition_of,
        };
        let Some(to) = to else { continue };
        match holdings.link_standing(item, kind)? {
            Some(LinkStatus::Accepted) => {}
            Some(LinkStatus::Proposed) => say(format_args!(
                "the link to {to} is a proposal: `ibi archive links accept {}` leads readers along it",
                item.labels.primary()
            )),
            Some(status) => say(format_args!("the link to {to} was {}", status.name())),
            None => say(format_args!(
                "the Original of {to} is not in this Archive: the Archive that has it is told of the link while this one \
                 is online, and accepts it or not"
            )),
        }
    }
    for label in item.labels.iter() {
        let others = holdings.same_identifier(label)?;
        for other in others.into_iter().filter(|other| *other != holding.path) {
            say(format_args!(
                "{label} is the same identifier as that of {other}, spelled otherwise: both are kept"
            ));
        }
    }
    Ok(())
}

/// A bar for long work, if a person looks at standard error.
pub(super) fn bar(bytes: u64, long: u64) -> ProgressBar {
    if bytes < long || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The same for work whose end is not known.
pub(super) fn counter(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        .with_message(what)
}
