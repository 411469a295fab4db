//! File names: any bytes of a deposit, as text for an inventory and as names that are portable
//! across filesystems (`docs/formats/tree.md`).

use std::collections::HashSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use crate::text_block::hex;

/// Maximum length of the name of one file or folder, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Maximum length of a path within an item, in bytes. With its parent path it must fit the limits
/// of operating systems.
pub const MAX_PATH_BYTES: usize = 2048;

/// An invalid path within an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OcflNameError {
    /// A part of the path is empty.
    #[error("a part of the path is empty")]
    Empty,
    /// The path would escape the item.
    #[error("`.` and `..` lead out of the item")]
    Dots,
    /// No file name can have a NUL byte.
    #[error("it has a NUL byte, which no file name can have")]
    Nul,
    /// The path or a name in it is too long.
    #[error("a name is longer than {MAX_NAME_BYTES} bytes, or the path longer than {MAX_PATH_BYTES}")]
    Long,
}

/// The path as text. Escapes as `%` and two hex digits: bytes that are not UTF-8, control
/// characters, `%` itself, and `"` and `\`, which some readers of inventories mishandle.
pub fn logical_path(path: &[u8]) -> Result<String, OcflNameError> {
    if path.len() > MAX_PATH_BYTES {
        return Err(OcflNameError::Long);
    }
    for name in path.split(|&byte| byte == b'/') {
        match name {
            b"" => return Err(OcflNameError::Empty),
            b"." | b".." => return Err(OcflNameError::Dots),
            _ if name.contains(&0) => return Err(OcflNameError::Nul),
            _ if name.len() > MAX_NAME_BYTES => return Err(OcflNameError::Long),
            _ => {}
        }
    }
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '%' | '"' | '\\') || c.is_control() {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_percent_escape(byte, &mut text));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_percent_escape(byte, &mut text));
    }
    Ok(text)
}

pub(crate) fn push_percent_escape(byte: u8, text: &mut String) {
    // Writing to a `String` does not fail.
    let _ = write!(text, "%{byte:02X}");
}

/// The bytes of a path in the encoding of [`logical_path`]. A `%` that begins no escape is literal.
pub fn decode_logical_path(logical: &str) -> Vec<u8> {
    let mut path = Vec::with_capacity(logical.len());
    let mut parts = logical.split('%');
    path.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    // Each part follows a `%`.
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

/// Assigns names on disk to the files of one version.
#[derive(Debug, Default)]
pub struct ContentNames {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl ContentNames {
    /// The name on disk for a logical path. It is the same, unless it is not portable to some
    /// filesystem that the tree may be copied to: too long, with reserved characters, or equal to
    /// another but for case or Unicode composition. Then it is derived from the path's digest, and
    /// the inventory maps it.
    pub fn name(&mut self, logical: &str) -> String {
        let folded: String = logical.nfc().flat_map(char::to_lowercase).collect();
        let folders: Vec<&str> = folded.match_indices('/').map(|(end, _)| &folded[..end]).collect();
        let plain = logical.split('/').all(is_portable_name)
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

fn is_portable_name(name: &str) -> bool {
    const RESERVED_DEVICE_NAMES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit());
    name.len() <= MAX_NAME_BYTES
        && !name.contains(['<', '>', ':', '"', '|', '?', '*', '\\'])
        && !name.ends_with(['.', ' '])
        && !name.starts_with(' ')
        && !RESERVED_DEVICE_NAMES.iter().any(|device| stem.eq_ignore_ascii_case(device))
}
