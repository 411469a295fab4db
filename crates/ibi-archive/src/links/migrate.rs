//! Links of Archives from before statements about them were kept: clause 2.4, *Nothing is lost*.

use std::collections::BTreeMap;

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::known::key_of;
use super::stated::{stated, statement};
use crate::ArchiveError;
use crate::archive::{Archive, Holding};

/// Items that are read at a time, and statements that are written together.
const PAGE: usize = 256;

impl Archive {
    /// Says of each link that was stated before what it counts for now: between Originals of this Archive it
    /// is accepted, else it is a proposal. Said once: what is known already stays.
    pub(crate) fn migrate_links(&mut self) -> Result<(), ArchiveError> {
        let mut after = String::new();
        loop {
            let page = self.holdings.list(&after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after.clone_from(&last.path);
            // In one batch each item is older in one line.
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
            self.say_links(statements.collect(), "ibi")?;
        }
    }

    fn link_from_before(
        &self,
        kind: LinkKind,
        newer: &Holding,
    ) -> Result<Option<(String, LinkStatement)>, ArchiveError> {
        let holdings = &self.holdings;
        let Some(key) = stated(&newer.item, kind).and_then(key_of) else { return Ok(None) };
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

    /// Of several next editions the one deposited last was the one that counted.
    fn is_last_deposited(&self, older: &Holding, newer: &Holding) -> Result<bool, ArchiveError> {
        let holdings = &self.holdings;
        for label in older.item.label_records() {
            for path in holdings.records.linked(LinkKind::Edition, &label.canonical)? {
                let other = holdings.item(&path)?;
                if (&other.item.created, other.change) > (&newer.item.created, newer.change) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
