//! Migrates links from before statements were recorded: clause 2.4, *Nothing is lost*.

use std::collections::BTreeMap;

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::stated_links::{stated_target, statement};
use super::statements::key_of;
use crate::ArchiveError;
use crate::archive::{Archive, HeldItem};

/// Items read per page; their statements are written in one batch.
const LINK_MIGRATION_PAGE_ITEMS: usize = 256;

impl Archive {
    /// Records a statement for each link stated before: accepted between Originals of this Archive,
    /// otherwise proposed. Idempotent: known statements stay.
    pub(crate) fn migrate_links(&mut self) -> Result<(), ArchiveError> {
        let mut after = String::new();
        loop {
            let page = self.holdings.list(&after, LINK_MIGRATION_PAGE_ITEMS)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.path);
            // Per batch, each item is the older one in one line only.
            let mut statements: BTreeMap<String, Vec<LinkStatement>> = BTreeMap::new();
            for newer in &page {
                for kind in [LinkKind::Edition, LinkKind::Translation] {
                    let Some((path, link)) = self.link_from_before(kind, newer)? else { continue };
                    let links = statements.entry(path).or_default();
                    let counter = link.counter + links.len() as u64;
                    links.push(LinkStatement { counter, ..link });
                }
            }
            let statements = statements.into_iter();
            let statements =
                statements.flat_map(|(path, links)| links.into_iter().map(move |link| (path.clone(), link)));
            self.write_link_statements(statements.collect(), "ibi")?;
        }
    }

    fn link_from_before(
        &self,
        kind: LinkKind,
        newer: &HeldItem,
    ) -> Result<Option<(String, LinkStatement)>, ArchiveError> {
        let holdings = &self.holdings;
        let Some(key) = stated_target(&newer.item, kind).and_then(key_of) else { return Ok(None) };
        let Some(older) = holdings.held_by_key(&key)? else { return Ok(None) };
        if older.state == State::Copy || older.path == newer.path {
            return Ok(None);
        }
        let known = holdings.links_to(kind, &older.item)?;
        let own = key_of(newer.item.labels.primary());
        if known.iter().any(|link| Some(&link.newer) == own.as_ref()) {
            return Ok(None);
        }
        let taken = kind == LinkKind::Edition
            && (known.iter().any(|link| link.status == LinkStatus::Accepted)
                || !self.is_last_deposited(&older, newer)?);
        let accepted = newer.state != State::Copy && !taken;
        let status = if accepted { LinkStatus::Accepted } else { LinkStatus::Proposed };
        let counter = holdings.next_link_counter(&older.item)?;
        Ok(Some((older.path, statement(kind, &older.item, &newer.item, status, counter))))
    }

    /// Of several next editions, the one deposited last was effective.
    fn is_last_deposited(&self, older: &HeldItem, newer: &HeldItem) -> Result<bool, ArchiveError> {
        let holdings = &self.holdings;
        for label in older.item.label_records() {
            for path in holdings.records.items_linking_to(LinkKind::Edition, &label.canonical)? {
                let other = holdings.item(&path)?;
                if (&other.item.created, other.change) > (&newer.item.created, newer.change) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
