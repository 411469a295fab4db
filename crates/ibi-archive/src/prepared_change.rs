//! Staged changes, before they are committed.

use ibi_store::StagingId;
use ibi_store::journal::{LinkStatement, State, Verb};
use ibi_store::ocfl::Inventory;

use crate::archive::HeldItem;
use crate::dublin_core::DublinCore;
use crate::item::{ItemDescription, ItemFile};
use crate::links::LinkAuthority;
use crate::object::{StoredObject, short_digest};

/// A staged change that is not committed yet.
#[derive(Debug)]
pub struct PreparedChange {
    pub(crate) staging: StagingId,
    pub(crate) verb: Verb,
    /// The version it is based on; `None` for a new item.
    pub(crate) base: Option<BaseVersion>,
    pub(crate) item: ItemDescription,
    pub(crate) metadata: DublinCore,
    pub(crate) files: Vec<StagedFile>,
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) by: String,
    /// The id of the owner; `None` if the item comes from another Archive.
    pub(crate) owner: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) source: Option<String>,
    /// The state of the item in the source Archive, as reported by it.
    pub(crate) source_state: Option<State>,
    /// The history of the item in other Archives.
    pub(crate) past: Option<String>,
    /// The clocks that this change does not advance (D32).
    pub(crate) unmoved: UnmovedClocks,
    /// Whether labels must be minted.
    pub(crate) mint: bool,
    /// The inventories of all versions, if a whole object comes from another Archive.
    pub(crate) whole: Option<Vec<Vec<u8>>>,
    /// The authority for the links that the item states.
    pub(crate) authority: LinkAuthority,
    /// Link statements from another Archive.
    pub(crate) links: Vec<LinkStatement>,
}

impl PreparedChange {
    /// Sets the authority: that of a person who may not change every item here (clause 2.4,
    /// *Consent*).
    #[must_use]
    pub fn with_authority(self, authority: LinkAuthority) -> Self {
        Self { authority, ..self }
    }

    /// Sets the owner of the change.
    #[must_use]
    pub fn owned_by(self, id: &str) -> Self {
        Self { owner: Some(id.to_owned()), ..self }
    }
}

/// The clocks that a new version does not advance, because it does not change what they cover
/// (clause 2.2, D32).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnmovedClocks {
    /// When the data last changed, if this version does not change it.
    pub(crate) data: Option<String>,
    /// When the metadata last changed, if this version does not change it.
    pub(crate) metadata: Option<String>,
}

/// The version that a change is based on.
#[derive(Debug)]
pub(crate) struct BaseVersion {
    pub(crate) path: String,
    pub(crate) version: u32,
    pub(crate) inventory: Inventory,
    /// Short digest of its inventory. A version number is not enough: after a purge, the first
    /// version is another one.
    pub(crate) digest: String,
}

impl BaseVersion {
    /// The current version of an item.
    pub(crate) fn of(holding: &HeldItem, object: &StoredObject) -> Self {
        Self {
            path: holding.path.clone(),
            version: holding.version,
            inventory: object.inventory.clone(),
            digest: short_digest(&object.digest).to_owned(),
        }
    }
}

/// A file of the next version.
#[derive(Debug)]
pub(crate) struct StagedFile {
    pub(crate) file: ItemFile,
    pub(crate) sha512: String,
    /// Its name on disk, if this version brings its bytes.
    pub(crate) stored: Option<String>,
}
