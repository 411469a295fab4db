//! Follows the location feeds of Archives: one task per Archive, which asks for changes, waits at
//! the Archive until there are some, and writes them to the index.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use ibi_http::outgoing::HttpClient;
use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::location::LocationPage;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::feed_transport::FeedTransport;
use super::{LocationIndex, SuspectCopy};
use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::blocking::run_blocking;
use crate::clock::ResolverClock;
use crate::directory::ArchiveDirectory;

/// How long a request waits at the Archive for a change.
const FEED_WAIT: Duration = Duration::from_millis(1000);

/// Timeout for a page, beyond the wait.
const FEED_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 32 << 20;

/// Journal lines per page.
const PAGE_CHANGES: u32 = 1000;

/// Maximum number of texts in a page, names of members included. Short ones take far more memory
/// than bytes.
const MAX_PAGE_TEXTS: usize = 1 << 20;

/// Maximum length of a position, and number of labels of a service.
const MAX_POSITION_BYTES: usize = 100;
const MAX_SERVICE_LABELS: usize = 8;

/// Minimum time between two pages of an Archive that does not wait for changes, or has always more.
const MIN_PAGE_INTERVAL: Duration = Duration::from_millis(50);

/// First and maximum delay before a feed that failed is asked again.
const FIRST_FEED_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_FEED_RETRY_DELAY: Duration = Duration::from_secs(60);

/// How often new and changed Archives are looked for.
const ROSTER_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of suspicions that wait to be looked into.
pub const MAX_SUSPICIONS: usize = 1000;

/// What feeds say that cannot all be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedSuspicion {
    /// Two Archives claim the Original of this label.
    Originals(String),
    /// A Copy is no version of the Original.
    Copy(SuspectCopy),
}

/// Keeps the index up to date.
pub struct LocationFollower<R, C> {
    index: LocationIndex,
    known: Arc<R>,
    client: C,
    clock: ResolverClock,
    suspicions: mpsc::Sender<FeedSuspicion>,
}

/// What an Archive is followed with. If any of it changes, a new task begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FollowTerms {
    base: String,
    token: String,
    service: Label,
}

/// What a page means for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageProgress {
    /// There was something new.
    New,
    /// Nothing was new.
    Idle,
}

impl<R: ArchiveDirectory, C: FeedTransport> LocationFollower<R, C> {
    /// A follower of the Archives in a directory.
    pub fn new(
        index: LocationIndex,
        known: Arc<R>,
        client: C,
        clock: ResolverClock,
        suspicions: mpsc::Sender<FeedSuspicion>,
    ) -> Self {
        Self { index, known, client, clock, suspicions }
    }

    /// Follows all Archives that are online and have issued a token. Never returns.
    pub async fn run(self) {
        let this = Arc::new(self);
        let mut tasks: BTreeMap<ArchiveId, (FollowTerms, JoinHandle<()>)> = BTreeMap::new();
        loop {
            let archives = this.known.archives();
            this.index.set_registered(Arc::clone(&archives));
            let wanted: BTreeMap<ArchiveId, FollowTerms> =
                archives.iter().filter_map(|archive| Some((archive.id, this.terms(archive)?))).collect();
            tasks.retain(|id, (terms, task)| {
                let stays = wanted.get(id) == Some(terms) && !task.is_finished();
                if !stays {
                    task.abort();
                    this.index.doubt(*id);
                }
                stays
            });
            for (id, terms) in wanted {
                tasks.entry(id).or_insert_with(|| {
                    let task = tokio::spawn(Arc::clone(&this).follow(id, terms.clone()));
                    (terms, task)
                });
            }
            sleep(ROSTER_INTERVAL).await;
        }
    }

    fn terms(&self, archive: &RegisteredArchive) -> Option<FollowTerms> {
        if archive.standing != RegistrationStatus::OnLine {
            return None;
        }
        let token = self.index.followed_record(archive.id).ok()?.token;
        let base = archive.url("").filter(|_| !token.is_empty())?;
        Some(FollowTerms { base, token, service: archive.service.clone() })
    }

    /// Follows one Archive until it is aborted.
    async fn follow(self: Arc<Self>, id: ArchiveId, terms: FollowTerms) {
        let mut delay = FIRST_FEED_RETRY_DELAY;
        // The first request does not wait: the index may be used again at once.
        let mut waits = false;
        let followed = self.index.followed(id);
        loop {
            let begun = Instant::now();
            let read = tokio::select! {
                biased;
                () = followed.wake.notified(), if waits => {
                    waits = false;
                    continue;
                }
                read = self.read_page(id, &terms, waits) => read,
            };
            match read {
                Ok(progress) => {
                    self.index.record_feed_result(id, None);
                    delay = FIRST_FEED_RETRY_DELAY;
                    let pause = if waits { pause_after(progress, begun.elapsed()) } else { Duration::ZERO };
                    waits = true;
                    // Whoever wants to know what is true now ends the pause.
                    let woken = tokio::time::timeout(pause, followed.wake.notified());
                    if !pause.is_zero() && woken.await.is_ok() {
                        waits = false;
                    }
                }
                Err(error) => {
                    self.index.doubt(id);
                    self.index.record_feed_result(id, Some(&error));
                    metrics::counter!("ibi_index_feed_failures_total").increment(1);
                    if delay == FIRST_FEED_RETRY_DELAY {
                        tracing::warn!(
                            archive = id.0,
                            error,
                            "the location feed failed; the Archive is asked"
                        );
                    }
                    sleep(delay).await;
                    delay = (delay * 2).min(MAX_FEED_RETRY_DELAY);
                    waits = false;
                }
            }
        }
    }

    /// Reads one page into the index.
    async fn read_page(
        &self,
        id: ArchiveId,
        terms: &FollowTerms,
        waits: bool,
    ) -> Result<PageProgress, String> {
        let index = self.index.clone();
        let stored = run_blocking(move || index.followed_record(id));
        let stored = stored.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let after = if stored.position.is_empty() { "0" } else { &stored.position };
        let wait = if waits { FEED_WAIT.as_millis() } else { 0 };
        let url = format!("{}/api/v1/locations?after={after}&limit={PAGE_CHANGES}&wait={wait}", terms.base);
        let asked = Instant::now();
        let answer = self.client.get_feed(&url, &terms.token, MAX_PAGE_BYTES);
        let answer = tokio::time::timeout(FEED_WAIT + FEED_TIMEOUT, answer).await;
        let (status, body) =
            answer.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
        if status != StatusCode::OK {
            return Err(format!("it answered {status}"));
        }
        let page =
            parse_page(&body, &terms.service).map_err(|why| format!("its feed cannot be read: {why}"))?;
        drop(body);
        let is_new = page.next != after || page.restart || !page.records.is_empty() || !page.gone.is_empty();
        let (more, asks, waited) = (page.more, page.ask, page.waited);
        let mut is_unfit = stored.is_unfit;
        if page.restart {
            // Its items are read anew: until then it is asked.
            self.index.doubt(id);
        }
        if is_new || !stored.filled {
            let (index, now) = (self.index.clone(), (self.clock)());
            let applied = run_blocking(move || index.apply(id, &page, now));
            let applied =
                applied.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            is_unfit = applied.is_unfit;
            let originals = applied.disputed.into_iter().map(FeedSuspicion::Originals);
            for suspicion in originals.chain(applied.copies.into_iter().map(FeedSuspicion::Copy)) {
                // Of what does not fit, Originals are asked about when a reader asks for one; of
                // Copies, a few of each Archive are enough for the operator.
                let _ = self.suspicions.try_send(suspicion);
            }
        }
        if !more {
            // The Archive said how long it waited before it looked: nothing had changed by then.
            let waited = Duration::from_millis(waited).min(asked.elapsed());
            self.index.confirm(id, asked + waited, asks || is_unfit);
        }
        Ok(if is_new { PageProgress::New } else { PageProgress::Idle })
    }
}

/// Parses a page and checks that it is of this Archive and within bounds.
fn parse_page(body: &[u8], service: &Label) -> Result<LocationPage, String> {
    // Counted before anything is allocated: each text has two quotes.
    let quotes = body.iter().filter(|byte| **byte == b'"').count();
    if quotes > 2 * MAX_PAGE_TEXTS {
        return Err(format!("it has more than {MAX_PAGE_TEXTS} texts"));
    }
    let page: LocationPage = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let is_position = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !(1..=MAX_POSITION_BYTES).contains(&page.next.len()) || !page.next.bytes().all(is_position) {
        return Err("its position is none".to_owned());
    }
    let is_own = |label: &String| Label::parse(label).is_ok_and(|label| label.into_owned() == *service);
    if page.service.len() > MAX_SERVICE_LABELS || !page.service.iter().any(is_own) {
        return Err("it is the feed of another Archive".to_owned());
    }
    Ok(page)
}

/// How long to wait after a page that was asked to wait for changes. An honest Archive answers at
/// once only if there are some.
fn pause_after(progress: PageProgress, took: Duration) -> Duration {
    let least = match progress {
        PageProgress::New => MIN_PAGE_INTERVAL,
        PageProgress::Idle => FEED_WAIT,
    };
    least.saturating_sub(took)
}

/// The client for feeds and reports.
pub fn feed_client(allow_private: bool) -> Result<HttpClient, ibi_http::outgoing::HttpClientError> {
    HttpClient::with_guard(FEED_WAIT + FEED_TIMEOUT, allow_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: &str = "library.org.br/archive/2026/11.16.08.00";

    fn page(service: &str, next: &str, members: &str) -> String {
        format!(r#"{{"service":["{service}"],"next":"{next}","more":false,{members}"records":[]}}"#)
    }

    fn parse(text: &str) -> Result<LocationPage, String> {
        parse_page(text.as_bytes(), &SERVICE.parse().unwrap())
    }

    #[test]
    fn a_page_is_of_the_archive_and_within_bounds() {
        assert!(parse(&page(SERVICE, "7-3f1c0d5e9a2b4c68", "")).is_ok());
        assert!(parse(&page("LIBRARY.org.br/archive/2026/11.16.08.00", "0", "")).is_ok(), "any spelling");
        assert!(parse(&page("other.org.br/archive/2026/11.16.08.00", "7-3f", "")).is_err());
        for next in ["", "0 HTTP/1.1", "0&limit=1", "0#", "0\\r\\n", &"9".repeat(101)] {
            assert!(parse(&page(SERVICE, next, "")).is_err(), "{next}");
        }
        let services = format!("{SERVICE}\",\"").repeat(9) + SERVICE;
        assert!(parse(&page(&services, "0", "")).is_err());
    }

    #[test]
    fn texts_are_counted_before_they_are_read() {
        let gone = |count: usize| format!("\"gone\":[{}\"\"],", "\"\",".repeat(count));
        assert!(parse(&page(SERVICE, "0", &gone(1000))).is_ok());
        let refused = parse(&page(SERVICE, "0", &gone(MAX_PAGE_TEXTS))).unwrap_err();
        assert!(refused.contains("texts"), "{refused}");
    }

    #[test]
    fn an_archive_that_does_not_wait_is_not_asked_at_once() {
        assert_eq!(pause_after(PageProgress::Idle, FEED_WAIT), Duration::ZERO);
        assert_eq!(pause_after(PageProgress::Idle, Duration::ZERO), FEED_WAIT);
        assert_eq!(pause_after(PageProgress::New, Duration::ZERO), MIN_PAGE_INTERVAL);
        assert_eq!(pause_after(PageProgress::New, Duration::from_secs(2)), Duration::ZERO);
    }
}
