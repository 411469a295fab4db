//! Statements about links between items, as recorded in journal lines (clause 2.4, *Across
//! Archives*).

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
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::Translation => "translation",
            LinkKind::Edition => "edition",
        }
    }
}

/// The decision on a link by the Archive of the older item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkStatus {
    /// Stated with the newer item, and not yet decided.
    Proposed,
    /// Readers are directed along it.
    Accepted,
    /// The operator refused it.
    Refused,
    /// Formerly accepted or proposed.
    Withdrawn,
}

impl LinkStatus {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            LinkStatus::Proposed => "proposed",
            LinkStatus::Accepted => "accepted",
            LinkStatus::Refused => "refused",
            LinkStatus::Withdrawn => "withdrawn",
        }
    }
}

/// A statement about one link. The statement with the highest counter is in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatement {
    /// Its kind.
    pub kind: LinkKind,
    /// The canonical spelling of a label of the older item, folded.
    pub older: String,
    /// The canonical spelling of a label of the newer item, folded.
    pub newer: String,
    /// The status of the link.
    pub status: LinkStatus,
    /// The number of this statement among those about links to the older item.
    pub counter: u64,
    /// All known labels of the older item, its primary one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older_labels: Vec<String>,
    /// All known labels of the newer item, its primary one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer_labels: Vec<String>,
    /// The language of the older item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_language: Option<String>,
    /// The language of the newer item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_language: Option<String>,
    /// When the newer item was deposited.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created: String,
    /// Whether the newer item was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// For a withdrawn link: whether the newer item no longer states it. If stated again, it is
    /// proposed again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstated: bool,
    /// The service of the Archive that has the Original of the newer item, if it is another
    /// Archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// The label of the Archive that decided, as named by a resolver, if it is another Archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// A code by which the Archive of the older item recognizes its own decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// Set if the statement came from an Archive that does not decide it, and is not confirmed by
    /// the one that does: the path of the item that it came with. At most it applies to readers of
    /// that item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_with: Option<String>,
}

impl LinkStatement {
    /// Whether two statements are about the same link, by these spellings.
    pub fn is_about_same(&self, other: &Self) -> bool {
        (self.kind, &self.older, &self.newer) == (other.kind, &other.older, &other.newer)
    }
}
