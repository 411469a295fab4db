//! Authorisation: tokens with roles, stored as digests in a file.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use std::{fs, io};

use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::secret::{self, Secret};
use crate::token_name::{self, TokenNameError};

/// Prefix of every token, so that leaked tokens can be recognised.
pub(crate) const TOKEN_PREFIX: &str = "ibi_";

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord<R> {
    /// A random public id; the token owns what was created under it.
    pub id: String,
    /// Whom the token was issued to, as shown in item histories. Unique among tokens.
    pub name: String,
    /// The permissions.
    pub role: R,
    /// Creation time (RFC 3339, UTC).
    pub created: String,
    /// Expiry time (RFC 3339, UTC); without one, the token is valid until revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The token was seen expired, and stays expired whatever the clock says later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_expired: bool,
    /// Whether the token owns what was recorded under its name before ids existed: no other token
    /// had that name when ids were introduced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owns_by_name: bool,
    /// Prefixes whose labels it may bring from elsewhere.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Hex SHA-256 of the secret.
    sha256: String,
}

impl<R> TokenRecord<R> {
    /// Sets the expiry time. An expired token becomes valid again until then.
    pub fn set_expiry(&mut self, expires: Option<String>) {
        self.expires = expires;
        self.has_expired = false;
    }

    /// Whether it has expired at the given time or before.
    pub fn is_expired(&self, now: &str) -> bool {
        self.has_expired || self.expires.as_deref().is_some_and(|expires| expires <= now)
    }
}

/// The properties of a token to be created.
#[derive(Debug, Clone)]
pub struct NewToken<R> {
    /// Whom it is for; without a name, it is named after its id.
    pub name: Option<String>,
    /// The permissions.
    pub role: R,
    /// The current time (RFC 3339, UTC).
    pub created: String,
    /// Expiry time (RFC 3339, UTC).
    pub expires: Option<String>,
    /// Prefixes whose labels it may bring from elsewhere.
    pub prefixes: Vec<String>,
    /// The operator's name, if not `operator`: no token may have it.
    pub operator: Option<String>,
}

impl<R> NewToken<R> {
    /// A token without an expiry time.
    pub fn new(name: Option<&str>, role: R, created: String) -> Self {
        let name = name.map(str::to_owned);
        Self { name, role, created, expires: None, prefixes: Vec::new(), operator: None }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct TokenFile<R> {
    format: u32,
    tokens: Vec<TokenRecord<R>>,
}

/// Why tokens cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// An I/O error.
    #[error("cannot read or write {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error from the system.
        error: io::Error,
    },
    /// The file could not be updated.
    #[error("{0}")]
    Keep(String),
    /// The file has an unknown format.
    #[error("{} is unreadable: restore it from a backup, or remove it and create new tokens", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The name is taken: people tell tokens apart by name.
    #[error(
        "there is a token named {taken:?}, which is the same or looks alike: choose another name, or revoke that token"
    )]
    NameTaken {
        /// The name that is taken.
        taken: String,
    },
    /// The name is invalid or confusable.
    #[error("{name:?} is not a valid token name: {error}")]
    Name {
        /// The given name.
        name: String,
        /// The reason.
        error: TokenNameError,
    },
    /// The operator's name is invalid or confusable.
    #[error("{name:?} is not a valid operator name: {error}")]
    OperatorName {
        /// The given name.
        name: String,
        /// The reason.
        error: TokenNameError,
    },
    /// No such token.
    #[error("there is no token {id}: `token list` shows all")]
    Unknown {
        /// The given id.
        id: String,
    },
}

/// Computes the new content of a file from the old, or fails and changes nothing.
pub type TokenFileEdit<'a> = &'a mut dyn FnMut(Option<Vec<u8>>) -> Result<Vec<u8>, TokenStoreError>;

/// Updates a file under a lock, atomically and durably, with owner-only permissions; or returns why
/// that failed.
pub type TokenFileUpdater = fn(&Path, TokenFileEdit<'_>) -> Result<Result<(), TokenStoreError>, String>;

/// Distinguishes versions of the file: it is always replaced, never modified in place.
type TokenFileVersion = (SystemTime, u64, u64);

/// The tokens of a server. A greater role includes the lesser; roles that cannot be compared
/// exclude each other.
#[derive(Debug)]
pub struct TokenStore<R> {
    path: PathBuf,
    change: TokenFileUpdater,
    known: Mutex<Option<(TokenFileVersion, Vec<TokenRecord<R>>)>>,
}

const TOKEN_FILE_FORMAT: u32 = 2;

/// The first format: without `expires`, `prefixes` and the fields added with them, and with names
/// shared by several tokens.
const FORMAT_WITH_SHARED_NAMES: u32 = 1;

impl<R: Copy + PartialOrd + Serialize + DeserializeOwned> TokenStore<R> {
    /// The tokens in a file.
    pub fn new(path: PathBuf, change: TokenFileUpdater) -> Self {
        Self { path, change, known: Mutex::default() }
    }

    /// All tokens.
    pub fn list(&self) -> Result<Vec<TokenRecord<R>>, TokenStoreError> {
        match fs::read(&self.path) {
            Ok(bytes) => self.parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.io(error)),
        }
    }

    fn parse(&self, bytes: &[u8]) -> Result<Vec<TokenRecord<R>>, TokenStoreError> {
        let written: Option<TokenFile<R>> = serde_json::from_slice(bytes).ok();
        let written = written.filter(|written| (1..=TOKEN_FILE_FORMAT).contains(&written.format));
        let written = written.ok_or_else(|| TokenStoreError::Damaged { path: self.path.clone() })?;
        let mut tokens = written.tokens;
        if written.format == FORMAT_WITH_SHARED_NAMES {
            let names: Vec<String> = tokens.iter().map(|token| token.name.clone()).collect();
            for token in &mut tokens {
                token.owns_by_name = names.iter().filter(|name| **name == token.name).count() == 1;
            }
        }
        Ok(tokens)
    }

    /// Creates a token; its secret is returned only here.
    pub fn create(&self, new: NewToken<R>) -> Result<(TokenRecord<R>, Secret), TokenStoreError> {
        if let Some(name) = &new.name {
            let refused = |error| TokenStoreError::Name { name: name.clone(), error };
            token_name::check_token_name(name).map_err(refused)?;
            if token_name::is_operator_name(name, new.operator.as_deref()) {
                return Err(refused(TokenNameError::Operator));
            }
        }
        let random = |error: getrandom::Error| self.io(io::Error::other(error));
        let secret = Secret::random(TOKEN_PREFIX).map_err(random)?;
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(random)?;
        let id = secret::hex(&id);
        let token = TokenRecord {
            name: new.name.unwrap_or_else(|| format!("token-{id}")),
            id,
            role: new.role,
            created: new.created,
            expires: new.expires,
            has_expired: false,
            owns_by_name: false,
            prefixes: new.prefixes,
            sha256: secret.digest(),
        };
        self.update_file(|tokens| {
            check_name_free(&token.name, tokens)?;
            tokens.push(token.clone());
            Ok(())
        })?;
        Ok((token, secret))
    }

    /// Whether the operator may have this name: it must be a valid token name that no token has.
    pub fn check_operator_name(&self, name: &str) -> Result<(), TokenStoreError> {
        token_name::check_token_name(name)
            .map_err(|error| TokenStoreError::OperatorName { name: name.to_owned(), error })?;
        check_name_free(name, &self.list()?)
    }

    /// Revokes a token.
    pub fn revoke(&self, id: &str) -> Result<(), TokenStoreError> {
        self.update_file(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            if tokens.len() == before { Err(TokenStoreError::Unknown { id: id.to_owned() }) } else { Ok(()) }
        })
    }

    /// Replaces the secret of a token and returns the new one; the old one becomes invalid. The
    /// token keeps what it owns.
    pub fn rotate_secret(&self, id: &str) -> Result<Secret, TokenStoreError> {
        let secret = Secret::random(TOKEN_PREFIX).map_err(|error| self.io(io::Error::other(error)))?;
        self.update_token(id, |token| token.sha256 = secret.digest())?;
        Ok(secret)
    }

    /// Changes the properties of a token.
    pub fn update_token(
        &self,
        id: &str,
        update: impl Fn(&mut TokenRecord<R>),
    ) -> Result<(), TokenStoreError> {
        self.update_file(|tokens| {
            let token = tokens.iter_mut().find(|token| token.id == id);
            update(token.ok_or_else(|| TokenStoreError::Unknown { id: id.to_owned() })?);
            Ok(())
        })
    }

    fn update_file(
        &self,
        mut change: impl FnMut(&mut Vec<TokenRecord<R>>) -> Result<(), TokenStoreError>,
    ) -> Result<(), TokenStoreError> {
        let update = &mut |bytes: Option<Vec<u8>>| {
            let mut tokens = bytes.map_or_else(|| Ok(Vec::new()), |bytes| self.parse(&bytes))?;
            change(&mut tokens)?;
            // Text and numbers: JSON can represent both.
            Ok(serde_json::to_vec_pretty(&TokenFile { format: TOKEN_FILE_FORMAT, tokens })
                .unwrap_or_default())
        };
        (self.change)(&self.path, update).map_err(TokenStoreError::Keep)?
    }

    /// The token with this secret, expired or not. The file is reread when it has changed.
    pub fn find_by_secret(&self, secret: &str) -> Result<Option<TokenRecord<R>>, TokenStoreError> {
        let digest = secret::digest(secret);
        // Compare with all tokens, so that timing does not reveal which one matched.
        self.with_tokens(|tokens| {
            tokens.iter().fold(None, |found, token| {
                if secret::digests_equal(&token.sha256, &digest) { Some(token.clone()) } else { found }
            })
        })
        .map(Option::flatten)
    }

    /// Durably records which tokens have expired by now, so that a clock that goes back does not
    /// make them valid again.
    pub fn record_expired(&self, now: &str) -> Result<(), TokenStoreError> {
        let is_new = |token: &TokenRecord<R>| !token.has_expired && token.is_expired(now);
        if self.with_tokens(|tokens| tokens.iter().any(is_new))? != Some(true) {
            return Ok(());
        }
        self.update_file(|tokens| {
            tokens.iter_mut().filter(|token| is_new(token)).for_each(|token| token.has_expired = true);
            Ok(())
        })
    }

    /// Runs a function on all tokens; `None` if there is no file.
    fn with_tokens<T>(
        &self,
        read: impl FnOnce(&[TokenRecord<R>]) -> T,
    ) -> Result<Option<T>, TokenStoreError> {
        use std::os::unix::fs::MetadataExt as _;
        let version = fs::metadata(&self.path)
            .and_then(|metadata| Ok((metadata.modified()?, metadata.ino(), metadata.len())));
        let Ok(version) = version else { return Ok(None) };
        let Ok(mut known) = self.known.lock() else { return Ok(None) };
        if known.as_ref().is_none_or(|(read, _)| *read != version) {
            *known = Some((version, self.list()?));
        }
        Ok(known.as_ref().map(|(_, tokens)| read(tokens)))
    }

    /// The token of a request, if it grants the role. `made_by` is the command that creates tokens,
    /// and `now` the time in the format of [`TokenRecord::expires`].
    pub fn authorize(
        &self,
        headers: &HeaderMap,
        role: R,
        made_by: &str,
        now: &str,
    ) -> Result<TokenRecord<R>, Problem>
    where
        R: AsRef<str>,
    {
        let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
        let secret = given
            .and_then(|given| given.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let Some((_, secret)) = secret else {
            return Err(Problem::unauthorized(format!(
                "send `Authorization: Bearer …` with a token created by `{made_by}`"
            )));
        };
        let token = self.find_by_secret(secret.trim()).map_err(|error| {
            tracing::error!(%error, "cannot check tokens");
            Problem::internal()
        })?;
        let token = token.ok_or_else(|| Problem::unauthorized("this token is unknown or was revoked"))?;
        if token.is_expired(now) {
            if let Err(error) = self.record_expired(now) {
                tracing::warn!(%error, "could not record that a token has expired; until then it depends on the clock");
            }
            return Err(Problem::unauthorized("this token has expired: ask an operator for a new one"));
        }
        // Roles may be incomparable: then neither suffices for the other.
        let enough = token.role >= role;
        if !enough {
            let (has, needs) = (token.role.as_ref(), role.as_ref());
            return Err(Problem::forbidden(format!(
                "this token has the role {has}; the role {needs} is required"
            )));
        }
        Ok(token)
    }

    fn io(&self, error: io::Error) -> TokenStoreError {
        TokenStoreError::Io { path: self.path.clone(), error }
    }
}

/// Checks that no token has this name or id, or one that looks like it.
fn check_name_free<R>(name: &str, tokens: &[TokenRecord<R>]) -> Result<(), TokenStoreError> {
    let shape = token_name::confusable_shape(name);
    let looks_so = |text: &str| token_name::confusable_shape(text) == shape;
    match tokens.iter().find(|other| looks_so(&other.name) || looks_so(&other.id)) {
        Some(other) => Err(TokenStoreError::NameTaken { taken: other.name.clone() }),
        None => Ok(()),
    }
}
