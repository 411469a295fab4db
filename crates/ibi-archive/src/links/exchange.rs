//! Keeps both ends of links in step: clause 2.4, *Consent* and *Nothing is lost*.
//!
//! An Archive that states a link tells the Archive that holds the Original of the older item, found
//! through the resolver, and reads there how the link stands: when it is stated, when something
//! changed, and daily. Whoever gets a hint looks for itself, again through the resolver.

mod check;
mod tell;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ibi_store::journal::{LinkKind, LinkStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::receipts::LinkReceipts;
use super::report::{LinkHint, item_keys};
use crate::ArchiveError;
use crate::holders::HolderError;
use crate::service::Desk;

/// Between two looks at what changed here.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Between two times that a link is told which was heard.
const REASSERT_INTERVAL: Duration = Duration::from_secs(86_400);

/// Between two tries to tell a link, at first and at most.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(600);

/// Between two times that others can have all links told.
const RETELL_INTERVAL: Duration = Duration::from_secs(5);

/// Time for all that telling or checking one link takes.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Links that are told or checked at a time.
const MAX_CONCURRENT_EXCHANGES: usize = 4;

/// Hints that wait to be looked into.
const MAX_WAITING_HINTS: usize = 1000;

/// Changes and items that are read at a time.
const PAGE: usize = 200;

/// A link that is stated by an item here.
type StatedLink = (String, LinkKind);

#[derive(Debug)]
struct Due {
    at: Instant,
    wait: Duration,
}

/// What is to be told and checked.
#[derive(Debug, Default)]
struct Agenda {
    /// Links that are to be told, and when. One that was heard is told again daily, from a list made anew.
    stated: BTreeMap<StatedLink, Due>,
    /// Hints from others, in the order in which they came.
    hints: VecDeque<LinkHint>,
    /// Of each link to an item here from one elsewhere, the counter that its Archive was told of.
    told: HashMap<(String, String), u64>,
    /// Hints for Archives of newer items: something was decided here.
    decided: VecDeque<LinkHint>,
}

/// Keeps both ends of links in step.
#[derive(Debug)]
pub struct LinkExchange {
    desk: Arc<Desk>,
    /// The URL of the resolver through which Archives are found.
    resolver: Option<String>,
    pub(super) receipts: LinkReceipts,
    agenda: Mutex<Agenda>,
    news: Notify,
    /// Another Archive asked for all links to be told again.
    again: AtomicBool,
}

impl LinkExchange {
    /// For an Archive that is online, and finds others through a resolver.
    pub fn new(desk: Arc<Desk>, resolver: Option<String>, receipts: LinkReceipts) -> Self {
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

    /// The codes of decisions made here.
    pub fn receipts(&self) -> &LinkReceipts {
        &self.receipts
    }

    /// Takes a hint. Tells whether there was room for it.
    pub fn hint(&self, hint: LinkHint) -> bool {
        let mut agenda = self.agenda();
        if !agenda.hints.contains(&hint) {
            if agenda.hints.len() == MAX_WAITING_HINTS {
                return false;
            }
            agenda.hints.push_back(hint);
        }
        drop(agenda);
        self.news.notify_one();
        true
    }

    /// Has all links told again: an Archive may have lost what it knew of them.
    pub fn tell_again(&self) {
        self.again.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// After a start, and after a restored Archive was confirmed, others are asked to tell their links again.
    async fn ask_again_when_needed(self: Arc<Self>, resolver: String) {
        let (mut asked, mut wait) = (None, FIRST_RETRY);
        loop {
            tokio::time::sleep(wait).await;
            let restored = self.desk.read().is_ok_and(|holdings| holdings.is_restored());
            if asked == Some(restored) {
                wait = FIRST_RETRY;
                continue;
            }
            match self.ask_again(&resolver).await {
                Ok(()) => asked = Some(restored),
                Err(error) => {
                    tracing::debug!(%error, "other Archives could not be asked for their links yet");
                    wait = (wait * 2).min(LAST_RETRY);
                }
            }
        }
    }

    /// Asks all other Archives to tell their links again.
    async fn ask_again(&self, resolver: &str) -> Result<(), HolderError> {
        for peer in crate::holders::resolver::online(&*self.desk, resolver).await? {
            // One that does not hear tells them daily.
            let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, peer.post("/links/again", &())).await;
        }
        Ok(())
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells and checks links for as long as the Archive is online.
    pub async fn run(self: Arc<Self>) {
        let Some(resolver) = self.resolver.clone() else { return };
        let mut after = self.last_change();
        let mut listed = Instant::now();
        self.blocking(Self::schedule_all).await;
        let mut running = tokio::task::JoinSet::new();
        let asking = tokio::spawn(Arc::clone(&self).ask_again_when_needed(resolver.clone()));
        // It ends with this.
        let _asking = AbortOnDrop(asking);
        let mut retold = Instant::now();
        loop {
            if retold.elapsed() >= RETELL_INTERVAL && self.again.swap(false, Ordering::AcqRel) {
                retold = Instant::now();
                self.blocking(Self::schedule_all).await;
            }
            after = self.blocking(move |exchange| exchange.schedule_changed(after)).await.unwrap_or(after);
            if listed.elapsed() >= REASSERT_INTERVAL {
                listed = Instant::now();
                self.blocking(Self::schedule_all).await;
            }
            while running.len() < MAX_CONCURRENT_EXCHANGES
                && let Some(task) = self.next_task()
            {
                let (exchange, resolver) = (Arc::clone(&self), resolver.clone());
                running.spawn(async move { exchange.carry_out(&resolver, task).await });
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.news.notified() => {}
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Option<T> {
        let exchange = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&exchange)).await;
        match done {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot look at the links of this Archive; tried again");
                None
            }
            Err(_) => None,
        }
    }

    fn last_change(&self) -> u64 {
        self.desk.read().and_then(|holdings| holdings.last_change()).unwrap_or(0)
    }

    /// All links that items here state are told: after a start, and daily.
    fn schedule_all(&self) -> Result<(), ArchiveError> {
        let holdings = self.desk.read()?;
        let mut after = String::new();
        loop {
            let paths = holdings.records.linking(&after, PAGE)?;
            let Some(last) = paths.last() else { break };
            after.clone_from(last);
            for path in paths {
                for link in holdings.records.links(&path)? {
                    self.schedule((path.clone(), link.kind))?;
                }
            }
        }
        show_open_proposals(&holdings)?;
        self.schedule_unstated(&holdings)
    }

    /// Links that were accepted elsewhere, and that items here state no longer, are told too.
    fn schedule_unstated(&self, holdings: &crate::Holdings) -> Result<(), ArchiveError> {
        let mut after = (0, 0);
        loop {
            let page = holdings.records.link_statements(Some(LinkStatus::Accepted), after, PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, link) in page {
                if let Some(newer) = holdings.held_by_key(&link.newer)? {
                    self.schedule((newer.path, link.kind))?;
                }
            }
        }
    }

    /// Has a link told, if it is decided elsewhere.
    fn schedule(&self, link: StatedLink) -> Result<(), ArchiveError> {
        if self.to_tell(&link.0, link.1)?.is_some() {
            self.agenda().stated.insert(link, Due { at: Instant::now(), wait: FIRST_RETRY });
        }
        Ok(())
    }

    /// What changed here since: links that are stated, that lead to what was handed over, or were decided.
    fn schedule_changed(&self, before: u64) -> Result<u64, ArchiveError> {
        let holdings = self.desk.read()?;
        let mut after = before;
        loop {
            let changed = holdings.changes(after, PAGE)?;
            let Some(last) = changed.last() else { break };
            after = last.change;
            for holding in &changed {
                for link in holdings.records.links(&holding.path)? {
                    self.schedule((holding.path.clone(), link.kind))?;
                }
                for kind in [LinkKind::Edition, LinkKind::Translation] {
                    if !holdings.links_from(kind, &holding.item)?.is_empty() {
                        self.schedule((holding.path.clone(), kind))?;
                    }
                    for key in item_keys(holding) {
                        for path in holdings.records.linked(kind, &key)? {
                            self.schedule((path, kind))?;
                        }
                    }
                    self.note_decided(&holdings, kind, holding)?;
                }
            }
        }
        if after != before {
            show_open_proposals(&holdings)?;
        }
        Ok(after)
    }

    /// Archives of newer items are told that something was decided here.
    fn note_decided(
        &self,
        holdings: &crate::Holdings,
        kind: LinkKind,
        older: &crate::archive::Holding,
    ) -> Result<(), ArchiveError> {
        if !super::stated::is_decided_here(holdings, older) {
            return Ok(());
        }
        let links = holdings.links_to(kind, &older.item)?;
        let newest = links.iter().map(|link| link.counter).max().unwrap_or(0);
        // A root that has become a member of another group: its own members tell their links to the root of that.
        let up = holdings
            .links_from(kind, &older.item)?
            .iter()
            .map(|link| link.counter)
            .fold(0, u64::saturating_add);
        for link in links.iter().filter(|link| link.archive.is_some()) {
            // Members of a group are told of all of it.
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

    fn next_task(&self) -> Option<Task> {
        let mut agenda = self.agenda();
        if let Some(hint) = agenda.hints.pop_front() {
            return Some(Task::Check(hint));
        }
        if let Some(hint) = agenda.decided.pop_front() {
            return Some(Task::Announce(hint));
        }
        let now = Instant::now();
        let (link, due) = agenda.stated.iter_mut().find(|(_, due)| due.at <= now)?;
        // Nobody else takes it meanwhile.
        due.at = now + EXCHANGE_TIMEOUT * 2;
        Some(Task::Tell(link.clone()))
    }

    async fn carry_out(&self, resolver: &str, task: Task) {
        match task {
            Task::Tell(link) => {
                let told = tokio::time::timeout(EXCHANGE_TIMEOUT, self.tell(resolver, &link)).await;
                let done = match told {
                    Ok(Ok(done)) => done,
                    Ok(Err(error)) => {
                        tracing::debug!(item = %link.0, %error, "a link could not be told yet");
                        false
                    }
                    Err(_) => false,
                };
                self.reschedule(link, done);
            }
            Task::Check(hint) => {
                let checked = tokio::time::timeout(EXCHANGE_TIMEOUT, self.check(resolver, &hint)).await;
                if let Ok(Err(error)) = checked {
                    tracing::debug!(newer = %hint.newer, older = %hint.older, %error, "a hint led nowhere");
                }
            }
            Task::Announce(hint) => {
                let announced = self.announce(resolver, &hint);
                // The other one asks daily.
                let _ = tokio::time::timeout(EXCHANGE_TIMEOUT, announced).await;
            }
        }
        self.news.notify_one();
    }

    fn reschedule(&self, link: StatedLink, done: bool) {
        let mut agenda = self.agenda();
        let Some(due) = agenda.stated.get_mut(&link) else { return };
        // Stated anew meanwhile, it is told anew.
        if due.at <= Instant::now() {
            return;
        }
        *due = Due { at: Instant::now() + due.wait, wait: (due.wait * 2).min(LAST_RETRY) };
        if done {
            agenda.stated.remove(&link);
        }
    }

    /// Tells the Archive of a newer item that something was decided here about its link.
    async fn announce(&self, resolver: &str, hint: &LinkHint) -> Result<(), HolderError> {
        if let Some(found) = tell::report_of(&*self.desk, resolver, &hint.newer).await? {
            found.peer.post("/links", hint).await?;
        }
        Ok(())
    }
}

fn show_open_proposals(holdings: &crate::Holdings) -> Result<(), ArchiveError> {
    let (open, _) = holdings.count_proposals(None)?;
    metrics::gauge!("ibi_links_proposed").set(f64::from(u32::try_from(open).unwrap_or(u32::MAX)));
    Ok(())
}

/// A task that ends when whoever started it does.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Something that is done with another Archive.
enum Task {
    /// A link that an item here states is told.
    Tell(StatedLink),
    /// A hint is looked into.
    Check(LinkHint),
    /// What was decided here is told.
    Announce(LinkHint),
}
