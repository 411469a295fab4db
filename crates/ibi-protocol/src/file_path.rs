//! The path to a file inside an item, as a persistent URL and a urlRequest have it (3.4, D20).

use std::fmt;

use percent_encoding::percent_decode;

/// The longest path that is read, in bytes.
const LONGEST: usize = 4096;

/// An absolute path, decoded once: one `/`, then the names. It can hold bytes that are not UTF-8, because links from
/// the days of ISO 8859-1 do (D23).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FilePath(Vec<u8>);

impl FilePath {
    /// Reads a path that is already decoded. With a leading `/` or without (D20); no path at all, or only slashes, is
    /// `None`.
    pub fn new(path: &[u8]) -> Result<Option<Self>, FilePathError> {
        let start = path.iter().take_while(|&&c| c == b'/').count();
        let names = &path[start..];
        if names.is_empty() {
            return Ok(None);
        }
        if names.len() >= LONGEST {
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

    /// Reads a path as it stands in a URL, percent-encoded. `+` is itself there.
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

/// `..` as a name, in any encoding (D20): decoded until nothing changes, and with `\` as `/`, since somebody further
/// on may do either. A name that merely begins with dots is fine.
fn leads_up(names: &[u8]) -> bool {
    let mut names = names.to_vec();
    // Nobody honest encodes so often; a path that is not plain by then has something to hide.
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

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilePathError {
    /// `..`, in whatever encoding.
    #[error("the path has `..`: name the file from the item's root")]
    LeadsUp,
    /// A zero byte, which no system has in a name.
    #[error("the path has a zero byte: no file is named so")]
    Zero,
    /// More bytes than a path needs.
    #[error("the path is too long: it has fewer than {LONGEST} bytes")]
    TooLong,
}
