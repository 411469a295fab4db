//! Internet Based Identifiers (IBI: ABNT NBR 16066, RTC-10-I): read, check, compare, decode and build them.
//!
//! An IBI is a label `prefix "/" suffix`. The prefix names who minted it by something that the Internet already
//! made unique, a host name or an IP address with a port; the suffix is the instant of the minting. Nobody has to
//! register anything. The same instant can be told in two forms, and a third is read for the sake of old papers:
//!
//! | form | example | told by |
//! | --- | --- | --- |
//! | [`Repository`] (`rep`) | `sid.inpe.br/mtc-m18/2009/02.16.17.46` | host name, port, instant |
//! | [`Ibip`] (`ibip`) | `8JMKD3MGP8W/34PGRBS` | IP address, port, instant, in base 27 |
//! | [`Legacy`] (`legacy`) | `83LX3pFwXQZeBBx/hwiTk` | an unknown prefix, instant in base 53 |
//!
//! Reading: [`Label::parse`] takes any of them and says which rule a text breaks, and where ([`ParseError`]).
//! A label keeps its spelling, prints the canonical one and compares by meaning.
//!
//! Building: [`RepositoryPrefix`] and [`IbipPrefix`] name a minter; [`repository::suffix`] and [`ibip::suffix`]
//! write an [`Instant`]. Which instant comes next, so that no label is ever given out twice, is decided by the
//! [`distributor`] on a grid of a [`Granularity`].
//!
//! [`NotUnique`] tells the prefixes that are not unique in the world after all.
//!
//! No dependency, no I/O, no clock, no floating point; reading is linear in the text and allocates nothing for
//! borrowed labels. Clauses like 1.3 or D4 in these pages are those of `docs/formats/labels.md`.

#[macro_use]
mod meaning;

mod address;
mod civil;
mod diagnosis;
mod digits;
pub mod distributor;
mod error;
mod granularity;
mod host;
pub mod ibip;
mod instant;
mod label;
mod legacy;
pub mod repository;
mod text;
mod uniqueness;

pub use error::{ParseError, Rule};
pub use granularity::Granularity;
pub use host::Host;
pub use ibip::{Ibip, IbipPrefix};
pub use instant::{Instant, Unix};
pub use label::{Form, LONGEST_LABEL, Label};
pub use legacy::Legacy;
pub use repository::{Repository, RepositoryPrefix};
pub use text::Suffix;
pub use uniqueness::{NotUnique, host_not_unique, ip_not_unique};
