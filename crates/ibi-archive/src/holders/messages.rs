//! What a giver says to a taker, and what that answers (`docs/formats/holders.md`).

use serde::{Deserialize, Serialize};

use super::handover::Terms;
use crate::told;

/// What a giver says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Which step.
    pub message: Kind,
    /// What is handed over.
    pub terms: Terms,
    /// The giver.
    pub from: String,
    /// Who there hands over.
    pub by: String,
    /// What the giver gives the item out for, though it be closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// What happened to the item there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<told::Event>,
}

/// A step of the giver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Will you have it? Then fetch it.
    Offer,
    /// It is yours.
    Grant,
}

/// What a taker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// It has no verified copy yet: ask again.
    Fetching {
        /// Why the last try failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    /// It has one.
    Ready,
    /// It has the Original, durably.
    Accepted,
}
