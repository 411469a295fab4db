//! Registration keys and URL keys: `number ["-" number]`, each number having ten or more digits
//! (3.2).

use std::fmt;
use std::str::FromStr;

/// Limit on a key. The standard sets none, but keys are stored.
const MAX_KEY_BYTES: usize = 256;

/// Whether a text has the grammar of a key: `1234567890` or `1426203276-5985125171467764`.
pub fn is_key(text: &str) -> bool {
    let number = |digits: &str| digits.len() >= 10 && digits.bytes().all(|c| c.is_ascii_digit());
    let (first, second) = match text.split_once('-') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    };
    text.len() <= MAX_KEY_BYTES && number(first) && second.is_none_or(number)
}

/// A registration key (3.2). It is a secret: `Debug` hides it, there is no `Display`, and no `==`,
/// because keys must be compared in constant time.
#[derive(Clone)]
pub struct RegistrationKey(String);

impl RegistrationKey {
    /// The key in clear text, to hash or to send; never log it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for RegistrationKey {
    type Err = RegistrationKeyError;

    fn from_str(text: &str) -> Result<Self, RegistrationKeyError> {
        if is_key(text) { Ok(Self(text.to_owned())) } else { Err(RegistrationKeyError) }
    }
}

impl fmt::Debug for RegistrationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Not a valid key. The text is not repeated, because it may be a secret with a typo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is ten digits or more, optionally followed by `-` and ten digits or more, as in 1234567890")]
pub struct RegistrationKeyError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_3_2_a_key_is_one_or_two_numbers_of_ten_digits_or_more() {
        for key in ["1234567890", "1426203276-5985125171467764", &"1".repeat(256)] {
            assert!(is_key(key), "{key}");
        }
        for text in [
            "",
            "-",
            "123456789",
            "1234567890-",
            "1234567890-123456789",
            "-1234567890",
            "1234567890-1234567890-1234567890",
            "12345678x0",
            "1234567890 ",
            "１234567890",
            &"1".repeat(257),
        ] {
            assert!(!is_key(text) && text.parse::<RegistrationKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn clause_d15_a_key_is_not_shown() {
        let key: RegistrationKey = "1234567890".parse().unwrap();
        assert_eq!((format!("{key:?}").as_str(), key.reveal()), ("Key(…)", "1234567890"));
        assert!(!"12345-secret".parse::<RegistrationKey>().unwrap_err().to_string().contains("secret"));
    }
}
