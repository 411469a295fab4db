//! Manifests: a checksum and a path a line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::{BadEntry, BagError, Version, lines};
use ibi_protocol::shown::shown;

/// How checksums are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// MD5, in old bags.
    Md5,
    /// SHA-1, in old bags.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512, which RFC 8493 recommends.
    Sha512,
}

impl Algorithm {
    const ALL: [Algorithm; 4] = [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];

    /// The name, as the names of manifests have it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    /// How many hexadecimal digits a checksum has.
    pub const fn digits(self) -> usize {
        match self {
            Algorithm::Md5 => 32,
            Algorithm::Sha1 => 40,
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a manifest lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The files below `data/`.
    Payload,
    /// The others, but for manifests of this kind.
    Tag,
}

/// One of the manifests of a bag: `manifest-sha256.txt`, `tagmanifest-sha256.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestName {
    /// What it lists.
    pub kind: Kind,
    /// How its checksums are computed.
    pub algorithm: Algorithm,
}

impl fmt::Display for ManifestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Payload => "manifest",
            Kind::Tag => "tagmanifest",
        };
        write!(f, "{kind}-{}.txt", self.algorithm)
    }
}

/// What a manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its entries in order.
    pub entries: Vec<Entry>,
    /// The first line, from 1, that has the `*` of `md5sum` before the path. RFC 8493 wants the user to be warned of it,
    /// for strict validators refuse such a bag of version 1.0.
    pub starred: Option<usize>,
}

/// A file that a manifest lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The checksum, in lower case.
    pub checksum: String,
    /// The path from the folder of the bag. It leads to nowhere else.
    pub path: String,
    /// The path that is meant if there is no file at `path`: many programs encode in paths less than 1.0 wants, or more
    /// than 0.97 has. As safe as the other.
    pub otherwise: Option<String>,
}

impl ManifestName {
    /// The manifest that a file in the folder of a bag is by its name; nothing if it is none.
    pub fn of_file(name: &str) -> Result<Option<Self>, BagError> {
        let Some(stem) = name.strip_suffix(".txt") else { return Ok(None) };
        let (kind, algorithm) = match stem.split_once('-') {
            Some(("manifest", algorithm)) => (Kind::Payload, algorithm),
            Some(("tagmanifest", algorithm)) => (Kind::Tag, algorithm),
            _ => return Ok(None),
        };
        match Algorithm::ALL.into_iter().find(|known| known.name() == algorithm) {
            Some(algorithm) => Ok(Some(Self { kind, algorithm })),
            None => Err(BagError::Algorithm { given: shown(name) }),
        }
    }

    /// Reads a manifest of this name. Blank lines, and lines that begin with `#`, are skipped.
    pub fn read(self, text: &str, version: Version) -> Result<Manifest, BagError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut manifest = Manifest { entries: Vec::new(), starred: None };
        let mut places: HashMap<String, usize> = HashMap::new();
        for (number, line) in lines(text) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what| BagError::Line { manifest: self, line: number, what };
            let (entry, starred) = self.entry(line, version).map_err(bad)?;
            if starred && manifest.starred.is_none() {
                manifest.starred = Some(number);
            }
            let known = places.get(&entry.path).map(|place| &manifest.entries[*place]);
            match known {
                None => {
                    places.insert(entry.path.clone(), manifest.entries.len());
                    manifest.entries.push(entry);
                }
                // 0.97 lets a manifest repeat itself, but not contradict itself.
                Some(known) if version == Version::V0_97 && known.checksum == entry.checksum => {}
                Some(_) => return Err(bad(BadEntry::Twice { path: shown(&entry.path) })),
            }
        }
        Ok(manifest)
    }

    /// Writes a manifest of this name with these checksums and paths, in this order. What it writes, `read` reads.
    pub fn write<'a>(
        self,
        version: Version,
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<String, BagError> {
        let mut text = String::new();
        for (checksum, path) in entries {
            let start = text.len();
            text.extend([checksum, "  ", &encoded(path, version)]);
            let bad = |what| BagError::Entry { manifest: self, what };
            let (entry, starred) = self.entry(&text[start..], version).map_err(bad)?;
            // What would be read as something else cannot be written.
            if entry.path != path || starred || text[start..].contains(['\n', '\r']) {
                let why = "a manifest of this version has no way to write it";
                return Err(bad(BadEntry::Path { path: shown(path), why }));
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads a line; also, whether there is a `*` before the path.
    fn entry(self, line: &str, version: Version) -> Result<(Entry, bool), BadEntry> {
        let digits = self.algorithm.digits();
        let (checksum, rest) = line
            .split_once([' ', '\t'])
            .filter(|(checksum, _)| {
                checksum.len() == digits && checksum.bytes().all(|c| c.is_ascii_hexdigit())
            })
            .ok_or_else(|| BadEntry::Shape { given: shown(line), digits })?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let (written, starred) = rest.strip_prefix('*').map_or((rest, false), |path| (path, true));
        // As `find` and `md5sum` print paths.
        let written = written.strip_prefix("./").unwrap_or(written);
        if let Some(why) = refusal(written, self.kind) {
            return Err(BadEntry::Path { path: shown(written), why });
        }
        // Decoding brings in no slash, no dot and no drive: the path stays as safe as it is.
        let (path, otherwise) = match version {
            Version::V1_0 => (decoded(written, true), Cow::Borrowed(written)),
            Version::V0_97 => (Cow::Borrowed(written), decoded(written, false)),
        };
        let otherwise = (otherwise != path).then(|| otherwise.into_owned());
        Ok((Entry { checksum: checksum.to_ascii_lowercase(), path: path.into_owned(), otherwise }, starred))
    }
}

/// Why a path is refused, if it is: it leads out of the bag on some system, or is not what this manifest may list.
fn refusal(path: &str, kind: Kind) -> Option<&'static str> {
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
            (Kind::Payload, false) => Some("a payload manifest lists only what lies below data/"),
            (Kind::Tag, true) => Some("a tag manifest lists nothing that lies below data/"),
            (Kind::Tag, false) if path.starts_with("tagmanifest-") => {
                Some("a tag manifest lists no tag manifests")
            }
            _ => None,
        }
    }
}

fn encoded(path: &str, version: Version) -> Cow<'_, str> {
    if version == Version::V0_97 || !path.contains(['%', '\n', '\r']) {
        return Cow::Borrowed(path);
    }
    // The percent sign first, or what the others become would be encoded again.
    Cow::Owned(path.replace('%', "%25").replace('\n', "%0A").replace('\r', "%0D"))
}

/// Decodes `%0A` and `%0D`, with `percent` also `%25`. Any other `%` stands for itself: few programs encode it.
fn decoded(path: &str, percent: bool) -> Cow<'_, str> {
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
