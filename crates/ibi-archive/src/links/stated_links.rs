//! The effect of a change of an item on its links to older items whose Original is here.

use ibi_store::journal::{JournalEntry, LinkKind, LinkStatement, LinkStatus, State, Verb};

use super::statements::{key_of, keys_of};
use crate::ArchiveError;
use crate::archive::{Archive, HeldItem, Holdings};
use crate::item::ItemDescription;
use crate::ownership::DepositorIdentity;
#[cfg(feature = "web")]
use crate::ownership::is_by_command;

/// The author of a change, with regard to links: clause 2.4, *Consent*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkAuthority {
    /// May change every local item.
    Operator,
    /// May change the items that it owns.
    Depositor(DepositorIdentity),
    /// The item comes from another Archive.
    OtherArchive,
}

impl LinkAuthority {
    /// The author of a deposit made earlier.
    #[cfg(feature = "web")]
    fn of_deposit(holdings: &Holdings, path: &str) -> Result<Self, ArchiveError> {
        let history = holdings.history(path)?;
        Ok(match history.first().filter(|first| first.verb == Verb::Deposit) {
            Some(first) if is_by_command(first) => LinkAuthority::Operator,
            Some(first) => {
                let id = first.owner.clone().unwrap_or_default();
                LinkAuthority::Depositor(DepositorIdentity { id, earlier: None })
            }
            None => LinkAuthority::OtherArchive,
        })
    }

    fn consents(&self, holdings: &Holdings, older: &HeldItem) -> Result<bool, ArchiveError> {
        Ok(match self {
            LinkAuthority::Operator => true,
            LinkAuthority::Depositor(depositor) => depositor.owns(holdings, &older.path)?,
            LinkAuthority::OtherArchive => false,
        })
    }
}

/// The older item that an item states as the target of a link of a kind.
pub(crate) fn stated_target(item: &ItemDescription, kind: LinkKind) -> Option<&str> {
    match kind {
        LinkKind::Edition => item.next_edition_of.as_deref(),
        LinkKind::Translation => item.translation_of.as_deref(),
    }
}

/// A statement about a link from an item, from its current description.
pub(super) fn statement(
    kind: LinkKind,
    older: &ItemDescription,
    newer: &ItemDescription,
    status: LinkStatus,
    counter: u64,
) -> LinkStatement {
    let labels = |item: &ItemDescription| item.labels.iter().map(str::to_owned).collect();
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
        told_with: None,
    }
}

/// The statements that result from a change, each with the path of the older item. `before` is the
/// previous description; `None` if the item is new.
pub(crate) fn statements_of(
    holdings: &Holdings,
    item: &ItemDescription,
    before: Option<&ItemDescription>,
    authority: &LinkAuthority,
) -> Result<Vec<(String, LinkStatement)>, ArchiveError> {
    let mut statements = Vec::new();
    for kind in [LinkKind::Edition, LinkKind::Translation] {
        let (was, is) = (before.and_then(|before| stated_target(before, kind)), stated_target(item, kind));
        let moved = was != is;
        if let Some(older) =
            was.filter(|_| moved).map(|was| local_root(holdings, kind, was)).transpose()?.flatten()
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
        let Some(older) = is.map(|is| local_root(holdings, kind, is)).transpose()?.flatten() else {
            continue;
        };
        if let Some(link) = statement_for_link(holdings, kind, &older, item, (authority, moved))? {
            statements.push((older.path.clone(), link));
        }
    }
    Ok(statements)
}

/// The item that a link is proposed to, if its Original is here: the older item, or the root of its
/// group.
pub(crate) fn local_root(
    holdings: &Holdings,
    kind: LinkKind,
    older: &str,
) -> Result<Option<HeldItem>, ArchiveError> {
    let Some(key) = key_of(older) else { return Ok(None) };
    let Some(mut at) = held_or_root(holdings, kind, &key)? else { return Ok(None) };
    // A root that is no longer one is rare, and never far from the current one.
    for _ in 0..32 {
        if kind == LinkKind::Edition {
            break;
        }
        let up = holdings.links_from(kind, &at.item)?;
        let Some(up) = up.into_iter().find(|link| link.status == LinkStatus::Accepted) else { break };
        match held_or_root(holdings, kind, &up.older)? {
            Some(root) => at = root,
            None => return Ok(None),
        }
    }
    Ok(Some(at).filter(|root| is_decided_here(holdings, root)))
}

/// The item with this key. If it is not here but a member of a group whose root is decided here,
/// that root: this Archive keeps the list of members, so it knows.
fn held_or_root(holdings: &Holdings, kind: LinkKind, key: &str) -> Result<Option<HeldItem>, ArchiveError> {
    if let Some(held) = holdings.held_by_key(key)? {
        return Ok(Some(held));
    }
    if kind == LinkKind::Edition {
        return Ok(None);
    }
    for link in holdings.records.links_from_newer(kind, key)? {
        let root = holdings.held_by_key(&link.older)?.filter(|root| is_decided_here(holdings, root));
        let Some(root) = root else { continue };
        let mut members = holdings.links_to(kind, &root.item)?.into_iter();
        // Only the last decision counts: a member may have left the group.
        if members.any(|known| known.newer == key && known.status == LinkStatus::Accepted) {
            return Ok(Some(root));
        }
    }
    Ok(None)
}

impl Holdings {
    /// Whether a tombstone was created here, and not copied from another Archive.
    fn was_removed_here(&self, path: &str) -> Result<bool, ArchiveError> {
        let brought = [Verb::Copy, Verb::Refresh, Verb::Adopt, Verb::Remove, Verb::Purge];
        let last = self.history(path)?.into_iter().rev().find(|event| brought.contains(&event.verb));
        Ok(last.is_some_and(|event| matches!(event.verb, Verb::Remove | Verb::Purge)))
    }
}

/// Whether links to an item are decided here: its Original is here, or was when it was removed.
pub(crate) fn is_decided_here(holdings: &Holdings, older: &HeldItem) -> bool {
    match older.state {
        State::Original => true,
        State::Copy => false,
        State::Deleted => holdings.was_removed_here(&older.path).unwrap_or(false),
    }
}

fn statement_for_link(
    holdings: &Holdings,
    kind: LinkKind,
    older: &HeldItem,
    item: &ItemDescription,
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
            // A restored Archive may have handed the item over since its backup.
            let consents = !holdings.is_restored() && authority.consents(holdings, older)?;
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
    // A copy adds nothing to a known link.
    let told_elsewhere = *authority == LinkAuthority::OtherArchive && known.is_some();
    Ok(Some(link.clone()).filter(|_| !told_elsewhere && !known.is_some_and(same)))
}

/// The labels that count as links to this item: its own and, for the root of a group of
/// translations, those of its members (clause 2.4, *One successor*).
#[cfg(feature = "web")]
pub(crate) fn linkable_keys(
    holdings: &Holdings,
    older: &HeldItem,
    kind: LinkKind,
) -> Result<Vec<String>, ArchiveError> {
    let mut keys = keys_of(&older.item);
    if kind == LinkKind::Translation {
        let members = holdings.links_to(kind, &older.item)?.into_iter();
        for member in members.filter(|link| link.status == LinkStatus::Accepted) {
            keys.extend(member.newer_labels.iter().filter_map(|label| key_of(label)));
            keys.push(member.newer);
        }
    }
    Ok(keys)
}

/// The journal lines for these statements, numbered from one. Each names an item and leaves it
/// unchanged.
pub(crate) fn link_entries(
    archive: &Archive,
    statements: Vec<(String, LinkStatement)>,
    by: &str,
    (batch, first): (u64, u64),
    depends_on: Option<u64>,
) -> Result<Vec<JournalEntry>, ArchiveError> {
    let mut entries: Vec<JournalEntry> = Vec::new();
    for (path, link) in statements {
        if let Some(entry) = entries.iter_mut().find(|entry| entry.path == path) {
            entry.links.push(link);
            continue;
        }
        let records = &archive.holdings.records;
        let unknown = || ArchiveError::Unknown { label: path.clone() };
        let record = records.item(&path)?.ok_or_else(unknown)?;
        entries.push(JournalEntry {
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
            owner: None,
            source: None,
            source_state: None,
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
    /// Writes the link that a local item states under the root of the group, if the root is decided
    /// here and has no statement about it: when the link was stated, this Archive did not know yet
    /// that the older item is a member. The member's Archive may name the root, which counts only
    /// if the root's list has the member. Returns whether the root is decided here.
    #[cfg(feature = "web")]
    pub(crate) fn state_under_root(
        &mut self,
        path: &str,
        kind: LinkKind,
        root: Option<&str>,
    ) -> Result<bool, ArchiveError> {
        let holdings = &self.holdings;
        let newer = holdings.item(path)?;
        let older = stated_target(&newer.item, kind);
        let Some(older) = older.filter(|_| newer.state != State::Copy && !holdings.is_restored()) else {
            return Ok(false);
        };
        let Some(found) = local_root(holdings, kind, root.unwrap_or(older))? else { return Ok(false) };
        if root.is_some() {
            let listed = linkable_keys(holdings, &found, kind)?;
            if !key_of(older).is_some_and(|older| listed.contains(&older)) {
                return Ok(false);
            }
        }
        let authority = LinkAuthority::of_deposit(holdings, path)?;
        if let Some(link) = statement_for_link(holdings, kind, &found, &newer.item, (&authority, false))? {
            self.write_link_statements(vec![(found.path, link)], "ibi")?;
        }
        Ok(true)
    }

    /// Writes link statements durably, each for the item at its path.
    pub(crate) fn write_link_statements(
        &mut self,
        statements: Vec<(String, LinkStatement)>,
        by: &str,
    ) -> Result<(), ArchiveError> {
        if statements.is_empty() {
            return Ok(());
        }
        self.check_changeable()?;
        let next = self.journal.end().next;
        let entries = link_entries(self, statements, by, (next, next), None)?;
        let records = &*self.holdings.records;
        records.begin()?;
        self.stopped = true;
        for entry in &entries {
            records.set_last_change(&entry.path, entry.change)?;
            records.add_event(entry)?;
        }
        self.journal.append(&entries)?;
        records.commit(self.journal.end())?;
        self.stopped = false;
        Ok(())
    }
}
