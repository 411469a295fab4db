//! An item as programs are told of it, by commands and by the API alike: `docs/formats/archive-json.md`.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::dublin_core::DublinCore;
use crate::item::{Labels, Removed};
use crate::keep::{Entry, FileRecord, Role, State};
use crate::target_url::TargetUrl;

/// Files that are read at a time.
const PAGE: usize = 1000;

/// An item, told to programs.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    /// Its labels.
    #[serde(flatten)]
    pub labels: &'a Labels,
    /// Other labels that lead to it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'a [String],
    /// `Data` or `Metadata`.
    pub contenttype: &'static str,
    /// Of metadata: what they describe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub describes: Option<&'a str>,
    /// What it is here.
    pub state: &'static str,
    /// Whether the Original may be handed over.
    pub transferable: bool,
    /// The number of the last version.
    pub version: u32,
    /// How often the Original was handed over or declared, and one, if that was asked for with its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// When it was deposited.
    pub created: &'a str,
    /// When it was last changed.
    pub updated: &'a str,
    /// When its data last changed, if that was not `updated` (D32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_updated: Option<&'a str>,
    /// When its metadata last changed, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_updated: Option<&'a str>,
    /// Its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What it is a translation of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_of: Option<&'a str>,
    /// What it is the next edition of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_edition_of: Option<&'a str>,
    /// The file that its persistent URL opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'a str>,
    /// The URL that it leads to instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    /// Who may read its files.
    pub access: String,
    /// Its metadata.
    pub metadata: Metadata<'a>,
    /// If it was removed: when, by whom, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<&'a Removed>,
    /// Its path.
    pub path: &'a str,
    /// Its files.
    pub files: Vec<File>,
    /// With its history: where a Copy came from, or was brought up to date from, last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// With its history: of a Copy that is known to be behind, what is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// What happened to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Event>>,
}

/// What is known of a Copy that is behind (clause 2.1).
#[derive(Debug, Serialize)]
pub struct Behind {
    /// The version that another Archive has.
    pub latest: u32,
    /// Its URL.
    pub holder: String,
    /// When that was seen.
    pub seen: String,
}

/// The metadata of an item.
#[derive(Debug, Serialize)]
pub struct Metadata<'a> {
    /// Its labels.
    #[serde(flatten)]
    pub labels: &'a Labels,
    /// The statements.
    pub dc: &'a DublinCore,
}

/// A file of an item.
#[derive(Debug, Serialize)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Media type.
    #[serde(rename = "type")]
    pub media: String,
    /// SHA-512 in hex.
    pub sha512: String,
}

/// Something that happened to an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The service of the Archive where it happened, if not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The number of the change.
    pub change: u64,
    /// When.
    pub time: String,
    /// What.
    pub event: String,
    /// The number of the last version.
    pub version: u32,
    /// What it was there from then on.
    pub state: String,
    /// By whom.
    pub by: String,
    /// The Archive that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The Archive that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Event {
    /// What tells it from others, wherever it is told.
    fn key(&self) -> (Option<String>, u64, String, String) {
        (self.at.clone(), self.change, self.time.clone(), self.event.clone())
    }
}

impl From<FileRecord> for File {
    fn from(file: FileRecord) -> Self {
        Self { path: file.name, size: file.size, media: file.media, sha512: file.sha512 }
    }
}

impl From<Entry> for Event {
    fn from(entry: Entry) -> Self {
        Self {
            at: None,
            change: entry.change,
            time: entry.time,
            event: entry.verb.name().to_owned(),
            version: entry.version,
            state: entry.state.name().to_owned(),
            by: entry.by,
            source: entry.source,
            to: entry.to,
            note: entry.note,
        }
    }
}

/// All files of an item.
fn files(holdings: &Holdings, path: &str) -> Result<Vec<File>, ArchiveError> {
    let mut files = Vec::new();
    let mut after = String::new();
    loop {
        let page = holdings.files(path, &after, PAGE)?;
        let Some(last) = page.last() else { return Ok(files) };
        after.clone_from(&last.name);
        files.extend(page.into_iter().map(File::from));
    }
}

impl<'a> Told<'a> {
    /// An item. Asked for by a label of its metadata, it is those which are told of.
    pub fn of(holdings: &Holdings, holding: &'a Holding, role: Role) -> Result<Self, ArchiveError> {
        let told = Self::without_files(holding, role);
        Ok(Self {
            files: if role == Role::Metadata { Vec::new() } else { files(holdings, &holding.path)? },
            ..told
        })
    }

    /// The same for those who may not know which files it has.
    pub fn without_files(holding: &'a Holding, role: Role) -> Self {
        let item = &holding.item;
        let of_item = role != Role::Metadata;
        Self {
            labels: if of_item { &item.labels } else { &item.metadata },
            aliases: if of_item { &item.aliases } else { &[] },
            contenttype: if of_item { "Data" } else { "Metadata" },
            describes: (!of_item).then(|| item.labels.primary()),
            state: holding.state.name(),
            transferable: item.transferable,
            version: holding.version,
            epoch: None,
            created: &item.created,
            updated: &item.updated,
            data_updated: item.data_updated.as_deref(),
            metadata_updated: item.metadata_updated.as_deref(),
            language: item.language.map(|language| language.to_string()),
            translation_of: item.translation_of.as_deref(),
            next_edition_of: item.next_edition_of.as_deref(),
            target: item.target.as_deref().filter(|_| of_item),
            url: item.url.as_ref().map(TargetUrl::as_str).filter(|_| of_item),
            access: item.access.to_string(),
            metadata: Metadata { labels: &item.metadata, dc: &holding.metadata },
            removed: item.removed.as_ref(),
            path: &holding.path,
            files: Vec::new(),
            source: None,
            behind: None,
            history: None,
        }
    }

    /// The same for those who may not even know what it opens.
    pub fn hidden(holding: &'a Holding, role: Role) -> Self {
        Self { target: None, url: None, ..Self::without_files(holding, role) }
    }

    /// Also tells what happened to it.
    pub fn with_history(self, holdings: &Holdings, holding: &Holding) -> Result<Self, ArchiveError> {
        let is_copy = self.state == State::Copy.name();
        let source = if is_copy { holdings.source(self.path)? } else { None };
        let behind = holdings.behind(holding);
        let behind = behind.map(|note| Behind { latest: note.latest, holder: note.holder, seen: note.seen });
        let history = Some(history(holdings, self.path)?);
        Ok(Self { epoch: Some(holding.epoch), source, behind, history, ..self })
    }
}

/// What happened to an item, elsewhere and here.
pub fn history(holdings: &Holdings, path: &str) -> Result<Vec<Event>, ArchiveError> {
    let entries = holdings.history(path)?;
    let mut elsewhere = elsewhere(&entries, holdings.settings().service.primary()).into_iter().peekable();
    let mut all = Vec::new();
    // Each in its own order, whatever clocks said; at one second, what happened elsewhere came first.
    for event in entries.into_iter().map(Event::from) {
        all.extend(std::iter::from_fn(|| elsewhere.next_if(|other| other.time <= event.time)));
        all.push(event);
    }
    all.extend(elsewhere);
    Ok(all)
}

/// What happened to an item elsewhere, as it was told each time that it came. What happened here is known here better.
fn elsewhere(entries: &[Entry], here: &str) -> Vec<Event> {
    let mut seen = HashSet::new();
    // What cannot be read was told by a program that knows more.
    let told = entries.iter().filter_map(|entry| entry.past.as_deref());
    told.flat_map(|past| serde_json::from_str::<Vec<Event>>(past).unwrap_or_default())
        .filter(|event| event.at.as_deref() != Some(here))
        .filter(|event| seen.insert(event.key()))
        .collect()
}

/// What is told of an item that comes from elsewhere and is not known here yet, as it is written in the journal: the last
/// events, as many as fit.
pub(crate) fn news(
    holdings: &Holdings,
    path: &str,
    events: Vec<Event>,
) -> Result<Option<String>, ArchiveError> {
    /// Bytes of a line, and events of an item: who tells more than that tells no history.
    const LONGEST: usize = 4 << 20;
    const MOST: usize = 20_000;
    let here = holdings.settings().service.primary();
    let known: HashSet<_> = elsewhere(&holdings.history(path)?, here).iter().map(Event::key).collect();
    let is_new = |event: &Event| event.at.as_deref() != Some(here) && !known.contains(&event.key());
    let mut events: Vec<Event> = events.into_iter().filter(is_new).collect();
    events.truncate(MOST.saturating_sub(known.len()));
    let events = last(events, LONGEST);
    // Texts and numbers: nothing that JSON could refuse.
    Ok(serde_json::to_string(&events).ok().filter(|_| !events.is_empty()))
}

/// The last events, as many as fit into so many bytes of JSON.
pub(crate) fn last(mut events: Vec<Event>, longest: usize) -> Vec<Event> {
    while serde_json::to_string(&events).is_ok_and(|text| text.len() > longest) {
        events.drain(..events.len().div_ceil(2));
    }
    events
}
