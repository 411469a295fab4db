//! What a giver says to a taker, and what that answers (`docs/formats/holders.md`).

use ibi_store::journal::LinkStatement;
use serde::{Deserialize, Serialize};

use super::handover::{Step, Terms};
use crate::links::MAX_STATEMENTS_PER_ITEM;
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
    /// What is known there of its links to other items, proposals too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatement>,
}

/// The highest epoch that is believed: JSON has no larger whole numbers that all programs read alike.
pub(super) const LAST_EPOCH: u64 = 1 << 53;

impl Message {
    /// Whether it is what a giver says.
    pub fn check(&self) -> Result<(), &'static str> {
        let Terms { handover, epoch, inventory } = &self.terms;
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if handover.is_empty() || handover.len() > 64 || !is_name(handover) {
            return Err("the name of a hand-over is 1 to 64 letters and digits");
        }
        if !(1..=LAST_EPOCH).contains(epoch) {
            return Err("there is no such epoch");
        }
        if inventory.len() != 32 || !is_name(inventory) {
            return Err("the inventory is told by the first 32 hex digits of its SHA-512");
        }
        if self.by.len() > 200
            || self.from.len() > 300
            || self.history.len() > 10_000
            || self.links.len() > MAX_STATEMENTS_PER_ITEM
        {
            return Err("it says too much");
        }
        Ok(())
    }
}

/// What a giver says of a hand-over when it is asked by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// How it stands.
    pub step: Step,
    /// What is handed over, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// The service of the Archive that takes it, once that has said that it is ready: nobody else may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<String>,
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
    Ready {
        /// The service of the Archive that says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archive: Option<String>,
    },
    /// It has the Original, durably.
    Accepted,
}
