//! The JSON view of an item, shared by the commands and the API: `docs/formats/archive-json.md`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::actor_names::ActorNames;
use crate::archive::{HeldItem, Holdings};
use crate::dublin_core::DublinCore;
use crate::item::{ItemLabels, ItemRemoval};
use crate::store::{FileRecord, JournalEntry, LabelRole, State};
use crate::target_url::TargetUrl;

/// Files that are read from the index per page.
const VIEW_PAGE_FILES: usize = 1000;

/// An item as JSON.
#[derive(Debug, Serialize)]
pub struct ItemView<'a> {
    /// Its labels.
    #[serde(flatten)]
    pub labels: &'a ItemLabels,
    /// Its other labels.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'a [String],
    /// `Data` or `Metadata`.
    pub contenttype: &'static str,
    /// For metadata: the item that it describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub describes: Option<&'a str>,
    /// Its state in this Archive.
    pub state: &'static str,
    /// Whether the Original may be handed over.
    pub transferable: bool,
    /// The number of the last version.
    pub version: u32,
    /// 1 plus the number of times that the Original was handed over or declared. Only given with
    /// the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// When it was deposited.
    pub created: &'a str,
    /// When it was last changed.
    pub updated: &'a str,
    /// When its data last changed, if that was not `updated` (D32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_updated: Option<&'a str>,
    /// When its metadata were created, if that was not `created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_created: Option<&'a str>,
    /// When its metadata last changed, if that was not `updated`.
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
    pub metadata: MetadataView<'a>,
    /// If it was removed: when, by whom, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Cow<'a, ItemRemoval>>,
    /// Its path.
    pub path: &'a str,
    /// Its files.
    pub files: Vec<FileView>,
    /// Only with the history: where a Copy was last fetched or refreshed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Only with the history: what is known of an outdated Copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<OutdatedCopyView>,
    /// What happened to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<ItemEvent>>,
    /// In the response to a change: warnings about possible mistakes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What is known of an outdated Copy (clause 2.1).
#[derive(Debug, Serialize)]
pub struct OutdatedCopyView {
    /// The newest version that another Archive holds.
    pub latest: u32,
    /// The URL of that Archive.
    pub holder: String,
    /// When that version was seen.
    pub seen: String,
}

/// The metadata of an item.
#[derive(Debug, Serialize)]
pub struct MetadataView<'a> {
    /// Its labels.
    #[serde(flatten)]
    pub labels: &'a ItemLabels,
    /// The statements.
    pub dc: &'a DublinCore,
}

/// A file of an item.
#[derive(Debug, Serialize)]
pub struct FileView {
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

/// An event in the history of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ItemEvent {
    /// The service of the Archive where the event happened; `None` if it happened here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The URL of the Archive that reported the event when a copy was fetched from it, and that
    /// vouches for it. `None` for events that happened here or at the giver, under the name that
    /// the resolver knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
    /// The number of the change.
    pub change: u64,
    /// When.
    pub time: String,
    /// What.
    pub event: String,
    /// The number of the last version.
    pub version: u32,
    /// Its state there after the event.
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

impl ItemEvent {
    /// Identifies the event regardless of who reported it. A conflicting report about the same
    /// moment has another key, so it cannot suppress this event.
    fn key(&self) -> Self {
        Self { told_by: None, ..self.clone() }
    }
}

impl From<FileRecord> for FileView {
    fn from(file: FileRecord) -> Self {
        Self { path: file.name, size: file.size, media: file.media, sha512: file.sha512 }
    }
}

impl ItemEvent {
    /// The event of a journal line, with the actor's name.
    fn of(entry: &JournalEntry, by: &str) -> Self {
        let entry = entry.clone();
        Self {
            at: None,
            told_by: None,
            change: entry.change,
            time: entry.time,
            event: entry.verb.name().to_owned(),
            version: entry.version,
            state: entry.state.name().to_owned(),
            by: by.to_owned(),
            source: entry.source,
            to: entry.to,
            note: entry.note,
        }
    }
}

/// All files of an item.
fn list_all_files(holdings: &Holdings, path: &str) -> Result<Vec<FileView>, ArchiveError> {
    let mut files = Vec::new();
    let mut after = String::new();
    loop {
        let page = holdings.files(path, &after, VIEW_PAGE_FILES)?;
        let Some(last) = page.last() else { return Ok(files) };
        after.clone_from(&last.name);
        files.extend(page.into_iter().map(FileView::from));
    }
}

impl<'a> ItemView<'a> {
    /// The view of an item. Looked up by a label of its metadata, the view describes the metadata.
    pub fn of(holdings: &Holdings, holding: &'a HeldItem, role: LabelRole) -> Result<Self, ArchiveError> {
        let told = Self::without_files(holding, role);
        Ok(Self {
            files: if role == LabelRole::Metadata {
                Vec::new()
            } else {
                list_all_files(holdings, &holding.path)?
            },
            removed: holdings.public_removal(holding)?.map(Cow::Owned),
            ..told
        })
    }

    /// The view for clients that may not see the list of files.
    pub fn without_files(holding: &'a HeldItem, role: LabelRole) -> Self {
        let item = &holding.item;
        let of_item = role != LabelRole::Metadata;
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
            metadata_created: item.metadata_created.as_deref(),
            metadata_updated: item.metadata_updated.as_deref(),
            language: item.language.map(|language| language.to_string()),
            translation_of: item.translation_of.as_deref(),
            next_edition_of: item.next_edition_of.as_deref(),
            target: item.target.as_deref().filter(|_| of_item),
            url: item.url.as_ref().map(TargetUrl::as_str).filter(|_| of_item),
            access: item.access.to_string(),
            metadata: MetadataView { labels: &item.metadata, dc: &holding.metadata },
            removed: item.removed.as_ref().map(Cow::Borrowed),
            path: &holding.path,
            files: Vec::new(),
            source: None,
            behind: None,
            history: None,
            warnings: Vec::new(),
        }
    }

    /// The view for clients that may not see the target either.
    pub fn without_target(holding: &'a HeldItem, role: LabelRole) -> Self {
        Self { target: None, url: None, ..Self::without_files(holding, role) }
    }

    /// Adds the history.
    pub fn with_history(self, holdings: &Holdings, holding: &HeldItem) -> Result<Self, ArchiveError> {
        let is_copy = self.state == State::Copy.name();
        let source = if is_copy { holdings.replica_source(self.path)? } else { None };
        let behind = holdings.stale_copy_note(holding);
        let behind =
            behind.map(|note| OutdatedCopyView { latest: note.latest, holder: note.holder, seen: note.seen });
        let history = Some(history(holdings, self.path)?);
        let removed = holdings.public_removal(holding)?.map(Cow::Owned);
        Ok(Self { epoch: Some(holding.epoch), removed, source, behind, history, ..self })
    }
}

/// The history of an item, from other Archives and from here.
pub fn history(holdings: &Holdings, path: &str) -> Result<Vec<ItemEvent>, ArchiveError> {
    let entries = holdings.history(path)?;
    let mut elsewhere = remote_events(&entries, holdings.settings().service.primary()).into_iter().peekable();
    let mut all = Vec::new();
    // Each list keeps its own order, whatever the clocks said. Within one second, remote events
    // come first.
    let names = ActorNames::of(holdings.settings(), &entries);
    for event in entries.iter().map(|entry| ItemEvent::of(entry, names.actor_of(entry))) {
        all.extend(std::iter::from_fn(|| elsewhere.next_if(|other| other.time <= event.time)));
        all.push(event);
    }
    all.extend(elsewhere);
    Ok(all)
}

/// Events that happened elsewhere, as reported with each fetch. Reports about this Archive are
/// dropped: the local journal is authoritative.
fn remote_events(entries: &[JournalEntry], here: &str) -> Vec<ItemEvent> {
    let mut seen = HashSet::new();
    // What does not parse was written by a newer version of the program.
    let told = entries.iter().filter_map(|entry| entry.past.as_deref());
    told.flat_map(|past| serde_json::from_str::<Vec<ItemEvent>>(past).unwrap_or_default())
        .filter(|event| event.at.as_deref() != Some(here))
        .filter(|event| seen.insert(event.key()))
        .collect()
}

/// Remote history of an item that is not known here yet, in the form of the journal: the last
/// events, as many as fit.
pub(crate) fn unseen_history(
    holdings: &Holdings,
    path: &str,
    events: Vec<ItemEvent>,
) -> Result<Option<String>, ArchiveError> {
    /// Limits per journal line (bytes) and per item (events). A peer that reports more is not
    /// reporting a history.
    const MAX_REMOTE_EVENTS_BYTES: usize = 4 << 20;
    const MAX_REMOTE_EVENTS: usize = 20_000;
    let here = holdings.settings().service.primary();
    let known: HashSet<_> =
        remote_events(&holdings.history(path)?, here).iter().map(ItemEvent::key).collect();
    let is_new = |event: &ItemEvent| event.at.as_deref() != Some(here) && !known.contains(&event.key());
    let mut events: Vec<ItemEvent> = events.into_iter().filter(is_new).collect();
    events.truncate(MAX_REMOTE_EVENTS.saturating_sub(known.len()));
    let events = last_events(events, MAX_REMOTE_EVENTS_BYTES);
    // Strings and numbers only: serialization cannot fail.
    Ok(serde_json::to_string(&events).ok().filter(|_| !events.is_empty()))
}

/// The last events that fit into `longest` bytes of JSON.
pub(crate) fn last_events(mut events: Vec<ItemEvent>, longest: usize) -> Vec<ItemEvent> {
    while serde_json::to_string(&events).is_ok_and(|text| text.len() > longest) {
        events.drain(..events.len().div_ceil(2));
    }
    events
}
