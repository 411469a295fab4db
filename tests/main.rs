//! The whole system from outside, through the built binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod archive;
mod binary;
mod continuity;
mod dependencies;
mod fuzzing;
mod holders;
mod input_and_output;
mod links;
mod mint;
mod online;
mod resolver;
mod security;
mod standard;
mod transcripts;
mod vectors;
mod worked_examples;
