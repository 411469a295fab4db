//! An item as commands print it: `docs/formats/archive-json.md`.

use ibi_archive::dublin_core::{DublinCore, Element};
use ibi_archive::item::{Labels, Removed};
use ibi_archive::keep::{Entry, FileRecord, Role, State};
use ibi_archive::{Holding, Holdings};
use serde::Serialize;

use crate::exit::Failure;
use crate::io::{Output, printable};

/// Files and items that are read at a time.
pub(super) const PAGE: usize = 1000;

#[derive(Serialize)]
pub(super) struct Item<'a> {
    #[serde(flatten)]
    labels: &'a Labels,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aliases: &'a [String],
    contenttype: &'static str,
    /// Of metadata: what they describe.
    #[serde(skip_serializing_if = "Option::is_none")]
    describes: Option<&'a str>,
    state: &'static str,
    transferable: bool,
    version: u32,
    created: &'a str,
    updated: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    translation_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_edition_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    access: String,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<&'a Removed>,
    path: &'a str,
    files: Vec<File>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Event>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(flatten)]
    labels: &'a Labels,
    dc: &'a DublinCore,
}

#[derive(Serialize)]
struct File {
    path: String,
    size: u64,
    #[serde(rename = "type")]
    media: String,
    sha512: String,
}

#[derive(Serialize)]
struct Event {
    change: u64,
    time: String,
    event: &'static str,
    version: u32,
    state: &'static str,
    by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<FileRecord> for File {
    fn from(file: FileRecord) -> Self {
        Self { path: file.name, size: file.size, media: file.media, sha512: file.sha512 }
    }
}

impl From<Entry> for Event {
    fn from(entry: Entry) -> Self {
        Self {
            change: entry.change,
            time: entry.time,
            event: entry.verb.name(),
            version: entry.version,
            state: entry.state.name(),
            by: entry.by,
            note: entry.note,
        }
    }
}

/// All files of an item.
fn files(holdings: &Holdings, path: &str) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    let mut after = String::new();
    loop {
        let page = holdings.files(path, &after, PAGE)?;
        let Some(last) = page.last() else { return Ok(files) };
        after.clone_from(&last.name);
        files.extend(page.into_iter().map(File::from));
    }
}

/// An item as JSON says it. Asked for by a label of its metadata, it is that which is told of.
pub(super) fn item<'a>(
    holdings: &Holdings,
    holding: &'a Holding,
    role: Role,
    with_history: bool,
) -> Result<Item<'a>, Failure> {
    let item = &holding.item;
    let history = match with_history {
        true => Some(holdings.history(&holding.path)?.into_iter().map(Event::from).collect()),
        false => None,
    };
    let of_item = role != Role::Metadata;
    Ok(Item {
        labels: if of_item { &item.labels } else { &item.metadata },
        aliases: if of_item { &item.aliases } else { &[] },
        contenttype: if of_item { "Data" } else { "Metadata" },
        describes: (!of_item).then(|| item.labels.primary()),
        state: holding.state.name(),
        transferable: item.transferable,
        version: holding.version,
        created: &item.created,
        updated: &item.updated,
        language: item.language.map(|language| language.to_string()),
        translation_of: item.translation_of.as_deref(),
        next_edition_of: item.next_edition_of.as_deref(),
        target: item.target.as_deref().filter(|_| of_item),
        access: item.access.to_string(),
        metadata: Metadata { labels: &item.metadata, dc: &holding.metadata },
        removed: item.removed.as_ref(),
        path: &holding.path,
        files: if of_item { files(holdings, &holding.path)? } else { Vec::new() },
        history,
    })
}

/// Prints an item that was changed: its labels, or all of it as JSON.
pub(super) fn print(holdings: &Holdings, holding: &Holding, json: bool) -> Result<(), Failure> {
    let mut output = Output::new();
    if json {
        output.json(&item(holdings, holding, Role::Item, true)?)?;
    } else {
        output.text(format_args!("{}\n", labels(holding)))?;
    }
    output.flush()
}

/// The labels of an item on a line, as `ibi mint` prints them.
pub(super) fn labels(holding: &Holding) -> String {
    holding.item.labels.iter().collect::<Vec<_>>().join("\t")
}

/// The first title.
pub(super) fn title(holding: &Holding) -> &str {
    holding.metadata.of(Element::Title).next().map_or("", |title| title.value())
}

/// An item for people.
pub(super) fn write(
    holdings: &Holdings,
    holding: &Holding,
    role: Role,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = item(holdings, holding, role, true)?;
    let mut line = |name: &str, value: &str| output.text(format_args!("{name:<16} {}\n", printable(value)));
    for (name, label) in
        [("rep", &shown.labels.rep), ("ibip", &shown.labels.ibip), ("legacy", &shown.labels.legacy)]
    {
        if let Some(label) = label {
            line(name, label)?;
        }
    }
    shown.aliases.iter().try_for_each(|alias| line("alias", alias))?;
    line("content type", shown.contenttype)?;
    if let Some(described) = shown.describes {
        line("describes", described)?;
    }
    let transferable =
        if holding.state == State::Original && !shown.transferable { ", not transferable" } else { "" };
    line("state", &format!("{}{transferable}", shown.state))?;
    line("version", &shown.version.to_string())?;
    line("created", shown.created)?;
    line("updated", shown.updated)?;
    let optional = [
        ("language", shown.language.as_deref()),
        ("translation of", shown.translation_of),
        ("next edition of", shown.next_edition_of),
        ("target", shown.target),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line(name, value)?;
        }
    }
    line("access", &shown.access)?;
    if let Some(removed) = shown.removed {
        let bytes = if removed.purged { "; its bytes were destroyed" } else { "" };
        line("removed", &format!("{} by {}: {}{bytes}", removed.at, removed.by, removed.reason))?;
    }
    line("metadata", &shown.metadata.labels.iter().collect::<Vec<_>>().join("  "))?;
    for statement in shown.metadata.dc.statements() {
        let language = statement.language().map(|tag| format!("@{}", tag.as_str())).unwrap_or_default();
        line(&format!("  {}{language}", statement.element().name()), statement.value())?;
    }
    line("files", &shown.files.len().to_string())?;
    for file in &shown.files {
        line("", &format!("{}  {} bytes  {}", file.path, file.size, file.media))?;
    }
    line("history", "")?;
    for event in shown.history.iter().flatten() {
        let note = event.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
        line("", &format!("{} {} v{} by {}{note}", event.time, event.event, event.version, event.by))?;
    }
    Ok(())
}
