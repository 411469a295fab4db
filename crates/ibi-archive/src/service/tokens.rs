//! Who may change something over the network: tokens with roles, kept as digests in `service/tokens.json`.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a token allows. Each may also do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Mint labels.
    Minter,
    /// Deposit and update items.
    Depositor,
    /// Everything: remove items too.
    Operator,
}

impl Role {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Role::Minter => "minter",
            Role::Depositor => "depositor",
            Role::Operator => "operator",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Role::Minter, Role::Depositor, Role::Operator]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("`{text}` is no role: there are minter, depositor and operator"))
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
}
