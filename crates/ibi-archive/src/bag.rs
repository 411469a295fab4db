//! Bags, as archives hand files over to each other: the text files of BagIt 1.0 (RFC 8493) and of 0.97 before it.
//!
//! This is text only: nothing here opens a file. [`Version`] is what `bagit.txt` says, [`ManifestName`] reads and writes
//! the manifests, [`read_info`] and [`write_info`] do so for `bag-info.txt`, and [`Oxum`] is the one of its values that
//! is checked.
//!
//! # Names with `%`
//!
//! RFC 8493 has `%`, line feed and carriage return in a path written as `%25`, `%0A` and `%0D`. The validator that most
//! people have, `bagit` of PyPI (1.9.0), decodes no `%25`: it never finds a file with `%` in its name in a bag of
//! version 1.0 that is right. In version 0.97, no path is encoded, and `%` stands for itself with both. So a bag whose
//! paths have a `%` and no line break is best written as 0.97: [`Version::best_for`] says which.

mod manifest;

use std::fmt;
use std::str::FromStr;

pub use manifest::{Algorithm, Entry, Kind, Manifest, ManifestName};

use ibi_protocol::shown::shown;

/// A version of BagIt that can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// The draft that most bags were made by. Paths are written as they are.
    V0_97,
    /// RFC 8493. In paths, `%`, line feed and carriage return are encoded.
    V1_0,
}

impl Version {
    /// Reads `bagit.txt`.
    pub fn of_declaration(text: &str) -> Result<Self, BagError> {
        if text.starts_with('\u{feff}') {
            return Err(BagError::ByteOrderMark);
        }
        let lines: Vec<&str> =
            lines(text).map(|(_, line)| line).filter(|line| !line.trim().is_empty()).collect();
        let &[version, encoding] = lines.as_slice() else { return Err(BagError::Declaration) };
        let (label, number) = tag(version, "BagIt-Version")?;
        let version = match number {
            // RFC 8493 forbids the white space before the colon that was allowed until then.
            "1.0" if label.ends_with(char::is_whitespace) => return Err(BagError::Declaration),
            "1.0" => Version::V1_0,
            "0.97" => Version::V0_97,
            _ => return Err(BagError::Version { given: shown(number) }),
        };
        let (_, encoding) = tag(encoding, "Tag-File-Character-Encoding")?;
        if encoding.eq_ignore_ascii_case("UTF-8") {
            Ok(version)
        } else {
            Err(BagError::Encoding { given: shown(encoding) })
        }
    }

    /// What to write into `bagit.txt`.
    pub const fn declaration(self) -> &'static str {
        match self {
            Version::V0_97 => "BagIt-Version: 0.97\nTag-File-Character-Encoding: UTF-8\n",
            Version::V1_0 => "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        }
    }

    /// The version for a bag of these payload paths: 1.0, unless `bagit` of PyPI validates them as 0.97 only.
    pub fn best_for<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Self {
        let suits = |version: Version| paths.clone().all(|path| version.suits_pypi(path));
        if !suits(Version::V1_0) && suits(Version::V0_97) { Version::V0_97 } else { Version::V1_0 }
    }

    /// Whether `bagit` of PyPI (1.9.0) finds the file of a payload path in a manifest of this version.
    ///
    /// Where it does not, the bag is right all the same, and whoever hands it over should be told. (Besides, it takes
    /// paths that differ in their Unicode normalization only for one.)
    pub fn suits_pypi(self, path: &str) -> bool {
        // It breaks lines where Python does, and strips white space at their ends, of which Rust knows all but one.
        let breaks = path.contains(breaks_line_in_python);
        let strips =
            path.ends_with(|c: char| c == '\u{1f}' || (c.is_whitespace() && !matches!(c, '\n' | '\r')));
        let decodes = match self {
            // Of each, it decodes the first two.
            Version::V1_0 => {
                !path.contains('%') && path.matches('\n').count() <= 2 && path.matches('\r').count() <= 2
            }
            // It decodes, where nothing is encoded, if it is in capitals.
            Version::V0_97 => !path.contains(['\n', '\r']) && !path.contains("%0A") && !path.contains("%0D"),
        };
        decodes && !breaks && !strips
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Version::V0_97 => "0.97",
            Version::V1_0 => "1.0",
        })
    }
}

/// Label and value of a line of `bagit.txt`, the label as it stands there.
fn tag<'a>(line: &'a str, wanted: &str) -> Result<(&'a str, &'a str), BagError> {
    let (label, value) = line.split_once(':').ok_or(BagError::Declaration)?;
    if label.trim().eq_ignore_ascii_case(wanted) {
        Ok((label, value.trim()))
    } else {
        Err(BagError::Declaration)
    }
}

/// Lines with their numbers from 1. They end with a line feed, a carriage return, or both.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
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

/// Where Python ends a line besides line feed and carriage return.
fn breaks_line_in_python(c: char) -> bool {
    matches!(c, '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Reads `bag-info.txt`: labels and values in order. A value of several lines has line feeds between them.
pub fn read_info(text: &str) -> Result<Vec<(String, String)>, BagError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
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
            _ => return Err(BagError::InfoLine { line: number, given: shown(line) }),
        }
    }
    Ok(pairs)
}

/// Writes `bag-info.txt`. Each further line of a value is indented; white space around lines, and empty lines, are lost.
pub fn write_info<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<String, BagError> {
    let mut text = String::new();
    for (label, value) in pairs {
        if label.is_empty()
            || label.trim() != label
            || label.contains([':', '\n', '\r'])
            || label.contains(breaks_line_in_python)
        {
            return Err(BagError::Label { given: shown(label) });
        }
        let mut lines = value
            .split(|c| matches!(c, '\n' | '\r') || breaks_line_in_python(c))
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let first = lines.next().ok_or_else(|| BagError::NoValue { label: shown(label) })?;
        text.extend([label, ": ", first, "\n"]);
        lines.for_each(|line| text.extend(["  ", line, "\n"]));
    }
    Ok(text)
}

/// How much payload a bag has: the value `Payload-Oxum` of `bag-info.txt`, `279164409832.1198`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oxum {
    /// The bytes of all payload files.
    pub bytes: u64,
    /// How many payload files there are.
    pub files: u64,
}

impl Oxum {
    /// The label of the value.
    pub const LABEL: &'static str = "Payload-Oxum";
}

impl FromStr for Oxum {
    type Err = BagError;

    fn from_str(text: &str) -> Result<Self, BagError> {
        // A sign is a number to `parse`.
        let number =
            |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|c| c.is_ascii_digit()));
        text.split_once('.')
            .and_then(|(bytes, files)| Some(Oxum { bytes: number(bytes)?, files: number(files)? }))
            .ok_or_else(|| BagError::Oxum { given: shown(text) })
    }
}

impl fmt::Display for Oxum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.bytes, self.files)
    }
}

/// A bag that cannot be read, or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BagError {
    /// Not what `bagit.txt` has to say.
    #[error(
        "bagit.txt is not right: it has to have two lines, `BagIt-Version: 1.0` and `Tag-File-Character-Encoding: UTF-8`"
    )]
    Declaration,
    /// `bagit.txt` with a byte order mark.
    #[error("bagit.txt begins with a byte order mark, which BagIt forbids: save it as UTF-8 without one")]
    ByteOrderMark,
    /// Another version.
    #[error(
        "bagit.txt says version `{given}`: bags of 0.97 and 1.0 can be read. Ask for the bag in one of these"
    )]
    Version {
        /// The version.
        given: String,
    },
    /// Another encoding.
    #[error(
        "bagit.txt says that the manifests are in `{given}`: only UTF-8 can be read. Convert them and bag-info.txt with \
         iconv, say UTF-8 in bagit.txt, and make the tag manifests anew"
    )]
    Encoding {
        /// The encoding.
        given: String,
    },
    /// A manifest of an algorithm that is not known.
    #[error(
        "`{given}` cannot be checked: md5, sha1, sha256 and sha512 are known. Ask for a manifest of one of these"
    )]
    Algorithm {
        /// The name of the manifest.
        given: String,
    },
    /// A line of a manifest.
    #[error("{manifest}, line {line}: {what}. Ask whoever made the bag for a right one")]
    Line {
        /// Which manifest.
        manifest: ManifestName,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: BadEntry,
    },
    /// An entry that cannot be written.
    #[error("{manifest} cannot have this entry: {what}. Rename the file, or leave it out of the bag")]
    Entry {
        /// Which manifest.
        manifest: ManifestName,
        /// What is wrong with it.
        what: BadEntry,
    },
    /// A line of `bag-info.txt`.
    #[error(
        "bag-info.txt, line {line}: `{given}` has no label: write a label, a colon and a value, as in Contact-Name: …"
    )]
    InfoLine {
        /// The line, from 1.
        line: usize,
        /// What stands there.
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
    /// Nothing but white space.
    #[error("the value of {label} is empty: leave it out of bag-info.txt")]
    NoValue {
        /// Its label.
        label: String,
    },
    /// Not two numbers.
    #[error(
        "`{given}` is not a Payload-Oxum: write how many bytes, a dot and how many files, as in 1048576.12"
    )]
    Oxum {
        /// What was given.
        given: String,
    },
}

/// What can be wrong with an entry of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEntry {
    /// Not a checksum and a path.
    #[error("`{given}` is not a checksum of {digits} hexadecimal digits, white space and a path")]
    Shape {
        /// The line.
        given: String,
        /// How many digits a checksum of this algorithm has.
        digits: usize,
    },
    /// A path that leads somewhere else, or nowhere.
    #[error("the path `{path}` is refused: {why}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that stands there twice.
    #[error("the path `{path}` stands there twice")]
    Twice {
        /// The path.
        path: String,
    },
}

#[cfg(test)]
mod tests;
