//! One line of the journal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::link::LinkStatement;
use crate::text::hex;

/// Something that happened to an item here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The number of the line: changes are in this order.
    pub change: u64,
    /// The number of the first line that was written together with this one.
    pub batch: u64,
    /// When (RFC 3339, UTC).
    pub time: String,
    /// What.
    pub verb: Verb,
    /// The path of the item's object.
    pub path: String,
    /// The version that this leaves.
    pub version: u32,
    /// The first 32 hex digits of the SHA-512 of that version's inventory.
    pub inventory: String,
    /// What the item is here from then on.
    pub state: State,
    /// How often the original was handed over.
    pub epoch: u64,
    /// Who did it.
    pub by: String,
    /// Where it came from, if it came from another Archive.
    pub source: Option<String>,
    /// Where it goes to, if it goes to another Archive.
    pub to: Option<String>,
    /// A name for the request that asked for it: asked again, it is not done again.
    pub key: Option<String>,
    /// Why.
    pub note: Option<String>,
    /// What had happened to it elsewhere before it came, as the Archive writes it.
    pub past: Option<String>,
    /// What is recorded of the version that this leaves, as the Archive writes it: bound to the version by the inventory's
    /// digest, so that the index is made anew without reading every object. In the journal only, and not of large items.
    pub record: Option<String>,
    /// What is said of links between this item and others (clause 2.4).
    pub links: Vec<LinkStatement>,
    /// The number of a line of the same batch without which this one is void.
    pub depends_on: Option<u64>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// As it is written.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Reads it.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// What an item is, here (clause 2.1).
    State {
        /// The one in the world.
        Original "Original",
        /// One of any number.
        Copy "Copy",
        /// Removed: a tombstone.
        Deleted "Deleted",
    }
}

words! {
    /// What happened.
    Verb {
        /// A new item.
        Deposit "deposit",
        /// A new version.
        Update "update",
        /// A tombstone, over versions that stay.
        Remove "remove",
        /// A tombstone, and nothing else stays.
        Purge "purge",
        /// The operator said what the item is here.
        Declare "declare",
        /// Found in the tree without a line that tells of it.
        Adopt "adopt",
        /// Brought from another Archive, as a Copy.
        Copy "copy",
        /// Brought up to date from another Archive.
        Refresh "refresh",
        /// Given out of hand: no longer the Original here, and not yet known to be elsewhere.
        Grant "grant",
        /// Taken over: the Original from now on.
        Accept "accept",
        /// The taker has said that it has the Original.
        Given "given",
        /// Taken out of the tree: the Original is elsewhere.
        Drop "drop",
        /// Files that were damaged were put right from another Archive.
        Repair "repair",
        /// Something was said of its links to other items.
        Link "link",
    }
}

/// What a line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Something happened.
    Entry(Box<Entry>),
    /// What these lines tell did not happen.
    Void(Vec<u64>),
}

/// The line of an entry.
pub(super) fn of(entry: &Entry) -> String {
    let mut text = format!(
        "{} {} {} batch={} version={} inventory={} state={} epoch={}",
        entry.change,
        entry.time,
        entry.verb.name(),
        entry.batch,
        entry.version,
        entry.inventory,
        entry.state.name(),
        entry.epoch
    );
    let by = Some(&entry.by);
    let source = entry.source.as_ref();
    let fields = [("path", Some(&entry.path)), ("by", by), ("source", source), ("key", entry.key.as_ref())];
    let more = [
        ("to", entry.to.as_ref()),
        ("note", entry.note.as_ref()),
        ("past", entry.past.as_ref()),
        ("record", entry.record.as_ref()),
    ];
    // Texts and numbers: nothing that JSON could refuse.
    let links = serde_json::to_string(&entry.links).ok().filter(|_| !entry.links.is_empty());
    let depends_on = entry.depends_on.map(|line| line.to_string());
    let more = more.into_iter().chain([("links", links.as_ref()), ("depends-on", depends_on.as_ref())]);
    for (name, value) in fields.into_iter().chain(more) {
        if let Some(value) = value {
            let _ = write!(text, " {name}={}", escaped(value));
        }
    }
    finished(text)
}

/// The line that says that others are void.
pub(super) fn void(number: u64, time: &str, lines: &BTreeSet<u64>) -> String {
    let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
    finished(format!("{number} {time} void batch={number} lines={}", lines.join(",")))
}

/// Reads a line with its end; also tells its number and batch. Nothing if its checksum is not right.
pub(super) fn parse(line: &[u8]) -> Option<(u64, u64, Told)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (text, check) = line.rsplit_once(" sha256=")?;
    if checksum(text) != check {
        return None;
    }
    let mut words = text.split(' ');
    let change = words.next()?.parse().ok()?;
    let time = words.next()?.to_owned();
    let verb = words.next()?;
    let fields: Vec<(&str, &str)> = words.map(|word| word.split_once('=')).collect::<Option<_>>()?;
    let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let text = |name: &str| field(name).map(unescaped);
    let batch = field("batch")?.parse().ok()?;
    if verb == "void" {
        let lines = field("lines")?.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        return Some((change, batch, Told::Void(lines)));
    }
    let entry = Entry {
        change,
        batch,
        time,
        verb: Verb::parse(verb)?,
        path: text("path")??,
        version: field("version")?.parse().ok()?,
        inventory: field("inventory")?.to_owned(),
        state: State::parse(field("state")?)?,
        epoch: field("epoch")?.parse().ok()?,
        by: text("by")??,
        source: text("source").flatten(),
        to: text("to").flatten(),
        past: text("past").flatten(),
        key: text("key").flatten(),
        note: text("note").flatten(),
        record: text("record").flatten(),
        links: match text("links") {
            Some(links) => serde_json::from_str(&links?).ok()?,
            None => Vec::new(),
        },
        depends_on: field("depends-on").map(str::parse).transpose().ok()?,
    };
    Some((change, batch, Told::Entry(Box::new(entry))))
}

fn finished(text: String) -> String {
    let check = checksum(&text);
    format!("{text} sha256={check}\n")
}

fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// Spaces, control characters, `%` and `=` as `%` and two hex digits a byte.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if c.is_whitespace() || c.is_control() || matches!(c, '%' | '=') {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| crate::ocfl::escape(byte, &mut text));
        } else {
            text.push(c);
        }
    }
    text
}

fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(crate::ocfl::raw(text)).ok()
}
