//! Registration keys and the keys of URLs: `number ["-" number]`, a number having ten digits or more (3.2).

use std::fmt;
use std::str::FromStr;

/// The longest key that is read: no norm bounds it, but a key that somebody has to keep is no book.
const LONGEST: usize = 256;

/// Whether a text has the grammar of a key: `1234567890` or `1426203276-5985125171467764`.
pub fn is_key(text: &str) -> bool {
    let number = |digits: &str| digits.len() >= 10 && digits.bytes().all(|c| c.is_ascii_digit());
    let (first, second) = match text.split_once('-') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    };
    text.len() <= LONGEST && number(first) && second.is_none_or(number)
}

/// A registration key (3.2). A secret: it is never shown by `Debug`, has no `Display`, and is not compared with `==`,
/// because the comparison that counts has to take constant time.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// The digits themselves, to hash or to send: never to log.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if is_key(text) { Ok(Self(text.to_owned())) } else { Err(KeyError) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A text that is no key. It is not repeated here: it may be a secret with one character wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is ten digits or more, and may have `-` and ten digits or more after it, as in 1234567890")]
pub struct KeyError;

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
            assert!(!is_key(text) && text.parse::<Key>().is_err(), "{text}");
        }
    }

    #[test]
    fn clause_d15_a_key_is_not_shown() {
        let key: Key = "1234567890".parse().unwrap();
        assert_eq!((format!("{key:?}").as_str(), key.reveal()), ("Key(…)", "1234567890"));
        assert!(!"12345-secret".parse::<Key>().unwrap_err().to_string().contains("secret"));
    }
}
