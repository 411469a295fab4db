//! Audits: verifies every byte against its digest. Missing files are reported separately from
//! changed ones.

mod checkpoint;

use std::collections::BTreeSet;
use std::time::Duration;

use ibi_store::Journal;
use ibi_store::StorageError;
use ibi_store::content::ReadAt;
use ibi_store::digests::{DIGEST_BLOCK_BYTES, hex};
use ibi_store::journal::JournalPosition;
use ibi_store::ocfl::{INVENTORY_FILE, Inventory, OBJECT_DECLARATION, SIDECAR_FILE, sidecar_digest};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha512};

use crate::ArchiveError;
use crate::archive::{Holdings, current_second};
use crate::object::short_digest;
use crate::replica::object_validation::is_version_inventory;
use ibi_mint::clock::{MintClock, SystemClock};

pub use checkpoint::AuditReport;

/// Items that are listed at a time.
const AUDIT_PAGE_ITEMS: usize = 1000;

/// A fixity fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFinding {
    /// The object.
    pub item: String,
    /// The file in it.
    pub file: String,
    /// What is wrong with it.
    pub wrong: FixityFault,
}

/// What can be wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FixityFault {
    /// It is not there.
    Missing,
    /// Digest mismatch.
    Changed,
    /// The disk gives no bytes.
    Unreadable,
    /// No inventory lists it.
    Unexpected,
}

impl FixityFault {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            FixityFault::Missing => "missing",
            FixityFault::Changed => "changed",
            FixityFault::Unreadable => "unreadable",
            FixityFault::Unexpected => "unexpected",
        }
    }
}

/// How to audit.
pub struct AuditOptions<'a> {
    /// Read limit in bytes per second.
    pub rate: Option<u64>,
    /// Start over, even if an earlier audit was interrupted.
    pub anew: bool,
    /// Called for each finding.
    pub tell: &'a dyn Fn(&AuditFinding),
    /// Called with the number of bytes read.
    pub progress: &'a dyn Fn(u64),
}

impl Holdings {
    /// Audits all items, or resumes an interrupted audit. The report is kept in the data folder.
    pub fn audit(&self, options: &AuditOptions<'_>) -> Result<AuditReport, ArchiveError> {
        let clock = SystemClock::new();
        let begin = || AuditReport::new(current_second(&clock).to_string());
        let interrupted = if options.anew { None } else { AuditReport::interrupted(&self.data)? };
        let mut audit = interrupted.unwrap_or_else(begin);
        let mut pace = ReadThrottle::new(options.rate, &clock);
        for object in self.content.objects()? {
            let object = object?;
            if audit.has_done(&object) {
                continue;
            }
            self.audit_object(&object, &mut audit, &mut pace, options, None)?;
            audit.mark_done(&object, &self.data)?;
        }
        self.find_missing(&mut audit, options)?;
        self.audit_journal(&mut audit, options)?;
        audit.finish(current_second(&clock).to_string(), &self.data)?;
        Ok(audit)
    }

    /// An unfinished audit.
    pub fn interrupted_audit(&self) -> Result<Option<AuditReport>, ArchiveError> {
        AuditReport::interrupted(&self.data)
    }

    /// The last audit, finished or not.
    pub fn last_audit(&self) -> Result<Option<AuditReport>, ArchiveError> {
        AuditReport::read(&self.data)
    }

    /// Audits one item, without saving a report.
    pub fn audit_item(&self, path: &str, options: &AuditOptions<'_>) -> Result<AuditReport, ArchiveError> {
        self.audit_by_inventory(path, options, None)
    }

    /// Audits one item by an inventory that is known to be its own, whatever lies in the tree.
    pub fn audit_by_inventory(
        &self,
        path: &str,
        options: &AuditOptions<'_>,
        trusted: Option<&[u8]>,
    ) -> Result<AuditReport, ArchiveError> {
        let clock = SystemClock::new();
        let mut audit = AuditReport::new(current_second(&clock).to_string());
        let mut pace = ReadThrottle::new(options.rate, &clock);
        if self.content.is_free(path)? {
            let finding =
                AuditFinding { item: path.to_owned(), file: String::new(), wrong: FixityFault::Missing };
            (options.tell)(&finding);
            audit.findings.push(finding);
        } else {
            self.audit_object(path, &mut audit, &mut pace, options, trusted)?;
        }
        audit.finished = Some(current_second(&clock).to_string());
        Ok(audit)
    }

    fn audit_object(
        &self,
        object: &str,
        audit: &mut AuditReport,
        pace: &mut ReadThrottle<'_>,
        options: &AuditOptions<'_>,
        trusted: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        // An object may change while it is read: check findings again.
        for last in [false, false, true] {
            let before = self.records.item(object)?.map(|record| record.inventory);
            let mut look = ObjectAudit {
                holdings: self,
                object,
                findings: Vec::new(),
                files: 0,
                bytes: 0,
                pace,
                options,
            };
            look.check_object(before.as_deref(), trusted)?;
            let ObjectAudit { findings, files, bytes, .. } = look;
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
    fn audit_journal(&self, audit: &mut AuditReport, options: &AuditOptions<'_>) -> Result<(), ArchiveError> {
        let followed = self.records.position()?;
        let reading = Journal::read(&self.data, JournalPosition::START, &mut |_| Ok(()));
        let wrong = match reading.and_then(|reading| reading.check_covers_index(&self.data, followed)) {
            Ok(()) => return Ok(()),
            Err(StorageError::NoJournal { .. }) => FixityFault::Missing,
            Err(StorageError::DamagedJournal { .. }) => FixityFault::Changed,
            Err(_) => FixityFault::Unreadable,
        };
        let finding = AuditFinding { item: String::new(), file: "journal".to_owned(), wrong };
        (options.tell)(&finding);
        audit.findings.push(finding);
        Ok(())
    }

    /// Items that are recorded, and have no object.
    fn find_missing(&self, audit: &mut AuditReport, options: &AuditOptions<'_>) -> Result<(), ArchiveError> {
        let mut after = String::new();
        loop {
            let page = self.records.list(&after, AUDIT_PAGE_ITEMS)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.path);
            for record in page {
                if !self.content.exists(&record.path)? {
                    let whole = self.content.is_free(&record.path)?;
                    let file = if whole { String::new() } else { OBJECT_DECLARATION.0.to_owned() };
                    let finding = AuditFinding { item: record.path, file, wrong: FixityFault::Missing };
                    (options.tell)(&finding);
                    audit.findings.push(finding);
                }
            }
        }
    }
}

/// One object being looked at.
struct ObjectAudit<'a, 'b> {
    holdings: &'a Holdings,
    object: &'a str,
    findings: Vec<AuditFinding>,
    files: u64,
    bytes: u64,
    pace: &'a mut ReadThrottle<'b>,
    options: &'a AuditOptions<'a>,
}

impl ObjectAudit<'_, '_> {
    fn add_finding(&mut self, file: &str, wrong: FixityFault) {
        self.findings.push(AuditFinding { item: self.object.to_owned(), file: file.to_owned(), wrong });
    }

    fn check_object(&mut self, recorded: Option<&str>, trusted: Option<&[u8]>) -> Result<(), ArchiveError> {
        let content = &*self.holdings.content;
        let there: BTreeSet<String> = content.files(self.object)?.into_iter().collect();
        let mut known: BTreeSet<String> =
            [OBJECT_DECLARATION.0, INVENTORY_FILE, SIDECAR_FILE].map(str::to_owned).into();
        if self
            .read_small_file(OBJECT_DECLARATION.0)?
            .is_some_and(|text| text != OBJECT_DECLARATION.1.as_bytes())
        {
            self.add_finding(OBJECT_DECLARATION.0, FixityFault::Changed);
        }
        let head = self.check_inventory(INVENTORY_FILE, SIDECAR_FILE)?;
        if let Some((_, digest)) = &head
            && recorded != Some(short_digest(digest))
        {
            self.add_finding(
                INVENTORY_FILE,
                if recorded.is_none() { FixityFault::Unexpected } else { FixityFault::Changed },
            );
        }
        let trusted =
            trusted.and_then(|bytes| Some((Inventory::parse(bytes).ok()?, Inventory::digest(bytes))));
        if let Some((inventory, digest)) = trusted.or(head) {
            for version in inventory.versions.keys() {
                let names = [format!("{version}/{INVENTORY_FILE}"), format!("{version}/{SIDECAR_FILE}")];
                let then = self.check_inventory(&names[0], &names[1])?;
                let is_so = |(then, found): (Inventory, String)| {
                    is_version_inventory((&inventory, &digest), version, (&then, &found))
                };
                if !then.is_none_or(is_so) {
                    self.add_finding(&names[0], FixityFault::Changed);
                }
                known.extend(names);
            }
            for (digest, files) in inventory.manifest {
                for file in files {
                    self.check_content_file(&file, &digest)?;
                    known.insert(file);
                }
            }
            there.difference(&known).for_each(|file| self.add_finding(file, FixityFault::Unexpected));
        }
        Ok(())
    }

    /// An inventory with its digest, if both it and its sidecar are there, and right.
    fn check_inventory(
        &mut self,
        name: &str,
        sidecar: &str,
    ) -> Result<Option<(Inventory, String)>, ArchiveError> {
        let (Some(bytes), Some(vouched)) = (self.read_small_file(name)?, self.read_small_file(sidecar)?)
        else {
            return Ok(None);
        };
        let digest = Inventory::digest(&bytes);
        match Inventory::parse(&bytes) {
            Ok(inventory) if sidecar_digest(&vouched) == Some(&digest) => Ok(Some((inventory, digest))),
            _ => {
                self.add_finding(name, FixityFault::Changed);
                Ok(None)
            }
        }
    }

    fn read_small_file(&mut self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut bytes = Vec::new();
        let read = self.read_in_blocks(name, &mut |block| bytes.extend_from_slice(block))?;
        Ok(read.then_some(bytes))
    }

    fn check_content_file(&mut self, file: &str, digest: &str) -> Result<(), ArchiveError> {
        let mut hash = Sha512::new();
        if self.read_in_blocks(file, &mut |block| hash.update(block))? && hex(&hash.finalize()) != digest {
            self.add_finding(file, FixityFault::Changed);
        }
        Ok(())
    }

    /// Reads a file; tells whether it could.
    fn read_in_blocks(&mut self, name: &str, each: &mut dyn FnMut(&[u8])) -> Result<bool, ArchiveError> {
        let file: Box<dyn ReadAt> = match self.holdings.content.open(self.object, name) {
            Ok(file) => file,
            Err(StorageError::MissingFile { .. }) => {
                self.add_finding(name, FixityFault::Missing);
                return Ok(false);
            }
            Err(_) => {
                self.add_finding(name, FixityFault::Unreadable);
                return Ok(false);
            }
        };
        let mut buffer = vec![0; DIGEST_BLOCK_BYTES.min(1 << 18)];
        let mut at = 0;
        loop {
            let Ok(read) = file.read_at(&mut buffer, at) else {
                self.add_finding(name, FixityFault::Unreadable);
                return Ok(false);
            };
            if read == 0 {
                break;
            }
            each(&buffer[..read]);
            at += read as u64;
            self.bytes += read as u64;
            (self.options.progress)(read as u64);
            self.pace.throttle(read as u64);
        }
        self.files += 1;
        Ok(true)
    }
}

/// Keeps reading below a rate.
struct ReadThrottle<'a> {
    rate: Option<u64>,
    clock: &'a SystemClock,
    start: u64,
    bytes: u64,
}

impl<'a> ReadThrottle<'a> {
    fn new(rate: Option<u64>, clock: &'a SystemClock) -> Self {
        Self { rate, clock, start: clock.read().boot.nanos, bytes: 0 }
    }

    fn throttle(&mut self, bytes: u64) {
        let Some(rate) = self.rate else { return };
        self.bytes += bytes;
        let due = u128::from(self.bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let passed = u128::from(self.clock.read().boot.nanos.saturating_sub(self.start));
        if let Some(wait) = due.checked_sub(passed) {
            self.clock.sleep(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)));
        }
    }
}
