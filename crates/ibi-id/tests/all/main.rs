//! Tests of the identifiers: the standard's examples, one test per clause, and properties compared
//! with a literal transcription of the standard.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod clauses;
mod clauses_of_time;
mod judge;
mod norm;
mod properties;
mod vectors;
