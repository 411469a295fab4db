//! The text files of bags: BagIt 1.0 (RFC 8493) and its predecessor 0.97.
//!
//! This module handles text only and opens no file. [`BagVersion`] is what `bagit.txt` declares,
//! [`ManifestName`] reads and writes manifests, [`read_info`] and [`write_info`] handle
//! `bag-info.txt`, and [`PayloadOxum`] is the one value in it that is checked.
//!
//! # Names with `%`
//!
//! RFC 8493 encodes `%`, line feed and carriage return in a path as `%25`, `%0A` and `%0D`. The
//! most common validator, `bagit` of PyPI (1.9.0), does not decode `%25`: in a correct bag of
//! version 1.0 it never finds a file with `%` in its name. Version 0.97 encodes no path, and both
//! sides take `%` literally. A bag whose paths have a `%` and no line break is therefore best
//! written as 0.97; [`BagVersion::best_for`] chooses.

mod manifest;

use std::fmt;
use std::str::FromStr;

pub use manifest::{BagManifest, ChecksumAlgorithm, ManifestEntry, ManifestKind, ManifestName};

use ibi_protocol::untrusted_text::quote_untrusted;

/// A version of BagIt that can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BagVersion {
    /// The draft that most existing bags follow. Paths are not encoded.
    V0_97,
    /// RFC 8493. In paths, `%`, line feed and carriage return are encoded.
    V1_0,
}

impl BagVersion {
    /// Parses `bagit.txt`.
    pub fn of_declaration(text: &str) -> Result<Self, BagError> {
        if text.starts_with('\u{feff}') {
            return Err(BagError::ByteOrderMark);
        }
        let lines: Vec<&str> =
            numbered_lines(text).map(|(_, line)| line).filter(|line| !line.trim().is_empty()).collect();
        let &[version, encoding] = lines.as_slice() else { return Err(BagError::Declaration) };
        let (label, number) = parse_tag(version, "BagIt-Version")?;
        let version = match number {
            // RFC 8493 forbids white space before the colon; earlier versions allowed it.
            "1.0" if label.ends_with(char::is_whitespace) => return Err(BagError::Declaration),
            "1.0" => BagVersion::V1_0,
            "0.97" => BagVersion::V0_97,
            _ => return Err(BagError::Version { given: quote_untrusted(number) }),
        };
        let (_, encoding) = parse_tag(encoding, "Tag-File-Character-Encoding")?;
        if encoding.eq_ignore_ascii_case("UTF-8") {
            Ok(version)
        } else {
            Err(BagError::Encoding { given: quote_untrusted(encoding) })
        }
    }

    /// The content of `bagit.txt`.
    pub const fn declaration(self) -> &'static str {
        match self {
            BagVersion::V0_97 => "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n",
            BagVersion::V1_0 => "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        }
    }

    /// The version to use for these payload paths: 1.0, unless `bagit` of PyPI validates them only
    /// as 0.97.
    pub fn best_for<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Self {
        let suits = |version: BagVersion| paths.clone().all(|path| version.suits_pypi(path));
        if !suits(BagVersion::V1_0) && suits(BagVersion::V0_97) {
            BagVersion::V0_97
        } else {
            BagVersion::V1_0
        }
    }

    /// Whether `bagit` of PyPI (1.9.0) finds the file of this payload path in a manifest of this
    /// version.
    ///
    /// If it does not, the bag is still valid, but the person who sends it should be warned.
    /// (`bagit` also treats paths that differ only in Unicode normalization as one.)
    pub fn suits_pypi(self, path: &str) -> bool {
        // It splits lines where Python does and strips white space at their ends. Rust's
        // `is_whitespace` covers all of that but U+001F.
        let breaks = path.contains(breaks_line_in_python);
        let strips =
            path.ends_with(|c: char| c == '\u{1f}' || (c.is_whitespace() && !matches!(c, '\n' | '\r')));
        let decodes = match self {
            // It decodes only the first two of each.
            BagVersion::V1_0 => {
                !path.contains('%') && path.matches('\n').count() <= 2 && path.matches('\r').count() <= 2
            }
            // It decodes these, in capitals, although 0.97 encodes nothing.
            BagVersion::V0_97 => {
                !path.contains(['\n', '\r']) && !path.contains("%0A") && !path.contains("%0D")
            }
        };
        decodes && !breaks && !strips
    }
}

impl fmt::Display for BagVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            BagVersion::V0_97 => "0.97",
            BagVersion::V1_0 => "1.0",
        })
    }
}

/// Label and value of a line of `bagit.txt`. The label is returned as written.
fn parse_tag<'a>(line: &'a str, wanted: &str) -> Result<(&'a str, &'a str), BagError> {
    let (label, value) = line.split_once(':').ok_or(BagError::Declaration)?;
    if label.trim().eq_ignore_ascii_case(wanted) {
        Ok((label, value.trim()))
    } else {
        Err(BagError::Declaration)
    }
}

/// Lines, numbered from 1. A line ends with a line feed, a carriage return, or both.
fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    let next = move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = rest.split_at(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
        Some(line)
    };
    (1..).zip(std::iter::from_fn(next))
}

/// Where Python ends a line, besides line feed and carriage return.
fn breaks_line_in_python(c: char) -> bool {
    matches!(c, '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Parses `bag-info.txt` into labels and values, in order. The lines of a multi-line value are
/// joined by line feeds.
pub fn read_info(text: &str) -> Result<Vec<(String, String)>, BagError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (number, line) in numbered_lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        match (pairs.last_mut(), line.split_once(':')) {
            (Some((_, value)), _) if line.starts_with([' ', '\t']) => {
                if !value.is_empty() {
                    value.push('\n');
                }
                value.push_str(line.trim());
            }
            (_, Some((label, value))) if !label.trim().is_empty() => {
                pairs.push((label.trim().to_owned(), value.trim().to_owned()));
            }
            _ => return Err(BagError::InfoLine { line: number, given: quote_untrusted(line) }),
        }
    }
    Ok(pairs)
}

/// Writes `bag-info.txt`. Continuation lines are indented; empty lines and white space around lines
/// are lost.
pub fn write_info<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<String, BagError> {
    let mut text = String::new();
    for (label, value) in pairs {
        if label.is_empty()
            || label.trim() != label
            || label.contains([':', '\n', '\r'])
            || label.contains(breaks_line_in_python)
        {
            return Err(BagError::Label { given: quote_untrusted(label) });
        }
        let mut lines = value
            .split(|c| matches!(c, '\n' | '\r') || breaks_line_in_python(c))
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let first = lines.next().ok_or_else(|| BagError::NoValue { label: quote_untrusted(label) })?;
        text.extend([label, ": ", first, "\n"]);
        lines.for_each(|line| text.extend(["  ", line, "\n"]));
    }
    Ok(text)
}

/// The size of the payload: the value `Payload-Oxum` of `bag-info.txt`, as in `279164409832.1198`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadOxum {
    /// Total bytes of the payload files.
    pub bytes: u64,
    /// Number of payload files.
    pub files: u64,
}

impl PayloadOxum {
    /// The label in `bag-info.txt`.
    pub const INFO_LABEL: &'static str = "Payload-Oxum";
}

impl FromStr for PayloadOxum {
    type Err = BagError;

    fn from_str(text: &str) -> Result<Self, BagError> {
        // `parse` accepts a leading sign; Payload-Oxum does not.
        let number =
            |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|c| c.is_ascii_digit()));
        text.split_once('.')
            .and_then(|(bytes, files)| Some(PayloadOxum { bytes: number(bytes)?, files: number(files)? }))
            .ok_or_else(|| BagError::Oxum { given: quote_untrusted(text) })
    }
}

impl fmt::Display for PayloadOxum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.bytes, self.files)
    }
}

/// Why a bag cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BagError {
    /// A malformed `bagit.txt`.
    #[error(
        "bagit.txt is not right: it has to have two lines, `BagIt-Version: 1.0` and `Tag-File-Character-Encoding: UTF-8`"
    )]
    Declaration,
    /// `bagit.txt` with a byte order mark.
    #[error("bagit.txt begins with a byte order mark, which BagIt forbids: save it as UTF-8 without one")]
    ByteOrderMark,
    /// An unsupported version.
    #[error(
        "bagit.txt says version `{given}`: bags of 0.97 and 1.0 can be read. Ask for the bag in one of these"
    )]
    Version {
        /// The version.
        given: String,
    },
    /// An unsupported encoding.
    #[error(
        "bagit.txt says that the manifests are in `{given}`: only UTF-8 can be read. Convert them and bag-info.txt with \
         iconv, write UTF-8 in bagit.txt, and regenerate the tag manifests"
    )]
    Encoding {
        /// The encoding.
        given: String,
    },
    /// A manifest of an unknown algorithm.
    #[error(
        "`{given}` cannot be checked: md5, sha1, sha256 and sha512 are known. Ask for a manifest of one of these"
    )]
    Algorithm {
        /// The name of the manifest.
        given: String,
    },
    /// An invalid line of a manifest.
    #[error("{manifest}, line {line}: {what}. Ask the creator of the bag for a corrected one")]
    Line {
        /// Which manifest.
        manifest: ManifestName,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: ManifestEntryError,
    },
    /// An entry that cannot be written.
    #[error("{manifest} cannot have this entry: {what}. Rename the file, or leave it out of the bag")]
    Entry {
        /// Which manifest.
        manifest: ManifestName,
        /// What is wrong with it.
        what: ManifestEntryError,
    },
    /// An invalid line of `bag-info.txt`.
    #[error(
        "bag-info.txt, line {line}: `{given}` has no label: write a label, a colon and a value, as in Contact-Name: …"
    )]
    InfoLine {
        /// The line, from 1.
        line: usize,
        /// The line as written.
        given: String,
    },
    /// A label that cannot be written.
    #[error(
        "`{given}` cannot be a label of bag-info.txt: it has one line without colon, and no white space around it"
    )]
    Label {
        /// The label.
        given: String,
    },
    /// The value has only white space.
    #[error("the value of {label} is empty: leave it out of bag-info.txt")]
    NoValue {
        /// Its label.
        label: String,
    },
    /// A malformed Payload-Oxum.
    #[error(
        "`{given}` is not a Payload-Oxum: write how many bytes, a dot and how many files, as in 1048576.12"
    )]
    Oxum {
        /// What was given.
        given: String,
    },
}

/// Why an entry of a manifest is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestEntryError {
    /// Not a checksum and a path.
    #[error("`{given}` is not a checksum of {digits} hexadecimal digits, white space and a path")]
    Shape {
        /// The line.
        given: String,
        /// How many digits a checksum of this algorithm has.
        digits: usize,
    },
    /// A path that is unsafe or invalid.
    #[error("the path `{path}` is refused: {why}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that is listed twice.
    #[error("duplicate path `{path}`")]
    Twice {
        /// The path.
        path: String,
    },
}

#[cfg(test)]
mod tests;
