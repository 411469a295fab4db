//! What a change of an item brings about for its links to older items whose Original is here.

use ibi_store::journal::{Entry, LinkKind, LinkStatement, LinkStatus, State, Verb};

use super::known::{key_of, keys_of};
use crate::ArchiveError;
use crate::archive::{Archive, Holding, Holdings};
use crate::item::Item;

/// Who makes a change, as far as links go: clause 2.4, *Consent*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkAuthority {
    /// May change every item here.
    Operator,
    /// May change the items that were deposited under this name.
    Depositor(String),
    /// The item comes from another Archive.
    OtherArchive,
}

impl LinkAuthority {
    fn consents(&self, holdings: &Holdings, older: &Holding) -> Result<bool, ArchiveError> {
        Ok(match self {
            LinkAuthority::Operator => true,
            LinkAuthority::Depositor(name) => {
                holdings.history(&older.path)?.first().is_some_and(|deposit| deposit.by == *name)
            }
            LinkAuthority::OtherArchive => false,
        })
    }
}

/// The older item that an item states a link of a kind to.
pub(super) fn stated(item: &Item, kind: LinkKind) -> Option<&str> {
    match kind {
        LinkKind::Edition => item.next_edition_of.as_deref(),
        LinkKind::Translation => item.translation_of.as_deref(),
    }
}

/// A statement about a link from an item, as its description has it now.
pub(super) fn statement(
    kind: LinkKind,
    older: &Item,
    newer: &Item,
    status: LinkStatus,
    counter: u64,
) -> LinkStatement {
    let labels = |item: &Item| item.labels.iter().map(str::to_owned).collect();
    LinkStatement {
        kind,
        older: key_of(older.labels.primary()).unwrap_or_default(),
        newer: key_of(newer.labels.primary()).unwrap_or_default(),
        status,
        counter,
        older_labels: labels(older),
        newer_labels: labels(newer),
        older_language: older.language.map(|language| language.to_string()),
        newer_language: newer.language.map(|language| language.to_string()),
        created: newer.created.clone(),
        removed: newer.removed.is_some(),
        unstated: false,
        archive: None,
        decided_by: None,
        receipt: None,
    }
}

/// The statements that a change brings about, each with the path of the older item. `before` is what the
/// item was; nothing if it is new.
pub(crate) fn statements_of(
    holdings: &Holdings,
    item: &Item,
    before: Option<&Item>,
    authority: &LinkAuthority,
) -> Result<Vec<(String, LinkStatement)>, ArchiveError> {
    let mut statements = Vec::new();
    for kind in [LinkKind::Edition, LinkKind::Translation] {
        let (was, is) = (before.and_then(|before| stated(before, kind)), stated(item, kind));
        let moved = was != is;
        if let Some(older) =
            was.filter(|_| moved).map(|was| held_root(holdings, kind, was)).transpose()?.flatten()
        {
            let links = holdings.links_to(kind, &older.item)?;
            let own = keys_of(item);
            let open = [LinkStatus::Accepted, LinkStatus::Proposed];
            if let Some(link) =
                links.into_iter().find(|link| own.contains(&link.newer) && open.contains(&link.status))
            {
                let counter = holdings.next_link_counter(&older.item)?;
                let status = LinkStatus::Withdrawn;
                let link = LinkStatement { status, counter, receipt: None, unstated: true, ..link };
                statements.push((older.path.clone(), link));
            }
        }
        let Some(older) = is.map(|is| held_root(holdings, kind, is)).transpose()?.flatten() else { continue };
        if let Some(link) = stated_now(holdings, kind, &older, item, (authority, moved))? {
            statements.push((older.path.clone(), link));
        }
    }
    Ok(statements)
}

/// The item that a link is proposed to, if its Original is here: the older one, or the root of its group.
fn held_root(holdings: &Holdings, kind: LinkKind, older: &str) -> Result<Option<Holding>, ArchiveError> {
    let Some(key) = key_of(older) else { return Ok(None) };
    let Some(mut at) = holdings.held_by_key(&key)? else { return Ok(None) };
    // A root that is no root any more is seldom, and never far away.
    for _ in 0..32 {
        if kind == LinkKind::Edition {
            break;
        }
        let up = holdings.links_from(kind, &at.item)?;
        let Some(up) = up.into_iter().find(|link| link.status == LinkStatus::Accepted) else { break };
        match holdings.held_by_key(&up.older)? {
            Some(root) => at = root,
            None => return Ok(None),
        }
    }
    Ok(Some(at).filter(|root| is_decided_here(holdings, root)))
}

impl Holdings {
    /// Whether a tombstone was made here, and did not come from another Archive.
    fn was_removed_here(&self, path: &str) -> Result<bool, ArchiveError> {
        let brought = [Verb::Copy, Verb::Refresh, Verb::Adopt, Verb::Remove, Verb::Purge];
        let last = self.history(path)?.into_iter().rev().find(|event| brought.contains(&event.verb));
        Ok(last.is_some_and(|event| matches!(event.verb, Verb::Remove | Verb::Purge)))
    }
}

/// Whether links to an item are decided here: its Original is here, or was when it was removed.
pub(crate) fn is_decided_here(holdings: &Holdings, older: &Holding) -> bool {
    match older.state {
        State::Original => true,
        State::Copy => false,
        State::Deleted => holdings.was_removed_here(&older.path).unwrap_or(false),
    }
}

fn stated_now(
    holdings: &Holdings,
    kind: LinkKind,
    older: &Holding,
    item: &Item,
    (authority, moved): (&LinkAuthority, bool),
) -> Result<Option<LinkStatement>, ArchiveError> {
    let own = keys_of(item);
    if keys_of(&older.item).iter().any(|key| own.contains(key)) {
        return Ok(None);
    }
    let links = holdings.links_to(kind, &older.item)?;
    let known = links.iter().find(|link| own.contains(&link.newer));
    let is_new = match known.map(|known| known.status) {
        None => true,
        Some(LinkStatus::Refused | LinkStatus::Withdrawn) => moved,
        Some(LinkStatus::Proposed | LinkStatus::Accepted) => false,
    };
    let status = match known {
        Some(known) if !is_new => known.status,
        _ => {
            let taken = kind == LinkKind::Edition
                && links.iter().any(|link| link.status == LinkStatus::Accepted && !own.contains(&link.newer));
            let consents = older.state == State::Original && authority.consents(holdings, older)?;
            if consents && !taken { LinkStatus::Accepted } else { LinkStatus::Proposed }
        }
    };
    let counter = holdings.next_link_counter(&older.item)?;
    let link = statement(kind, &older.item, item, status, counter);
    let same = |known: &LinkStatement| {
        let LinkStatement { archive, receipt, older_language, older_labels, .. } = known.clone();
        let told = LinkStatement { archive, receipt, older_language, older_labels, ..link.clone() };
        LinkStatement { counter: known.counter, ..told } == *known
    };
    // A copy tells nothing new of a link that is known.
    let told_elsewhere = *authority == LinkAuthority::OtherArchive && known.is_some();
    Ok(Some(link.clone()).filter(|_| !told_elsewhere && !known.is_some_and(same)))
}

/// The lines of the journal that say so, numbered from one on. Each is about an item that it leaves as it is.
pub(crate) fn link_entries(
    archive: &Archive,
    statements: Vec<(String, LinkStatement)>,
    by: &str,
    (batch, first): (u64, u64),
    depends_on: Option<u64>,
) -> Result<Vec<Entry>, ArchiveError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (path, link) in statements {
        if let Some(entry) = entries.iter_mut().find(|entry| entry.path == path) {
            entry.links.push(link);
            continue;
        }
        let records = &archive.holdings.records;
        let unknown = || ArchiveError::Unknown { label: path.clone() };
        let record = records.item(&path)?.ok_or_else(unknown)?;
        entries.push(Entry {
            change: first + entries.len() as u64,
            batch,
            time: archive.now().to_string(),
            verb: Verb::Link,
            path,
            version: record.version,
            inventory: record.inventory,
            state: record.state,
            epoch: record.epoch,
            by: by.to_owned(),
            source: None,
            to: None,
            key: None,
            note: None,
            past: None,
            record: None,
            links: vec![link],
            depends_on,
        });
    }
    Ok(entries)
}

impl Archive {
    /// Writes statements about links, durably, each beside the item at its path.
    pub(crate) fn say_links(
        &mut self,
        statements: Vec<(String, LinkStatement)>,
        by: &str,
    ) -> Result<(), ArchiveError> {
        if statements.is_empty() {
            return Ok(());
        }
        if self.stopped {
            return Err(ArchiveError::Stopped);
        }
        let next = self.journal.end().next;
        let entries = link_entries(self, statements, by, (next, next), None)?;
        let records = &*self.holdings.records;
        records.begin()?;
        self.stopped = true;
        for entry in &entries {
            records.touch(&entry.path, entry.change)?;
            records.happened(entry)?;
        }
        self.journal.append(&entries)?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }
}
