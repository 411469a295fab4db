//! Secrets for programs: 256 random bits, stored as a digest, compared in constant time.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A secret. `Debug` does not show it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// An existing secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// A new random secret. Fails only if the system has no randomness.
    pub fn random(prefix: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{prefix}{}", hex(&bytes))))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The digest that is stored.
    pub fn digest(&self) -> String {
        digest(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The digest of a secret, as it is stored.
pub fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Compares two digests in constant time.
pub fn digests_equal(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(HEX_DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
