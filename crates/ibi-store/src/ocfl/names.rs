//! Names of files: any bytes that a deposit may carry, as text that an inventory can hold, and as names that every
//! filesystem can (`docs/formats/tree.md`).

use std::collections::HashSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::hex;

/// The longest name of one file or folder, in bytes.
pub const LONGEST_NAME: usize = 255;
/// The longest path within an item, in bytes: with what stands before it, it must fit what systems take.
pub const LONGEST_PATH: usize = 2048;

/// A path that an item cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// No name at all.
    #[error("a part of the path is empty")]
    Empty,
    /// Would lead out of the item.
    #[error("`.` and `..` lead out of the item")]
    Dots,
    /// No file can be named so.
    #[error("it has a NUL byte, which no file name can have")]
    Nul,
    /// Too long.
    #[error("a name is longer than {LONGEST_NAME} bytes, or the path longer than {LONGEST_PATH}")]
    Long,
}

/// The path as text: what is not UTF-8, control characters, `%` itself, and `"` and `\`, over which readers of inventories
/// stumble, are written as `%` and two hex digits.
pub fn logical(path: &[u8]) -> Result<String, BadName> {
    if path.len() > LONGEST_PATH {
        return Err(BadName::Long);
    }
    for name in path.split(|&byte| byte == b'/') {
        match name {
            b"" => return Err(BadName::Empty),
            b"." | b".." => return Err(BadName::Dots),
            _ if name.contains(&0) => return Err(BadName::Nul),
            _ if name.len() > LONGEST_NAME => return Err(BadName::Long),
            _ => {}
        }
    }
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '%' | '"' | '\\') || c.is_control() {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(byte, &mut text));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&byte| escape(byte, &mut text));
    }
    Ok(text)
}

pub(crate) fn escape(byte: u8, text: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(text, "%{byte:02X}");
}

/// The bytes of a path that is written as [`logical`] writes it. A `%` that begins no escape stands for itself.
pub fn raw(logical: &str) -> Vec<u8> {
    let mut path = Vec::with_capacity(logical.len());
    let mut parts = logical.split('%');
    path.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    // Each of them stands after a `%`.
    for part in parts {
        let escaped = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                path.push(byte);
                path.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                path.push(b'%');
                path.extend_from_slice(part.as_bytes());
            }
        }
    }
    path
}

/// Gives the files of one version names on disk.
#[derive(Debug, Default)]
pub struct ContentNames {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl ContentNames {
    /// The name on disk of a logical path: the same, unless it would be trouble on some filesystem that the tree may be
    /// copied to: too long, reserved characters, or the twin of another but for case or composition of accents.
    /// Then a name made from its digest, which the inventory explains.
    pub fn name(&mut self, logical: &str) -> String {
        let folded: String = logical.nfc().flat_map(char::to_lowercase).collect();
        let folders: Vec<&str> = folded.match_indices('/').map(|(end, _)| &folded[..end]).collect();
        let plain = logical.split('/').all(is_plain)
            && !self.files.contains(&folded)
            && !self.folders.contains(&folded)
            && !folders.iter().any(|folder| self.files.contains(*folder));
        if !plain {
            let digest = hex(&Sha256::digest(logical.as_bytes()));
            let top = logical.split_once('/').map_or("", |(top, _)| top);
            return format!("{top}/%~{}", &digest[..32]);
        }
        self.folders.extend(folders.into_iter().map(str::to_owned));
        self.files.insert(folded);
        logical.to_owned()
    }
}

fn is_plain(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit());
    name.len() <= LONGEST_NAME
        && !name.contains(['<', '>', ':', '"', '|', '?', '*', '\\'])
        && !name.ends_with(['.', ' '])
        && !name.starts_with(' ')
        && !DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device))
}
