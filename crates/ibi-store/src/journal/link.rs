//! Statements about links between items, as lines of the journal carry them (clause 2.4, *Across Archives*).

use serde::{Deserialize, Serialize};

/// The kind of a link to another item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// Translation of.
    Translation,
    /// Next edition of.
    Edition,
}

impl LinkKind {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::Translation => "translation",
            LinkKind::Edition => "edition",
        }
    }
}

/// What the Archive of the older item says of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkStatus {
    /// Stated with the newer item, and not decided.
    Proposed,
    /// Readers are led along it.
    Accepted,
    /// The operator said no.
    Refused,
    /// It was accepted or proposed once, and is no longer.
    Withdrawn,
}

impl LinkStatus {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            LinkStatus::Proposed => "proposed",
            LinkStatus::Accepted => "accepted",
            LinkStatus::Refused => "refused",
            LinkStatus::Withdrawn => "withdrawn",
        }
    }
}

/// What is known of one link: the statement with the highest counter counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatement {
    /// Its kind.
    pub kind: LinkKind,
    /// The canonical spelling of a label of the older item, folded.
    pub older: String,
    /// The same of the newer one.
    pub newer: String,
    /// How it stands.
    pub status: LinkStatus,
    /// The number of this statement among those about links to the older item.
    pub counter: u64,
    /// All labels of the older item that are known, its primary one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_labels: Vec<String>,
    /// The same of the newer one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer_labels: Vec<String>,
    /// The language of the older item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_language: Option<String>,
    /// The language of the newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_language: Option<String>,
    /// When the newer item was deposited.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created: String,
    /// Whether the newer item was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Of a withdrawn link: whether the newer item states it no longer. Stated again, it is proposed again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstated: bool,
    /// The service of the Archive that has the Original of the newer item, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The label of the Archive that said so, as a resolver named it, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// A code by which the Archive of the older item knows its own decision again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

impl LinkStatement {
    /// Whether two statements are about the same link, by these spellings.
    pub fn is_about_same(&self, other: &Self) -> bool {
        (self.kind, &self.older, &self.newer) == (other.kind, &other.older, &other.newer)
    }
}
