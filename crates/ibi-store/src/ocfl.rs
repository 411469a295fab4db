//! The Oxford Common File Layout 1.1: the parts of an object (`docs/formats/tree.md`). Only text
//! and names; [`crate::content`] does the I/O.

mod compact_inventory;
mod inventory;
mod names;
mod strict_json;

pub use compact_inventory::{CompactInventory, DigestId};
pub use inventory::{Inventory, InventoryUser, InventoryVersion};
pub(crate) use names::push_percent_escape;
pub use names::{
    ContentNames, MAX_NAME_BYTES, MAX_PATH_BYTES, OcflNameError, decode_logical_path, logical_path,
};

/// The file that declares the root of a tree.
pub const ROOT_DECLARATION: (&str, &str) = ("0=ocfl_1.1", "ocfl_1.1\n");
/// The file that declares an object.
pub const OBJECT_DECLARATION: (&str, &str) = ("0=ocfl_object_1.1", "ocfl_object_1.1\n");
/// The name of an inventory, in the object's root and in each version.
pub const INVENTORY_FILE: &str = "inventory.json";
/// The name of the sidecar with an inventory's digest.
pub const SIDECAR_FILE: &str = "inventory.json.sha512";

/// The content of the sidecar for an inventory with this digest.
pub fn sidecar(sha512: &str) -> String {
    format!("{sha512} {INVENTORY_FILE}\n")
}

/// The digest in a sidecar.
pub fn sidecar_digest(sidecar: &[u8]) -> Option<&str> {
    let (digest, name) = std::str::from_utf8(sidecar).ok()?.trim_end().split_once([' ', '\t'])?;
    (name.trim() == INVENTORY_FILE).then_some(digest)
}
