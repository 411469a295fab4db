//! Access tokens with roles for changes over the network. Only digests are stored, in
//! `service/tokens.json`.

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;

use ibi_http::token_store::TokenFileUpdater;
use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::ownership::LOCAL_OPERATOR;

/// What a token allows. A greater role includes the lesser ones; `Holder` compares with neither
/// `Minter` nor `Depositor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceRole {
    /// Mint labels.
    Minter,
    /// Deposit and update items.
    Depositor,
    /// Another Archive that holds copies (clause 2.1): reads closed or removed items, takes part in
    /// transfers.
    Holder,
    /// Everything, including removal of items.
    Operator,
}

impl PartialOrd for ServiceRole {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (a, b) if a == b => Some(Ordering::Equal),
            (ServiceRole::Operator, _) => Some(Ordering::Greater),
            (_, ServiceRole::Operator) => Some(Ordering::Less),
            // A holder may not mint, and a depositor may not read closed items.
            (ServiceRole::Holder, _) | (_, ServiceRole::Holder) => None,
            (ServiceRole::Minter, _) => Some(Ordering::Less),
            (ServiceRole::Depositor, _) => Some(Ordering::Greater),
        }
    }
}

impl ServiceRole {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ServiceRole::Minter => "minter",
            ServiceRole::Depositor => "depositor",
            ServiceRole::Holder => "holder",
            ServiceRole::Operator => "operator",
        }
    }
}

impl FromStr for ServiceRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [ServiceRole::Minter, ServiceRole::Depositor, ServiceRole::Holder, ServiceRole::Operator]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("`{text}` is not a valid role: use minter, depositor, holder or operator"))
    }
}

impl AsRef<str> for ServiceRole {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

/// A token of an Archive.
pub type ServiceToken = ibi_http::token_store::TokenRecord<ServiceRole>;

/// The tokens of an Archive.
pub type ServiceTokens = ibi_http::token_store::TokenStore<ServiceRole>;

/// Opens the tokens of a data folder.
pub fn open_tokens(data: &Path) -> ServiceTokens {
    let change: TokenFileUpdater =
        |path, alter| ibi_store::small_file::change(path, alter).map_err(|error| error.to_string());
    ServiceTokens::new(data.join("service/tokens.json"), change)
}

/// Whether the operator of the Archive in a data folder may be called so; empty: without a name.
/// Histories name tokens beside the operator, so no token may have the name.
pub fn check_operator_name(data: &Path, name: &str) -> Result<(), ArchiveError> {
    if !name.is_empty() && name != LOCAL_OPERATOR {
        let checked = open_tokens(data).check_operator_name(name);
        checked.map_err(|error| ArchiveError::Value(error.to_string()))?;
    }
    crate::archive::check_operator_name(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ibi_http::token_store::{NewToken, TokenStoreError};

    use super::*;

    const TEST_NOW: &str = "2026-11-16T00:00:00Z";

    #[test]
    fn names_are_unique_and_a_token_without_one_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let create = |name| known.create(NewToken::new(name, ServiceRole::Minter, TEST_NOW.to_owned()));
        create(Some("Ana")).unwrap();
        for name in ["Ana", "ana"] {
            assert!(matches!(create(Some(name)), Err(TokenStoreError::NameTaken { .. })));
        }
        let [first, second] = [create(None).unwrap().0, create(None).unwrap().0];
        assert_ne!(first.name, second.name);
        assert_eq!(first.id.len(), 16);
        for name in ["Аnа", " Ana", "Ana\u{200b}"] {
            assert!(matches!(create(Some(name)), Err(TokenStoreError::Name { .. })));
        }
    }

    /// Threat: a token or the operator takes a name that is confused with another in a history.
    #[test]
    fn tokens_and_the_operator_are_not_called_like_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let create = |name: Option<&str>, operator: Option<&str>| {
            let new = NewToken::new(name, ServiceRole::Minter, TEST_NOW.to_owned());
            known.create(NewToken { operator: operator.map(str::to_owned), ..new })
        };
        let ana = create(Some("Ana"), None).unwrap().0;
        for name in ["operator", "Operator", "0perator"] {
            assert!(matches!(create(Some(name), None), Err(TokenStoreError::Name { .. })), "{name}");
        }
        assert!(matches!(
            create(Some("the library"), Some("The library")),
            Err(TokenStoreError::Name { .. })
        ));
        for name in [ana.id.clone(), ana.id.to_uppercase()] {
            assert!(matches!(create(Some(&name), None), Err(TokenStoreError::NameTaken { .. })));
            assert!(matches!(known.check_operator_name(&name), Err(TokenStoreError::NameTaken { .. })));
        }
        for name in ["Ana", "ANA"] {
            assert!(matches!(known.check_operator_name(name), Err(TokenStoreError::NameTaken { .. })));
        }
        for name in ["Bibliotecа", "Rui\u{202e}", " Rui"] {
            assert!(matches!(known.check_operator_name(name), Err(TokenStoreError::OperatorName { .. })));
        }
        known.check_operator_name("Biblioteca Central").unwrap();
    }

    /// Threat: of two tokens with the same name, created before ids were recorded, one is revoked
    /// and the other then owns the items of both.
    #[test]
    fn a_name_that_tokens_shared_owns_nothing_when_one_of_them_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let old = |id: &str, name: &str| {
            format!(
                r#"{{"id":"{id}","name":"{name}","role":"depositor","created":"{TEST_NOW}","sha256":"{}"}}"#,
                "0".repeat(64)
            )
        };
        let all = [old("1", "Ana"), old("2", "Ana"), old("3", "Rui")].join(",");
        fs::create_dir(folder.path().join("service")).unwrap();
        fs::write(folder.path().join("service/tokens.json"), format!(r#"{{"format":1,"tokens":[{all}]}}"#))
            .unwrap();
        let owning = || {
            let all = known.list().unwrap().into_iter();
            all.filter(|token| token.owns_by_name).map(|token| token.id).collect::<Vec<_>>()
        };
        assert_eq!(owning(), ["3"]);
        known.revoke("1").unwrap();
        assert_eq!(owning(), ["3"]);
        known.revoke("3").unwrap();
        known.create(NewToken::new(Some("Rui"), ServiceRole::Depositor, TEST_NOW.to_owned())).unwrap();
        assert!(owning().is_empty(), "a new token of an old name");
    }

    #[test]
    fn an_expired_token_is_refused_from_that_second_on() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let expires = Some("2027-01-31T00:00:00Z".to_owned());
        let new = NewToken { expires, ..NewToken::new(None, ServiceRole::Minter, TEST_NOW.to_owned()) };
        let (_, secret) = known.create(new).unwrap();
        let bearer = format!("Bearer {}", secret.reveal()).parse().unwrap();
        let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer)]);
        let status =
            |now| known.authorize(&headers, ServiceRole::Minter, "x", now).map_err(|no| no.status().as_u16());
        assert!(status("2027-01-30T23:59:59Z").is_ok());
        assert_eq!(status("2027-01-31T00:00:00Z").err(), Some(401));
        // The clock goes back and the program restarts.
        assert_eq!(status("2027-01-30T23:59:59Z").err(), Some(401));
        let again = open_tokens(folder.path());
        let answer = again.authorize(&headers, ServiceRole::Minter, "x", "2027-01-30T23:59:59Z");
        assert_eq!(answer.map_err(|no| no.status().as_u16()).err(), Some(401));
        let id = again.list().unwrap().remove(0).id;
        again.update_token(&id, |token| token.set_expiry(None)).unwrap();
        assert!(status("2027-02-01T00:00:00Z").is_ok());
    }

    #[test]
    fn a_renewed_token_has_another_secret_and_is_the_same_token() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let (token, old) =
            known.create(NewToken::new(Some("Ana"), ServiceRole::Depositor, TEST_NOW.to_owned())).unwrap();
        let new = known.rotate_secret(&token.id).unwrap();
        assert_eq!(known.find_by_secret(old.reveal()).unwrap(), None);
        assert_eq!(known.find_by_secret(new.reveal()).unwrap().map(|token| token.id), Some(token.id));
    }

    /// Threat: a concurrent change of the file undoes a revocation.
    #[test]
    fn no_revocation_is_undone_by_tokens_that_are_made_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let create = || {
            let new = NewToken::new(None, ServiceRole::Minter, TEST_NOW.to_owned());
            open_tokens(folder.path()).create(new).unwrap().0.id
        };
        let revoked: Vec<String> = (0..31).map(|_| create()).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..31).for_each(|_| drop(create())));
            for ids in revoked.chunks(8) {
                scope.spawn(|| ids.iter().for_each(|id| open_tokens(folder.path()).revoke(id).unwrap()));
            }
        });
        let left = open_tokens(folder.path()).list().unwrap();
        assert_eq!(left.len(), 31);
        assert!(!left.iter().any(|token| revoked.contains(&token.id)));
    }

    #[test]
    fn a_token_is_known_by_its_secret_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        assert_eq!(known.find_by_secret("anything").unwrap(), None);
        let (token, secret) =
            known.create(NewToken::new(Some("Ana"), ServiceRole::Depositor, TEST_NOW.to_owned())).unwrap();
        assert_eq!(known.find_by_secret(secret.reveal()).unwrap(), Some(token.clone()));
        assert_eq!(known.find_by_secret("ibi_0").unwrap(), None);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        let kept = fs::read_to_string(folder.path().join("service/tokens.json")).unwrap();
        assert!(!kept.contains(secret.reveal()) && kept.contains(&token.id), "{kept}");
        // Another process revokes it.
        open_tokens(folder.path()).revoke(&token.id).unwrap();
        assert_eq!(known.find_by_secret(secret.reveal()).unwrap(), None);
        assert!(matches!(known.revoke(&token.id), Err(TokenStoreError::Unknown { .. })));
    }

    #[test]
    fn a_holder_stands_beside_who_mints_and_deposits() {
        let roles = [ServiceRole::Minter, ServiceRole::Depositor, ServiceRole::Holder, ServiceRole::Operator];
        let may = |has: ServiceRole, needs: ServiceRole| has >= needs;
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
        assert!("holders".parse::<ServiceRole>().unwrap_err().contains("holder or operator"));
    }

    #[test]
    fn a_request_is_refused_unless_its_token_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let known = open_tokens(folder.path());
        let status = |has: ServiceRole, needs: ServiceRole| {
            let (_, secret) = known.create(NewToken::new(None, has, TEST_NOW.to_owned())).unwrap();
            let bearer = format!("Bearer {}", secret.reveal()).parse().unwrap();
            let headers = http::HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer)]);
            known.authorize(&headers, needs, "x", TEST_NOW).map_err(|problem| problem.status().as_u16()).err()
        };
        assert_eq!(status(ServiceRole::Holder, ServiceRole::Holder), None);
        assert_eq!(status(ServiceRole::Operator, ServiceRole::Holder), None);
        assert_eq!(status(ServiceRole::Depositor, ServiceRole::Holder), Some(403));
        assert_eq!(status(ServiceRole::Holder, ServiceRole::Minter), Some(403));
        assert_eq!(status(ServiceRole::Holder, ServiceRole::Depositor), Some(403));
        assert_eq!(status(ServiceRole::Holder, ServiceRole::Operator), Some(403));
    }
}
