//! Codes by which an Archive knows its own decisions again (`docs/formats/links.md`).

use std::path::Path;

use ibi_store::journal::LinkStatement;

use crate::ArchiveError;

/// Codes by which an Archive knows its own decisions again, also after a restore that lost them.
pub struct LinkReceipts {
    key: [u8; 32],
}

impl std::fmt::Debug for LinkReceipts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkReceipts(…)")
    }
}

impl LinkReceipts {
    /// The codes of a data folder, under a key of its own: 64 hex digits in `service/link-key`.
    pub fn open(data: &Path, fresh: [u8; 32]) -> Result<Self, ArchiveError> {
        let path = data.join("service/link-key");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let key = crate::item::unhex(text.trim()).and_then(|key| key.try_into().ok());
                let key = key.ok_or_else(|| {
                    ArchiveError::Value(format!("{} is not 64 hex digits: remove it", path.display()))
                })?;
                Ok(Self { key })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = format!("{}\n", ibi_store::digests::hex(&fresh));
                ibi_store::service::replace(&path, text.as_bytes())?;
                Ok(Self { key: fresh })
            }
            Err(error) => Err(ArchiveError::io("read", &path)(error)),
        }
    }

    pub(super) fn receipt(&self, link: &LinkStatement) -> String {
        let LinkStatement { kind, older, newer, status, counter, .. } = link;
        let text = format!("{} {older} {newer} {} {counter}", kind.name(), status.name());
        blake3::keyed_hash(&self.key, text.as_bytes()).to_hex().to_string()
    }

    /// Whether a statement is a decision of this Archive's.
    pub fn is_ours(&self, link: &LinkStatement) -> bool {
        let Some(told) = &link.receipt else { return false };
        let told = blake3::Hash::from_hex(told.as_bytes());
        // Compared in constant time.
        told.is_ok_and(|told| blake3::Hash::from_hex(self.receipt(link)).is_ok_and(|own| own == told))
    }
}

#[cfg(test)]
mod tests {
    use ibi_store::journal::{LinkKind, LinkStatus};

    use super::*;

    /// Clause 2.4, *Nothing is lost*: an Archive knows its own decision again, and nobody else's.
    #[test]
    fn a_receipt_is_good_for_one_decision_of_one_archive() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = LinkReceipts::open(folder.path(), [7; 32]).unwrap();
        let again = LinkReceipts::open(folder.path(), [8; 32]).unwrap();
        let other = LinkReceipts { key: [9; 32] };
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
        };
        let told = LinkStatement { receipt: Some(receipts.receipt(&link)), ..link.clone() };
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
