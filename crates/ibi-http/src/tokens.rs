//! Who may change something over the network: tokens with roles, kept as digests in a file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use std::{fs, io};

use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::token::{self, Secret};

/// What a token begins with, so that it is known for one where it should not be.
pub(crate) const PREFIX: &str = "ibi_";

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token<R> {
    /// A name for it that is no secret.
    pub id: String,
    /// Whom it was made for: what the history of items says.
    pub name: String,
    /// What it allows.
    pub role: R,
    /// When it was made (RFC 3339, UTC).
    pub created: String,
    /// SHA-256 of the secret, in hex.
    sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Written<R> {
    format: u32,
    tokens: Vec<Token<R>>,
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
    #[error("{0}")]
    Keep(String),
    /// Not what we write.
    #[error("{} cannot be understood: put it back from a backup, or remove it and make new tokens", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// There is no such token.
    #[error("there is no token {id}: `token list` shows all")]
    Unknown {
        /// What was given.
        id: String,
    },
}

/// Puts a file in the place of another, durably and at once, for our eyes only; or says why not.
pub type Replace = fn(&Path, &[u8]) -> Result<(), String>;

/// The tokens of a server, each with a role: the greater may do what the lesser may, and no other may.
#[derive(Debug)]
pub struct Tokens<R> {
    path: PathBuf,
    replace: Replace,
    known: Mutex<Option<(SystemTime, Vec<Token<R>>)>>,
}

const FORMAT: u32 = 1;

impl<R: Copy + PartialOrd + Serialize + DeserializeOwned> Tokens<R> {
    /// Those in a file.
    pub fn new(path: PathBuf, replace: Replace) -> Self {
        Self { path, replace, known: Mutex::default() }
    }

    /// All of them.
    pub fn list(&self) -> Result<Vec<Token<R>>, TokensError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        let written: Option<Written<R>> = serde_json::from_slice(&bytes).ok();
        let written = written.filter(|written| written.format == FORMAT);
        Ok(written.ok_or_else(|| TokensError::Damaged { path: self.path.clone() })?.tokens)
    }

    /// Makes a token; its secret is told once.
    pub fn create(&self, name: &str, role: R, now: String) -> Result<(Token<R>, Secret), TokensError> {
        let random = |error: getrandom::Error| self.io(io::Error::other(error));
        let secret = Secret::random(PREFIX).map_err(random)?;
        let mut id = [0; 4];
        getrandom::fill(&mut id).map_err(random)?;
        let token =
            Token { id: token::hex(&id), name: name.to_owned(), role, created: now, sha256: secret.digest() };
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
    pub fn check(&self, secret: &str) -> Result<Option<Token<R>>, TokensError> {
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

    /// The token of a request, if it allows what is asked; `made_by` is the command that makes tokens.
    pub fn allowed(&self, headers: &HeaderMap, role: R, made_by: &str) -> Result<Token<R>, Problem>
    where
        R: AsRef<str>,
    {
        let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
        let secret = given
            .and_then(|given| given.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let Some((_, secret)) = secret else {
            return Err(Problem::unauthorized(format!(
                "say `Authorization: Bearer …` with a token of `{made_by}`"
            )));
        };
        let token = self.check(secret.trim()).map_err(|error| {
            tracing::error!(%error, "tokens cannot be checked");
            Problem::internal()
        })?;
        let token = token.ok_or_else(|| Problem::unauthorized("this token is not known, or was revoked"))?;
        // Roles may stand beside each other: neither is then enough for the other.
        let enough = token.role >= role;
        if !enough {
            let (has, needs) = (token.role.as_ref(), role.as_ref());
            return Err(Problem::forbidden(format!(
                "this token is of the role {has}, and {needs} is needed"
            )));
        }
        Ok(token)
    }

    fn write(&self, tokens: Vec<Token<R>>) -> Result<(), TokensError> {
        // Text and numbers: nothing that JSON could refuse.
        let bytes = serde_json::to_vec_pretty(&Written { format: FORMAT, tokens }).unwrap_or_default();
        (self.replace)(&self.path, &bytes).map_err(TokensError::Keep)
    }

    fn io(&self, error: io::Error) -> TokensError {
        TokensError::Io { path: self.path.clone(), error }
    }
}
