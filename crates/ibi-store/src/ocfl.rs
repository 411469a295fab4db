//! The Oxford Common File Layout 1.1: what an object is made of (`docs/formats/tree.md`). Only text and names; the
//! disk is [`crate::content`]'s.

mod inventory;
mod names;

pub use inventory::{Inventory, User, Version};
pub(crate) use names::escape;
pub use names::{BadName, ContentNames, LONGEST_NAME, LONGEST_PATH, logical, raw};

/// The file that declares the root of a tree.
pub const ROOT_DECLARATION: (&str, &str) = ("0=ocfl_1.1", "ocfl_1.1\n");
/// The file that declares an object.
pub const OBJECT_DECLARATION: (&str, &str) = ("0=ocfl_object_1.1", "ocfl_object_1.1\n");
/// The inventory of an object, and of each of its versions.
pub const INVENTORY: &str = "inventory.json";
/// The digest of an inventory.
pub const SIDECAR: &str = "inventory.json.sha512";

/// The sidecar of an inventory with this digest.
pub fn sidecar(sha512: &str) -> String {
    format!("{sha512} {INVENTORY}\n")
}

/// The digest that a sidecar tells.
pub fn sidecar_digest(sidecar: &[u8]) -> Option<&str> {
    let (digest, name) = std::str::from_utf8(sidecar).ok()?.trim_end().split_once([' ', '\t'])?;
    (name.trim() == INVENTORY).then_some(digest)
}
