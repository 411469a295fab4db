//! Who may change something over the network: tokens with roles, kept as digests in `service/tokens.json`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::time::SystemTime;
use std::{fs, io};

use ibi_http::token::{self, Secret};
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

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// A name for it that is no secret.
    pub id: String,
    /// Whom it was made for: what the history of items says.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made (RFC 3339, UTC).
    pub created: String,
    /// SHA-256 of the secret, in hex.
    sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    format: u32,
    tokens: Vec<Token>,
}

/// Why tokens cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The disk.
    #[error("cannot read or write {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It could not be kept.
    #[error(transparent)]
    Keep(#[from] ibi_store::KeepError),
    /// Not what we write.
    #[error("{} cannot be understood: put it back from a backup, or remove it and make new tokens", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// There is no such token.
    #[error("there is no token {id}: `ibi archive token list` shows all")]
    Unknown {
        /// What was given.
        id: String,
    },
}

/// The tokens of an Archive.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    known: Mutex<Option<(SystemTime, Vec<Token>)>>,
}

const FORMAT: u32 = 1;

impl Tokens {
    /// Those of a data folder.
    pub fn of(data: &Path) -> Self {
        Self { path: data.join("service/tokens.json"), known: Mutex::default() }
    }

    /// All of them.
    pub fn list(&self) -> Result<Vec<Token>, TokensError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        let written: Option<Written> = serde_json::from_slice(&bytes).ok();
        let written = written.filter(|written| written.format == FORMAT);
        Ok(written.ok_or_else(|| TokensError::Damaged { path: self.path.clone() })?.tokens)
    }

    /// Makes a token; its secret is told once.
    pub fn create(&self, name: &str, role: Role, now: String) -> Result<(Token, Secret), TokensError> {
        let random = |error: getrandom::Error| self.io(io::Error::other(error));
        let secret = Secret::random("ibi_").map_err(random)?;
        let mut id = [0; 4];
        getrandom::fill(&mut id).map_err(random)?;
        let token = Token {
            id: ibi_store::digests::hex(&id),
            name: name.to_owned(),
            role,
            created: now,
            sha256: secret.digest(),
        };
        let mut tokens = self.list()?;
        tokens.push(token.clone());
        self.write(tokens)?;
        Ok((token, secret))
    }

    /// Takes a token back.
    pub fn revoke(&self, id: &str) -> Result<(), TokensError> {
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.id != id);
        if tokens.len() == before {
            return Err(TokensError::Unknown { id: id.to_owned() });
        }
        self.write(tokens)
    }

    /// The token that a secret belongs to. The file is read again when it has changed.
    pub fn check(&self, secret: &str) -> Result<Option<Token>, TokensError> {
        let changed = fs::metadata(&self.path).and_then(|metadata| metadata.modified());
        let Ok(changed) = changed else { return Ok(None) };
        let Ok(mut known) = self.known.lock() else { return Ok(None) };
        if known.as_ref().is_none_or(|(read, _)| *read != changed) {
            *known = Some((changed, self.list()?));
        }
        let digest = token::digest(secret);
        // All are compared, so that time does not tell which one it is.
        let tokens = known.iter().flat_map(|(_, tokens)| tokens);
        Ok(tokens.fold(
            None,
            |found, token| if token::equal(&token.sha256, &digest) { Some(token.clone()) } else { found },
        ))
    }

    fn write(&self, tokens: Vec<Token>) -> Result<(), TokensError> {
        // Text and numbers: nothing that JSON could refuse.
        let bytes = serde_json::to_vec_pretty(&Written { format: FORMAT, tokens }).unwrap_or_default();
        Ok(ibi_store::service::replace(&self.path, &bytes)?)
    }

    fn io(&self, error: io::Error) -> TokensError {
        TokensError::Io { path: self.path.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_secret_until_it_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        assert_eq!(tokens.check("anything").unwrap(), None);
        let (token, secret) =
            tokens.create("Ana", Role::Depositor, "2026-11-16T00:00:00Z".to_owned()).unwrap();
        assert_eq!(tokens.check(secret.reveal()).unwrap(), Some(token.clone()));
        assert_eq!(tokens.check("ibi_0").unwrap(), None);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        let kept = fs::read_to_string(folder.path().join("service/tokens.json")).unwrap();
        assert!(!kept.contains(secret.reveal()) && kept.contains(&token.id), "{kept}");
        // Another process may do it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        Tokens::of(folder.path()).revoke(&token.id).unwrap();
        assert_eq!(tokens.check(secret.reveal()).unwrap(), None);
        assert!(matches!(tokens.revoke(&token.id), Err(TokensError::Unknown { .. })));
    }
}
