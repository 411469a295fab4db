//! Synchronizes both ends of links: clause 2.4, *Consent* and *Nothing is lost*.
//!
//! An Archive that states a link notifies the Archive that holds the Original of the older item,
//! found through the resolver, and reads the link's status there: when the link is stated, when
//! something changes, and daily. The recipient of a hint verifies it itself, again through the
//! resolver.

mod confirmation;
mod hint_check;
mod hint_queue;
mod notification;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_store::journal::{LinkKind, LinkStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ArchiveError;
use crate::engine::ArchiveEngine;
use crate::links::receipts::LinkReceipts;
use crate::links::report::{LinkHint, item_keys};
use crate::replication::ReplicationError;
use hint_queue::LinkHintQueue;

/// Interval of polling for local changes.
const LINK_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between notifications of an acknowledged link.
const LINK_REASSERT_INTERVAL: Duration = Duration::from_secs(86_400);

/// Retry delay of a notification, first and maximum.
const FIRST_LINK_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_LINK_RETRY_DELAY: Duration = Duration::from_secs(600);

/// Minimum interval between full re-notifications that peers request.
const LINK_RETELL_INTERVAL: Duration = Duration::from_secs(5);

/// Total timeout for notifying or checking one link.
const LINK_EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

const MAX_CONCURRENT_EXCHANGES: usize = 4;

/// Page size for changes and items.
const LINK_EXCHANGE_PAGE_ITEMS: usize = 200;

/// A link stated by a local item.
type StatedLink = (String, LinkKind);

#[derive(Debug)]
struct LinkRetry {
    at: Instant,
    wait: Duration,
}

/// Pending notifications and checks.
#[derive(Debug, Default)]
struct LinkAgenda {
    /// Links to notify, and when. An acknowledged one is scheduled again daily, from a fresh list.
    stated: BTreeMap<StatedLink, LinkRetry>,
    /// Hints from others, round-robin by sender.
    hints: LinkHintQueue,
    /// Per link from elsewhere to a local item, the counter last announced to its Archive.
    told: HashMap<(String, String), u64>,
    /// Hints for Archives of newer items about decisions made here.
    decided: VecDeque<LinkHint>,
    /// Links whose older item several Archives claim, and these, as last logged.
    contested: HashMap<StatedLink, String>,
    /// Older items with unconfirmed links, and when to ask the decider.
    unconfirmed: BTreeMap<String, LinkRetry>,
}

/// Synchronizes both ends of links.
#[derive(Debug)]
pub struct LinkExchange {
    desk: Arc<ArchiveEngine>,
    /// The URL of the resolver through which Archives are found.
    resolver: Option<String>,
    pub(super) receipts: LinkReceipts,
    agenda: Mutex<LinkAgenda>,
    news: Notify,
    /// Set when another Archive asked for all links to be sent again.
    again: AtomicBool,
}

impl LinkExchange {
    /// For an online Archive that finds others through a resolver.
    pub fn new(desk: Arc<ArchiveEngine>, resolver: Option<String>, receipts: LinkReceipts) -> Self {
        let resolver = resolver.map(|url| url.trim_end_matches('/').to_owned());
        Self {
            desk,
            resolver,
            receipts,
            agenda: Mutex::default(),
            news: Notify::new(),
            again: AtomicBool::new(false),
        }
    }

    /// The receipts of decisions made here.
    pub fn receipts(&self) -> &LinkReceipts {
        &self.receipts
    }

    /// Queues a hint from a sender at this address (for IPv6, the network that counts as one).
    /// Returns whether there was room.
    pub fn accept_hint(&self, sender: IpAddr, hint: LinkHint) -> bool {
        let is_taken = self.agenda().hints.push(sender, hint);
        if is_taken {
            self.news.notify_one();
        }
        is_taken
    }

    /// Schedules all links to be sent again: an Archive may have lost its knowledge of them.
    pub fn schedule_retell(&self) {
        self.again.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Asks peers to send their links again, after a start and after a restored Archive was
    /// confirmed.
    async fn ask_retell_when_needed(self: Arc<Self>, resolver: String) {
        let (mut asked, mut wait) = (None, FIRST_LINK_RETRY_DELAY);
        loop {
            tokio::time::sleep(wait).await;
            let restored = self.desk.read().is_ok_and(|holdings| holdings.is_restored());
            if asked == Some(restored) {
                wait = FIRST_LINK_RETRY_DELAY;
                continue;
            }
            match self.ask_peers_to_retell(&resolver).await {
                Ok(()) => asked = Some(restored),
                Err(error) => {
                    tracing::debug!(%error, "cannot query other Archives for their links yet");
                    wait = (wait * 2).min(MAX_LINK_RETRY_DELAY);
                }
            }
        }
    }

    /// Asks all other Archives to send their links again.
    async fn ask_peers_to_retell(&self, resolver: &str) -> Result<(), ReplicationError> {
        for peer in crate::replication::resolver::online_archives(&*self.desk, resolver).await? {
            // On failure, that Archive still sends them daily.
            let _ = tokio::time::timeout(LINK_EXCHANGE_TIMEOUT, peer.post("/links/again", &())).await;
        }
        Ok(())
    }

    fn agenda(&self) -> MutexGuard<'_, LinkAgenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes links while the Archive is online.
    pub async fn run(self: Arc<Self>) {
        let Some(resolver) = self.resolver.clone() else { return };
        let mut after = self.last_change();
        let mut listed = Instant::now();
        self.run_blocking_work(Self::schedule_all).await;
        let mut running = tokio::task::JoinSet::new();
        let asking = tokio::spawn(Arc::clone(&self).ask_retell_when_needed(resolver.clone()));
        // Aborted when `run` ends.
        let _asking = AbortOnDrop(asking);
        let mut retold = Instant::now();
        loop {
            if retold.elapsed() >= LINK_RETELL_INTERVAL && self.again.swap(false, Ordering::AcqRel) {
                retold = Instant::now();
                self.run_blocking_work(Self::schedule_all).await;
            }
            after = self
                .run_blocking_work(move |exchange| exchange.schedule_changed(after))
                .await
                .unwrap_or(after);
            if listed.elapsed() >= LINK_REASSERT_INTERVAL {
                listed = Instant::now();
                self.run_blocking_work(Self::schedule_all).await;
            }
            while running.len() < MAX_CONCURRENT_EXCHANGES
                && let Some(task) = self.next_task()
            {
                let (exchange, resolver) = (Arc::clone(&self), resolver.clone());
                running.spawn(async move { exchange.run_task(&resolver, task).await });
            }
            tokio::select! {
                () = tokio::time::sleep(LINK_POLL_INTERVAL) => {}
                () = self.news.notified() => {}
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn run_blocking_work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Option<T> {
        let exchange = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&exchange)).await;
        match done {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read the links of this Archive; retrying");
                None
            }
            Err(_) => None,
        }
    }

    fn last_change(&self) -> u64 {
        self.desk.read().and_then(|holdings| holdings.last_change()).unwrap_or(0)
    }

    /// Schedules all links stated by local items: after a start, and daily.
    fn schedule_all(&self) -> Result<(), ArchiveError> {
        let holdings = self.desk.read()?;
        let mut after = String::new();
        loop {
            let paths = holdings.records.items_with_links(&after, LINK_EXCHANGE_PAGE_ITEMS)?;
            let Some(last) = paths.last() else { break };
            after.clone_from(last);
            for path in paths {
                for link in holdings.records.links(&path)? {
                    self.schedule((path.clone(), link.kind))?;
                }
            }
        }
        update_proposal_gauge(&holdings)?;
        self.schedule_unconfirmed(&holdings)?;
        self.schedule_unstated(&holdings)
    }

    /// Schedules links that were accepted elsewhere and that local items no longer state.
    fn schedule_unstated(&self, holdings: &crate::Holdings) -> Result<(), ArchiveError> {
        let mut after = (0, 0);
        loop {
            let page = holdings.records.link_statements(
                Some(LinkStatus::Accepted),
                after,
                LINK_EXCHANGE_PAGE_ITEMS,
            )?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, link) in page {
                if let Some(newer) = holdings.held_by_key(&link.newer)? {
                    self.schedule((newer.path, link.kind))?;
                }
            }
        }
    }

    /// Schedules a link if it is decided elsewhere.
    fn schedule(&self, link: StatedLink) -> Result<(), ArchiveError> {
        if self.outgoing_link(&link.0, link.1)?.is_some() {
            self.agenda().stated.insert(link, LinkRetry { at: Instant::now(), wait: FIRST_LINK_RETRY_DELAY });
        }
        Ok(())
    }

    /// Schedules links affected by local changes: stated, leading to an item that was handed over,
    /// or decided.
    fn schedule_changed(&self, before: u64) -> Result<u64, ArchiveError> {
        let holdings = self.desk.read()?;
        let mut after = before;
        loop {
            let changed = holdings.changes_bare(after, LINK_EXCHANGE_PAGE_ITEMS)?;
            let Some(last) = changed.last() else { break };
            after = last.change;
            for holding in &changed {
                self.schedule_unconfirmed_of(&holdings, holding)?;
                for link in holdings.records.links(&holding.path)? {
                    self.schedule((holding.path.clone(), link.kind))?;
                }
                for kind in [LinkKind::Edition, LinkKind::Translation] {
                    if !holdings.links_from(kind, &holding.item)?.is_empty() {
                        self.schedule((holding.path.clone(), kind))?;
                    }
                    for key in item_keys(holding) {
                        for path in holdings.records.items_linking_to(kind, &key)? {
                            self.schedule((path, kind))?;
                        }
                    }
                    self.note_decided(&holdings, kind, holding)?;
                }
                self.schedule_members(&holdings, holding)?;
            }
        }
        if after != before {
            update_proposal_gauge(&holdings)?;
        }
        Ok(after)
    }

    /// Schedules local members of a group whose root was handed over: they may state another
    /// member, and the new Archive does not know that they are here.
    fn schedule_members(
        &self,
        holdings: &crate::Holdings,
        root: &crate::archive::HeldItem,
    ) -> Result<(), ArchiveError> {
        if crate::links::stated_links::is_decided_here(holdings, root) {
            return Ok(());
        }
        for link in holdings.links_to(LinkKind::Translation, &root.item)? {
            if let Some(member) = holdings.held_by_key(&link.newer)? {
                self.schedule((member.path, LinkKind::Translation))?;
            }
        }
        Ok(())
    }

    /// Queues announcements of local decisions to the Archives of newer items.
    fn note_decided(
        &self,
        holdings: &crate::Holdings,
        kind: LinkKind,
        older: &crate::archive::HeldItem,
    ) -> Result<(), ArchiveError> {
        if !crate::links::stated_links::is_decided_here(holdings, older) {
            return Ok(());
        }
        let links = holdings.links_to(kind, &older.item)?;
        let newest = links.iter().map(|link| link.counter).max().unwrap_or(0);
        // When a root becomes a member of another group, its members send their links to the new
        // root.
        let up = holdings
            .links_from(kind, &older.item)?
            .iter()
            .map(|link| link.counter)
            .fold(0, u64::saturating_add);
        for link in links.iter().filter(|link| link.archive.is_some()) {
            // Members of a group learn of all its changes.
            let counter =
                if kind == LinkKind::Translation { newest.saturating_add(up) } else { link.counter };
            let mut agenda = self.agenda();
            let told = agenda.told.insert((link.older.clone(), link.newer.clone()), counter);
            if told != Some(counter) && link.status != LinkStatus::Proposed {
                let (older, newer) = (link.older.clone(), link.newer.clone());
                agenda.decided.push_back(LinkHint { kind, older, newer, decided: None });
            }
        }
        Ok(())
    }

    fn next_task(&self) -> Option<LinkTask> {
        self.next_exchange().or_else(|| self.next_confirm().map(LinkTask::Confirm))
    }

    fn next_exchange(&self) -> Option<LinkTask> {
        let mut agenda = self.agenda();
        if let Some(hint) = agenda.hints.pop() {
            return Some(LinkTask::Check(hint));
        }
        if let Some(hint) = agenda.decided.pop_front() {
            return Some(LinkTask::Announce(hint));
        }
        let now = Instant::now();
        let (link, due) = agenda.stated.iter_mut().find(|(_, due)| due.at <= now)?;
        // Keeps other workers from taking it meanwhile.
        due.at = now + LINK_EXCHANGE_TIMEOUT * 2;
        Some(LinkTask::Tell(link.clone()))
    }

    async fn run_task(&self, resolver: &str, task: LinkTask) {
        match task {
            LinkTask::Tell(link) => {
                let told =
                    tokio::time::timeout(LINK_EXCHANGE_TIMEOUT, self.report_link(resolver, &link)).await;
                let done = match told {
                    Ok(Ok(done)) => done,
                    Ok(Err(error)) => {
                        tracing::debug!(item = %link.0, %error, "link notification failed");
                        false
                    }
                    Err(_) => false,
                };
                self.reschedule(link, done);
            }
            LinkTask::Confirm(older) => {
                let asked =
                    tokio::time::timeout(LINK_EXCHANGE_TIMEOUT, self.confirm_links(resolver, &older)).await;
                self.record_confirmation(&older, matches!(asked, Ok(Ok(true))));
            }
            LinkTask::Check(hint) => {
                let checked =
                    tokio::time::timeout(LINK_EXCHANGE_TIMEOUT, self.check_hint(resolver, &hint)).await;
                if let Ok(Err(error)) = checked {
                    tracing::debug!(newer = %hint.newer, older = %hint.older, %error, "hint not confirmed");
                }
            }
            LinkTask::Announce(hint) => {
                let announced = self.announce(resolver, &hint);
                // On failure, the other Archive asks daily.
                let _ = tokio::time::timeout(LINK_EXCHANGE_TIMEOUT, announced).await;
            }
        }
        self.news.notify_one();
    }

    fn reschedule(&self, link: StatedLink, done: bool) {
        let mut agenda = self.agenda();
        let Some(due) = agenda.stated.get_mut(&link) else { return };
        // If it was stated again meanwhile, it is sent again.
        if due.at <= Instant::now() {
            return;
        }
        *due = LinkRetry { at: Instant::now() + due.wait, wait: (due.wait * 2).min(MAX_LINK_RETRY_DELAY) };
        if done {
            agenda.contested.remove(&link);
            agenda.stated.remove(&link);
        }
    }

    /// Announces a local decision to the Archive of the newer item.
    async fn announce(&self, resolver: &str, hint: &LinkHint) -> Result<(), ReplicationError> {
        if let Some(found) = notification::fetch_link_report(&*self.desk, resolver, &hint.newer).await? {
            found.peer.post("/links", hint).await?;
        }
        Ok(())
    }
}

fn update_proposal_gauge(holdings: &crate::Holdings) -> Result<(), ArchiveError> {
    let (open, _) = holdings.count_proposals(None)?;
    metrics::gauge!("ibi_links_proposed").set(f64::from(u32::try_from(open).unwrap_or(u32::MAX)));
    Ok(())
}

/// Aborts its task on drop.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An exchange with another Archive.
enum LinkTask {
    /// Notify a peer of a link stated here.
    Tell(StatedLink),
    /// Verify a hint.
    Check(LinkHint),
    /// Announce a local decision.
    Announce(LinkHint),
    /// Ask the decider about links to an older item.
    Confirm(String),
}
