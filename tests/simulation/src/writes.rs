//! What an Archive of the simulation writes: records of items, journal lines, link statements.

use ibi_archive::dublin_core::DublinCore;
use ibi_archive::item::{ItemDescription, ItemLabels, ItemRemoval};
use ibi_id::{Instant, Label};
use ibi_store::StorageError;
use ibi_store::digests::sha512;
use ibi_store::index::{
    FileRecord, IndexRecord, IndexStorage, IndexedItem, LabelRecord, LabelRole, LinkRecord,
};
use ibi_store::journal::{JournalEntry, JournalPosition, LinkKind, LinkStatement, LinkStatus, State, Verb};

use crate::shared_index::SharedIndex;

/// A file that every version of an item has.
pub(crate) const CONSTANT_FILE: &str = "notes.txt";

/// What never changes of an item.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedItem {
    pub(crate) number: usize,
    pub(crate) label: String,
    pub(crate) metadata: String,
    pub(crate) language: &'static str,
    pub(crate) edition_of: Option<usize>,
    pub(crate) translation_of: Option<usize>,
    pub(crate) created: String,
}

impl SimulatedItem {
    /// Whether a label is one of the item or of its metadata.
    pub(crate) fn has_label(&self, label: &str) -> bool {
        [&self.label, &self.metadata].into_iter().any(|own| own == label)
    }
}

/// What a write makes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldState {
    pub(crate) state: State,
    pub(crate) version: u32,
    pub(crate) epoch: u64,
    pub(crate) is_closed: bool,
}

/// One change of an Archive.
#[derive(Debug, Clone)]
pub(crate) struct HostWrite {
    /// The new record; `None` leaves the item as it is, or removes it if the line is a drop.
    item: Option<IndexedItem>,
    entry: JournalEntry,
}

/// The file that the URL of a version opens.
pub(crate) fn target_file(item: usize, version: u32) -> String {
    format!("i{item}-v{version}.pdf")
}

/// A time as text.
pub(crate) fn time_text(seconds: i64) -> String {
    Instant::new(seconds, 0).map(|at| at.to_string()).unwrap_or_default()
}

fn canonical(label: &str) -> String {
    Label::parse(label).map(|label| label.to_string().to_ascii_lowercase()).unwrap_or_default()
}

impl HostWrite {
    /// A change of an item.
    pub(crate) fn of_item(
        items: &[SimulatedItem],
        item: &SimulatedItem,
        verb: Verb,
        held: HeldState,
        (line, seconds): (u64, i64),
        links: Vec<LinkStatement>,
    ) -> Self {
        let entry = entry(item, verb, held, (line, seconds), links);
        let record = (verb != Verb::Drop).then(|| indexed_item(items, item, held, &entry));
        Self { item: record, entry }
    }

    /// A statement about a link, which leaves the older item as it is.
    pub(crate) fn of_link(
        older: &SimulatedItem,
        held: HeldState,
        at: (u64, i64),
        link: LinkStatement,
    ) -> Self {
        Self { item: None, entry: entry(older, Verb::Link, held, at, vec![link]) }
    }

    pub(crate) fn apply(&self, index: &SharedIndex) -> Result<(), StorageError> {
        index.begin()?;
        match &self.item {
            Some(item) => index.put_item(item)?,
            None if self.entry.verb == Verb::Drop => index.remove_item(&self.entry.path)?,
            None => index.set_last_change(&self.entry.path, self.entry.change)?,
        }
        index.add_event(&self.entry)?;
        index.commit(JournalPosition { next: self.entry.change + 1, place: self.entry.change * 100 })
    }
}

/// The statement that one item is the next edition or a translation of another.
pub(crate) fn link_statement(kind: LinkKind, older: &SimulatedItem, newer: &SimulatedItem) -> LinkStatement {
    LinkStatement {
        kind,
        older: canonical(&older.label),
        newer: canonical(&newer.label),
        status: LinkStatus::Accepted,
        counter: newer.number as u64 + 1,
        older_labels: vec![older.label.clone()],
        newer_labels: vec![newer.label.clone()],
        older_language: Some(older.language.to_owned()),
        newer_language: Some(newer.language.to_owned()),
        created: newer.created.clone(),
        removed: false,
        unstated: false,
        archive: None,
        decided_by: None,
        receipt: None,
        told_with: None,
    }
}

fn entry(
    item: &SimulatedItem,
    verb: Verb,
    held: HeldState,
    (line, seconds): (u64, i64),
    links: Vec<LinkStatement>,
) -> JournalEntry {
    JournalEntry {
        change: line,
        batch: line,
        time: time_text(seconds),
        verb,
        path: item.label.clone(),
        version: held.version,
        inventory: inventory_digest(item, held),
        state: held.state,
        epoch: held.epoch,
        by: "simulation".to_owned(),
        owner: None,
        source: None,
        source_state: None,
        to: None,
        key: None,
        note: None,
        past: None,
        record: None,
        links,
        depends_on: None,
    }
}

fn inventory_digest(item: &SimulatedItem, held: HeldState) -> String {
    let mut digest =
        sha512(format!("{} v{} {:?}", item.label, held.version, held.state == State::Deleted).as_bytes());
    digest.truncate(32);
    digest
}

/// The description of an item, as its object has it.
pub(crate) fn description(
    items: &[SimulatedItem],
    item: &SimulatedItem,
    held: HeldState,
    time: &str,
) -> ItemDescription {
    let labels = |rep: &str| ItemLabels { rep: Some(rep.to_owned()), ..ItemLabels::default() };
    let label_of = |number: Option<usize>| number.map(|number| items[number].label.clone());
    let is_removed = held.state == State::Deleted;
    ItemDescription {
        format: 1,
        labels: labels(&item.label),
        metadata: labels(&item.metadata),
        transferable: true,
        created: item.created.clone(),
        updated: time.to_owned(),
        language: item.language.parse().ok(),
        translation_of: label_of(item.translation_of),
        next_edition_of: label_of(item.edition_of),
        target: (!is_removed).then(|| target_file(item.number, held.version)),
        access: if held.is_closed { "until:2099-01-01" } else { "public" }.parse().unwrap_or_default(),
        removed: is_removed.then(|| ItemRemoval {
            at: time.to_owned(),
            by: "simulation".to_owned(),
            reason: "simulated".to_owned(),
            purged: false,
        }),
        ..ItemDescription::default()
    }
}

fn indexed_item(
    items: &[SimulatedItem],
    item: &SimulatedItem,
    held: HeldState,
    entry: &JournalEntry,
) -> IndexedItem {
    let described = description(items, item, held, &entry.time);
    let metadata = DublinCore::parse("title: A simulated item\n").unwrap_or_default();
    let label =
        |label: &str, role| LabelRecord { folded: label.to_owned(), canonical: canonical(label), role };
    let file = |name: &str| FileRecord {
        name: name.to_owned(),
        content: format!("v{}/content/doc/{name}", held.version),
        size: 1,
        sha512: sha512(name.as_bytes()),
        media: "application/pdf".to_owned(),
        blocks: vec![0; 32],
    };
    let links = [(LinkKind::Edition, item.edition_of), (LinkKind::Translation, item.translation_of)];
    IndexedItem {
        labels: vec![label(&item.label, LabelRole::Item), label(&item.metadata, LabelRole::Metadata)],
        links: links
            .into_iter()
            .filter_map(|(kind, to)| Some(LinkRecord { kind, to: canonical(&items[to?].label) }))
            .collect(),
        files: match held.state {
            State::Deleted => Vec::new(),
            _ => vec![file(&target_file(item.number, held.version)), file(CONSTANT_FILE)],
        },
        record: IndexRecord {
            path: item.label.clone(),
            change: entry.change,
            version: held.version,
            inventory: entry.inventory.clone(),
            state: held.state,
            epoch: held.epoch,
            properties: serde_json::to_string(&described).unwrap_or_default(),
            metadata: serde_json::to_string(&metadata).unwrap_or_default(),
        },
    }
}
