//! One line of the journal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::link::LinkStatement;
use crate::text_block::hex;

/// An event in the history of an item at this Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The number of its line. It defines the order of changes.
    pub change: u64,
    /// The number of the first line of the batch it was written in.
    pub batch: u64,
    /// The time (RFC 3339, UTC).
    pub time: String,
    /// The kind of event.
    pub verb: Verb,
    /// The path of the item's object.
    pub path: String,
    /// The version after this event.
    pub version: u32,
    /// The first 32 hex digits of the SHA-512 of that version's inventory.
    pub inventory: String,
    /// The item's state at this Archive after this event.
    pub state: State,
    /// How often the Original was handed over.
    pub epoch: u64,
    /// The display name of the actor.
    pub by: String,
    /// The id of the owner of this change: that of a token, or `operator` for commands on the
    /// folder. For a deposit, it is the owner of the item. Names do not serve as ids, since they
    /// may be reused.
    pub owner: Option<String>,
    /// The Archive it came from, if any.
    pub source: Option<String>,
    /// The item's state at that Archive, as reported or as proven. An Archive that had a `Copy`
    /// cannot attest to the Original.
    pub source_state: Option<State>,
    /// The Archive it goes to, if any.
    pub to: Option<String>,
    /// The idempotency key of the request. A repeated request is not executed again.
    pub key: Option<String>,
    /// The reason.
    pub note: Option<String>,
    /// Its history at other Archives before it came here, in the Archive's own encoding.
    pub past: Option<String>,
    /// The index record of the resulting version, in the Archive's own encoding. The inventory's
    /// digest binds it to the version, so that the index can be rebuilt without reading every
    /// object. Only in the journal, and not for large items.
    pub record: Option<String>,
    /// Statements about links between this item and others (clause 2.4).
    pub links: Vec<LinkStatement>,
    /// The number of a line in the same batch; if that line is void, so is this one.
    pub depends_on: Option<u64>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// The word in the file.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Parses the word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// The state of an item at this Archive (clause 2.1).
    State {
        /// The only one in the world.
        Original "Original",
        /// One of any number.
        Copy "Copy",
        /// Removed; a tombstone remains.
        Deleted "Deleted",
    }
}

words! {
    /// The kind of event.
    Verb {
        /// A new item.
        Deposit "deposit",
        /// A new version.
        Update "update",
        /// A tombstone; the earlier versions stay.
        Remove "remove",
        /// A tombstone; nothing else stays.
        Purge "purge",
        /// The operator declared the item's state here.
        Declare "declare",
        /// Found in the tree without a journal line.
        Adopt "adopt",
        /// Fetched from another Archive as a Copy.
        Copy "copy",
        /// Updated from another Archive.
        Refresh "refresh",
        /// Granted to a taker: no longer the Original here, and not yet confirmed elsewhere.
        Grant "grant",
        /// Accepted from a giver: the Original from now on.
        Accept "accept",
        /// The taker confirmed that it has the Original.
        Given "given",
        /// Removed from the tree; the Original is elsewhere.
        Drop "drop",
        /// Damaged files were repaired from another Archive.
        Repair "repair",
        /// A statement was made about its links to other items.
        Link "link",
    }
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalLine {
    /// An event.
    Entry(Box<JournalEntry>),
    /// Voids the lines with these numbers.
    Void(Vec<u64>),
}

/// Formats the line of an entry.
pub(crate) fn format_entry(entry: &JournalEntry) -> String {
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
        ("owner", entry.owner.as_ref()),
        ("to", entry.to.as_ref()),
        ("note", entry.note.as_ref()),
        ("past", entry.past.as_ref()),
        ("record", entry.record.as_ref()),
    ];
    // Only strings and numbers: serialization to JSON cannot fail.
    let links = serde_json::to_string(&entry.links).ok().filter(|_| !entry.links.is_empty());
    let depends_on = entry.depends_on.map(|line| line.to_string());
    let source_state = entry.source_state.map(|state| state.name().to_owned());
    let more = more.into_iter().chain([
        ("source-state", source_state.as_ref()),
        ("links", links.as_ref()),
        ("depends-on", depends_on.as_ref()),
    ]);
    for (name, value) in fields.into_iter().chain(more) {
        if let Some(value) = value {
            let _ = write!(text, " {name}={}", escaped(value));
        }
    }
    append_checksum(text)
}

/// Formats a line that voids other lines.
pub(crate) fn format_void(number: u64, time: &str, lines: &BTreeSet<u64>) -> String {
    let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
    append_checksum(format!("{number} {time} void batch={number} lines={}", lines.join(",")))
}

/// Formats a placeholder that keeps the number of a lost line, whose content is unknown.
pub(crate) fn format_lost(number: u64, time: &str) -> String {
    append_checksum(format!("{number} {time} void batch={number} lines={number} note=lost"))
}

/// Parses a line including its newline; also returns its number and batch. `None` if the checksum
/// is wrong.
pub(super) fn parse(line: &[u8]) -> Option<(u64, u64, JournalLine)> {
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
        return Some((change, batch, JournalLine::Void(lines)));
    }
    let entry = JournalEntry {
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
        owner: text("owner").flatten(),
        source: text("source").flatten(),
        source_state: match field("source-state") {
            Some(state) => Some(State::parse(state)?),
            None => None,
        },
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
    Some((change, batch, JournalLine::Entry(Box::new(entry))))
}

fn append_checksum(text: String) -> String {
    let check = checksum(&text);
    format!("{text} sha256={check}\n")
}

fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// Encodes whitespace, control characters, `%` and `=` as `%` and two hex digits per byte.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if c.is_whitespace() || c.is_control() || matches!(c, '%' | '=') {
            c.encode_utf8(&mut [0; 4])
                .bytes()
                .for_each(|byte| crate::ocfl::push_percent_escape(byte, &mut text));
        } else {
            text.push(c);
        }
    }
    text
}

fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(crate::ocfl::decode_logical_path(text)).ok()
}
