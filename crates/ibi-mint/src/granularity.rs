//! The granularity of a minter: a setting of its subsystem, changed at any time (D37).

use std::path::Path;

use ibi_id::Granularity;
use ibi_store::{DistributorEdition, StorageError, minter_settings};

use crate::{GranularityError, MintError, opening};

/// The granularity that labels get when a call names none: the operator's, or the finest that the
/// edition has.
pub fn granularity(data: &Path, edition: DistributorEdition) -> Result<Granularity, StorageError> {
    Ok(match edition {
        DistributorEdition::Rtc2015 => minter_settings::granularity(data)?.unwrap_or(Granularity::NANOSECOND),
        DistributorEdition::Nbr2011 => Granularity::SECOND,
    })
}

/// Sets it for all calls to come, also those of a server that runs.
pub fn set_granularity(data: &Path, granularity: Granularity) -> Result<(), GranularityError> {
    let subsystem = opening::read_state(data)?.subsystem;
    if subsystem.edition == DistributorEdition::Nbr2011 && granularity != Granularity::SECOND {
        return Err(MintError::Granularity2011.into());
    }
    Ok(minter_settings::set_granularity(data, granularity)?)
}
