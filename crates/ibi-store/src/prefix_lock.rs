//! One minter per prefix on a machine, whichever folder it is started from (clause 1.6).
//!
//! A claim is a small file that is named after the prefix and locked while a minter runs. The lock
//! ends with its process. The files are in folders that all users of the machine share:
//! `/run/lock`, which a reboot empties, and `/var/tmp`, which it does not. They are **witnesses**
//! too: they record the dates that any folder issued in this boot. This detects a state that was
//! restored from a backup, however it was restored. Files that another user placed at the path of a
//! claim are ignored (`own_folders.rs`).

mod own_folders;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::private_files::{chown_to_folder_owner, open_regular_file};
use crate::subsystem_block::state_id;
use crate::text_block::{self, ChecksummedBlock, TEXT_BLOCK_BYTES};
use crate::{IssuedRange, MarkStorageError, MintMark, PrefixHolder, Subsystem};

const PREFIX_LOCK_TITLE: &str = "ibi claim 1";

/// Bounds the retries while another user keeps changing the file at a claim's path.
const MAX_LOCK_ATTEMPTS: u32 = 10;

/// The folders for claims. One that is missing or not writable is skipped.
const LOCK_FOLDERS: [&str; 2] = ["/run/lock", "/var/tmp"];

/// The locks on the prefixes of one subsystem. They are released on drop or when the process ends.
#[derive(Debug)]
pub struct PrefixLock {
    files: Vec<File>,
    /// The content of each file at the time it was locked.
    found: Vec<Option<PrefixLockRecord>>,
    us: PrefixLockRecord,
    /// The size of each file: enough for our path and any mark.
    size: usize,
}

/// The holder of a subsystem's prefixes, as far as its claims record it.
pub(crate) fn find_holder(subsystem: &Subsystem) -> PrefixHolder {
    let prefixes = [&subsystem.rep, &subsystem.ibip].into_iter().flatten();
    let owner = rustix::process::geteuid().as_raw();
    let candidates = prefixes.flat_map(|prefix| {
        lock_paths(prefix).into_iter().flat_map(move |path| candidate_paths(&path, owner))
    });
    holder_of(
        candidates.filter(|path| !own_folders::is_foreign(path, owner)).find_map(|path| read_path(&path)),
    )
}

/// Files of other users at the paths of a subsystem's claims. They are ignored.
pub fn foreign_lock_files(subsystem: &Subsystem, folder: &Path) -> Vec<PathBuf> {
    let owner = owner_of(folder);
    let prefixes = [&subsystem.rep, &subsystem.ibip].into_iter().flatten();
    prefixes
        .flat_map(|prefix| lock_paths(prefix))
        .filter(|path| own_folders::is_foreign(path, owner))
        .collect()
}

/// The usual path of a claim, and those in our own folders beside it.
fn candidate_paths(path: &Path, owner: u32) -> Vec<PathBuf> {
    let own = path.parent().and_then(|place| own_folders::find(place, owner).ok()).unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    std::iter::once(path.to_owned()).chain(own.iter().map(|folder| folder.join(name))).collect()
}

fn owner_of(folder: &Path) -> u32 {
    folder.metadata().map_or_else(|_| rustix::process::geteuid().as_raw(), |found| found.uid())
}

/// The usual paths of a prefix's claims.
fn lock_paths(prefix: &str) -> [PathBuf; 2] {
    LOCK_FOLDERS.map(|folder| Path::new(folder).join(format!("ibi-{}", prefix.replace('/', "+"))))
}

/// The process that a claim names.
fn holder_of(claim: Option<PrefixLockRecord>) -> PrefixHolder {
    let process = claim.as_ref().map(|claim| claim.process);
    PrefixHolder { process, folder: claim.map(|claim| claim.folder) }
}

/// The last mark of this boot that one state issued, as recorded in the claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintWitness {
    /// The boot id.
    pub boot: String,
    /// Its sequence number.
    pub sequence: u64,
    /// The dates issued up to this mark.
    pub used: Vec<IssuedRange>,
}

impl MintWitness {
    fn of(mark: &MintMark) -> Self {
        Self { boot: mark.boot.id.clone(), sequence: mark.sequence, used: mark.used.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PrefixLockRecord {
    state: String,
    folder: PathBuf,
    process: u32,
    witness: Option<MintWitness>,
}

impl PrefixLockRecord {
    /// Whether this claim is of another folder that still exists: a separate minter, or the folder
    /// that ours was copied from.
    fn is_of_another_folder(&self, us: &PrefixLockRecord) -> bool {
        self.folder != us.folder && state_id(&self.folder).as_ref() == Some(&self.state)
    }
}

impl PrefixLock {
    /// Locks the prefixes of a subsystem for this data folder. With `take_over`, the claim of
    /// another folder is replaced unless its minter is running.
    pub fn acquire(subsystem: &Subsystem, folder: &Path, take_over: bool) -> Result<Self, MarkStorageError> {
        let folder = folder.canonicalize().map_err(MarkStorageError::io("find", folder))?;
        // The path in hex, plus 3 KiB for the rest: 32 ranges of at most 50 bytes and a few lines.
        let size = (3072 + 2 * folder.as_os_str().len()).next_multiple_of(TEXT_BLOCK_BYTES);
        let us = PrefixLockRecord {
            state: subsystem.id.clone(),
            folder,
            process: std::process::id(),
            witness: None,
        };
        let mut claims = Self { files: Vec::new(), found: Vec::new(), us, size };
        for prefix in [&subsystem.rep, &subsystem.ibip].into_iter().flatten() {
            claims.lock_prefix(prefix, take_over)?;
        }
        Ok(claims)
    }

    fn lock_prefix(&mut self, prefix: &str, take_over: bool) -> Result<(), MarkStorageError> {
        let (before, mut absent) = (self.files.len(), None);
        for path in lock_paths(prefix) {
            if let Err(refused) = self.lock_in_folder(prefix, &path, take_over) {
                // A machine need not have both folders, and we may lack write access to one. But a
                // claim that exists and cannot be locked belongs to someone.
                match refused {
                    MarkStorageError::Claim { .. } if path.symlink_metadata().is_err() => {
                        absent = Some(refused);
                    }
                    refused => return Err(refused),
                }
            }
        }
        match absent {
            Some(refused) if self.files.len() == before => Err(refused),
            _ => Ok(()),
        }
    }

    /// Locks the claim of a prefix in one shared folder: at its usual path, unless another user
    /// placed a file there, and in each of our own folders.
    fn lock_in_folder(
        &mut self,
        prefix: &str,
        usual: &Path,
        take_over: bool,
    ) -> Result<(), MarkStorageError> {
        let owner = owner_of(&self.us.folder);
        let place = usual.parent().unwrap_or(usual);
        let refused =
            |error| MarkStorageError::Claim { prefix: prefix.to_owned(), path: usual.to_owned(), error };
        let before = self.files.len();
        for _ in 0..MAX_LOCK_ATTEMPTS {
            self.files.truncate(before);
            self.found.truncate(before);
            let foreign = own_folders::is_foreign(usual, owner);
            if !foreign {
                match self.lock_file(prefix, usual, take_over) {
                    // Another user placed a file there in the meantime.
                    Err(_) if own_folders::is_foreign(usual, owner) => continue,
                    taken => taken?,
                }
            }
            let mut own = own_folders::find(place, owner).map_err(refused)?;
            if foreign && own.is_empty() {
                own_folders::make(place, &self.us.folder).map_err(refused)?;
                own = own_folders::find(place, owner).map_err(refused)?;
            }
            for folder in own {
                let path = folder.join(usual.file_name().unwrap_or_default());
                // Created only when needed, but always respected once it exists.
                if foreign || path.exists() {
                    self.lock_file(prefix, &path, take_over)?;
                }
            }
            if foreign == own_folders::is_foreign(usual, owner) {
                return Ok(());
            }
        }
        Err(refused(io::Error::other("another user keeps changing the file at this path")))
    }

    fn lock_file(&mut self, prefix: &str, path: &Path, take_over: bool) -> Result<(), MarkStorageError> {
        let refused =
            |error| MarkStorageError::Claim { prefix: prefix.to_owned(), path: path.to_owned(), error };
        let Some(file) = lock(path, &self.us.folder).map_err(refused)? else {
            let holder = holder_of(read_path(path));
            return Err(MarkStorageError::Held { what: format!("the prefix {prefix}"), holder });
        };
        let found = read(&file);
        if let Some(claim) = &found
            && !take_over
            && claim.is_of_another_folder(&self.us)
        {
            let (prefix, folder) = (prefix.to_owned(), claim.folder.clone());
            return Err(match claim.state == self.us.state {
                true => MarkStorageError::Copy { prefix, folder },
                false => MarkStorageError::OtherFolder { prefix, folder },
            });
        }
        self.found.push(found);
        self.files.push(file);
        Ok(())
    }

    /// The last recorded mark of this state, if every claim has a record of it.
    pub fn witness(&self) -> Option<&MintWitness> {
        let ours = |found: &Option<PrefixLockRecord>| {
            found.as_ref().is_some_and(|claim| claim.state == self.us.state)
        };
        if !self.found.iter().all(ours) {
            return None;
        }
        let witnesses = self.found.iter().flatten().filter_map(|claim| claim.witness.as_ref());
        witnesses.max_by_key(|witness| witness.sequence)
    }

    /// The dates that any state of any folder is recorded to have issued under these prefixes: all
    /// of this boot, and those of earlier boots that `/var/tmp` kept.
    pub fn issued_ranges(&self) -> impl Iterator<Item = IssuedRange> {
        let witnesses = self.found.iter().flatten().filter_map(|claim| claim.witness.as_ref());
        witnesses.flat_map(|witness| witness.used.iter().copied())
    }

    /// The other folders that held the prefixes.
    pub fn other_folders(&self) -> impl Iterator<Item = &Path> {
        self.found
            .iter()
            .flatten()
            .map(|claim| claim.folder.as_path())
            .filter(|folder| *folder != self.us.folder)
    }

    /// Records the holder and its last mark. No sync: the record must outlive this process, not a
    /// power cut.
    pub(crate) fn record_mark(&mut self, mark: &MintMark) -> io::Result<()> {
        self.us.witness = Some(MintWitness::of(mark));
        let bytes = self.us.to_block().finish(self.size).ok_or(io::ErrorKind::InvalidInput)?;
        self.files.iter().try_for_each(|file| file.write_all_at(&bytes, 0))
    }
}

/// Opens and locks a claim; `None` if another process has it locked. If root creates it, it is
/// given to the owner of the data folder.
fn lock(path: &Path, folder: &Path) -> io::Result<Option<File>> {
    loop {
        // Open without `O_CREAT` first: some systems deny everyone, even root, to open another
        // user's file with it.
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let file = match open_regular_file(path, &mut options) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match open_regular_file(path, options.create_new(true)) {
                    // Another process created it first.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => made?,
                }
            }
            opened => opened?,
        };
        let ours = file.metadata()?;
        // Anyone may create files here. Trust only those of our user or of the folder's owner.
        if ours.uid() != rustix::process::geteuid().as_raw() && ours.uid() != folder.metadata()?.uid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        chown_to_folder_owner(&file, folder)?;
        // If the file was removed between opening and locking, we would hold a lock that nobody
        // sees.
        let current = path.symlink_metadata();
        if current.is_ok_and(|current| (current.dev(), current.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

impl PrefixLockRecord {
    fn to_block(&self) -> ChecksummedBlock {
        let mut block = ChecksummedBlock::new(PREFIX_LOCK_TITLE);
        block.line("state", &self.state);
        block.line("folder", text_block::hex(self.folder.as_os_str().as_bytes()));
        block.line("process", self.process);
        if let Some(witness) = &self.witness {
            block.line("boot", &witness.boot);
            block.line("sequence", witness.sequence);
            for run in &witness.used {
                block.line("used", run);
            }
        }
        block
    }
}

fn read_path(path: &Path) -> Option<PrefixLockRecord> {
    read(&open_regular_file(path, OpenOptions::new().read(true)).ok()?)
}

fn read(mut file: &File) -> Option<PrefixLockRecord> {
    // Larger than any path needs.
    const MAX_LOCK_RECORD_BYTES: u64 = 16 * TEXT_BLOCK_BYTES as u64;
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_LOCK_RECORD_BYTES).read_to_end(&mut bytes).ok()?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<PrefixLockRecord> {
    let lines = text_block::parse_block(bytes, PREFIX_LOCK_TITLE)?;
    let value = |name| text_block::single_value(&lines, name);
    let witness = || {
        Some(MintWitness {
            boot: value("boot")?.to_owned(),
            sequence: value("sequence")?.parse().ok()?,
            used: text_block::parse_ranges(&lines)?,
        })
    };
    Some(PrefixLockRecord {
        state: value("state")?.to_owned(),
        folder: PathBuf::from(std::ffi::OsString::from_vec(decode_hex(value("folder")?)?)),
        process: value("process")?.parse().ok()?,
        witness: witness(),
    })
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|digit| digit as u8);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ibi_id::Instant;
    use proptest::prelude::*;

    use super::*;

    fn claim() -> impl Strategy<Value = PrefixLockRecord> {
        let at = (0..4_000_000_000_i64, 0..1_000_000_000_u64)
            .prop_map(|(seconds, nanos)| Instant::new(seconds, nanos * 1000).unwrap());
        let run = (at.clone(), at).prop_map(|(first, last)| IssuedRange { first, last });
        let witness = ("[!-~]{1,40}", any::<u64>(), prop::collection::vec(run, 0..32))
            .prop_map(|(boot, sequence, used)| MintWitness { boot, sequence, used });
        let folder = prop::collection::vec(any::<u8>(), 1..300);
        ("[0-9a-f]{32}", folder, any::<u32>(), prop::option::of(witness)).prop_map(
            |(state, folder, process, witness)| {
                let folder = PathBuf::from(std::ffi::OsString::from_vec(folder));
                PrefixLockRecord { state, folder, process, witness }
            },
        )
    }

    proptest! {
        #[test]
        fn a_claim_round_trips(claim in claim()) {
            let size = (3072 + 2 * claim.folder.as_os_str().len()).next_multiple_of(TEXT_BLOCK_BYTES);
            prop_assert_eq!(parse(&claim.to_block().finish(size).unwrap()), Some(claim));
        }

        #[test]
        fn a_corrupted_claim_is_rejected(claim in claim(), at in any::<prop::sample::Index>(), bit in 0..7_u32) {
            let mut bytes = claim.to_block().finish(4 * TEXT_BLOCK_BYTES).unwrap();
            // Up to the end of the checksum; the rest is padding.
            let end = bytes.iter().rposition(|c| *c != b'\n').unwrap() + 1;
            bytes[at.index(end)] ^= 1_u8 << bit;
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn any_lines_with_a_valid_checksum_parse_without_panic(lines in prop::collection::vec("[a-z]{0,8} ?[ -~]{0,40}", 0..20)) {
            let mut block = ChecksummedBlock::new(PREFIX_LOCK_TITLE);
            for line in &lines {
                let (name, value) = line.split_once(' ').unwrap_or((line, ""));
                block.line(name, value);
            }
            if let Some(bytes) = block.finish(4 * TEXT_BLOCK_BYTES) {
                let _ = parse(&bytes);
            }
        }

        #[test]
        fn any_bytes_are_rejected_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(parse(&bytes), None);
        }
    }
}
