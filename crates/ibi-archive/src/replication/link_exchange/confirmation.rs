//! Asks the decider about links that others reported: a copy came from an Archive that only has a
//! copy, or an item reports links to others (ADR 0010). Readers are not led along a link until it
//! is confirmed.

use std::collections::BTreeSet;
use std::time::Duration;

use ibi_store::journal::{LinkStatement, State};
use tokio::time::Instant;

use super::notification::fetch_link_report;
use super::{
    FIRST_LINK_RETRY_DELAY, LINK_EXCHANGE_PAGE_ITEMS, LINK_REASSERT_INTERVAL, LinkExchange, LinkRetry,
};
use crate::ArchiveError;
use crate::archive::HeldItem;
use crate::replication::ReplicationError;

/// Maximum retry delay per older item without a clear answer. Reports may be made up, and the
/// resolver has other clients.
const MAX_CONFIRM_RETRY_DELAY: Duration = Duration::from_secs(3600);

impl LinkExchange {
    /// Schedules all unconfirmed links: after a start, and daily.
    pub(super) fn schedule_unconfirmed(&self, holdings: &crate::Holdings) -> Result<(), ArchiveError> {
        let mut after = (0, 0);
        loop {
            let page = holdings.records.link_statements(None, after, LINK_EXCHANGE_PAGE_ITEMS)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, link) in page {
                if link.told_with.is_some() && holdings.is_unconfirmed(&link)? {
                    self.schedule_confirm(link.older);
                }
            }
        }
    }

    /// Schedules the unconfirmed links that came with one item.
    pub(super) fn schedule_unconfirmed_of(
        &self,
        holdings: &crate::Holdings,
        holding: &HeldItem,
    ) -> Result<(), ArchiveError> {
        for link in holdings.unconfirmed_links(holding)? {
            self.schedule_confirm(link.older);
        }
        Ok(())
    }

    /// A repeated report does not make this Archive ask more often.
    fn schedule_confirm(&self, older: String) {
        let due = LinkRetry { at: Instant::now(), wait: FIRST_LINK_RETRY_DELAY };
        self.agenda().unconfirmed.entry(older).or_insert(due);
    }

    /// The next older item whose links need confirmation.
    pub(super) fn next_confirm(&self) -> Option<String> {
        let now = Instant::now();
        let mut agenda = self.agenda();
        let (older, due) = agenda.unconfirmed.iter_mut().find(|(_, due)| due.at <= now)?;
        // Asked again later, unless confirmed meanwhile.
        *due = LinkRetry { at: now + due.wait.max(super::LINK_EXCHANGE_TIMEOUT), wait: due.wait };
        Some(older.clone())
    }

    /// Reschedules after an attempt. With an answer, what is still unconfirmed is asked again
    /// daily.
    pub(super) fn record_confirmation(&self, older: &str, is_answered: bool) {
        let mut agenda = self.agenda();
        let Some(due) = agenda.unconfirmed.get_mut(older) else { return };
        *due = match is_answered {
            true => LinkRetry { at: Instant::now() + LINK_REASSERT_INTERVAL, wait: FIRST_LINK_RETRY_DELAY },
            false => {
                LinkRetry { at: Instant::now() + due.wait, wait: (due.wait * 2).min(MAX_CONFIRM_RETRY_DELAY) }
            }
        };
    }

    /// Asks the Archive that decides about links to an older item, found through the resolver, for
    /// its decisions. Returns whether it answered. While any Archive is silent, no claim is
    /// trusted: the silent one may be the decider.
    pub(super) async fn confirm_links(&self, resolver: &str, older: &str) -> Result<bool, ReplicationError> {
        let open = self.unconfirmed_about(older)?;
        if open.is_empty() {
            return Ok(true);
        }
        let Some(found) = fetch_link_report(&*self.desk, resolver, older).await? else { return Ok(false) };
        if !found.all_answered {
            return Ok(false);
        }
        let report = found.report;
        let own = report.keys();
        let kinds: BTreeSet<_> = open.iter().map(|link| link.kind).collect();
        let mut told: Vec<LinkStatement> = report.links;
        told.retain(|link| {
            own.contains(&link.older) && kinds.contains(&link.kind) && link.told_with.is_none()
        });
        let path = {
            let holdings = self.desk.read()?;
            // Other local items report for themselves (`notification.rs`).
            let is_elsewhere = |link: &LinkStatement| {
                let held = holdings.held_by_key(&link.newer).ok().flatten();
                held.is_none_or(|held| held.state == State::Copy)
            };
            told.retain(|link| is_elsewhere(link) || open.iter().any(|open| open.is_about_same(link)));
            let mut paths = open.iter().filter_map(|link| link.told_with.clone());
            paths.find(|path| holdings.item(path).is_ok())
        };
        let Some(path) = path else { return Ok(true) };
        told.iter_mut().for_each(|link| link.decided_by = Some(report.archive.clone()));
        let noted = self.desk.with_archive(move |archive| archive.record_links(&path, &told)).await?;
        let left = self.unconfirmed_about(older)?.len();
        if noted {
            tracing::info!(%older, archive = %report.archive, "links confirmed");
        }
        if left > 0 {
            tracing::warn!(
                %older, archive = %report.archive, left,
                "unconfirmed links ignored: the deciding Archive does not know links that came with a copy"
            );
        }
        Ok(true)
    }

    /// The unconfirmed statements about links to an older item.
    fn unconfirmed_about(&self, older: &str) -> Result<Vec<LinkStatement>, ArchiveError> {
        let holdings = self.desk.read()?;
        let mut open = Vec::new();
        for kind in [crate::links::LinkKind::Edition, crate::links::LinkKind::Translation] {
            for link in holdings.records.links_to_older(kind, older)? {
                if holdings.is_unconfirmed(&link)? {
                    open.push(link);
                }
            }
        }
        Ok(open)
    }
}
