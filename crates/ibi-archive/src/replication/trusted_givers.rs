//! Durable knowledge of givers outside the journal: those the operator trusts, one per line in
//! `service/trusted-givers`; and those named as the holder of an item when it was offered, one file
//! per transfer in `service/named-givers/` (`docs/formats/holders.md`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::giver_trust::OperatorTrust;
use super::peer::PeerArchive;
use crate::ArchiveError;
use crate::item::LabelKey;
use crate::links::trust::read_list;

/// Maximum size of the file: some ten thousand lines.
const MAX_TRUSTED_GIVERS_BYTES: u64 = 1 << 20;

/// Maximum number of transfers whose giver is remembered. Others are checked again.
const MAX_NAMED_GIVERS: usize = 10_000;

/// A named giver is forgotten after this time without news.
const NAMED_GIVER_LIFETIME_SECONDS: i64 = 90 * 86_400;

const NAMED_GIVER_FORMAT: u32 = 1;

/// A giver that the operator trusts: for one item, or for items for which there is nobody to ask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TrustedGiver {
    /// Its URL.
    pub giver: String,
    /// The path of the item's object, if the trust is limited to one item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

impl TrustedGiver {
    /// Trust in the giver at a URL; with a label, for that item only.
    pub fn new(url: &str, label: Option<&str>) -> Result<Self, super::ReplicationError> {
        let path = label.map(|label| {
            let error = |error| ArchiveError::Label { label: label.escape_debug().to_string(), error };
            LabelKey::parse(label).map(|label| label.folded).map_err(error)
        });
        Ok(Self { giver: PeerArchive::new(url, None)?.url().to_owned(), item: path.transpose()? })
    }

    /// All givers that the operator of a data folder trusts.
    pub fn all(data: &Path) -> Result<BTreeSet<Self>, ArchiveError> {
        let text = read_list(&trusted_givers_path(data), MAX_TRUSTED_GIVERS_BYTES)?;
        let lines = text.lines().filter(|line| !line.is_empty());
        Ok(lines
            .map(|line| match line.split_once('\t') {
                Some((giver, item)) => Self { giver: giver.to_owned(), item: Some(item.to_owned()) },
                None => Self { giver: line.to_owned(), item: None },
            })
            .collect())
    }

    /// Adds or removes the trust. Returns whether anything changed. Requires write access to the
    /// Archive.
    pub fn set(self, data: &Path, trust: bool) -> Result<bool, ArchiveError> {
        let mut changed = false;
        // Read under the lock: others may change the file concurrently.
        ibi_store::small_file::change(&trusted_givers_path(data), |_| {
            let mut all = Self::all(data)?;
            changed = if trust { all.insert(self) } else { all.remove(&self) };
            let line = |known: &Self| match &known.item {
                Some(item) => format!("{}\t{item}\n", known.giver),
                None => format!("{}\n", known.giver),
            };
            Ok::<_, ArchiveError>(all.iter().map(line).collect::<String>().into_bytes())
        })??;
        Ok(changed)
    }

    /// The operator's trust in a giver for an item.
    pub(super) fn operator_trust(
        data: &Path,
        giver: &str,
        path: &str,
    ) -> Result<OperatorTrust, ArchiveError> {
        let words = Self::all(data)?.into_iter().filter(|known| known.giver == giver);
        let words = words.filter_map(|known| match known.item {
            None => Some(OperatorTrust::Giver),
            Some(item) if item == path => Some(OperatorTrust::Item),
            Some(_) => None,
        });
        Ok(words.max().unwrap_or(OperatorTrust::Silent))
    }
}

impl TrustedGiver {
    /// Whether the operator trusts another giver for exactly this item.
    pub(super) fn is_another_trusted(data: &Path, giver: &str, path: &str) -> Result<bool, ArchiveError> {
        let mut all = Self::all(data)?.into_iter();
        Ok(all.any(|known| known.giver != giver && known.item.as_deref() == Some(path)))
    }
}

fn trusted_givers_path(data: &Path) -> PathBuf {
    data.join("service/trusted-givers")
}

/// What was found out about a giver and its item when it offered a transfer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedGiver {
    format: u32,
    path: String,
    giver: String,
    /// Whether a witness or the resolver named it.
    #[serde(default = "is_named_by_default")]
    pub(super) named: bool,
    /// The inventory whose other names were checked, if none belongs to another item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) names: Option<String>,
}

/// Older notes were written only for named givers.
const fn is_named_by_default() -> bool {
    true
}

impl NamedGiver {
    /// The note about a giver for this transfer of exactly this item.
    pub(super) fn read(data: &Path, handover: &str, (path, giver): (&str, &str)) -> Self {
        let (path, giver) = (path.to_owned(), giver.to_owned());
        let nothing = Self { format: NAMED_GIVER_FORMAT, path, giver, named: false, names: None };
        let noted = std::fs::read(named_giver_path(data, handover)).ok();
        let noted = noted.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let is_it = |noted: &Self| {
            (noted.format, &noted.path, &noted.giver) == (NAMED_GIVER_FORMAT, &nothing.path, &nothing.giver)
        };
        noted.filter(is_it).unwrap_or(nothing)
    }

    /// Saves the note durably. The name of a transfer consists of letters and digits.
    pub(super) fn save_note(&self, data: &Path, handover: &str) -> Result<(), ArchiveError> {
        let many = std::fs::read_dir(named_givers_folder(data)).map_or(0, Iterator::count);
        if many >= MAX_NAMED_GIVERS {
            tracing::warn!(many, "too many hand-overs are being taken: a giver is not remembered");
            return Ok(());
        }
        // Strings, a number and a boolean: serialization cannot fail.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let place = named_giver_path(data, handover);
        Ok(ibi_store::small_file::replace_below(&data.join("service"), &place, &bytes)?)
    }
}

/// Removes the note when the transfer is over.
pub(super) fn forget_named_giver(data: &Path, handover: &str) {
    // If this fails, the cleanup removes it later.
    let _ = std::fs::remove_file(named_giver_path(data, handover));
}

/// Removes old notes; `now` is in seconds since the Unix epoch.
pub(super) fn remove_old_named_givers(data: &Path, now: i64) {
    for entry in std::fs::read_dir(named_givers_folder(data)).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|file| file.modified()).ok();
        let since = changed.and_then(|changed| changed.duration_since(std::time::UNIX_EPOCH).ok());
        let seconds = since.and_then(|since| i64::try_from(since.as_secs()).ok());
        if seconds.is_some_and(|changed| changed < now - NAMED_GIVER_LIFETIME_SECONDS) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn named_givers_folder(data: &Path) -> PathBuf {
    data.join("service/named-givers")
}

fn named_giver_path(data: &Path, handover: &str) -> PathBuf {
    named_givers_folder(data).join(format!("{handover}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_word_is_for_one_item_or_for_those_that_nobody_knows() {
        let data = tempfile::tempdir().unwrap();
        let (giver, path) = ("http://a.example", "b.br/c/2026/11.17.00.00");
        let word = |giver: &str, path: &str| TrustedGiver::operator_trust(data.path(), giver, path).unwrap();
        assert_eq!(word(giver, path), OperatorTrust::Silent);
        let all = TrustedGiver::new("HTTP://A.example/", None).unwrap();
        let one = TrustedGiver::new(giver, Some("B.br/c/2026/11.17.00.00")).unwrap();
        assert!(all.clone().set(data.path(), true).unwrap() && !all.clone().set(data.path(), true).unwrap());
        assert_eq!(word(giver, path), OperatorTrust::Giver);
        assert!(one.clone().set(data.path(), true).unwrap());
        assert_eq!(
            (word(giver, path), word("http://b.example", path)),
            (OperatorTrust::Item, OperatorTrust::Silent)
        );
        assert_eq!(word(giver, "b.br/c/2026/11.17.00.01"), OperatorTrust::Giver);
        assert!(one.set(data.path(), false).unwrap() && all.set(data.path(), false).unwrap());
        assert_eq!(word(giver, path), OperatorTrust::Silent);
    }

    #[test]
    fn a_giver_that_was_named_is_so_for_one_hand_over_of_one_item() {
        let data = tempfile::tempdir().unwrap();
        let giver = ("b.br/c/2026/11.17.00.00", "http://a.example");
        let is_named = |handover, giver| NamedGiver::read(data.path(), handover, giver).named;
        assert!(!is_named("ab", giver));
        let noted = NamedGiver::read(data.path(), "ab", giver);
        NamedGiver { named: true, ..noted }.save_note(data.path(), "ab").unwrap();
        assert!(is_named("ab", giver) && !is_named("cd", giver));
        assert!(!is_named("ab", ("b.br/c/2026/11.17.00.01", giver.1)));
        assert!(!is_named("ab", (giver.0, "http://e.example")));
        remove_old_named_givers(data.path(), 0);
        let names = Some("0f".to_owned());
        let noted = NamedGiver { names, ..NamedGiver::read(data.path(), "ab", giver) };
        noted.save_note(data.path(), "ab").unwrap();
        assert_eq!(NamedGiver::read(data.path(), "ab", giver), noted);
        // A note in the older form: all were of named givers.
        let place = named_giver_path(data.path(), "ef");
        std::fs::write(place, format!(r#"{{"format":1,"path":"{}","giver":"{}"}}"#, giver.0, giver.1))
            .unwrap();
        assert!(is_named("ef", giver));
        remove_old_named_givers(data.path(), i64::MAX);
        assert!(!is_named("ab", giver));
        forget_named_giver(data.path(), "ab");
    }
}
