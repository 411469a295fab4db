//! `ibi resolver`: one file a command, and what they share.

pub(super) mod alerts;
pub(super) mod archives;
pub(super) mod registry;
pub(super) mod resolve;
pub(super) mod serve;
pub(super) mod token;

use std::path::PathBuf;
use std::sync::Arc;

use ibi_archive::mint::clock::{Clock as _, SystemClock};
use ibi_resolver::inclusion::Clock;
use ibi_resolver::registry::{FILE, Registry};

use crate::cli::Data;
use crate::exit::Failure;

/// The folder of a resolver: one that `ibi serve` works in has it below.
pub(super) fn folder(data: &Data) -> Result<PathBuf, Failure> {
    let folder = data.folder()?;
    let below = folder.join(super::serve::RESOLVER);
    Ok(if !folder.join(FILE).exists() && below.join(FILE).exists() { below } else { folder })
}

fn open(data: &Data) -> Result<Registry, Failure> {
    Ok(Registry::open(&folder(data)?)?)
}

/// Tells the time, in seconds since the Unix epoch.
pub(super) fn clock() -> Clock {
    let clock = SystemClock::new();
    Arc::new(move || clock.read().wall.seconds())
}
