//! The Archive as a library: rules of clauses 2.1 to 2.4, compared with a model, opened after every
//! kind of cut.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asked;
mod cut_off;
mod handing;

mod holders;
mod links;
mod model;
mod ours;
mod rules;
mod samples;
