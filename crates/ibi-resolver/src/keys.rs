//! Registration keys (3.2): stored as Argon2id digests, compared in constant time, never shown, and
//! protected against guessing (threats K1 and K2).

mod limits;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use ibi_http::secret;
use ibi_protocol::RegistrationKey;
use ibi_protocol::analysis::ArchiveId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::ResolverRegistryError;
use limits::KeyAttemptLimits;

/// Number of digits of generated keys.
const GENERATED_KEY_DIGITS: usize = 32;

/// Maximum number of concurrent digests, each with its memory, and of requests waiting for one.
const MAX_CONCURRENT_HASHES: usize = 2;
const MAX_WAITING_HASHES: usize = 16;

/// The digest of a key that nobody has, so that an unregistered Archive takes the same time.
const DUMMY_KEY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zp2LhTBxuFbB9Ff1f7Mrjl1mMQ2QUOdLyBzDNBbLWvo";

/// How long a verified key is recognised without computing its digest, so that repeated requests of
/// an Archive are cheap.
const VERIFIED_KEY_LIFETIME: Duration = Duration::from_secs(3600);

/// Generates a key.
pub(crate) fn random() -> Result<RegistrationKey, ResolverRegistryError> {
    let failed = |error: String| ResolverRegistryError::Key(error);
    let mut digits = String::with_capacity(GENERATED_KEY_DIGITS);
    while digits.len() < GENERATED_KEY_DIGITS {
        let mut bytes = [0; 2 * GENERATED_KEY_DIGITS];
        getrandom::fill(&mut bytes).map_err(|error| failed(error.to_string()))?;
        // Bytes from 250 on would bias the digits.
        let fair = bytes.iter().filter(|byte| **byte < 250).map(|byte| char::from(b'0' + byte % 10));
        digits.extend(fair.take(GENERATED_KEY_DIGITS - digits.len()));
    }
    digits.parse().map_err(|error: ibi_protocol::RegistrationKeyError| failed(error.to_string()))
}

/// The digest of a key, as it is stored.
pub(crate) fn hash(key: &RegistrationKey) -> Result<String, ResolverRegistryError> {
    let failed = |error: argon2::password_hash::Error| ResolverRegistryError::Key(error.to_string());
    Ok(argon2().hash_password(key.reveal().as_bytes()).map_err(failed)?.to_string())
}

/// Whether a text is a valid key digest whose cost is within bounds.
pub(crate) fn is_hash(text: &str) -> bool {
    let Ok(hash) = PasswordHash::new(text) else { return false };
    let is_cheap =
        |params: Params| params.m_cost() <= 64 * 1024 && params.t_cost() <= 8 && params.p_cost() <= 4;
    hash.algorithm.as_str() == "argon2id"
        && hash.salt.is_some()
        && hash.hash.is_some()
        && Params::try_from(&hash).is_ok_and(is_cheap)
}

/// 19 MiB, two passes, one lane (OWASP's first choice): guessing ten digits from the file takes
/// years; 32 digits are infeasible.
fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

/// Verifies registration keys.
pub(crate) struct KeyVerifier {
    /// Random and secret, so that cached digests are useless elsewhere.
    salt: secret::Secret,
    waiting: Semaphore,
    at_once: Semaphore,
    limits: Mutex<KeyAttemptLimits>,
    remembered: Mutex<HashMap<ArchiveId, VerifiedKey>>,
}

struct VerifiedKey {
    key_hash: Arc<str>,
    digest: String,
    until: Instant,
}

/// Why a key was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRejection {
    /// Wrong key, or the Archive is not registered.
    Wrong,
    /// Too many wrong keys: retry after this time.
    Later(Duration),
    /// Too many requests are waiting.
    Busy,
}

impl KeyVerifier {
    pub(crate) fn new() -> Result<Self, ResolverRegistryError> {
        let salt =
            secret::Secret::random("").map_err(|error| ResolverRegistryError::Key(error.to_string()))?;
        Ok(Self {
            salt,
            waiting: Semaphore::new(MAX_CONCURRENT_HASHES + MAX_WAITING_HASHES),
            at_once: Semaphore::new(MAX_CONCURRENT_HASHES),
            limits: Mutex::default(),
            remembered: Mutex::default(),
        })
    }

    /// Verifies the key of an Archive. `service` is the label that the Archive gives itself,
    /// `known` its registry entry.
    pub(crate) async fn check(
        &self,
        service: &str,
        known: Option<(ArchiveId, Arc<str>)>,
        key: &RegistrationKey,
        client: IpAddr,
    ) -> Result<(), KeyRejection> {
        self.check_rate(service, client)?;
        let digest = secret::digest(&format!("{}{}", self.salt.reveal(), key.reveal()));
        if known.as_ref().is_some_and(|(id, key_hash)| self.is_remembered(*id, key_hash, &digest)) {
            lock(&self.limits).succeeded(service, client);
            return Ok(());
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| KeyRejection::Busy)?;
        let _turn = self.at_once.acquire().await.map_err(|_| KeyRejection::Busy)?;
        // Check again: others may have failed while this request waited.
        self.check_rate(service, client)?;
        let (key, key_hash) = (key.clone(), known.as_ref().map(|(_, key_hash)| key_hash.clone()));
        let look = move || verify_key(&key, key_hash.as_deref().unwrap_or(DUMMY_KEY_HASH));
        let looked = tokio::task::spawn_blocking(look).await;
        match known.filter(|_| looked.unwrap_or(false)) {
            Some((id, key_hash)) => {
                lock(&self.limits).succeeded(service, client);
                let until = Instant::now() + VERIFIED_KEY_LIFETIME;
                lock(&self.remembered).insert(id, VerifiedKey { key_hash, digest, until });
                Ok(())
            }
            None => {
                lock(&self.limits).failed(service, client, Instant::now());
                Err(KeyRejection::Wrong)
            }
        }
    }

    fn check_rate(&self, service: &str, client: IpAddr) -> Result<(), KeyRejection> {
        match lock(&self.limits).wait(service, client, Instant::now()) {
            None => Ok(()),
            Some(wait) => Err(KeyRejection::Later(wait)),
        }
    }

    fn is_remembered(&self, id: ArchiveId, key_hash: &str, digest: &str) -> bool {
        lock(&self.remembered).get(&id).is_some_and(|last| {
            *last.key_hash == *key_hash
                && last.until > Instant::now()
                && secret::digests_equal(&last.digest, digest)
        })
    }
}

/// Takes constant time for every key.
fn verify_key(key: &RegistrationKey, key_hash: &str) -> bool {
    PasswordHash::new(key_hash)
        .is_ok_and(|hash| argon2().verify_password(key.reveal().as_bytes(), &hash).is_ok())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
