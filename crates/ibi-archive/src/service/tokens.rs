//! Who may change something over the network: tokens with roles, kept as digests in `service/tokens.json`.

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a token allows. The greater may also do what the lesser may; a holder stands beside who mints and deposits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Mint labels.
    Minter,
    /// Deposit and update items.
    Depositor,
    /// Another Archive that holds copies (clause 2.1): read items that are closed or removed, take part in hand-overs.
    Holder,
    /// Everything: remove items too.
    Operator,
}

impl PartialOrd for Role {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (a, b) if a == b => Some(Ordering::Equal),
            (Role::Operator, _) => Some(Ordering::Greater),
            (_, Role::Operator) => Some(Ordering::Less),
            // Who holds copies may not mint, and who deposits may not read what is closed.
            (Role::Holder, _) | (_, Role::Holder) => None,
            (Role::Minter, _) => Some(Ordering::Less),
            (Role::Depositor, _) => Some(Ordering::Greater),
        }
    }
}

impl Role {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Role::Minter => "minter",
            Role::Depositor => "depositor",
            Role::Holder => "holder",
            Role::Operator => "operator",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Role::Minter, Role::Depositor, Role::Holder, Role::Operator]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("`{text}` is no role: there are minter, depositor, holder and operator"))
    }
}

impl AsRef<str> for Role {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

/// A token of an Archive.
pub type Token = ibi_http::tokens::Token<Role>;

/// The tokens of an Archive.
pub type Tokens = ibi_http::tokens::Tokens<Role>;

/// Those of a data folder.
pub fn tokens(data: &Path) -> Tokens {
    let replace = |path: &Path, bytes: &[u8]| {
        ibi_store::service::replace(path, bytes).map_err(|error| error.to_string())
    };
    Tokens::new(data.join("service/tokens.json"), replace)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ibi_http::tokens::TokensError;

    use super::*;

    #[test]
    fn a_token_is_known_by_its_secret_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let known = tokens(folder.path());
        assert_eq!(known.check("anything").unwrap(), None);
        let (token, secret) =
            known.create("Ana", Role::Depositor, "2026-11-16T00:00:00Z".to_owned()).unwrap();
        assert_eq!(known.check(secret.reveal()).unwrap(), Some(token.clone()));
        assert_eq!(known.check("ibi_0").unwrap(), None);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        let kept = fs::read_to_string(folder.path().join("service/tokens.json")).unwrap();
        assert!(!kept.contains(secret.reveal()) && kept.contains(&token.id), "{kept}");
        // Another process may do it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        tokens(folder.path()).revoke(&token.id).unwrap();
        assert_eq!(known.check(secret.reveal()).unwrap(), None);
        assert!(matches!(known.revoke(&token.id), Err(TokensError::Unknown { .. })));
    }

    #[test]
    fn a_holder_stands_beside_who_mints_and_deposits() {
        let roles = [Role::Minter, Role::Depositor, Role::Holder, Role::Operator];
        let may = |has: Role, needs: Role| has >= needs;
        let table: Vec<[bool; 4]> = roles.iter().map(|has| roles.map(|needs| may(*has, needs))).collect();
        assert_eq!(
            table,
            [
                [true, false, false, false],
                [true, true, false, false],
                [false, false, true, false],
                [true, true, true, true]
            ]
        );
        for role in roles {
            assert_eq!(role.name().parse(), Ok(role));
        }
        assert!("holders".parse::<Role>().unwrap_err().contains("holder and operator"));
    }

    #[test]
    fn a_request_is_refused_unless_its_token_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let known = tokens(folder.path());
        let now = || "2026-11-16T00:00:00Z".to_owned();
        let status = |has: Role, needs: Role| {
            let (_, secret) = known.create("Ana", has, now()).unwrap();
            let bearer = format!("Bearer {}", secret.reveal()).parse().unwrap();
            let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer)]);
            // Another file is noticed by its time.
            std::thread::sleep(std::time::Duration::from_millis(20));
            known.allowed(&headers, needs, "x").map_err(|problem| problem.status().as_u16()).err()
        };
        assert_eq!(status(Role::Holder, Role::Holder), None);
        assert_eq!(status(Role::Operator, Role::Holder), None);
        assert_eq!(status(Role::Depositor, Role::Holder), Some(403));
        assert_eq!(status(Role::Holder, Role::Minter), Some(403));
        assert_eq!(status(Role::Holder, Role::Depositor), Some(403));
        assert_eq!(status(Role::Holder, Role::Operator), Some(403));
    }
}
