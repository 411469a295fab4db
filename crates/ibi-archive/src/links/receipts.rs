//! Receipts: codes by which an Archive recognizes its own decisions (`docs/formats/links.md`).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ibi_store::journal::LinkStatement;

use crate::ArchiveError;

/// Recognizes this Archive's own decisions, even after a restore that lost them.
pub struct LinkReceipts {
    data: PathBuf,
    fresh: [u8; 32],
    /// Not known as long as it is missing and the disk is full or read-only.
    key: OnceLock<[u8; 32]>,
}

impl std::fmt::Debug for LinkReceipts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkReceipts(…)")
    }
}

impl LinkReceipts {
    /// Opens the key of a data folder, 64 hex digits in `service/link-key`, or creates it from
    /// `fresh`.
    pub fn open(data: &Path, fresh: [u8; 32]) -> Result<Self, ArchiveError> {
        let receipts = Self { data: data.to_owned(), fresh, key: OnceLock::new() };
        match receipts.read_or_create_key() {
            Ok(key) => {
                receipts.key.get_or_init(|| key);
            }
            Err(ArchiveError::Storage(error)) if error.is_unwritable() => {
                tracing::error!(%error, "cannot create the key of receipts; retried on the next use");
            }
            Err(error) => return Err(error),
        }
        Ok(receipts)
    }

    fn key(&self) -> Option<[u8; 32]> {
        if let Some(key) = self.key.get() {
            return Some(*key);
        }
        let key = self.read_or_create_key().ok()?;
        Some(*self.key.get_or_init(|| key))
    }

    fn read_or_create_key(&self) -> Result<[u8; 32], ArchiveError> {
        let path = self.data.join("service/link-key");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut text = format!("{}\n", ibi_store::digests::hex(&self.fresh));
                // The first of concurrent writers wins.
                ibi_store::small_file::change(&path, |there| {
                    if let Some(there) = there {
                        text = String::from_utf8_lossy(&there).into_owned();
                    }
                    Ok::<_, ArchiveError>(text.clone().into_bytes())
                })??;
                text
            }
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        let key = crate::item::unhex(text.trim()).and_then(|key| key.try_into().ok());
        key.ok_or_else(|| ArchiveError::Value(format!("{} is not 64 hex digits: remove it", path.display())))
    }

    /// The receipt of a decision; `None` as long as there is no key.
    pub(super) fn receipt(&self, link: &LinkStatement) -> Option<String> {
        let LinkStatement { kind, older, newer, status, counter, .. } = link;
        let text = format!("{} {older} {newer} {} {counter}", kind.name(), status.name());
        Some(blake3::keyed_hash(&self.key()?, text.as_bytes()).to_hex().to_string())
    }

    /// Whether a statement is a decision of this Archive.
    pub fn is_ours(&self, link: &LinkStatement) -> bool {
        let Some(told) = &link.receipt else { return false };
        let told = blake3::Hash::from_hex(told.as_bytes());
        // Compared in constant time.
        let own = self.receipt(link).and_then(|own| blake3::Hash::from_hex(own).ok());
        told.is_ok_and(|told| own == Some(told))
    }
}

#[cfg(test)]
mod tests {
    use ibi_store::journal::{LinkKind, LinkStatus};

    use super::*;

    /// Clause 2.4, *Nothing is lost*: an Archive recognizes its own decision, and nobody else's.
    #[test]
    fn a_receipt_is_good_for_one_decision_of_one_archive() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = LinkReceipts::open(folder.path(), [7; 32]).unwrap();
        let again = LinkReceipts::open(folder.path(), [8; 32]).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let other = LinkReceipts::open(elsewhere.path(), [9; 32]).unwrap();
        let link = LinkStatement {
            kind: LinkKind::Edition,
            older: "test/a/2026/01.01.00.01".to_owned(),
            newer: "test/a/2026/01.01.00.02".to_owned(),
            status: LinkStatus::Accepted,
            counter: 3,
            older_labels: Vec::new(),
            newer_labels: Vec::new(),
            older_language: None,
            newer_language: None,
            created: String::new(),
            removed: false,
            unstated: false,
            archive: None,
            decided_by: None,
            receipt: None,
            told_with: None,
        };
        let told = LinkStatement { receipt: receipts.receipt(&link), ..link.clone() };
        assert!(receipts.is_ours(&told) && again.is_ours(&told), "the key is kept");
        assert!(!other.is_ours(&told), "of another Archive");
        assert!(!receipts.is_ours(&link), "no receipt");
        let forged = [
            LinkStatement { counter: 4, ..told.clone() },
            LinkStatement { status: LinkStatus::Withdrawn, ..told.clone() },
            LinkStatement { newer: "test/a/2026/01.01.00.03".to_owned(), ..told.clone() },
            LinkStatement { kind: LinkKind::Translation, ..told.clone() },
        ];
        assert!(forged.iter().all(|link| !receipts.is_ours(link)));
    }
}
