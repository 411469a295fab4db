//! Selects the items of a bulk replication, there or here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::replication::copy::ReplicaSource;
use crate::replication::peer::{PeerArchive, PeerChange, PeerError};

const COPY_LIST_PAGE_ITEMS: usize = 1000;

/// Limits of a selection, in items and in bytes of a label: more than any needs.
const MAX_SELECTED_ITEMS: usize = 5_000_000;
const MAX_SELECTED_LABEL_BYTES: usize = 1000;

/// Maximum number of items described to learn an Archive's service label.
const MAX_IDENTITY_PROBES: usize = 10;

/// A selection of another Archive's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaSelection {
    /// These.
    These(Vec<String>),
    /// Those whose path starts with this prefix.
    Prefix(String),
    /// Those changed since then (RFC 3339).
    Since(String),
}

/// Lists the selected items of another Archive.
pub async fn list_selected(peer: &PeerArchive, which: ReplicaSelection) -> Result<Vec<String>, PeerError> {
    let mut all = Vec::new();
    let is_collection = !matches!(which, ReplicaSelection::These(_));
    match which {
        ReplicaSelection::These(items) => all = items,
        ReplicaSelection::Prefix(prefix) => {
            let prefix = prefix.to_ascii_lowercase();
            // Just before the first match.
            let mut after = Some(prefix.clone());
            all.extend(find_exact_item(peer, &prefix).await?);
            while let Some(from) = after {
                let new = all.len();
                let page = peer.list(&from).await?;
                let fits = page.items.iter().take_while(|item| item.path.starts_with(&prefix));
                let live = fits.clone().filter(|item| item.state != State::Deleted);
                all.extend(live.map(|item| item.path.clone()));
                after = page.next.filter(|_| fits.count() == page.items.len());
                if after.as_ref().is_some_and(|next| *next <= from) {
                    return Err(peer.not_an_archive(format!("its list goes back to {from}")));
                }
                check_selection_limits(peer, &all, new)?;
            }
        }
        ReplicaSelection::Since(since) => {
            let mut after = 0;
            loop {
                let new = all.len();
                let page = peer.changes(after).await?;
                let changed =
                    |change: &&PeerChange| *change.time.as_ref().unwrap_or(&change.updated) >= since;
                let fits = page.changes.iter().filter(changed);
                let live = fits.filter(|change| change.state != State::Deleted);
                all.extend(live.map(|change| change.item.primary().to_owned()));
                if page.changes.is_empty() || page.next <= after {
                    break;
                }
                after = page.next;
                check_selection_limits(peer, &all, new)?;
            }
        }
    }
    // An Archive's own service item is never part of a collection. Some items may be restricted.
    for place in 0..all.len().min(if is_collection { MAX_IDENTITY_PROBES } else { 0 }) {
        if let Ok(held) = peer.describe_object(&all[place]).await {
            all.retain(|item| !item.eq_ignore_ascii_case(&held.archive));
            break;
        }
    }
    Ok(all)
}

/// Bounds the list, whatever the other Archive sends.
fn check_selection_limits(peer: &PeerArchive, all: &[String], new: usize) -> Result<(), PeerError> {
    if all.len() > MAX_SELECTED_ITEMS {
        return Err(PeerError::TooMany { url: peer.url().to_owned(), most: MAX_SELECTED_ITEMS });
    }
    match all.iter().skip(new).any(|item| item.len() > MAX_SELECTED_LABEL_BYTES) {
        true => {
            Err(peer.not_an_archive(format!("it lists labels of more than {MAX_SELECTED_LABEL_BYTES} bytes")))
        }
        false => Ok(()),
    }
}

/// The item whose path equals the prefix: the list starts after it.
async fn find_exact_item(peer: &PeerArchive, prefix: &str) -> Result<Option<String>, PeerError> {
    if ibi_id::Label::parse(prefix).is_err() {
        return Ok(None);
    }
    match peer.describe_object(prefix).await {
        Ok(held) => Ok(Some(held.path)),
        Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => Ok(None),
        // Restricted: the error is reported when it is fetched.
        Err(PeerError::Refused { .. } | PeerError::NeedsToken { .. }) => Ok(Some(prefix.to_owned())),
        Err(error) => Err(error),
    }
}

/// A date or an instant in the form that is compared with change times.
pub fn parse_since(text: &str) -> Result<String, &'static str> {
    const DATE_FORMAT_HINT: &str = "a date as in 2026-11-16, or an instant as in 2026-11-16T08:00:00Z";
    let whole = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let bytes = whole.as_bytes();
    let shape = b"0000-00-00T00:00:00Z";
    let fits = bytes.len() == shape.len()
        && bytes
            .iter()
            .zip(shape)
            .all(|(byte, shape)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape });
    if fits { Ok(whole) } else { Err(DATE_FORMAT_HINT) }
}

/// All local copies, and tombstones of some, each with the URL of its source, if it has one.
pub fn list_copies(holdings: &Holdings) -> Result<Vec<(String, Option<String>)>, ArchiveError> {
    let (mut copies, mut after) = (Vec::new(), String::new());
    loop {
        let page = holdings.list(&after, COPY_LIST_PAGE_ITEMS)?;
        let Some(last) = page.last() else { return Ok(copies) };
        after.clone_from(&last.path);
        for holding in page {
            // Tombstones too: the bytes may have been destroyed at the source since.
            let removed = holding.item.removed.as_ref();
            if holding.state == State::Copy || removed.is_some_and(|removed| !removed.purged) {
                let source = holdings.replica_source(&holding.path)?;
                copies.push((holding.item.labels.primary().to_owned(), source));
            }
        }
    }
}

/// The source for refreshing each copy: where it came from, or the one Archive that is named.
/// Copies without a source are skipped.
pub fn refresh_sources(
    copies: Vec<(String, Option<String>)>,
    named: Option<&str>,
    token: Option<&str>,
    source: impl Fn(PeerArchive) -> ReplicaSource,
) -> Result<Vec<(String, ReplicaSource)>, PeerError> {
    let (mut sources, mut items) = (BTreeMap::new(), Vec::new());
    // Validates the name even if there is nothing to refresh.
    if let Some(url) = named {
        let peer = PeerArchive::new(url, token.map(str::to_owned))?;
        sources.insert(url.to_owned(), source(peer));
    }
    for (item, came_from) in copies {
        let Some(url) = named.map(str::to_owned).or(came_from) else { continue };
        let source = match sources.entry(url) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let peer = PeerArchive::new(new.key(), token.map(str::to_owned))?;
                new.insert(source(peer))
            }
        };
        items.push((item, source.clone()));
    }
    match token {
        Some(_) if sources.len() > 1 => Err(PeerError::OneToken { many: sources.len() }),
        _ => Ok(items),
    }
}
