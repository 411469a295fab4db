//! Evidence in an alert: what an Archive reports about an item that it claims.

use serde::{Deserialize, Serialize};

/// Maximum number of versions whose digests an alert keeps (the latest).
pub const MAX_EVIDENCE_VERSIONS: usize = 16;

/// Maximum number of events that are examined in an item's history.
const MAX_HISTORY_EVENTS: usize = 10_000;

/// Maximum length of a text reported by an Archive.
const MAX_EVIDENCE_TEXT_BYTES: usize = 255;

/// The length of a SHA-512 in hex.
const DIGEST_HEX_BYTES: usize = 128;

/// What an Archive reports about an item that it claims. None of it is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlertEvidence {
    /// Who deposited the item there.
    pub depositor: Option<String>,
    /// When it was deposited.
    pub deposited: Option<String>,
    /// 1, plus one for each time that the Original was handed over or declared.
    pub epoch: Option<u64>,
    /// The versions, oldest first.
    #[serde(default)]
    pub versions: Vec<VersionDigest>,
    /// When this was reported, in seconds since the Unix epoch.
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

/// An Archive's account of an item (`docs/formats/archive-json.md`), with only the fields that are
/// used here.
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

impl AlertEvidence {
    /// Parses an untrusted account of an item; also returns the number of its latest version.
    /// `None` if it is not a valid account.
    pub fn parse_account(bytes: &[u8], now: i64) -> Option<(Self, u64)> {
        let account: ItemAccount = serde_json::from_slice(bytes).ok()?;
        let mut events = account.history.into_iter().take(MAX_HISTORY_EVENTS);
        let deposit = events.find(|event| event.event.as_deref() == Some("deposit"));
        let (depositor, deposited) = deposit.map_or((None, None), |event| (event.by, event.time));
        let evidence = Self { depositor, deposited, epoch: account.epoch, versions: Vec::new(), at: now };
        Some((evidence.truncated(), account.version))
    }

    /// A copy truncated to the limits.
    pub(super) fn truncated(&self) -> Self {
        let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
        let short = |text: &Option<String>| text.as_deref().map(|text| cut(text, MAX_EVIDENCE_TEXT_BYTES));
        let digest = |version: &VersionDigest| VersionDigest {
            version: version.version,
            inventory: cut(&version.inventory, DIGEST_HEX_BYTES),
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
        let (evidence, last) = AlertEvidence::parse_account(text.as_bytes(), 7).unwrap();
        assert_eq!((evidence.depositor.as_deref(), evidence.epoch, last), (Some("Ana"), Some(2), 3));
        assert_eq!((evidence.deposited.as_deref(), evidence.at), (Some("2026-11-16T04:49:18Z"), 7));
        for nothing in ["", "{}", "[]", "no", r#"{"version":"x"}"#, r#"{"version":1,"history":7}"#] {
            assert!(AlertEvidence::parse_account(nothing.as_bytes(), 0).is_none(), "{nothing}");
        }
        assert!(AlertEvidence::parse_account(br#"{"version":1}"#, 0).is_some());
    }
}
