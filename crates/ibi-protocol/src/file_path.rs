//! The path of a file within an item, in a persistent URL or a urlRequest (3.4, D20).

use std::fmt;

use percent_encoding::percent_decode;

/// Limit on a path.
const MAX_FILE_PATH_BYTES: usize = 4096;

/// An absolute path, decoded once: one `/`, then the names. May contain bytes that are not UTF-8,
/// because old links are in ISO 8859-1 (D23).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FilePath(Vec<u8>);

impl FilePath {
    /// Parses a decoded path, with or without a leading `/` (D20). `None` for an empty path or only
    /// slashes.
    pub fn new(path: &[u8]) -> Result<Option<Self>, FilePathError> {
        let start = path.iter().take_while(|&&c| c == b'/').count();
        let names = &path[start..];
        if names.is_empty() {
            return Ok(None);
        }
        if names.len() >= MAX_FILE_PATH_BYTES {
            return Err(FilePathError::TooLong);
        }
        if names.contains(&0) {
            return Err(FilePathError::Zero);
        }
        if leads_up(names) {
            return Err(FilePathError::LeadsUp);
        }
        Ok(Some(Self([b"/", names].concat())))
    }

    /// Parses a percent-encoded path of a URL. `+` is literal there.
    pub fn from_url(path: &str) -> Result<Option<Self>, FilePathError> {
        Self::new(&percent_decode(path.as_bytes()).collect::<Vec<u8>>())
    }

    /// The path with its leading `/`, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The path with its leading `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePath({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// Whether a name is `..` in any encoding (D20). Decodes until nothing changes and treats `\` as
/// `/`, since later software may do either. Names that merely begin with dots are fine.
fn leads_up(names: &[u8]) -> bool {
    let mut names = names.to_vec();
    // Legitimate paths are not encoded this often; one that still changes after 8 passes is
    // rejected.
    for _ in 0..8 {
        if names.split(|c| matches!(c, b'/' | b'\\')).any(|name| name == b"..") {
            return true;
        }
        let decoded: Vec<u8> = percent_decode(&names).collect();
        if decoded == names {
            return false;
        }
        names = decoded;
    }
    true
}

/// Why a path is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilePathError {
    /// `..`, in any encoding.
    #[error("the path has `..`: name the file from the item's root")]
    LeadsUp,
    /// A zero byte, which no file system allows in names.
    #[error("the path has a zero byte, which no file name can have")]
    Zero,
    /// Too long.
    #[error("the path is too long: the limit is {MAX_FILE_PATH_BYTES} bytes")]
    TooLong,
}
