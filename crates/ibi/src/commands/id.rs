//! `ibi id`: labels on the command line.

mod decimals;
pub(super) mod distribute;
pub(super) mod encode;
pub(super) mod equal;
pub(super) mod parse;
mod record;
