//! The link reports and hints that Archives exchange (`docs/formats/links.md`).

use ibi_store::journal::{LinkKind, LinkStatement, State};
use serde::{Deserialize, Serialize};

use super::MAX_STATEMENTS_PER_ITEM;
use super::statements::{is_valid_statement, key_of};
use crate::item::ItemLabels;
#[cfg(feature = "web")]
use {
    super::receipts::LinkReceipts,
    super::stated_links::{is_decided_here, stated_target},
    super::statements::keys_of,
    crate::ArchiveError,
    crate::archive::{HeldItem, Holdings},
};

/// The format of these documents.
pub const LINK_REPORT_FORMAT: u32 = 1;

/// An Archive's report of an item's links: `GET /api/v1/items/<label>/links`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The format of this document.
    pub format: u32,
    /// The service label of the reporting Archive.
    pub archive: String,
    /// The labels of the item.
    pub item: ItemLabels,
    /// Other labels that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its state there: `Original`, `Copy` or `Deleted`.
    pub state: String,
    /// Whether links to the item are decided there.
    pub decides: bool,
    /// Its language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// When it was deposited.
    pub created: String,
    /// The item that it states to be the next edition of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_edition_of: Option<String>,
    /// The item that it states to be a translation of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation_of: Option<String>,
    /// The highest counter of the statements about links to it.
    pub counter: u64,
    /// The statements, without proposals unless an operator asks.
    pub links: Vec<LinkStatement>,
}

impl LinkReport {
    /// The report of a local item.
    #[cfg(feature = "web")]
    pub fn of(
        holdings: &Holdings,
        holding: &HeldItem,
        receipts: &LinkReceipts,
        proposals: bool,
    ) -> Result<Self, ArchiveError> {
        let item = &holding.item;
        let mut links = holdings.link_list(item, proposals)?;
        for link in &mut links {
            let older = holdings.held_by_key(&link.older)?;
            let is_decided = older.is_some_and(|older| is_decided_here(holdings, &older));
            if is_decided && link.told_with.is_none() {
                link.receipt = receipts.receipt(link);
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
            next_edition_of: stated_target(item, LinkKind::Edition).map(str::to_owned),
            translation_of: stated_target(item, LinkKind::Translation).map(str::to_owned),
            counter: holdings.next_link_counter(item)? - 1,
            links,
        })
    }

    /// Whether the document could have been written here.
    pub fn check(&self) -> Result<(), String> {
        if self.format != LINK_REPORT_FORMAT {
            return Err(format!("the format of its links is {}, not {LINK_REPORT_FORMAT}", self.format));
        }
        if self.links.len() > MAX_STATEMENTS_PER_ITEM || !self.links.iter().all(is_valid_statement) {
            return Err("invalid link statement".to_owned());
        }
        let labels = self.item.iter().chain(self.aliases.iter().map(String::as_str)).chain([&*self.archive]);
        if self.item.primary().is_empty() || labels.into_iter().any(|label| key_of(label).is_none()) {
            return Err("invalid label".to_owned());
        }
        if State::parse(&self.state).is_none() || self.created.len() > 40 || self.aliases.len() > 1000 {
            return Err("invalid link report".to_owned());
        }
        Ok(())
    }

    /// All labels of the item in canonical spelling.
    #[cfg(feature = "web")]
    pub(crate) fn keys(&self) -> Vec<String> {
        let labels = self.item.iter().chain(self.aliases.iter().map(String::as_str));
        labels.filter_map(key_of).collect()
    }

    /// Whether the item states a link of a kind to an item with these labels.
    #[cfg(feature = "web")]
    pub(crate) fn states(&self, kind: LinkKind, older: &[String]) -> bool {
        let stated = match kind {
            LinkKind::Edition => &self.next_edition_of,
            LinkKind::Translation => &self.translation_of,
        };
        stated.as_deref().and_then(key_of).is_some_and(|key| older.contains(&key))
    }
}

/// A hint that a link has changed: `POST /api/v1/links`. It is not trusted: the recipient verifies
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkHint {
    /// The kind of link.
    pub kind: LinkKind,
    /// The older item.
    pub older: String,
    /// The newer item.
    pub newer: String,
    /// A past decision of the recipient that the sender knows, with its receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<LinkStatement>,
}

impl LinkHint {
    /// The labels in canonical spelling; `None` if they are invalid.
    pub fn keys(&self) -> Option<(String, String)> {
        let sound = self.decided.as_ref().is_none_or(is_valid_statement);
        Some((key_of(&self.older)?, key_of(&self.newer)?)).filter(|(older, newer)| sound && older != newer)
    }
}

/// All labels of a local item in canonical spelling.
#[cfg(feature = "web")]
pub(crate) fn item_keys(holding: &HeldItem) -> Vec<String> {
    keys_of(&holding.item)
}

#[cfg(test)]
mod tests {
    use ibi_store::journal::LinkStatus;

    use super::*;

    /// A document of format 1 as once written, byte for byte; later ones may have more fields.
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
}
