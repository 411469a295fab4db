//! Registration keys (3.2): kept as Argon2id digests, compared in constant time, never shown, and not to be guessed (threats
//! K1 and K2).

mod limits;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use ibi_http::token;
use ibi_protocol::Key;
use ibi_protocol::analysis::ArchiveId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::registry::RegistryError;
use limits::Limits;

/// The digits of keys that are made here.
const DIGITS: usize = 32;

/// At most so many digests at once, each with its memory, and so many that wait for their turn.
const AT_ONCE: usize = 2;
const WAITING: usize = 16;

/// The digest of a key that nobody has: an Archive that is not registered costs the same time.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zp2LhTBxuFbB9Ff1f7Mrjl1mMQ2QUOdLyBzDNBbLWvo";

/// How long a key that was right is recognised without its digest, so that an Archive that repeats itself costs nothing.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A new key.
pub(crate) fn random() -> Result<Key, RegistryError> {
    let failed = |error: String| RegistryError::Key(error);
    let mut digits = String::with_capacity(DIGITS);
    while digits.len() < DIGITS {
        let mut bytes = [0; 2 * DIGITS];
        getrandom::fill(&mut bytes).map_err(|error| failed(error.to_string()))?;
        // Bytes from 250 on would make some digits more frequent than others.
        let fair = bytes.iter().filter(|byte| **byte < 250).map(|byte| char::from(b'0' + byte % 10));
        digits.extend(fair.take(DIGITS - digits.len()));
    }
    digits.parse().map_err(|error: ibi_protocol::KeyError| failed(error.to_string()))
}

/// What is kept of a key.
pub(crate) fn hash(key: &Key) -> Result<String, RegistryError> {
    let failed = |error: argon2::password_hash::Error| RegistryError::Key(error.to_string());
    Ok(argon2().hash_password(key.reveal().as_bytes()).map_err(failed)?.to_string())
}

/// Whether a text is what is kept of a key, and costs no more than it should.
pub(crate) fn is_hash(text: &str) -> bool {
    let Ok(hash) = PasswordHash::new(text) else { return false };
    let is_cheap =
        |params: Params| params.m_cost() <= 64 * 1024 && params.t_cost() <= 8 && params.p_cost() <= 4;
    hash.algorithm.as_str() == "argon2id"
        && hash.salt.is_some()
        && hash.hash.is_some()
        && Params::try_from(&hash).is_ok_and(is_cheap)
}

/// 19 MiB, two passes, one lane (OWASP's first choice): ten digits cost years of guessing from the file, 32 any attacker's life.
fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

/// Who looks at keys.
pub(crate) struct Keys {
    /// Secret, so that what is remembered is worth nothing elsewhere.
    salt: token::Secret,
    waiting: Semaphore,
    at_once: Semaphore,
    limits: Mutex<Limits>,
    remembered: Mutex<HashMap<ArchiveId, Remembered>>,
}

struct Remembered {
    key_hash: Arc<str>,
    digest: String,
    until: Instant,
}

/// Why a key was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is wrong, or the Archive is not registered.
    Wrong,
    /// There were too many wrong ones: not before this time has passed.
    Later(Duration),
    /// Too many wait.
    Busy,
}

impl Keys {
    pub(crate) fn new() -> Result<Self, RegistryError> {
        let salt = token::Secret::random("").map_err(|error| RegistryError::Key(error.to_string()))?;
        Ok(Self {
            salt,
            waiting: Semaphore::new(AT_ONCE + WAITING),
            at_once: Semaphore::new(AT_ONCE),
            limits: Mutex::default(),
            remembered: Mutex::default(),
        })
    }

    /// Whether a key is that of an Archive: `service` is what the Archive calls itself, `known` what the registry knows of it.
    pub(crate) async fn check(
        &self,
        service: &str,
        known: Option<(ArchiveId, Arc<str>)>,
        key: &Key,
        client: IpAddr,
    ) -> Result<(), Refused> {
        self.allowed(service, client)?;
        let digest = token::digest(&format!("{}{}", self.salt.reveal(), key.reveal()));
        if known.as_ref().is_some_and(|(id, key_hash)| self.remembers(*id, key_hash, &digest)) {
            lock(&self.limits).succeeded(service, client);
            return Ok(());
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| Refused::Busy)?;
        let _turn = self.at_once.acquire().await.map_err(|_| Refused::Busy)?;
        // Again: others may have failed while this one waited.
        self.allowed(service, client)?;
        let (key, key_hash) = (key.clone(), known.as_ref().map(|(_, key_hash)| key_hash.clone()));
        let look = move || is_right(&key, key_hash.as_deref().unwrap_or(NOBODY));
        let looked = tokio::task::spawn_blocking(look).await;
        match known.filter(|_| looked.unwrap_or(false)) {
            Some((id, key_hash)) => {
                lock(&self.limits).succeeded(service, client);
                let until = Instant::now() + REMEMBERED;
                lock(&self.remembered).insert(id, Remembered { key_hash, digest, until });
                Ok(())
            }
            None => {
                lock(&self.limits).failed(service, client, Instant::now());
                Err(Refused::Wrong)
            }
        }
    }

    fn allowed(&self, service: &str, client: IpAddr) -> Result<(), Refused> {
        match lock(&self.limits).wait(service, client, Instant::now()) {
            None => Ok(()),
            Some(wait) => Err(Refused::Later(wait)),
        }
    }

    fn remembers(&self, id: ArchiveId, key_hash: &str, digest: &str) -> bool {
        lock(&self.remembered).get(&id).is_some_and(|last| {
            *last.key_hash == *key_hash && last.until > Instant::now() && token::equal(&last.digest, digest)
        })
    }
}

/// In constant time, whatever the key.
fn is_right(key: &Key, key_hash: &str) -> bool {
    PasswordHash::new(key_hash)
        .is_ok_and(|hash| argon2().verify_password(key.reveal().as_bytes(), &hash).is_ok())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
