//! Checks the target URLs of items: `ibi archive links check`. Sends one request at a time to a
//! server, with a pause between two, HEAD before GET, and respects its `robots.txt`. Results are
//! saved as they arrive, so an interrupted check resumes.

mod progress;

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, StatusCode, header};
use ibi_http::outgoing::{GuardedClient, GuardedResponse, HttpClientError};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::ArchiveError;
use crate::archive::{Holdings, current_second};
use crate::robots_txt::RobotsTxt;
use crate::store::State;
use crate::target_url::TargetUrl;
use ibi_mint::clock::SystemClock;

pub use progress::TargetCheckProgress;

/// The user agent of the check, also in `robots.txt`.
pub const CHECKER_NAME: &str = "ibi-links-check";

/// Limit on servers checked at a time.
const MAX_CONCURRENT_SERVERS: usize = 4;

/// Limits on the bytes read of a page and of a `robots.txt` (RFC 9309 2.5: at least 500 KiB).
const MAX_TARGET_PAGE_BYTES: usize = 1 << 10;
const MAX_ROBOTS_BYTES: usize = 512 << 10;

/// Items listed at a time.
const TARGET_PAGE_ITEMS: usize = 1000;

/// The result for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetOutcome {
    /// It responds with success.
    Ok,
    /// It redirects permanently.
    Moved,
    /// No response, or an error.
    Failed,
    /// Not requested, or disallowed by `robots.txt`.
    Skipped,
}

impl TargetOutcome {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            TargetOutcome::Ok => "ok",
            TargetOutcome::Moved => "moved",
            TargetOutcome::Failed => "failed",
            TargetOutcome::Skipped => "skipped",
        }
    }
}

/// A checked target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedTarget {
    /// The item, by its primary label.
    pub item: String,
    /// Its target URL.
    pub url: String,
    /// The result.
    pub outcome: TargetOutcome,
    /// The status of the last response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed or was skipped, or its new location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When.
    pub time: String,
}

/// Options of a check.
#[derive(Debug, Clone)]
pub struct TargetCheckOptions {
    /// The pause between two requests to one server.
    pub pause: Duration,
    /// The response timeout.
    pub timeout: Duration,
    /// Also contact private and loopback addresses.
    pub allow_private: bool,
}

/// An item and its target URL.
type ItemTarget = (String, TargetUrl);

/// The unchecked targets of all items that were not removed, by server.
fn unchecked_targets(
    holdings: &Holdings,
    progress: &TargetCheckProgress,
) -> Result<BTreeMap<String, Vec<ItemTarget>>, ArchiveError> {
    let mut targets: BTreeMap<String, Vec<ItemTarget>> = BTreeMap::new();
    let mut after = String::new();
    loop {
        let items = holdings.list(&after, TARGET_PAGE_ITEMS)?;
        let Some(last) = items.last() else { return Ok(targets) };
        after.clone_from(&last.path);
        for holding in items.iter().filter(|holding| holding.state != State::Deleted) {
            let Some(url) = &holding.item.url else { continue };
            let item = holding.item.labels.primary();
            if !progress.is_already_checked(item, url.as_str()) {
                targets.entry(url.server()).or_default().push((item.to_owned(), url.clone()));
            }
        }
    }
}

/// Checks the targets of all items, and reports each when it is saved. Returns whether all were
/// checked.
pub async fn check_targets(
    holdings: &Holdings,
    options: &TargetCheckOptions,
    progress: &mut TargetCheckProgress,
    tell: &mut dyn FnMut(&CheckedTarget) -> bool,
) -> Result<bool, ArchiveError> {
    let user_agent = format!("{CHECKER_NAME}/{}", env!("CARGO_PKG_VERSION"));
    let client = GuardedClient::new(options.timeout, &user_agent, options.allow_private)
        .map_err(|error| ArchiveError::Value(error.to_string()))?;
    let mut waiting = unchecked_targets(holdings, progress)?.into_values();
    let (give, mut checked) = mpsc::channel(64);
    let mut servers = JoinSet::new();
    let mut begin = |servers: &mut JoinSet<()>| {
        while servers.len() < MAX_CONCURRENT_SERVERS
            && let Some(targets) = waiting.next()
        {
            servers.spawn(check_server(client.clone(), targets, options.pause, give.clone()));
        }
        servers.is_empty()
    };
    let mut is_done = begin(&mut servers);
    while !is_done {
        tokio::select! {
            Some(target) = checked.recv() => {
                progress.append_result(&target)?;
                if !tell(&target) {
                    return Ok(false);
                }
            }
            Some(_) = servers.join_next() => is_done = begin(&mut servers),
        }
    }
    while let Ok(target) = checked.try_recv() {
        progress.append_result(&target)?;
        if !tell(&target) {
            return Ok(false);
        }
    }
    progress.delete_progress_file()?;
    Ok(true)
}

/// Checks the targets on one server, one after the other.
async fn check_server(
    client: GuardedClient,
    targets: Vec<ItemTarget>,
    pause: Duration,
    give: mpsc::Sender<CheckedTarget>,
) {
    let Some((_, first)) = targets.first() else { return };
    let robots = fetch_robots(&client, first).await;
    let mut busy = None;
    for (item, url) in targets {
        let checked = match &busy {
            _ if !robots.allows(CHECKER_NAME, &url.path_and_query()) => {
                skipped_target(item, &url, None, "its robots.txt asks not to")
            }
            Some(status) => {
                skipped_target(item, &url, Some(*status), "its server asked to be left alone for now")
            }
            None => {
                sleep(pause).await;
                check_target_url(&client, item, &url, pause).await
            }
        };
        if checked.status == Some(StatusCode::TOO_MANY_REQUESTS.as_u16()) {
            busy = checked.status;
        }
        if give.send(checked).await.is_err() {
            return;
        }
    }
}

/// The rules of a server. If there is nothing to read, there are no rules: the check requests one
/// page that an item names, and a failing server must be reported (RFC 9309 2.3.1 is for crawlers).
async fn fetch_robots(client: &GuardedClient, url: &TargetUrl) -> RobotsTxt {
    let scheme = if url.is_secure() { "https" } else { "http" };
    let robots = format!("{scheme}://{}/robots.txt", url.authority());
    match client.fetch_prefix(Method::GET, &robots, MAX_ROBOTS_BYTES).await {
        Ok(answer) if answer.status.is_success() => RobotsTxt::parse(&answer.body),
        _ => RobotsTxt::default(),
    }
}

async fn check_target_url(
    client: &GuardedClient,
    item: String,
    url: &TargetUrl,
    pause: Duration,
) -> CheckedTarget {
    let mut answer = client.fetch_prefix(Method::HEAD, url.as_str(), 0).await;
    // Some services answer HEAD differently from GET. An overloaded server is not asked again.
    let again = !answer.as_ref().is_ok_and(|answer| is_reachable(answer.status) || is_busy(answer.status));
    if again {
        sleep(pause).await;
        answer = client.fetch_prefix(Method::GET, url.as_str(), MAX_TARGET_PAGE_BYTES).await;
    }
    checked_target(item, url, answer)
}

fn is_reachable(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
}

fn checked_target(
    item: String,
    url: &TargetUrl,
    answer: Result<GuardedResponse, HttpClientError>,
) -> CheckedTarget {
    let (outcome, status, note) = match answer {
        Err(error) => (TargetOutcome::Failed, None, Some(error.to_string())),
        Ok(GuardedResponse { status, headers, .. }) => {
            let to =
                headers.get(header::LOCATION).map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
            let outcome = match status {
                status if is_busy(status) => TargetOutcome::Skipped,
                status if status.is_redirection() => TargetOutcome::Moved,
                status if status.is_success() => TargetOutcome::Ok,
                _ => TargetOutcome::Failed,
            };
            (outcome, Some(status.as_u16()), to.filter(|_| status.is_redirection()))
        }
    };
    CheckedTarget { item, url: url.as_str().to_owned(), outcome, status, note, time: now() }
}

fn skipped_target(item: String, url: &TargetUrl, status: Option<u16>, why: &str) -> CheckedTarget {
    let (url, note) = (url.as_str().to_owned(), Some(why.to_owned()));
    CheckedTarget { item, url, outcome: TargetOutcome::Skipped, status, note, time: now() }
}

fn now() -> String {
    current_second(&SystemClock::new()).to_string()
}
