//! Who owns an item: a depositor changes only what it owns (`docs/security.md`, *Roles*).
//!
//! Items are owned by ids, which are random and never given again; names are for people to read.

use ibi_store::journal::{JournalEntry, Verb};

use crate::ArchiveError;
use crate::archive::Holdings;

/// The owner of what commands on the folder deposit. No token has such an id: those are hex digits.
pub const LOCAL_OPERATOR: &str = "operator";

/// The name that tokens had when nobody gave them one: it tells nobody apart.
const DEFAULT_TOKEN_NAME: &str = "api";

/// What the keys of journal lines begin with that came over the API.
const DRAFT_KEY_PREFIX: &str = "draft:";

/// Whether a line records a command on the folder, not a token. Lines from before owners were
/// recorded show this for deposits only.
pub(crate) fn is_by_command(entry: &JournalEntry) -> bool {
    match &entry.owner {
        Some(owner) => owner == LOCAL_OPERATOR,
        None => entry.verb == Verb::Deposit && !is_api_deposit(entry),
    }
}

fn is_api_deposit(entry: &JournalEntry) -> bool {
    entry.key.as_ref().is_some_and(|key| key.starts_with(DRAFT_KEY_PREFIX))
}

/// A depositor, as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepositorIdentity {
    /// The id of its token.
    pub id: String,
    /// How lines from before ids were recorded tell of it, if they can.
    pub earlier: Option<EarlierIdentity>,
}

/// A depositor in lines that record only a name: when ids were introduced, exactly one token had
/// the name, and it existed when the line was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierIdentity {
    /// The name.
    pub name: String,
    /// When the token was made (RFC 3339, UTC).
    pub since: String,
}

impl DepositorIdentity {
    /// Whether the depositor owns an item, that is, deposited it here. What came from another
    /// Archive, or was found in the tree, belongs to the operators.
    pub fn owns(&self, holdings: &Holdings, path: &str) -> Result<bool, ArchiveError> {
        Ok(holdings.history(path)?.first().is_some_and(|first| self.deposited(first)))
    }

    fn deposited(&self, first: &JournalEntry) -> bool {
        if first.verb != Verb::Deposit {
            return false;
        }
        match (&first.owner, &self.earlier) {
            (Some(owner), _) => *owner == self.id,
            (None, None) => false,
            // Commands wrote the name of a user of the machine, which a token may have too.
            (None, Some(EarlierIdentity { name, since })) => {
                is_api_deposit(first)
                    && first.by == *name
                    && *name != DEFAULT_TOKEN_NAME
                    && *since <= first.time
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ibi_store::journal::State;

    use super::*;

    pub(crate) fn deposit(owner: Option<&str>, by: &str, key: Option<&str>) -> JournalEntry {
        JournalEntry {
            change: 1,
            batch: 1,
            time: "2026-06-01T00:00:00Z".to_owned(),
            verb: Verb::Deposit,
            path: "test/a/2026/01.01.00.00".to_owned(),
            version: 1,
            inventory: "0".repeat(32),
            state: State::Original,
            epoch: 1,
            by: by.to_owned(),
            owner: owner.map(str::to_owned),
            source: None,
            source_state: None,
            to: None,
            key: key.map(str::to_owned),
            note: None,
            past: None,
            record: None,
            links: Vec::new(),
            depends_on: None,
        }
    }

    fn depositor(name: &str, since: &str) -> DepositorIdentity {
        let earlier = EarlierIdentity { name: name.to_owned(), since: since.to_owned() };
        DepositorIdentity { id: "00aa".to_owned(), earlier: Some(earlier) }
    }

    #[test]
    fn an_item_is_owned_by_id_and_by_no_name() {
        let ana = depositor("Ana", "2026-01-01T00:00:00Z");
        assert!(ana.deposited(&deposit(Some("00aa"), "Ana", Some("draft:1"))));
        assert!(!ana.deposited(&deposit(Some("00bb"), "Ana", Some("draft:1"))));
        assert!(!ana.deposited(&deposit(Some(LOCAL_OPERATOR), "Ana", None)));
        let copied = JournalEntry { verb: Verb::Copy, ..deposit(Some("00aa"), "Ana", None) };
        assert!(!ana.deposited(&copied));
    }

    #[test]
    fn a_line_from_before_is_owned_by_the_one_token_that_can_have_made_it() {
        let line = deposit(None, "Ana", Some("draft:1"));
        assert!(depositor("Ana", "2026-01-01T00:00:00Z").deposited(&line));
        assert!(!depositor("Ana", "2026-07-01T00:00:00Z").deposited(&line), "a later token of the name");
        assert!(!depositor("Rui", "2026-01-01T00:00:00Z").deposited(&line));
        let nameless = DepositorIdentity { id: "00aa".to_owned(), earlier: None };
        assert!(!nameless.deposited(&line), "several tokens have the name");
        let shared = deposit(None, "api", Some("draft:1"));
        assert!(!depositor("api", "2026-01-01T00:00:00Z").deposited(&shared));
        let by_command = deposit(None, "Ana", None);
        assert!(!depositor("Ana", "2026-01-01T00:00:00Z").deposited(&by_command), "a user of the machine");
    }
}
