//! Audits: every byte against its digest, what is missing apart from what changed.

mod checkpoint;

use std::collections::BTreeSet;
use std::time::Duration;

use ibi_store::Journal;
use ibi_store::KeepError;
use ibi_store::content::ReadAt;
use ibi_store::digests::{BLOCK, hex};
use ibi_store::journal::Position;
use ibi_store::ocfl::{INVENTORY, Inventory, OBJECT_DECLARATION, SIDECAR, sidecar_digest};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha512};

use crate::ArchiveError;
use crate::archive::{Holdings, whole_second};
use crate::holders::whole::is_version;
use crate::mint::clock::{Clock, SystemClock};
use crate::object::short;

pub use checkpoint::Audit;

/// Items that are listed at a time.
const PAGE: usize = 1000;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The object.
    pub item: String,
    /// The file in it.
    pub file: String,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What can be wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrong {
    /// It is not there.
    Missing,
    /// It is not what its digest says.
    Changed,
    /// The disk gives no bytes.
    Unreadable,
    /// Nobody knows of it.
    Unexpected,
}

impl Wrong {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Wrong::Missing => "missing",
            Wrong::Changed => "changed",
            Wrong::Unreadable => "unreadable",
            Wrong::Unexpected => "unexpected",
        }
    }
}

/// How to audit.
pub struct Options<'a> {
    /// Bytes a second, at the most.
    pub rate: Option<u64>,
    /// Begin anew, though an earlier audit was interrupted.
    pub anew: bool,
    /// Told of each finding as it is made.
    pub tell: &'a dyn Fn(&Finding),
    /// Told how many bytes were read.
    pub progress: &'a dyn Fn(u64),
}

impl Holdings {
    /// Audits all items, or goes on with an audit that was interrupted. What it found is kept in the data folder.
    pub fn audit(&self, options: &Options<'_>) -> Result<Audit, ArchiveError> {
        let clock = SystemClock::new();
        let begin = || Audit::new(whole_second(&clock).to_string());
        let interrupted = if options.anew { None } else { Audit::interrupted(&self.data)? };
        let mut audit = interrupted.unwrap_or_else(begin);
        let mut pace = Pace::new(options.rate, &clock);
        for object in self.content.objects()? {
            let object = object?;
            if audit.has_done(&object) {
                continue;
            }
            self.audit_object(&object, &mut audit, &mut pace, options, None)?;
            audit.done(&object, &self.data)?;
        }
        self.find_missing(&mut audit, options)?;
        self.audit_journal(&mut audit, options)?;
        audit.finish(whole_second(&clock).to_string(), &self.data)?;
        Ok(audit)
    }

    /// An audit that did not come to its end.
    pub fn interrupted_audit(&self) -> Result<Option<Audit>, ArchiveError> {
        Audit::interrupted(&self.data)
    }

    /// The last audit, whether it came to its end or not.
    pub fn last_audit(&self) -> Result<Option<Audit>, ArchiveError> {
        Audit::read(&self.data)
    }

    /// Audits one item, without a trace.
    pub fn audit_item(&self, path: &str, options: &Options<'_>) -> Result<Audit, ArchiveError> {
        self.audit_by(path, options, None)
    }

    /// Audits one item by an inventory that is known to be its own, whatever lies in the tree.
    pub fn audit_by(
        &self,
        path: &str,
        options: &Options<'_>,
        trusted: Option<&[u8]>,
    ) -> Result<Audit, ArchiveError> {
        let clock = SystemClock::new();
        let mut audit = Audit::new(whole_second(&clock).to_string());
        let mut pace = Pace::new(options.rate, &clock);
        if self.content.is_free(path)? {
            let finding = Finding { item: path.to_owned(), file: String::new(), wrong: Wrong::Missing };
            (options.tell)(&finding);
            audit.findings.push(finding);
        } else {
            self.audit_object(path, &mut audit, &mut pace, options, trusted)?;
        }
        audit.finished = Some(whole_second(&clock).to_string());
        Ok(audit)
    }

    fn audit_object(
        &self,
        object: &str,
        audit: &mut Audit,
        pace: &mut Pace<'_>,
        options: &Options<'_>,
        trusted: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        // An object may be changed while it is read: what was found then is looked at again.
        for last in [false, false, true] {
            let before = self.records.item(object)?.map(|record| record.inventory);
            let mut look =
                Look { holdings: self, object, findings: Vec::new(), files: 0, bytes: 0, pace, options };
            look.object(before.as_deref(), trusted)?;
            let Look { findings, files, bytes, .. } = look;
            let after = self.records.item(object)?.map(|record| record.inventory);
            if findings.is_empty() || after == before || last {
                audit.items += 1;
                audit.files += files;
                audit.bytes += bytes;
                findings.iter().for_each(|finding| (options.tell)(finding));
                audit.findings.extend(findings);
                break;
            }
        }
        Ok(())
    }

    /// The journal, each line against its checksum.
    fn audit_journal(&self, audit: &mut Audit, options: &Options<'_>) -> Result<(), ArchiveError> {
        let wrong = match Journal::read(&self.data, Position::START, &mut |_| Ok(())) {
            Ok(_) => return Ok(()),
            Err(KeepError::NoJournal { .. }) => Wrong::Missing,
            Err(KeepError::DamagedJournal { .. }) => Wrong::Changed,
            Err(_) => Wrong::Unreadable,
        };
        let finding = Finding { item: String::new(), file: "journal".to_owned(), wrong };
        (options.tell)(&finding);
        audit.findings.push(finding);
        Ok(())
    }

    /// Items that are recorded, and have no object.
    fn find_missing(&self, audit: &mut Audit, options: &Options<'_>) -> Result<(), ArchiveError> {
        let mut after = String::new();
        loop {
            let page = self.records.list(&after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.path);
            for record in page {
                if !self.content.exists(&record.path)? {
                    let whole = self.content.is_free(&record.path)?;
                    let file = if whole { String::new() } else { OBJECT_DECLARATION.0.to_owned() };
                    let finding = Finding { item: record.path, file, wrong: Wrong::Missing };
                    (options.tell)(&finding);
                    audit.findings.push(finding);
                }
            }
        }
    }
}

/// One object being looked at.
struct Look<'a, 'b> {
    holdings: &'a Holdings,
    object: &'a str,
    findings: Vec<Finding>,
    files: u64,
    bytes: u64,
    pace: &'a mut Pace<'b>,
    options: &'a Options<'a>,
}

impl Look<'_, '_> {
    fn found(&mut self, file: &str, wrong: Wrong) {
        self.findings.push(Finding { item: self.object.to_owned(), file: file.to_owned(), wrong });
    }

    fn object(&mut self, recorded: Option<&str>, trusted: Option<&[u8]>) -> Result<(), ArchiveError> {
        let content = &*self.holdings.content;
        let there: BTreeSet<String> = content.files(self.object)?.into_iter().collect();
        let mut known: BTreeSet<String> =
            [OBJECT_DECLARATION.0, INVENTORY, SIDECAR].map(str::to_owned).into();
        if self.small(OBJECT_DECLARATION.0)?.is_some_and(|text| text != OBJECT_DECLARATION.1.as_bytes()) {
            self.found(OBJECT_DECLARATION.0, Wrong::Changed);
        }
        let head = self.inventory(INVENTORY, SIDECAR)?;
        if let Some((_, digest)) = &head
            && recorded != Some(short(digest))
        {
            self.found(INVENTORY, if recorded.is_none() { Wrong::Unexpected } else { Wrong::Changed });
        }
        let trusted =
            trusted.and_then(|bytes| Some((Inventory::parse(bytes).ok()?, Inventory::digest(bytes))));
        if let Some((inventory, digest)) = trusted.or(head) {
            for version in inventory.versions.keys() {
                let names = [format!("{version}/{INVENTORY}"), format!("{version}/{SIDECAR}")];
                let then = self.inventory(&names[0], &names[1])?;
                let is_so = |(then, found): (Inventory, String)| {
                    is_version((&inventory, &digest), version, (&then, &found))
                };
                if !then.is_none_or(is_so) {
                    self.found(&names[0], Wrong::Changed);
                }
                known.extend(names);
            }
            for (digest, files) in inventory.manifest {
                for file in files {
                    self.content_file(&file, &digest)?;
                    known.insert(file);
                }
            }
            there.difference(&known).for_each(|file| self.found(file, Wrong::Unexpected));
        }
        Ok(())
    }

    /// An inventory with its digest, if both it and its sidecar are there, and right.
    fn inventory(&mut self, name: &str, sidecar: &str) -> Result<Option<(Inventory, String)>, ArchiveError> {
        let (Some(bytes), Some(vouched)) = (self.small(name)?, self.small(sidecar)?) else { return Ok(None) };
        let digest = Inventory::digest(&bytes);
        match Inventory::parse(&bytes) {
            Ok(inventory) if sidecar_digest(&vouched) == Some(&digest) => Ok(Some((inventory, digest))),
            _ => {
                self.found(name, Wrong::Changed);
                Ok(None)
            }
        }
    }

    fn small(&mut self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut bytes = Vec::new();
        let read = self.read(name, &mut |block| bytes.extend_from_slice(block))?;
        Ok(read.then_some(bytes))
    }

    fn content_file(&mut self, file: &str, digest: &str) -> Result<(), ArchiveError> {
        let mut hash = Sha512::new();
        if self.read(file, &mut |block| hash.update(block))? && hex(&hash.finalize()) != digest {
            self.found(file, Wrong::Changed);
        }
        Ok(())
    }

    /// Reads a file; tells whether it could.
    fn read(&mut self, name: &str, each: &mut dyn FnMut(&[u8])) -> Result<bool, ArchiveError> {
        let file: Box<dyn ReadAt> = match self.holdings.content.open(self.object, name) {
            Ok(file) => file,
            Err(KeepError::MissingFile { .. }) => {
                self.found(name, Wrong::Missing);
                return Ok(false);
            }
            Err(_) => {
                self.found(name, Wrong::Unreadable);
                return Ok(false);
            }
        };
        let mut buffer = vec![0; BLOCK.min(1 << 18)];
        let mut at = 0;
        loop {
            let Ok(read) = file.read_at(&mut buffer, at) else {
                self.found(name, Wrong::Unreadable);
                return Ok(false);
            };
            if read == 0 {
                break;
            }
            each(&buffer[..read]);
            at += read as u64;
            self.bytes += read as u64;
            (self.options.progress)(read as u64);
            self.pace.keep(read as u64);
        }
        self.files += 1;
        Ok(true)
    }
}

/// Keeps reading below a rate.
struct Pace<'a> {
    rate: Option<u64>,
    clock: &'a SystemClock,
    start: u64,
    bytes: u64,
}

impl<'a> Pace<'a> {
    fn new(rate: Option<u64>, clock: &'a SystemClock) -> Self {
        Self { rate, clock, start: clock.read().boot.nanos, bytes: 0 }
    }

    fn keep(&mut self, bytes: u64) {
        let Some(rate) = self.rate else { return };
        self.bytes += bytes;
        let due = u128::from(self.bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let passed = u128::from(self.clock.read().boot.nanos.saturating_sub(self.start));
        if let Some(wait) = due.checked_sub(passed) {
            self.clock.sleep(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)));
        }
    }
}
