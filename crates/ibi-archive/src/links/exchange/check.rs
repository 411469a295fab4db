//! Looking into a hint: does the Archive that holds the newer item state the link?

use ibi_store::journal::{LinkKind, LinkStatement, LinkStatus, State};

use super::{LinkExchange, tell};
use crate::ArchiveError;
use crate::archive::{Archive, Holding, Holdings};
use crate::holders::HolderError;
use crate::item::Labels;
use crate::links::known::key_of;
use crate::links::report::{LinkHint, LinkReport, item_keys};
use crate::links::stated::is_decided_here;
use crate::links::trust;

impl LinkExchange {
    /// Looks into a hint. One about an item here that states the link is told anew; one about a link to an item
    /// here is looked at where the newer item's Original is.
    pub(super) async fn check(&self, resolver: &str, hint: &LinkHint) -> Result<(), HolderError> {
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
            if holdings.is_restored() || !is_decided_here(&holdings, &older) {
                return Ok(());
            }
        }
        self.recall(&older, hint).await?;
        let Some(found) = tell::report_of(&*self.desk, resolver, &newer).await? else { return Ok(()) };
        let before = self.known_archive(&older, hint.kind, &found.report)?;
        if !found.may_follow(before.as_ref()) {
            return Ok(());
        }
        let report = found.report;
        let path = older.path.clone();
        let named = named_by_links(&*self.desk.read()?, &older, hint.kind)?;
        if report.states(hint.kind, &named) {
            let closes =
                hint.kind == LinkKind::Edition && self.closes_cycle(resolver, &older, &report).await?;
            self.take(&older, hint.kind, &report, closes).await
        } else {
            let (kind, newer) = (hint.kind, report.keys());
            Ok(self.desk.work(move |archive| archive.withdraw_unstated(&path, kind, &newer)).await?)
        }
    }

    /// A decision of this Archive's own that it no longer knows: it was restored from a backup of before.
    async fn recall(&self, older: &Holding, hint: &LinkHint) -> Result<(), HolderError> {
        let Some(decided) = &hint.decided else { return Ok(()) };
        let is_it = decided.kind == hint.kind && item_keys(older).contains(&decided.older);
        if !is_it || !self.receipts.is_ours(decided) {
            return Ok(());
        }
        let (path, told) = (older.path.clone(), LinkStatement { receipt: None, ..decided.clone() });
        let noted = self.desk.work(move |archive| archive.note_links(&path, &[told])).await?;
        if noted {
            tracing::info!(newer = %hint.newer, older = %hint.older, "a decision about a link came back");
        }
        Ok(())
    }

    /// The Archive that stated a link before, if that was another one.
    fn known_archive(
        &self,
        older: &Holding,
        kind: LinkKind,
        report: &LinkReport,
    ) -> Result<Option<String>, ArchiveError> {
        let newer = report.keys();
        let links = self.desk.read()?.links_to(kind, &older.item)?.into_iter();
        Ok(links.filter(|link| newer.contains(&link.newer)).find_map(|link| link.archive))
    }

    /// Whether the editions after a newer item lead back to the older one, as far as their Archives tell.
    async fn closes_cycle(
        &self,
        resolver: &str,
        older: &Holding,
        newer: &LinkReport,
    ) -> Result<bool, HolderError> {
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
            match tell::report_of(&*self.desk, resolver, &next).await? {
                Some(found) => at = found.report,
                // Here, or not to be found: this Archive looks for itself when it takes the link.
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    async fn take(
        &self,
        older: &Holding,
        kind: LinkKind,
        report: &LinkReport,
        closes_cycle: bool,
    ) -> Result<(), HolderError> {
        let label = older.item.labels.primary().to_owned();
        let trusted = trust::is_trusted(self.desk.data(), &report.archive)?;
        let proposal = proposal(kind, report);
        let newer = report.item.primary().to_owned();
        let (status, is_new) = self
            .desk
            .work(move |archive| match closes_cycle {
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

/// The labels that an item may state a link to, for that link to be one to this item: its own and, of the root of a group of
/// translations, those of its members (clause 2.4, *One successor*).
fn named_by_links(holdings: &Holdings, older: &Holding, kind: LinkKind) -> Result<Vec<String>, ArchiveError> {
    let mut keys = item_keys(older);
    if kind == LinkKind::Translation {
        let members = holdings.links_to(kind, &older.item)?.into_iter();
        for member in members.filter(|link| link.status == LinkStatus::Accepted) {
            keys.extend(member.newer_labels.iter().filter_map(|label| key_of(label)));
            keys.push(member.newer);
        }
    }
    Ok(keys)
}

/// A link as the Archive of the newer item states it; status, counter and older item are this Archive's.
fn proposal(kind: LinkKind, report: &LinkReport) -> LinkStatement {
    let labels = |labels: &Labels| labels.iter().map(str::to_owned).collect();
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
    }
}

impl Archive {
    /// The Archive of a newer item states a link to an item here no longer.
    fn withdraw_unstated(
        &mut self,
        path: &str,
        kind: LinkKind,
        newer: &[String],
    ) -> Result<(), ArchiveError> {
        let older = self.holdings.item(path)?;
        let links = self.holdings.links_to(kind, &older.item)?;
        let open = [LinkStatus::Accepted, LinkStatus::Proposed];
        let link = links.into_iter().find(|link| newer.contains(&link.newer) && open.contains(&link.status));
        let Some(link) = link else { return Ok(()) };
        self.check_restated(&link)?;
        let counter = self.holdings.next_link_counter(&older.item)?;
        let link = LinkStatement { status: LinkStatus::Withdrawn, counter, unstated: true, ..link };
        self.say_links(vec![(path.to_owned(), link)], "ibi")
    }
}
