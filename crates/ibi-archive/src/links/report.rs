//! What Archives tell each other of the links of an item (`docs/formats/links.md`).

use std::path::Path;

use ibi_store::journal::{LinkKind, LinkStatement, State};
use serde::{Deserialize, Serialize};

use super::known::{key_of, keys_of};
use super::stated::{is_decided_here, stated};
use super::{MAX_STATEMENTS_PER_ITEM, known::is_sound};
use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::item::Labels;

/// The format of these documents.
pub const LINK_REPORT_FORMAT: u32 = 1;

/// What an Archive tells of the links of an item that it holds: `GET /api/v1/items/<label>/links`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The format of this document.
    pub format: u32,
    /// The service label of the Archive that tells.
    pub archive: String,
    /// The labels of the item.
    pub item: Labels,
    /// Other labels that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What it is there: `Original`, `Copy` or `Deleted`.
    pub state: String,
    /// Whether links to the item are decided there.
    pub decides: bool,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// When it was deposited.
    pub created: String,
    /// What it states that it is the next edition of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_edition_of: Option<String>,
    /// What it states that it is a translation of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation_of: Option<String>,
    /// The highest counter of the statements about links to it.
    pub counter: u64,
    /// The statements, proposals left out unless an operator asks.
    pub links: Vec<LinkStatement>,
}

impl LinkReport {
    /// What is told of the links of an item.
    pub fn of(
        holdings: &Holdings,
        holding: &Holding,
        receipts: &LinkReceipts,
        proposals: bool,
    ) -> Result<Self, ArchiveError> {
        let item = &holding.item;
        let mut links = holdings.link_list(item, proposals)?;
        for link in &mut links {
            let older = holdings.held_by_key(&link.older)?;
            if older.is_some_and(|older| is_decided_here(holdings, &older)) {
                link.receipt = Some(receipts.receipt(link));
            }
        }
        Ok(Self {
            format: LINK_REPORT_FORMAT,
            archive: holdings.settings().service.primary().to_owned(),
            item: item.labels.clone(),
            aliases: item.aliases.clone(),
            state: holding.state.name().to_owned(),
            decides: !holdings.is_restored() && is_decided_here(holdings, holding),
            language: item.language.map(|language| language.to_string()),
            created: item.created.clone(),
            next_edition_of: stated(item, LinkKind::Edition).map(str::to_owned),
            translation_of: stated(item, LinkKind::Translation).map(str::to_owned),
            counter: holdings.next_link_counter(item)? - 1,
            links,
        })
    }

    /// Whether it is a document that could have been written here.
    pub fn check(&self) -> Result<(), String> {
        if self.format != LINK_REPORT_FORMAT {
            return Err(format!("the format of its links is {}, not {LINK_REPORT_FORMAT}", self.format));
        }
        if self.links.len() > MAX_STATEMENTS_PER_ITEM || !self.links.iter().all(is_sound) {
            return Err("its statements about links make no sense".to_owned());
        }
        let labels = self.item.iter().chain(self.aliases.iter().map(String::as_str)).chain([&*self.archive]);
        if self.item.primary().is_empty() || labels.into_iter().any(|label| key_of(label).is_none()) {
            return Err("its labels are none".to_owned());
        }
        if State::parse(&self.state).is_none() || self.created.len() > 40 || self.aliases.len() > 1000 {
            return Err("it makes no sense".to_owned());
        }
        Ok(())
    }

    /// All labels of the item in the spelling of statements.
    pub(crate) fn keys(&self) -> Vec<String> {
        let labels = self.item.iter().chain(self.aliases.iter().map(String::as_str));
        labels.filter_map(key_of).collect()
    }

    /// Whether the item states a link of a kind to one with these labels.
    pub(crate) fn states(&self, kind: LinkKind, older: &[String]) -> bool {
        let stated = match kind {
            LinkKind::Edition => &self.next_edition_of,
            LinkKind::Translation => &self.translation_of,
        };
        stated.as_deref().and_then(key_of).is_some_and(|key| older.contains(&key))
    }
}

/// A hint that there is news of a link: `POST /api/v1/links`. Nobody believes it: who gets it looks for
/// itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkHint {
    /// The kind of link.
    pub kind: LinkKind,
    /// The older item.
    pub older: String,
    /// The newer item.
    pub newer: String,
    /// What the sender knows that the receiver once decided, with its receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<LinkStatement>,
}

impl LinkHint {
    /// The labels in the spelling of statements; nothing if they are no labels.
    pub(crate) fn keys(&self) -> Option<(String, String)> {
        let sound = self.decided.as_ref().is_none_or(is_sound);
        Some((key_of(&self.older)?, key_of(&self.newer)?)).filter(|(older, newer)| sound && older != newer)
    }
}

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

    fn receipt(&self, link: &LinkStatement) -> String {
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

/// All labels of an item here, in the spelling of statements.
pub(crate) fn item_keys(holding: &Holding) -> Vec<String> {
    keys_of(&holding.item)
}

#[cfg(test)]
mod tests {
    use ibi_store::journal::LinkStatus;

    use super::*;

    /// A document of format 1 that this program wrote once, byte for byte; later ones may say more.
    #[test]
    fn the_report_of_format_1_is_still_read_and_written() {
        let sample = include_str!("../../tests/samples/links-1.json");
        let report: LinkReport = serde_json::from_str(sample).unwrap();
        report.check().unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap() + "\n", sample);
        assert_eq!(report.links[0].status, LinkStatus::Accepted);
        let later = sample.replacen('{', "{\"more\":1,", 1);
        assert_eq!(serde_json::from_str::<LinkReport>(&later).unwrap(), report);
        let twice = sample.replacen("\"counter\":1,\"older_labels\"", "\"counter\":0,\"older_labels\"", 1);
        assert!(serde_json::from_str::<LinkReport>(&twice).unwrap().check().is_err(), "no such counter");
    }

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
