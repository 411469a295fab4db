//! Messages from a giver to a taker, and the replies (`docs/formats/holders.md`).

use ibi_store::journal::LinkStatement;
use serde::{Deserialize, Serialize};

use crate::item_view;
use crate::links::MAX_STATEMENTS_PER_ITEM;
use crate::transfer_protocol::{MAX_EPOCH, TransferStep, TransferTerms};

/// A giver's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferMessage {
    /// The step.
    pub message: TransferMessageKind,
    /// What is handed over.
    pub terms: TransferTerms,
    /// The giver's URL.
    pub from: String,
    /// Who requested the transfer there.
    pub by: String,
    /// Bearer token that lets the taker fetch a restricted item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// The item's history there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<item_view::ItemEvent>,
    /// The link statements known there, including proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkStatement>,
}

impl TransferMessage {
    /// Whether it is what a giver says.
    pub fn check(&self) -> Result<(), &'static str> {
        let TransferTerms { handover, epoch, inventory } = &self.terms;
        let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if handover.is_empty() || handover.len() > 64 || !is_name(handover) {
            return Err("the name of a transfer is 1 to 64 letters and digits");
        }
        if !(1..=MAX_EPOCH).contains(epoch) {
            return Err("epoch out of range");
        }
        if inventory.len() != 32 || !is_name(inventory) {
            return Err("`inventory` must be 32 hex digits: the first of its SHA-512");
        }
        if self.by.len() > 200
            || self.from.len() > 300
            || self.history.len() > 10_000
            || self.links.len() > MAX_STATEMENTS_PER_ITEM
        {
            return Err("the message exceeds size limits");
        }
        Ok(())
    }
}

/// A giver's own answer about the status of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferStatus {
    /// The current step.
    pub step: TransferStep,
    /// The terms, if there is such a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<TransferTerms>,
    /// The service label of the taker, once it has replied that it is ready. No other Archive may
    /// take the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<String>,
    /// The service label of the answering Archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The item's state there; `None` if nothing is left. Also reported for restricted items: a
    /// resolver learns as much (clause 3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The URL of the Archive that the item was handed over to from there, or that it came from
    /// while that one had the Original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// The giver's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferMessageKind {
    /// Asks the taker to fetch the item.
    Offer,
    /// Hands the Original over.
    Grant,
}

/// A taker's reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum TransferReply {
    /// No verified copy yet: ask again.
    Fetching {
        /// Why the last attempt failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    /// A verified copy is here.
    Ready {
        /// The service label of the replying Archive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archive: Option<String>,
    },
    /// The Original is here, durably.
    Accepted,
}
