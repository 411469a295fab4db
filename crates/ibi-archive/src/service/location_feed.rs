//! The location feed: what resolvers need to answer for this Archive without asking it (clause 4.4,
//! `docs/formats/location-feed.md`).

use std::collections::{BTreeSet, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ibi_protocol::location::{
    LocationPage, LocationRecord, LocationTarget, LocationTranslation, MAX_LOCATION_FILES,
};
use ibi_protocol::offers::RelationGraph as _;
use ibi_store::index::LinkKind;
use ibi_store::journal::{JournalEntry, State};
use tokio::time::{Instant, sleep};

use crate::ArchiveError;
use crate::access::AccessRule;
use crate::archive::{HeldItem, Holdings};
use crate::item::{ItemLabels, LabelKey};
use crate::service::address;

/// Maximum number of labels that are followed to find the items whose translations a change
/// affects.
const MAX_AFFECTED_LABELS: usize = 2048;

/// Maximum number of inventory digests in a record: the newest ones.
const MAX_INVENTORY_DIGESTS: usize = 64;

/// How often a waiting request looks for changes. Commands change the folder too, so that no
/// notification would cover all.
const CHANGE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The position before the first change.
const START_POSITION: &str = "0";

/// The changes after a position, at most `limit` journal lines.
pub fn location_page(holdings: &Holdings, after: &str, limit: usize) -> Result<LocationPage, ArchiveError> {
    let (after, restart) = match position_number(holdings, after)? {
        Some(number) => (number, false),
        None => (0, true),
    };
    let changed = holdings.records.changed_paths(after, limit)?;
    let last = changed.last().map_or(after, |(change, _)| *change);
    let more = changed.len() == limit;
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for (_, path) in &changed {
        if !paths.contains(path) {
            paths.extend(affected_paths(holdings, path)?);
        }
    }
    let mut page = LocationPage {
        service: holdings.settings().announced_labels().iter().map(str::to_owned).collect(),
        next: position_text(holdings, last)?,
        more,
        restart,
        ask: holdings.is_restored(),
        ..LocationPage::default()
    };
    for path in paths {
        match holdings.item_bare(&path) {
            // A later line, on a later page, is about it again.
            Ok(holding) if more && holding.change > last => {}
            Ok(holding) => page.records.push(location_record(holdings, holding)?),
            Err(ArchiveError::Unknown { .. }) => page.gone.push(path),
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

/// Waits until there are changes after a position, or all is over.
pub async fn wait_for_changes<H: Deref<Target = Holdings>>(
    read: impl Fn() -> Result<H, ArchiveError>,
    after: &str,
    wait: Duration,
    is_over: impl Fn() -> bool,
) -> Result<(), ArchiveError> {
    let until = Instant::now() + wait;
    while Instant::now() < until && !is_over() && !has_changes(&*read()?, after)? {
        sleep(CHANGE_POLL_INTERVAL).await;
    }
    Ok(())
}

/// Whether there are changes after a position.
pub fn has_changes(holdings: &Holdings, after: &str) -> Result<bool, ArchiveError> {
    let Some(number) = after.split_once('-').map_or(after, |(number, _)| number).parse().ok() else {
        return Ok(true);
    };
    Ok(!holdings.records.changed_paths(number, 1)?.is_empty())
}

/// The number of the change that a position names; `None` if this Archive's journal has another
/// line there, or none: a backup was restored.
fn position_number(holdings: &Holdings, position: &str) -> Result<Option<u64>, ArchiveError> {
    if position == START_POSITION {
        return Ok(Some(0));
    }
    let number = position.split_once('-').and_then(|(number, _)| number.parse().ok());
    let Some(number) = number else { return Ok(None) };
    Ok((position_text(holdings, number)? == position).then_some(number))
}

/// The position after a change: its number, and a digest of its journal line.
fn position_text(holdings: &Holdings, change: u64) -> Result<String, ArchiveError> {
    let Some(event) = holdings.records.event_at(change)? else { return Ok(START_POSITION.to_owned()) };
    let JournalEntry { time, path, inventory, .. } = event;
    let digest = ibi_store::digests::sha512(format!("{time} {path} {inventory}").as_bytes());
    Ok(format!("{change}-{}", digest.get(..16).unwrap_or_default()))
}

/// The items whose answers a change of one item may affect: itself, and every item that was ever in
/// a group of translations with it.
fn affected_paths(holdings: &Holdings, path: &str) -> Result<Vec<String>, ArchiveError> {
    let mut paths = vec![path.to_owned()];
    let mut waiting = VecDeque::from([path.to_owned()]);
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    while let Some(label) = waiting.pop_front() {
        let mut found = Vec::new();
        if let Some(held) = holdings.held_by_key(&label)? {
            found.extend(
                held.item.labels.iter().filter_map(|label| Some(LabelKey::parse(label).ok()?.canonical)),
            );
            paths.push(held.path);
        }
        let kind = LinkKind::Translation;
        found.extend(holdings.records.links_to_older(kind, &label)?.into_iter().map(|link| link.newer));
        found.extend(holdings.records.links_from_newer(kind, &label)?.into_iter().map(|link| link.older));
        for label in found {
            if seen.len() < MAX_AFFECTED_LABELS && seen.insert(label.clone()) {
                waiting.push_back(label);
            }
        }
    }
    Ok(paths)
}

fn location_record(holdings: &Holdings, holding: HeldItem) -> Result<LocationRecord, ArchiveError> {
    let holding = Arc::new(holding);
    let item = &holding.item;
    let is_open = item.access == AccessRule::Public && item.removed.is_none();
    let target = match &item.target {
        _ if item.url.is_some() => LocationTarget::Url,
        Some(name) if is_open => LocationTarget::File(address::encoded_file_name(name)),
        _ => LocationTarget::Metadata,
    };
    let files = match is_open && !holdings.has_more_files(&holding.path, MAX_LOCATION_FILES)? {
        true => Some(
            holdings
                .files(&holding.path, "", MAX_LOCATION_FILES)?
                .iter()
                .map(|file| address::encoded_file_name(&file.name))
                .collect(),
        ),
        false => None,
    };
    let next_edition = holdings.next_edition_labels(&holding)?;
    let translations = holdings.translation_members(&holding)?.into_iter().skip(1);
    let metadata_languages = match holding.state {
        State::Deleted => Vec::new(),
        State::Original | State::Copy => holdings.metadata_languages(&holding)?,
    };
    let metadata_time = item.metadata_time();
    Ok(LocationRecord {
        labels: texts(&item.labels),
        metadata: texts(&item.metadata),
        aliases: item.aliases.clone(),
        // The wire's words are those of the journal.
        state: holding.state.name().parse().map_err(|_| ArchiveError::Stopped)?,
        epoch: holding.epoch,
        ask: !is_open,
        target,
        files,
        data_time: item.data_time().to_owned(),
        metadata_time: (metadata_time != item.data_time()).then(|| metadata_time.to_owned()),
        language: item.language,
        metadata_languages,
        next_edition: next_edition.as_ref().map(texts).unwrap_or_default(),
        translations: translations
            .map(|member| LocationTranslation {
                language: member.language,
                labels: texts(&member.labels),
                removed: member.removed,
            })
            .collect(),
        inventories: inventory_digests(&holdings.history(&holding.path)?),
        path: holding.path.clone(),
    })
}

fn texts(labels: &ItemLabels) -> Vec<String> {
    labels.iter().map(str::to_owned).collect()
}

/// The digests of the inventories that an item had here, oldest first.
fn inventory_digests(history: &[JournalEntry]) -> Vec<String> {
    let mut digests: Vec<String> = Vec::new();
    for event in history {
        if !digests.contains(&event.inventory) {
            digests.push(event.inventory.clone());
        }
    }
    digests.drain(..digests.len().saturating_sub(MAX_INVENTORY_DIGESTS));
    digests
}
