//! Internet Based Identifiers (IBI: ABNT NBR 16066, RTC-10-I): parse, validate, compare, decode and
//! construct them.
//!
//! An IBI is a label `prefix "/" suffix`. The prefix identifies the minter by something that is
//! already unique on the Internet, a host name or an IP address with a port; the suffix encodes the
//! instant of minting. No registration is needed. There are two current forms, and a legacy form
//! that is only read:
//!
//! | form | example | encodes |
//! | --- | --- | --- |
//! | [`Repository`] (`rep`) | `sid.inpe.br/mtc-m18/2009/02.16.17.46` | host name, port, instant |
//! | [`Ibip`] (`ibip`) | `8JMKD3MGP8W/34PGRBS` | IP address, port, instant, in base 27 |
//! | [`Legacy`] (`legacy`) | `83LX3pFwXQZeBBx/hwiTk` | an unknown prefix, instant in base 53 |
//!
//! Parsing: [`Label::parse`] accepts any form; a [`ParseError`] has the violated rule and its
//! position. A label keeps its spelling, prints the canonical one and compares by meaning.
//!
//! Construction: [`RepositoryPrefix`] and [`IbipPrefix`] identify a minter; [`repository::suffix`]
//! and [`ibip::suffix`] encode an [`Instant`]. The [`distributor`] chooses the next instant on the
//! grid of a [`Granularity`], so that no label is issued twice.
//!
//! [`NotUnique`] says why a prefix is not globally unique.
//!
//! No dependencies, no I/O, no clock, no floating point; parsing is linear and does not allocate
//! for borrowed labels. Clause numbers such as 1.3 or D4 refer to `docs/formats/labels.md`.

#[macro_use]
mod meaning;

mod address;
mod civil;
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
pub use instant::{Instant, UnixSeconds};
pub use label::{Form, Label};
pub use legacy::Legacy;
pub use repository::{Repository, RepositoryPrefix};
pub use text::{MAX_LABEL_BYTES, Suffix};
pub use uniqueness::{NotUnique, host_not_unique, ip_not_unique};
