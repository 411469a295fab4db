//! One minter per prefix on a machine, whichever folder it is started from (clause 1.6).
//!
//! A claim is a small file that is named after the prefix and locked while a minter runs; the lock dies with its
//! holder. The files lie where all users of the machine meet: `/run/lock`, which a reboot empties, and `/var/tmp`,
//! which it does not. They are **witnesses** too: they remember the dates that were given out in this boot, by whichever
//! folder, so that a state put back from a backup is found out, however it was put back.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::text::{self, BLOCK, Block};
use crate::{Mark, Run, StoreError, Subsystem};

const TITLE: &str = "ibi claim 1";

/// Where claims lie, as far as the folder is there and can be written.
const FOLDERS: [&str; 2] = ["/run/lock", "/var/tmp"];

/// The locks on the prefixes of one subsystem. Dropping them, or dying, gives them back.
#[derive(Debug)]
pub struct Claims {
    files: Vec<File>,
    /// What was found in each file when it was locked.
    found: Vec<Option<Claim>>,
    us: Claim,
    /// The size of each file: as much as our path and any mark need.
    size: usize,
}

/// Who holds the prefixes of a subsystem, as far as its claims tell.
pub(crate) fn holder(subsystem: &Subsystem) -> Holder {
    let prefixes = [&subsystem.rep, &subsystem.ibip].into_iter().flatten();
    Holder::of(prefixes.flat_map(|prefix| paths(prefix)).find_map(|path| read_path(&path)))
}

/// Where the claims of a prefix lie.
fn paths(prefix: &str) -> [PathBuf; 2] {
    FOLDERS.map(|folder| Path::new(folder).join(format!("ibi-{}", prefix.replace('/', "+"))))
}

/// Who holds a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process, if it is known.
    pub process: Option<u32>,
    /// The data folder that it uses, if it is known.
    pub folder: Option<PathBuf>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("another process")?,
        }
        match &self.folder {
            Some(folder) => write!(f, " (data folder {})", folder.display()),
            None => Ok(()),
        }
    }
}

impl Holder {
    fn of(claim: Option<Claim>) -> Self {
        let process = claim.as_ref().map(|claim| claim.process);
        Self { process, folder: claim.map(|claim| claim.folder) }
    }
}

/// The last mark of this boot that was given out from one state, as the claim remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The boot in which it was made.
    pub boot: String,
    /// Its sequence number.
    pub sequence: u64,
    /// The dates that were given out, up to it.
    pub used: Vec<Run>,
}

impl Witness {
    fn of(mark: &Mark) -> Self {
        Self { boot: mark.boot.id.clone(), sequence: mark.sequence, used: mark.used.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    state: String,
    folder: PathBuf,
    process: u32,
    witness: Option<Witness>,
}

impl Claim {
    /// Whether this is the claim of a folder that is still there and not ours: a minter of its own, or the folder
    /// that ours was copied from.
    fn is_of_another_folder(&self, us: &Claim) -> bool {
        self.folder != us.folder && crate::file::state_id(&self.folder).as_ref() == Some(&self.state)
    }
}

impl Claims {
    /// Locks the prefixes of a subsystem that lives in this data folder. With `take_over`, a claim of another folder
    /// that is not running gives way.
    pub fn take(subsystem: &Subsystem, folder: &Path, take_over: bool) -> Result<Self, StoreError> {
        let folder = folder.canonicalize().map_err(StoreError::io("find", folder))?;
        // The path in hex, and 3 KiB for the rest: 32 runs of at most 50 bytes and a few lines.
        let size = (3072 + 2 * folder.as_os_str().len()).next_multiple_of(BLOCK);
        let us = Claim { state: subsystem.id.clone(), folder, process: std::process::id(), witness: None };
        let mut claims = Self { files: Vec::new(), found: Vec::new(), us, size };
        for prefix in [&subsystem.rep, &subsystem.ibip].into_iter().flatten() {
            claims.take_prefix(prefix, take_over)?;
        }
        Ok(claims)
    }

    fn take_prefix(&mut self, prefix: &str, take_over: bool) -> Result<(), StoreError> {
        let (before, mut absent) = (self.files.len(), None);
        for path in paths(prefix) {
            let file = match lock(&path, &self.us.folder) {
                Ok(Some(file)) => file,
                Ok(None) => {
                    let holder = Holder::of(read_path(&path));
                    return Err(StoreError::Held { what: format!("the prefix {prefix}"), holder });
                }
                Err(error) => {
                    let there = path.symlink_metadata().is_ok();
                    let refused = StoreError::Claim { prefix: prefix.to_owned(), path, error };
                    // A machine need not have both folders, nor let us write to both; but a claim that is there and
                    // cannot be taken is somebody's.
                    if there {
                        return Err(refused);
                    }
                    absent = Some(refused);
                    continue;
                }
            };
            let found = read(&file);
            if let Some(claim) = &found
                && !take_over
                && claim.is_of_another_folder(&self.us)
            {
                let (prefix, folder) = (prefix.to_owned(), claim.folder.clone());
                return Err(match claim.state == self.us.state {
                    true => StoreError::Copy { prefix, folder },
                    false => StoreError::OtherFolder { prefix, folder },
                });
            }
            self.found.push(found);
            self.files.push(file);
        }
        match absent {
            Some(refused) if self.files.len() == before => Err(refused),
            _ => Ok(()),
        }
    }

    /// What is remembered of the last mark of this state, if every claim has a memory of it.
    pub fn witness(&self) -> Option<&Witness> {
        let ours = |found: &Option<Claim>| found.as_ref().is_some_and(|claim| claim.state == self.us.state);
        if !self.found.iter().all(ours) {
            return None;
        }
        let witnesses = self.found.iter().flatten().filter_map(|claim| claim.witness.as_ref());
        witnesses.max_by_key(|witness| witness.sequence)
    }

    /// The dates that any state of any folder was seen to give out under these prefixes, as far as it is remembered: all
    /// of this boot, and what `/var/tmp` kept of others.
    pub fn seen(&self) -> impl Iterator<Item = Run> {
        let witnesses = self.found.iter().flatten().filter_map(|claim| claim.witness.as_ref());
        witnesses.flat_map(|witness| witness.used.iter().copied())
    }

    /// The other folders that had the prefixes.
    pub fn other_folders(&self) -> impl Iterator<Item = &Path> {
        self.found
            .iter()
            .flatten()
            .map(|claim| claim.folder.as_path())
            .filter(|folder| *folder != self.us.folder)
    }

    /// Writes down who holds the prefixes and how far it has come. No sync: it need not outlive a power cut, only
    /// this process.
    pub(crate) fn remember(&mut self, mark: &Mark) -> io::Result<()> {
        self.us.witness = Some(Witness::of(mark));
        let bytes = self.us.block().finish(self.size).ok_or(io::ErrorKind::InvalidInput)?;
        self.files.iter().try_for_each(|file| file.write_all_at(&bytes, 0))
    }
}

/// Opens and locks a claim; nothing if somebody else has it. Made by root, it is given to the owner of the data folder.
fn lock(path: &Path, folder: &Path) -> io::Result<Option<File>> {
    loop {
        // First without making it: some systems let nobody, not even root, open for making what is another's.
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let file = match open_plain(path, &mut options) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match open_plain(path, options.create_new(true)) {
                    // Somebody was quicker.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => made?,
                }
            }
            opened => opened?,
        };
        let ours = file.metadata()?;
        // Anybody may make files here: only what we or the owner of the folder made is believed.
        if ours.uid() != rustix::process::geteuid().as_raw() && ours.uid() != folder.metadata()?.uid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        crate::file::give_to_owner(&file, folder)?;
        // Whoever removed the file between opening and locking would leave us with a lock that nobody sees.
        let there = path.symlink_metadata();
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

/// The folders are everybody's: no links are followed, and no pipe makes us wait.
fn no_tricks() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed()
}

impl Claim {
    fn block(&self) -> Block {
        let mut block = Block::new(TITLE);
        block.line("state", &self.state);
        block.line("folder", text::hex(self.folder.as_os_str().as_bytes()));
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

fn read_path(path: &Path) -> Option<Claim> {
    read(&open_plain(path, OpenOptions::new().read(true)).ok()?)
}

/// Opens a plain file, whatever stands in its place: no link is followed, and no pipe makes us wait.
pub(crate) fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(no_tricks()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    Ok(file)
}

fn read(mut file: &File) -> Option<Claim> {
    // No path is longer than what this allows for.
    const MOST: u64 = 16 * BLOCK as u64;
    let mut bytes = Vec::new();
    file.by_ref().take(MOST).read_to_end(&mut bytes).ok()?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<Claim> {
    let lines = text::read(bytes, TITLE)?;
    let value = |name| text::value(&lines, name);
    let witness = || {
        Some(Witness {
            boot: value("boot")?.to_owned(),
            sequence: value("sequence")?.parse().ok()?,
            used: text::runs(&lines)?,
        })
    };
    Some(Claim {
        state: value("state")?.to_owned(),
        folder: PathBuf::from(std::ffi::OsString::from_vec(unhex(value("folder")?)?)),
        process: value("process")?.parse().ok()?,
        witness: witness(),
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
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

    fn claim() -> impl Strategy<Value = Claim> {
        let at = (0..4_000_000_000_i64, 0..1_000_000_000_u64)
            .prop_map(|(seconds, nanos)| Instant::new(seconds, nanos * 1000).unwrap());
        let run = (at.clone(), at).prop_map(|(first, last)| Run { first, last });
        let witness = ("[!-~]{1,40}", any::<u64>(), prop::collection::vec(run, 0..32))
            .prop_map(|(boot, sequence, used)| Witness { boot, sequence, used });
        let folder = prop::collection::vec(any::<u8>(), 1..300);
        ("[0-9a-f]{32}", folder, any::<u32>(), prop::option::of(witness)).prop_map(
            |(state, folder, process, witness)| {
                let folder = PathBuf::from(std::ffi::OsString::from_vec(folder));
                Claim { state, folder, process, witness }
            },
        )
    }

    proptest! {
        #[test]
        fn a_claim_is_read_as_it_was_written(claim in claim()) {
            let size = (3072 + 2 * claim.folder.as_os_str().len()).next_multiple_of(BLOCK);
            prop_assert_eq!(parse(&claim.block().finish(size).unwrap()), Some(claim));
        }

        #[test]
        fn a_changed_claim_is_none(claim in claim(), at in any::<prop::sample::Index>(), bit in 0..7_u32) {
            let mut bytes = claim.block().finish(4 * BLOCK).unwrap();
            // Up to the end of the checksum: what follows is filling.
            let end = bytes.iter().rposition(|c| *c != b'\n').unwrap() + 1;
            bytes[at.index(end)] ^= 1_u8 << bit;
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn any_lines_with_a_right_checksum_are_a_claim_or_none(lines in prop::collection::vec("[a-z]{0,8} ?[ -~]{0,40}", 0..20)) {
            let mut block = Block::new(TITLE);
            for line in &lines {
                let (name, value) = line.split_once(' ').unwrap_or((line, ""));
                block.line(name, value);
            }
            if let Some(bytes) = block.finish(4 * BLOCK) {
                let _ = parse(&bytes);
            }
        }

        #[test]
        fn any_bytes_are_a_claim_or_none(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(parse(&bytes), None);
        }
    }
}
