//! Decides how far a state on disk can be trusted when a minter starts, and how an operator repairs
//! it (clause 1.6).

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use ibi_id::{Host, IbipPrefix, Instant, MAX_LABEL_BYTES, RepositoryPrefix, host_not_unique, ip_not_unique};
use ibi_store::{
    DistributorEdition, FileMarkStorage, IssuedRange, MarkFileState, MintMark, PrefixLock, Subsystem,
};

use crate::clock::{ClockReading, MintClock};
use crate::clock_limits::ClockLimits;
use crate::minter::Minter;
use crate::used_runs;
use crate::{MintError, MinterHalt};

/// The longest prefix whose labels all fit (clause 1.4), with the nine fraction digits that are
/// minted.
const MAX_PREFIX_BYTES: usize = MAX_LABEL_BYTES - "/9999/12.31.23.59.59.999999999".len();

/// The configuration of a new subsystem.
#[derive(Debug, Clone)]
pub struct MinterConfig<'a> {
    /// A host name and port, for the form `rep`.
    pub host: Option<(Host<'a>, Option<NonZeroU16>)>,
    /// An address and port, for the form `ibip`.
    pub ip: Option<(IpAddr, Option<NonZeroU16>)>,
    /// The edition of the standard to follow.
    pub edition: DistributorEdition,
    /// Accept a host or an address that is not globally unique.
    pub allow_private: bool,
}

/// Creates the minter of a data folder, once. `random` becomes the name of its state.
pub fn init(
    folder: &Path,
    from: &MinterConfig<'_>,
    random: [u8; 16],
    clock: &dyn MintClock,
) -> Result<Subsystem, MintError> {
    let subsystem = subsystem(from, random)?;
    let now = clock.read();
    FileMarkStorage::start(folder, &subsystem, |claims| {
        // A deleted folder may have minted under this prefix.
        let seen: Vec<IssuedRange> = claims.issued_ranges().collect();
        recovered_mark(&[], &seen, 0, now)
    })?;
    Ok(subsystem)
}

/// The subsystem of a configuration.
pub fn subsystem(from: &MinterConfig<'_>, random: [u8; 16]) -> Result<Subsystem, MintError> {
    if from.host.is_none() && from.ip.is_none() {
        return Err(MintError::NoPrefix);
    }
    if !from.allow_private {
        if let Some((host, _)) = from.host
            && let Some(reason) = host_not_unique(host)
        {
            return Err(MintError::NotUnique { from: host.to_string(), reason });
        }
        if let Some((ip, _)) = from.ip
            && let Some(reason) = ip_not_unique(ip)
        {
            return Err(MintError::NotUnique { from: ip.to_string(), reason });
        }
    }
    let rep = from.host.map(|(host, port)| RepositoryPrefix::new(host, port).as_str().to_owned());
    if let Some(prefix) = rep.as_ref().filter(|prefix| prefix.len() > MAX_PREFIX_BYTES) {
        return Err(MintError::PrefixTooLong { length: prefix.len(), most: MAX_PREFIX_BYTES });
    }
    Ok(Subsystem {
        id: format!("{:032x}", u128::from_be_bytes(random)),
        rep,
        ibip: from.ip.map(|(ip, port)| IbipPrefix::new(ip, port).as_str().to_owned()),
        edition: from.edition,
    })
}

/// The state of the minter of a data folder as it is now, also while it runs.
pub fn read_state(folder: &Path) -> Result<MarkFileState, MintError> {
    Ok(FileMarkStorage::read_current(folder)?)
}

/// Files of other users at the paths of a data folder's prefix claims. They are ignored.
pub fn foreign_claims(folder: &Path) -> Result<Vec<PathBuf>, MintError> {
    Ok(ibi_store::foreign_lock_files(&FileMarkStorage::read_current(folder)?.subsystem, folder))
}

/// Opens the minter of a data folder, unless its state is in doubt.
pub fn open<C: MintClock>(
    folder: &Path,
    clock: C,
    limits: ClockLimits,
) -> Result<Minter<FileMarkStorage, C>, MintError> {
    let (state, opening) = FileMarkStorage::open(folder)?;
    let mark = trusted_mark(&state, opening.claims(), &clock.read())?;
    let marks = opening.accept_mark(mark)?;
    Ok(Minter::new(state.subsystem, marks, clock, limits))
}

/// The mark to continue from: the one found, raised to the current time where it may be outdated.
fn trusted_mark(
    state: &MarkFileState,
    claims: &PrefixLock,
    now: &ClockReading,
) -> Result<MintMark, MinterHalt> {
    let witness = claims.witness().filter(|witness| witness.boot == now.boot.id);
    let mut mark = match (&state.mark, witness) {
        (Ok(mark), _) => mark.clone(),
        // The unreadable mark is the write that was cut off. The other one is the last that was
        // given out.
        (Err(damage), Some(witness)) => match &damage.readable[..] {
            [mark] if mark.sequence == witness.sequence => mark.clone(),
            _ => return Err(MinterHalt::Damaged),
        },
        _ => return Err(MinterHalt::Damaged),
    };
    // The machine remembers labels that the state does not know of: the state is outdated, or
    // belongs to another folder.
    let unknown =
        claims.issued_ranges().filter(|run| !used_runs::covers(&mark.used, *run)).map(|run| run.last).max();
    if let Some(seen) = unknown {
        return Err(MinterHalt::Restored { last: mark.last, seen });
    }
    let same_boot = (&mark.boot.id, &mark.boot.machine) == (&now.boot.id, &now.boot.machine);
    let same =
        same_boot && state.same_file && witness.is_some_and(|witness| witness.sequence <= mark.sequence);
    if !same {
        // Another boot, another machine, a copy of the file, or nothing to tell by: if the mark is
        // an older one, the labels that it does not know of lie before this instant.
        mark.last = mark.last.max(now.wall);
    }
    Ok(mark)
}

/// What a recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MintRecovery {
    /// The time that the operator confirmed.
    pub now: Instant,
    /// Labels are issued after this instant: `now`, or the end of the labels already used.
    pub last: Instant,
    /// Number of used runs ahead of the clock, which will be skipped.
    pub ahead: usize,
}

/// The operator confirms that the clock is right and that this folder is the one that mints.
/// Minting continues from the current time, after every label known to be used.
pub fn recover(folder: &Path, clock: &dyn MintClock) -> Result<MintRecovery, MintError> {
    let (state, opening) = FileMarkStorage::open_to_recover(folder)?;
    let now = clock.read();
    let readable = match &state.mark {
        Ok(mark) => std::slice::from_ref(mark),
        Err(damage) => &damage.readable,
    };
    let mut seen: Vec<IssuedRange> = opening.claims().issued_ranges().collect();
    // A folder that we take over may know more than its claims, which a reboot can empty.
    for folder in opening.claims().other_folders() {
        let marks = FileMarkStorage::read_current(folder)
            .map(|state| state.mark.map_or_else(|damage| damage.readable, |mark| vec![mark]));
        seen.extend(marks.unwrap_or_default().into_iter().flat_map(|mark| mark.used));
    }
    let witnessed = opening.claims().witness().map_or(0, |witness| witness.sequence);
    let mark = recovered_mark(readable, &seen, witnessed, now);
    let (now, last) = (mark.wall, mark.last);
    let ahead = mark.used.iter().filter(|run| run.first > last).count();
    opening.replace(&state.subsystem, mark)?;
    Ok(MintRecovery { now, last, ahead })
}

/// The mark to continue from after a confirmation: after the current time, and skipping every date
/// that a mark or a claim knows of.
fn recovered_mark(
    readable: &[MintMark],
    seen: &[IssuedRange],
    witnessed: u64,
    now: ClockReading,
) -> MintMark {
    let mut used = Vec::new();
    for run in readable.iter().flat_map(|mark| &mark.used).chain(seen) {
        used_runs::add_run(&mut used, *run, now.wall);
    }
    let last = used_runs::past_runs(&used, now.wall);
    let sequence = readable.iter().map(|mark| mark.sequence).max().unwrap_or(0).max(witnessed) + 1;
    MintMark { sequence, last, used, wall: now.wall, boot: now.boot }
}

#[cfg(test)]
mod tests;
