//! Which items a collection has, there or here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ibi_store::journal::State;

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::holders::copy::Source;
use crate::holders::peer::{Change, Peer, PeerError};

/// Items that are listed at a time.
const PAGE: usize = 1000;

/// Items that a collection may have, and bytes of a label: more than any has.
const MOST: usize = 5_000_000;
const LONGEST: usize = 1000;

/// Items that are looked at to learn who an Archive is.
const LOOKS: usize = 10;

/// Which items of another Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    These(Vec<String>),
    /// Those whose first labels begin so.
    Prefix(String),
    /// Those that were changed since then (RFC 3339).
    Since(String),
}

/// The items of another Archive that are meant.
pub async fn list(peer: &Peer, which: Which) -> Result<Vec<String>, PeerError> {
    let mut all = Vec::new();
    let is_collection = !matches!(which, Which::These(_));
    match which {
        Which::These(items) => all = items,
        Which::Prefix(prefix) => {
            let prefix = prefix.to_ascii_lowercase();
            // Just before the first that begins so.
            let mut after = Some(prefix.clone());
            all.extend(exact(peer, &prefix).await?);
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
                not_too_much(peer, &all, new)?;
            }
        }
        Which::Since(since) => {
            let mut after = 0;
            loop {
                let new = all.len();
                let page = peer.changes(after).await?;
                let changed = |change: &&Change| *change.time.as_ref().unwrap_or(&change.updated) >= since;
                let fits = page.changes.iter().filter(changed);
                let live = fits.filter(|change| change.state != State::Deleted);
                all.extend(live.map(|change| change.item.primary().to_owned()));
                if page.changes.is_empty() || page.next <= after {
                    break;
                }
                after = page.next;
                not_too_much(peer, &all, new)?;
            }
        }
    }
    // The service of an Archive is that Archive's own: nobody means it who means a collection.
    // Some may be closed to who asks.
    for place in 0..all.len().min(if is_collection { LOOKS } else { 0 }) {
        if let Ok(held) = peer.held(&all[place]).await {
            all.retain(|item| !item.eq_ignore_ascii_case(&held.archive));
            break;
        }
    }
    Ok(all)
}

/// Nothing grows for ever, whatever the other Archive tells.
fn not_too_much(peer: &Peer, all: &[String], new: usize) -> Result<(), PeerError> {
    if all.len() > MOST {
        return Err(PeerError::TooMany { url: peer.url().to_owned(), most: MOST });
    }
    match all.iter().skip(new).any(|item| item.len() > LONGEST) {
        true => Err(peer.not_an_archive(format!("it lists labels of more than {LONGEST} bytes"))),
        false => Ok(()),
    }
}

/// The item whose path is the prefix itself: a list begins behind it.
async fn exact(peer: &Peer, prefix: &str) -> Result<Option<String>, PeerError> {
    if ibi_id::Label::parse(prefix).is_err() {
        return Ok(None);
    }
    match peer.held(prefix).await {
        Ok(held) => Ok(Some(held.path)),
        Err(PeerError::Unknown { .. } | PeerError::Gone { .. }) => Ok(None),
        // Closed to who asks: told of when it is fetched.
        Err(PeerError::Refused { .. } | PeerError::NeedsToken { .. }) => Ok(Some(prefix.to_owned())),
        Err(error) => Err(error),
    }
}

/// A date, or an instant, as it is compared with when items were changed.
pub fn since(text: &str) -> Result<String, &'static str> {
    const SHAPE: &str = "a date as in 2026-11-16, or an instant as in 2026-11-16T08:00:00Z";
    let whole = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let bytes = whole.as_bytes();
    let shape = b"0000-00-00T00:00:00Z";
    let fits = bytes.len() == shape.len()
        && bytes
            .iter()
            .zip(shape)
            .all(|(byte, shape)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape });
    if fits { Ok(whole) } else { Err(SHAPE) }
}

/// All copies that are here, and tombstones of some, each with the URL of the Archive that it came from, if it came from one.
pub fn copies(holdings: &Holdings) -> Result<Vec<(String, Option<String>)>, ArchiveError> {
    let (mut copies, mut after) = (Vec::new(), String::new());
    loop {
        let page = holdings.list(&after, PAGE)?;
        let Some(last) = page.last() else { return Ok(copies) };
        after.clone_from(&last.path);
        for holding in page {
            // Also what was removed: its bytes may have been destroyed since.
            let removed = holding.item.removed.as_ref();
            if holding.state == State::Copy || removed.is_some_and(|removed| !removed.purged) {
                let source = holdings.source(&holding.path)?;
                copies.push((holding.item.labels.primary().to_owned(), source));
            }
        }
    }
}

/// Where each copy is brought up to date from: where it came from, or one Archive that is named. Those that came from nowhere are
/// passed over.
pub fn from_sources(
    copies: Vec<(String, Option<String>)>,
    named: Option<&str>,
    token: Option<&str>,
    source: impl Fn(Peer) -> Source,
) -> Result<Vec<(String, Source)>, PeerError> {
    let (mut sources, mut items) = (BTreeMap::new(), Vec::new());
    // Also where nothing is to be brought, a name is looked at.
    if let Some(url) = named {
        let peer = Peer::new(url, token.map(str::to_owned))?;
        sources.insert(url.to_owned(), source(peer));
    }
    for (item, came_from) in copies {
        let Some(url) = named.map(str::to_owned).or(came_from) else { continue };
        let source = match sources.entry(url) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let peer = Peer::new(new.key(), token.map(str::to_owned))?;
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
