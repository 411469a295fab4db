//! What a state on disk is worth when a minter starts, and how an operator sets it right (clause 1.6).

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::Path;

use ibi_id::{Host, IbipPrefix, Instant, LONGEST_LABEL, RepositoryPrefix, host_not_unique, ip_not_unique};
use ibi_store::{Claims, Edition, FileMarks, Mark, Run, State, Subsystem};

use crate::mint::clock::{Clock, Reading};
use crate::mint::minter::Minter;
use crate::mint::rules::Limits;
use crate::mint::used;
use crate::{Refusal, Stop};

/// The longest prefix whose labels all fit (clause 1.4), with the nine fraction digits that are minted.
const LONGEST_PREFIX: usize = LONGEST_LABEL - "/9999/12.31.23.59.59.999999999".len();

/// What a subsystem is started from.
#[derive(Debug, Clone)]
pub struct From<'a> {
    /// A host name and port, for the form `rep`.
    pub host: Option<(Host<'a>, Option<NonZeroU16>)>,
    /// An address and port, for the form `ibip`.
    pub ip: Option<(IpAddr, Option<NonZeroU16>)>,
    /// The edition of the norm to follow.
    pub edition: Edition,
    /// Also a host or an address that is not unique in the world.
    pub allow_private: bool,
}

/// Starts a subsystem in a data folder: once, by name. `random` becomes the name of its state.
pub fn init(
    folder: &Path,
    from: &From<'_>,
    random: [u8; 16],
    clock: &dyn Clock,
) -> Result<Subsystem, Refusal> {
    let subsystem = subsystem(from, random)?;
    let now = clock.read();
    FileMarks::start(folder, &subsystem, |claims| {
        // A folder that was thrown away may have minted under this prefix.
        let seen: Vec<Run> = claims.seen().collect();
        recovered(&[], &seen, 0, now)
    })?;
    Ok(subsystem)
}

/// Who would mint.
pub(crate) fn subsystem(from: &From<'_>, random: [u8; 16]) -> Result<Subsystem, Refusal> {
    if from.host.is_none() && from.ip.is_none() {
        return Err(Refusal::NoPrefix);
    }
    if !from.allow_private {
        if let Some((host, _)) = from.host
            && let Some(reason) = host_not_unique(host)
        {
            return Err(Refusal::NotUnique { from: host.to_string(), reason });
        }
        if let Some((ip, _)) = from.ip
            && let Some(reason) = ip_not_unique(ip)
        {
            return Err(Refusal::NotUnique { from: ip.to_string(), reason });
        }
    }
    let rep = from.host.map(|(host, port)| RepositoryPrefix::new(host, port).as_str().to_owned());
    if let Some(prefix) = rep.as_ref().filter(|prefix| prefix.len() > LONGEST_PREFIX) {
        return Err(Refusal::PrefixTooLong { length: prefix.len(), most: LONGEST_PREFIX });
    }
    Ok(Subsystem {
        id: format!("{:032x}", u128::from_be_bytes(random)),
        rep,
        ibip: from.ip.map(|(ip, port)| IbipPrefix::new(ip, port).as_str().to_owned()),
        edition: from.edition,
    })
}

/// The state of the minter of a data folder as it is now, also while it runs.
pub fn look(folder: &Path) -> Result<State, Refusal> {
    Ok(FileMarks::look(folder)?)
}

/// Opens the minter of a data folder, unless its state is in doubt.
pub fn open<C: Clock>(folder: &Path, clock: C, limits: Limits) -> Result<Minter<FileMarks, C>, Refusal> {
    let (state, opening) = FileMarks::open(folder)?;
    let mark = trusted(&state, opening.claims(), &clock.read())?;
    let marks = opening.trust(mark)?;
    Ok(Minter::new(state.subsystem, marks, clock, limits))
}

/// The mark to go on from: the one that was found, raised to this instant where it may be an older one.
fn trusted(state: &State, claims: &Claims, now: &Reading) -> Result<Mark, Stop> {
    let witness = claims.witness().filter(|witness| witness.boot == now.boot.id);
    let mut mark = match (&state.mark, witness) {
        (Ok(mark), _) => mark.clone(),
        // What cannot be read is the write that was cut off: the other mark is the last that was given out.
        (Err(damage), Some(witness)) => match &damage.readable[..] {
            [mark] if mark.sequence == witness.sequence => mark.clone(),
            _ => return Err(Stop::Damaged),
        },
        _ => return Err(Stop::Damaged),
    };
    // Labels that this machine saw and the state does not know of: the state is an older one, or of another folder.
    let unknown = claims.seen().filter(|run| !used::covers(&mark.used, *run)).map(|run| run.last).max();
    if let Some(seen) = unknown {
        return Err(Stop::Restored { last: mark.last, seen });
    }
    let same_boot = (&mark.boot.id, &mark.boot.machine) == (&now.boot.id, &now.boot.machine);
    let same =
        same_boot && state.same_file && witness.is_some_and(|witness| witness.sequence <= mark.sequence);
    if !same {
        // Another boot, another machine, a copy of the file, or nothing to tell by: if the mark is an older one, the
        // labels that it does not know of lie before this instant.
        mark.last = mark.last.max(now.wall);
    }
    Ok(mark)
}

/// What a recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// The clock that the operator stands for.
    pub now: Instant,
    /// Labels are given out after this instant: `now`, or the end of labels that are used already.
    pub last: Instant,
    /// How many runs of labels lie ahead and will be passed over.
    pub ahead: usize,
}

/// An operator says that the clock is right and that this folder is the one that mints: goes on from this instant,
/// after every label that is known to be used.
pub fn recover(folder: &Path, clock: &dyn Clock) -> Result<Recovered, Refusal> {
    let (state, opening) = FileMarks::open_to_recover(folder)?;
    let now = clock.read();
    let readable = match &state.mark {
        Ok(mark) => std::slice::from_ref(mark),
        Err(damage) => &damage.readable,
    };
    let mut seen: Vec<Run> = opening.claims().seen().collect();
    // A folder that we take over may know of more than its claims, which a reboot can empty.
    for folder in opening.claims().other_folders() {
        let marks = FileMarks::look(folder)
            .map(|state| state.mark.map_or_else(|damage| damage.readable, |mark| vec![mark]));
        seen.extend(marks.unwrap_or_default().into_iter().flat_map(|mark| mark.used));
    }
    let witnessed = opening.claims().witness().map_or(0, |witness| witness.sequence);
    let mark = recovered(readable, &seen, witnessed, now);
    let (now, last) = (mark.wall, mark.last);
    let ahead = mark.used.iter().filter(|run| run.first > last).count();
    opening.replace(&state.subsystem, mark)?;
    Ok(Recovered { now, last, ahead })
}

/// The mark to go on from when an operator stands for the clock: after this instant, and around every date that a mark
/// or a claim knows of.
fn recovered(readable: &[Mark], seen: &[Run], witnessed: u64, now: Reading) -> Mark {
    let mut used = Vec::new();
    for run in readable.iter().flat_map(|mark| &mark.used).chain(seen) {
        used::add(&mut used, *run, now.wall);
    }
    let last = used::past_runs(&used, now.wall);
    let sequence = readable.iter().map(|mark| mark.sequence).max().unwrap_or(0).max(witnessed) + 1;
    Mark { sequence, last, used, wall: now.wall, boot: now.boot }
}

#[cfg(test)]
mod tests;
