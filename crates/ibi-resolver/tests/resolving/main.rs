//! Tests of resolving, with Archives and time that are played.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod conversations;
mod explanations;
mod limits;
mod model;
mod play;
mod scenarios;
mod script;
mod world;
