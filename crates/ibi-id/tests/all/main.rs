//! Tests of the identifiers: the norm's examples, one test a clause, and properties against the norm's letter.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod clauses;
mod clauses_of_time;
mod judge;
mod norm;
mod properties;
mod vectors;
