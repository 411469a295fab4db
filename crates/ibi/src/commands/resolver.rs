//! `ibi resolver`: one file per command, and what they share.

pub(super) mod alerts;
pub(super) mod archives;
pub(super) mod index;
pub(super) mod registry;
pub(super) mod resolve;
pub(super) mod serve;
pub(super) mod token;

use std::path::PathBuf;
use std::sync::Arc;

use ibi_mint::clock::{MintClock as _, SystemClock};
use ibi_resolver::ResolverClock;
use ibi_resolver::registry::{REGISTRY_FILE_NAME, Registry};

use crate::cli::DataArgs;
use crate::exit::CommandError;

/// The resolver's folder. In a data folder of `ibi serve`, it is a subfolder.
pub(super) fn folder(data: &DataArgs) -> Result<PathBuf, CommandError> {
    let folder = data.folder()?;
    let below = folder.join(super::serve::RESOLVER_FOLDER);
    Ok(if !folder.join(REGISTRY_FILE_NAME).exists() && below.join(REGISTRY_FILE_NAME).exists() {
        below
    } else {
        folder
    })
}

/// Whether the folder belongs to `ibi serve`, whose resolver may contact this machine.
fn is_trial(data: &DataArgs) -> Result<bool, CommandError> {
    Ok(folder(data)?.join(super::serve::TRIAL_MARKER_FILE).exists())
}

fn open(data: &DataArgs) -> Result<Registry, CommandError> {
    Ok(Registry::open(&folder(data)?)?)
}

/// A clock that returns Unix seconds.
pub(super) fn clock() -> ResolverClock {
    let clock = SystemClock::new();
    Arc::new(move || clock.read().wall.seconds())
}
