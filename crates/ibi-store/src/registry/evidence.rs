//! What an Archive tells of an item that it claims: an alert keeps it.

use serde::{Deserialize, Serialize};

/// The most versions of an item that an alert keeps the digests of: the last ones.
pub const MAX_EVIDENCE_VERSIONS: usize = 16;

/// The most events of an item's history that are looked at.
const MAX_HISTORY_EVENTS: usize = 10_000;

/// The most bytes of a text that an Archive tells.
const MAX_TEXT_BYTES: usize = 255;

/// The bytes of a SHA-512 in hex.
const DIGEST_BYTES: usize = 128;

/// What an Archive tells of an item that it claims. All of it is the Archive's own word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Who deposited it there.
    pub depositor: Option<String>,
    /// When that was.
    pub deposited: Option<String>,
    /// 1, and one more for each time that the Original was handed over or declared.
    pub epoch: Option<u64>,
    /// The versions, the first one first.
    #[serde(default)]
    pub versions: Vec<VersionDigest>,
    /// When this was told, in seconds since the Unix epoch.
    pub at: i64,
}

/// A version of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionDigest {
    /// Its number.
    pub version: u64,
    /// SHA-512 of its inventory, in hex.
    pub inventory: String,
}

/// The account that an Archive gives of an item (`docs/formats/archive-json.md`): only what is of
/// use here.
#[derive(Deserialize)]
struct ItemAccount {
    version: u64,
    epoch: Option<u64>,
    #[serde(default)]
    history: Vec<HistoryEvent>,
}

#[derive(Deserialize)]
struct HistoryEvent {
    time: Option<String>,
    event: Option<String>,
    by: Option<String>,
}

impl Evidence {
    /// Reads the account of an item, from whoever sent it; also the number of its last version.
    /// `None` if it is none.
    pub fn read(bytes: &[u8], now: i64) -> Option<(Self, u64)> {
        let account: ItemAccount = serde_json::from_slice(bytes).ok()?;
        let mut events = account.history.into_iter().take(MAX_HISTORY_EVENTS);
        let deposit = events.find(|event| event.event.as_deref() == Some("deposit"));
        let (depositor, deposited) = deposit.map_or((None, None), |event| (event.by, event.time));
        let evidence = Self { depositor, deposited, epoch: account.epoch, versions: Vec::new(), at: now };
        Some((evidence.bounded(), account.version))
    }

    /// The same within what is kept.
    pub(super) fn bounded(&self) -> Self {
        let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
        let short = |text: &Option<String>| text.as_deref().map(|text| cut(text, MAX_TEXT_BYTES));
        let digest = |version: &VersionDigest| VersionDigest {
            version: version.version,
            inventory: cut(&version.inventory, DIGEST_BYTES),
        };
        Self {
            depositor: short(&self.depositor),
            deposited: short(&self.deposited),
            epoch: self.epoch,
            versions: self.versions.iter().take(MAX_EVIDENCE_VERSIONS).map(digest).collect(),
            at: self.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_tells_who_deposited_what_when() {
        let text = r#"{"rep":"a.br/b/2009/02.16.17.46","version":3,"epoch":2,"files":[],"history":[
            {"change":7,"time":"2026-11-16T04:49:18Z","event":"deposit","version":1,"state":"Original","by":"Ana"},
            {"time":"2026-11-17T00:00:00Z","event":"update","by":"Rui"}]}"#;
        let (evidence, last) = Evidence::read(text.as_bytes(), 7).unwrap();
        assert_eq!((evidence.depositor.as_deref(), evidence.epoch, last), (Some("Ana"), Some(2), 3));
        assert_eq!((evidence.deposited.as_deref(), evidence.at), (Some("2026-11-16T04:49:18Z"), 7));
        for nothing in ["", "{}", "[]", "no", r#"{"version":"x"}"#, r#"{"version":1,"history":7}"#] {
            assert!(Evidence::read(nothing.as_bytes(), 0).is_none(), "{nothing}");
        }
        assert!(Evidence::read(br#"{"version":1}"#, 0).is_some());
    }
}
