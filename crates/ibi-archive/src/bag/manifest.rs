//! Manifests: one checksum and path per line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::{BagError, BagVersion, ManifestEntryError, numbered_lines};
use ibi_protocol::untrusted_text::quote_untrusted;

/// A checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChecksumAlgorithm {
    /// MD5, in old bags.
    Md5,
    /// SHA-1, in old bags.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512, which RFC 8493 recommends.
    Sha512,
}

impl ChecksumAlgorithm {
    const ALL: [ChecksumAlgorithm; 4] = [
        ChecksumAlgorithm::Md5,
        ChecksumAlgorithm::Sha1,
        ChecksumAlgorithm::Sha256,
        ChecksumAlgorithm::Sha512,
    ];

    /// The name, as in the file names of manifests.
    pub const fn name(self) -> &'static str {
        match self {
            ChecksumAlgorithm::Md5 => "md5",
            ChecksumAlgorithm::Sha1 => "sha1",
            ChecksumAlgorithm::Sha256 => "sha256",
            ChecksumAlgorithm::Sha512 => "sha512",
        }
    }

    /// How many hexadecimal digits a checksum has.
    pub const fn digits(self) -> usize {
        match self {
            ChecksumAlgorithm::Md5 => 32,
            ChecksumAlgorithm::Sha1 => 40,
            ChecksumAlgorithm::Sha256 => 64,
            ChecksumAlgorithm::Sha512 => 128,
        }
    }
}

impl fmt::Display for ChecksumAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a manifest lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManifestKind {
    /// The files below `data/`.
    Payload,
    /// The other files, except manifests of this kind.
    Tag,
}

/// One of the manifests of a bag: `manifest-sha256.txt`, `tagmanifest-sha256.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestName {
    /// What it lists.
    pub kind: ManifestKind,
    /// How its checksums are computed.
    pub algorithm: ChecksumAlgorithm,
}

impl fmt::Display for ManifestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ManifestKind::Payload => "manifest",
            ManifestKind::Tag => "tagmanifest",
        };
        write!(f, "{kind}-{}.txt", self.algorithm)
    }
}

/// The content of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BagManifest {
    /// Its entries in order.
    pub entries: Vec<ManifestEntry>,
    /// The first line, from 1, with the `*` of `md5sum` before the path. RFC 8493 asks to warn the
    /// user, because strict validators refuse such a bag of version 1.0.
    pub starred: Option<usize>,
}

/// A file that a manifest lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The checksum, in lower case.
    pub checksum: String,
    /// The path relative to the bag. It never leads out of the bag.
    pub path: String,
    /// Fallback if there is no file at `path`: many programs encode less in paths than 1.0
    /// requires, or more than 0.97 allows. As safe as `path`.
    pub otherwise: Option<String>,
}

impl ManifestName {
    /// Recognizes a manifest in the folder of a bag by its file name; `None` if it is not one.
    pub fn of_file(name: &str) -> Result<Option<Self>, BagError> {
        let Some(stem) = name.strip_suffix(".txt") else { return Ok(None) };
        let (kind, algorithm) = match stem.split_once('-') {
            Some(("manifest", algorithm)) => (ManifestKind::Payload, algorithm),
            Some(("tagmanifest", algorithm)) => (ManifestKind::Tag, algorithm),
            _ => return Ok(None),
        };
        match ChecksumAlgorithm::ALL.into_iter().find(|known| known.name() == algorithm) {
            Some(algorithm) => Ok(Some(Self { kind, algorithm })),
            None => Err(BagError::Algorithm { given: quote_untrusted(name) }),
        }
    }

    /// Parses a manifest of this name. Blank lines, and lines that begin with `#`, are skipped.
    pub fn read(self, text: &str, version: BagVersion) -> Result<BagManifest, BagError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut manifest = BagManifest { entries: Vec::new(), starred: None };
        let mut places: HashMap<String, usize> = HashMap::new();
        for (number, line) in numbered_lines(text) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what| BagError::Line { manifest: self, line: number, what };
            let (entry, starred) = self.parse_entry(line, version).map_err(bad)?;
            if starred && manifest.starred.is_none() {
                manifest.starred = Some(number);
            }
            let known = places.get(&entry.path).map(|place| &manifest.entries[*place]);
            match known {
                None => {
                    places.insert(entry.path.clone(), manifest.entries.len());
                    manifest.entries.push(entry);
                }
                // 0.97 allows repeated entries, but no contradicting ones.
                Some(known) if version == BagVersion::V0_97 && known.checksum == entry.checksum => {}
                Some(_) => return Err(bad(ManifestEntryError::Twice { path: quote_untrusted(&entry.path) })),
            }
        }
        Ok(manifest)
    }

    /// Writes a manifest of this name, in the given order. `read` accepts what it writes.
    pub fn write<'a>(
        self,
        version: BagVersion,
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<String, BagError> {
        let mut text = String::new();
        for (checksum, path) in entries {
            let start = text.len();
            text.extend([checksum, "  ", &encode_path(path, version)]);
            let bad = |what| BagError::Entry { manifest: self, what };
            let (entry, starred) = self.parse_entry(&text[start..], version).map_err(bad)?;
            // An entry that would be read back differently cannot be written.
            if entry.path != path || starred || text[start..].contains(['\n', '\r']) {
                let why = "a manifest of this version has no way to write it";
                return Err(bad(ManifestEntryError::Path { path: quote_untrusted(path), why }));
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// Parses a line; also returns whether there is a `*` before the path.
    fn parse_entry(
        self,
        line: &str,
        version: BagVersion,
    ) -> Result<(ManifestEntry, bool), ManifestEntryError> {
        let digits = self.algorithm.digits();
        let (checksum, rest) = line
            .split_once([' ', '\t'])
            .filter(|(checksum, _)| {
                checksum.len() == digits && checksum.bytes().all(|c| c.is_ascii_hexdigit())
            })
            .ok_or_else(|| ManifestEntryError::Shape { given: quote_untrusted(line), digits })?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let (written, starred) = rest.strip_prefix('*').map_or((rest, false), |path| (path, true));
        // `find` and `md5sum` print paths with this prefix.
        let written = written.strip_prefix("./").unwrap_or(written);
        if let Some(why) = path_refusal(written, self.kind) {
            return Err(ManifestEntryError::Path { path: quote_untrusted(written), why });
        }
        // Decoding adds no slash, dot or drive, so the decoded path is as safe as the written one.
        let (path, otherwise) = match version {
            BagVersion::V1_0 => (decode_path(written, true), Cow::Borrowed(written)),
            BagVersion::V0_97 => (Cow::Borrowed(written), decode_path(written, false)),
        };
        let otherwise = (otherwise != path).then(|| otherwise.into_owned());
        Ok((
            ManifestEntry { checksum: checksum.to_ascii_lowercase(), path: path.into_owned(), otherwise },
            starred,
        ))
    }
}

/// Why a path is refused, if it is: it leads out of the bag on some system, or this manifest may
/// not list it.
fn path_refusal(path: &str, kind: ManifestKind) -> Option<&'static str> {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if path.is_empty() {
        Some("it is empty")
    } else if path.starts_with(['/', '\\']) || drive {
        Some("it does not begin in the folder of the bag")
    } else if path.starts_with('~') {
        Some("it begins with the folder of a user")
    } else if path.split(['/', '\\']).any(|part| part == "..") {
        Some("it leads out of a folder with `..`")
    } else if path.split('/').any(|part| matches!(part, "" | ".")) {
        Some("a part of it is empty or `.`")
    } else if path.contains('\0') {
        Some("it has the character NUL")
    } else {
        match (kind, path.starts_with("data/")) {
            (ManifestKind::Payload, false) => Some("a payload manifest lists only what lies below data/"),
            (ManifestKind::Tag, true) => Some("a tag manifest lists nothing that lies below data/"),
            (ManifestKind::Tag, false) if path.starts_with("tagmanifest-") => {
                Some("a tag manifest lists no tag manifests")
            }
            _ => None,
        }
    }
}

fn encode_path(path: &str, version: BagVersion) -> Cow<'_, str> {
    if version == BagVersion::V0_97 || !path.contains(['%', '\n', '\r']) {
        return Cow::Borrowed(path);
    }
    // Encode the percent sign first, or the other escapes would be encoded again.
    Cow::Owned(path.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D"))
}

/// Decodes `%0A` and `%0D`, and `%25` if `percent` is set. Any other `%` is literal: few programs
/// encode it.
fn decode_path(path: &str, percent: bool) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut decoded = String::with_capacity(path.len());
    let mut parts = path.split('%');
    decoded.extend(parts.next());
    for part in parts {
        let (character, rest) = match part.as_bytes() {
            [b'0', b'A' | b'a', ..] => ('\n', &part[2..]),
            [b'0', b'D' | b'd', ..] => ('\r', &part[2..]),
            [b'2', b'5', ..] if percent => ('%', &part[2..]),
            _ => ('%', part),
        };
        decoded.push(character);
        decoded.push_str(rest);
    }
    Cow::Owned(decoded)
}
