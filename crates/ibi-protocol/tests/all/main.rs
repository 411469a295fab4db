//! Tests of the protocol: the standard's examples, one test per clause, and properties.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod clauses_of_checks;
mod clauses_of_decisions;
mod clauses_of_editions;
mod clauses_of_messages;
mod clauses_of_outcomes;
mod clauses_of_pairs;
mod clauses_of_persistent_urls;
mod clauses_of_relations;
mod clauses_of_spellings;
mod clauses_of_translations;
mod conversations;
mod federation;
mod honest_federation;
mod location_feed;
mod lying_archive;
mod properties;
mod properties_of_resolution;
mod vectors;
