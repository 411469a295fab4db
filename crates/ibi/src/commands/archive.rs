//! `ibi archive`: one file per command, and what they share.

pub(super) mod audit;
pub(super) mod copy;
pub(super) mod deposit;
mod describe;
pub(super) mod export;
pub(super) mod givers;
pub(super) mod import;
pub(super) mod init;
mod item_output;
pub(super) mod links;
mod links_check;
pub(super) mod list;
mod orphans;
mod peers;
pub(super) mod plain_tree;
pub(super) mod purge;
pub(super) mod rebuild;
pub(super) mod remove;
pub(super) mod salvage;
pub(super) mod serve;
pub(super) mod settings;
pub(super) mod show;
pub(super) mod stats;
pub(super) mod token;
pub(super) mod transfer;
pub(super) mod update;

use std::io::IsTerminal as _;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use ibi_archive::archive::ArchiveSettings;
use ibi_archive::engine::lease::{self, EngineLease};
use ibi_archive::links::{LinkKind, LinkStatus};
use ibi_archive::opening::{self, OpeningReport};
use ibi_archive::ownership::LOCAL_OPERATOR;
use ibi_archive::{Archive, ArchiveError, HeldItem, Holdings};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::CommandError;
use crate::io::{printable, say};

/// The operator's name to record for commands on this folder: never a user of the operating system.
pub(super) fn operator_of(data: &Path) -> String {
    // Opening the Archive reports problems with its settings.
    let settings = ArchiveSettings::read(data).ok().flatten();
    settings.map_or_else(|| LOCAL_OPERATOR.to_owned(), |settings| settings.operator().to_owned())
}

/// Exclusive write access to an Archive, leased from its server if one is running.
struct ExclusiveArchive {
    archive: Archive,
    // Declared after the Archive, so that the Archive is closed before the lease ends.
    _lease: Option<EngineLease>,
}

impl Deref for ExclusiveArchive {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        &self.archive
    }
}

impl DerefMut for ExclusiveArchive {
    fn deref_mut(&mut self) -> &mut Archive {
        &mut self.archive
    }
}

fn open(data: &Path) -> Result<ExclusiveArchive, CommandError> {
    let (mut lease, by) = (lease_from_server(data)?, operator_of(data));
    let mut opened = opening::open(data, &by);
    if matches!(opened, Err(ArchiveError::Held { .. })) && lease.is_none() {
        // A server was just starting, and can be asked by now.
        lease = lease_from_server(data)?;
        opened = opening::open(data, &by);
    }
    let (archive, found) = opened?;
    report_recovery(&found);
    Ok(ExclusiveArchive { archive, _lease: lease })
}

/// Like [`open`], for commands that free disk space: on a full disk, releases the reserve first.
fn open_to_free_room(data: &Path) -> Result<ExclusiveArchive, CommandError> {
    ibi_archive::store::release_if_needed(data).map_err(ArchiveError::from)?;
    open(data)
}

/// Leases the folder from its server, if one is running.
pub(super) fn lease_from_server(data: &Path) -> Result<Option<EngineLease>, CommandError> {
    lease::acquire_lease(data).map_err(|error| CommandError::NotLent { data: data.to_owned(), error })
}

pub(super) fn open_to_read(data: &Path) -> Result<Holdings, CommandError> {
    let (holdings, found) = opening::open_to_read_past_damage(data)?;
    report_recovery(&found);
    if holdings.is_restored() {
        say(format_args!(
            "this Archive was restored from a backup: Originals are served as Copies until `ibi archive confirm`"
        ));
    }
    Ok(holdings)
}

/// Reports what was left by interrupted work.
fn report_recovery(found: &OpeningReport) {
    if let Some(damage) = &found.journal_damage {
        say(format_args!("warning: {}", printable(damage)));
        say(format_args!(
            "warning: only the readable part is shown; states may be outdated. Run `ibi archive salvage`"
        ));
    }
    if found.was_open_to_others {
        say(format_args!(
            "the data folder was accessible to other users of this machine: set to its owner only (mode 700)"
        ));
    }
    if found.swept.stagings > 0 {
        say(format_args!(
            "removed leftovers of interrupted work: {}, {}",
            pluralize(found.swept.stagings, "folder"),
            pluralize(found.swept.bytes, "byte")
        ));
    }
    if found.finished > 0 {
        say(format_args!("completed after an interruption: {}", pluralize(found.finished as u64, "change")));
    }
    if found.undone > 0 {
        let changes = pluralize(found.undone as u64, "change");
        say(format_args!("rolled back after an interruption: {changes}"));
    }
}

/// A count with its noun, in the plural unless it is 1.
pub(super) fn pluralize(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Prints warnings about input that was accepted but is doubtful.
fn warn(warnings: &[String]) {
    for warning in warnings {
        say(format_args!("warning: {}", printable(warning)));
    }
}

/// Prints notes on defaults and links that the user may not expect.
fn print_notes(holdings: &Holdings, holding: &HeldItem, target_was_given: bool) -> Result<(), CommandError> {
    let item = &holding.item;
    warn(&holdings.warnings(holding)?);
    if let Some(target) = item.target.as_ref().filter(|_| !target_was_given)
        && holdings.files(&holding.path, "", 2)?.len() > 1
    {
        say(format_args!("its persistent URL opens {}; choose another with --target", printable(target)));
    }
    for kind in [LinkKind::Translation, LinkKind::Edition] {
        let to = match kind {
            LinkKind::Translation => &item.translation_of,
            LinkKind::Edition => &item.next_edition_of,
        };
        let Some(to) = to else { continue };
        match holdings.link_status(item, kind)? {
            Some(LinkStatus::Accepted) => {}
            Some(LinkStatus::Proposed) => say(format_args!(
                "the link to {to} is proposed: accept it with `ibi archive links accept {}`",
                item.labels.primary()
            )),
            Some(status) => say(format_args!("the link to {to} was {}", status.name())),
            None => say(format_args!(
                "the Original of {to} is not in this Archive: the link is sent to the Archive that has it while this one \
                 is online, and waits for its decision"
            )),
        }
    }
    for label in item.labels.iter() {
        let others = holdings.same_identifier(label)?;
        for other in others.into_iter().filter(|other| *other != holding.path) {
            say(format_args!(
                "{label} is another spelling of the identifier of {other}: both items are kept"
            ));
        }
    }
    Ok(())
}

/// A progress bar for long work, if standard error is a terminal.
pub(super) fn progress_bar(bytes: u64, long: u64) -> ProgressBar {
    if bytes < long || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A progress counter for work of unknown length.
pub(super) fn progress_counter(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {elapsed}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        .with_message(what)
}
