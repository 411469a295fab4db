//! Verifies a hint: does the Archive that holds the newer item state the link?

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::{LinkExchange, notification};
use crate::ArchiveError;
use crate::archive::HeldItem;
use crate::item::ItemLabels;
use crate::links::report::{LinkHint, LinkReport, item_keys};
use crate::links::stated_links::{is_decided_here, linkable_keys};
use crate::links::statements::key_of;
use crate::links::trust;
use crate::replication::ReplicationError;

impl LinkExchange {
    /// Verifies a hint. If a local item states the link, the link is sent again. A link to a local
    /// item is checked at the Archive that has the newer item's Original.
    pub(super) async fn check_hint(&self, resolver: &str, hint: &LinkHint) -> Result<(), ReplicationError> {
        let Some((older, newer)) = hint.keys() else { return Ok(()) };
        let (older_here, newer_here) = {
            let holdings = self.desk.read()?;
            (holdings.held_by_key(&older)?, holdings.held_by_key(&newer)?)
        };
        if let Some(newer) = newer_here.filter(|newer| newer.state != State::Copy) {
            return Ok(self.schedule((newer.path, hint.kind))?);
        }
        let Some(older) = older_here else { return Ok(()) };
        {
            let holdings = self.desk.read()?;
            if !holdings.is_restored() && !is_decided_here(&holdings, &older) {
                return Ok(());
            }
        }
        self.restore_decision(&older, hint).await?;
        // Until it is confirmed, it takes back what it decided, and decides nothing new.
        if self.desk.read()?.is_restored() {
            return Ok(());
        }
        let Some(found) = notification::fetch_link_report(&*self.desk, resolver, &newer).await? else {
            return Ok(());
        };
        let before = self.known_archive(&older, hint.kind, &found.report)?;
        if !found.may_replace_decider(before.as_ref()) {
            return Ok(());
        }
        let report = found.report;
        let path = older.path.clone();
        let named = linkable_keys(&*self.desk.read()?, &older, hint.kind)?;
        if report.states(hint.kind, &named) {
            let closes =
                hint.kind == LinkKind::Edition && self.closes_cycle(resolver, &older, &report).await?;
            self.take_link(&older, hint.kind, &report, closes).await
        } else {
            let (kind, newer) = (hint.kind, report.keys());
            Ok(self.desk.with_archive(move |archive| archive.withdraw_unstated(&path, kind, &newer)).await?)
        }
    }

    /// Restores a decision of this Archive that was lost by restoring an older backup.
    async fn restore_decision(&self, older: &HeldItem, hint: &LinkHint) -> Result<(), ReplicationError> {
        let Some(decided) = &hint.decided else { return Ok(()) };
        let is_it = decided.kind == hint.kind && item_keys(older).contains(&decided.older);
        if !is_it || !self.receipts.is_ours(decided) {
            return Ok(());
        }
        let (path, told) = (older.path.clone(), LinkStatement { receipt: None, ..decided.clone() });
        let noted = self.desk.with_archive(move |archive| archive.record_links(&path, &[told])).await?;
        if noted {
            tracing::info!(newer = %hint.newer, older = %hint.older, "link decision received");
        }
        Ok(())
    }

    /// The Archive that stated a link before, if it was another one.
    fn known_archive(
        &self,
        older: &HeldItem,
        kind: LinkKind,
        report: &LinkReport,
    ) -> Result<Option<String>, ArchiveError> {
        let newer = report.keys();
        let links = self.desk.read()?.links_to(kind, &older.item)?.into_iter();
        Ok(links.filter(|link| newer.contains(&link.newer)).find_map(|link| link.archive))
    }

    /// Whether the editions after a newer item lead back to the older one, as far as their Archives
    /// report.
    async fn closes_cycle(
        &self,
        resolver: &str,
        older: &HeldItem,
        newer: &LinkReport,
    ) -> Result<bool, ReplicationError> {
        const MAX_EDITIONS: usize = 32;
        let goal = item_keys(older);
        let mut at = newer.clone();
        for _ in 0..MAX_EDITIONS {
            let own = at.keys();
            let next = at.links.iter().find(|link| {
                link.kind == LinkKind::Edition
                    && link.status == LinkStatus::Accepted
                    && own.contains(&link.older)
            });
            let Some(next) = next.map(|link| link.newer.clone()) else { return Ok(false) };
            if goal.contains(&next) {
                return Ok(true);
            }
            match notification::fetch_link_report(&*self.desk, resolver, &next).await? {
                Some(found) => at = found.report,
                // Here, or not found: this Archive checks when it records the link.
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    async fn take_link(
        &self,
        older: &HeldItem,
        kind: LinkKind,
        report: &LinkReport,
        closes_cycle: bool,
    ) -> Result<(), ReplicationError> {
        let label = older.item.labels.primary().to_owned();
        let trusted = trust::is_trusted(self.desk.data(), &report.archive)?;
        let proposal = proposal(kind, report);
        let newer = report.item.primary().to_owned();
        let (status, is_new) = self
            .desk
            .with_archive(move |archive| match closes_cycle {
                true => archive.refuse_cycle(&label, proposal),
                false => archive.take_proposal(&label, proposal, trusted),
            })
            .await?;
        if is_new {
            metrics::counter!("ibi_link_proposals_total", "status" => status.name()).increment(1);
            let (archive, older) = (&report.archive, older.item.labels.primary());
            match status {
                LinkStatus::Proposed => tracing::warn!(
                    %newer, %older, kind = kind.name(), %archive,
                    "a link is proposed: `ibi archive links accept` or `refuse` it"
                ),
                _ => tracing::info!(%newer, %older, kind = kind.name(), %archive, "a link was accepted"),
            }
        }
        Ok(())
    }
}

/// A link as the Archive of the newer item states it; this Archive sets status, counter and older
/// item.
fn proposal(kind: LinkKind, report: &LinkReport) -> LinkStatement {
    let labels = |labels: &ItemLabels| labels.iter().map(str::to_owned).collect();
    LinkStatement {
        kind,
        older: String::new(),
        newer: key_of(report.item.primary()).unwrap_or_default(),
        status: LinkStatus::Proposed,
        counter: 0,
        older_labels: Vec::new(),
        newer_labels: labels(&report.item),
        older_language: None,
        newer_language: report.language.clone(),
        created: report.created.clone(),
        removed: report.state == State::Deleted.name(),
        unstated: false,
        archive: Some(report.archive.clone()),
        decided_by: None,
        receipt: None,
        told_with: None,
    }
}
