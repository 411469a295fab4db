//! For resolvers that follow this Archive: the location feed, and their reports of usage (4.4).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::query_value;
use ibi_protocol::ContentType;
use ibi_protocol::location::LocationPage;
use ibi_store::service::UsageCount;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::service::StatisticsEvent;
use crate::service::location_feed::{has_changes, location_page};
use crate::web::api::{archive_problem, json_body, query_number, run_site_blocking};
use crate::web::site::ArchiveSite;

/// Maximum and default number of journal lines per page.
const MAX_PAGE_CHANGES: u64 = 2000;
const DEFAULT_PAGE_CHANGES: u64 = 500;

/// Maximum time that a request waits for a change, in milliseconds.
const MAX_WAIT_MILLISECONDS: u64 = 20_000;

/// Limits of a report.
const MAX_INDEX_NAME_BYTES: usize = 64;
const MAX_REPORT_COUNTS: usize = 10_000;

/// How often a waiting request looks for changes. Commands change the folder too, so that no
/// notification would cover all.
const CHANGE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Changes after a position. Without any, waits for one.
pub(super) async fn locations(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    site.followers.authorize(request.headers())?;
    let query = request.uri().query();
    let limit = query_number(query, "limit", DEFAULT_PAGE_CHANGES, MAX_PAGE_CHANGES)?;
    let wait = query_number(query, "wait", 0, MAX_WAIT_MILLISECONDS)?;
    let after = query.and_then(|query| query_value(query, "after")).unwrap_or_else(|| "0".to_owned());
    let begun = Instant::now();
    let until = begun + Duration::from_millis(wait);
    while Instant::now() < until && !site.is_stopping() {
        let holdings = site.desk.read().map_err(archive_problem)?;
        if has_changes(&holdings, &after).map_err(archive_problem)? {
            break;
        }
        drop(holdings);
        sleep(CHANGE_POLL_INTERVAL).await;
    }
    let page = run_site_blocking(&site, move |site| {
        let waited = begun.elapsed().as_millis();
        let holdings = site.desk.read().map_err(archive_problem)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = location_page(&holdings, &after, limit).map_err(archive_problem)?;
        Ok(LocationPage { waited: u64::try_from(waited).unwrap_or(u64::MAX), ..page })
    });
    Ok(axum::Json(page.await?).into_response())
}

/// A report of redirects that a resolver made without asking.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `index`, `sequence` and `counts`")]
struct UsageReportBody {
    /// The name of the resolver's index.
    index: String,
    /// Its number: the reports of each index have increasing ones.
    sequence: u64,
    counts: Vec<UsageReportCount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageReportCount {
    day: String,
    ibi: String,
    contenttype: ContentType,
    robot: bool,
    times: u64,
}

/// Counts what a resolver reports, once.
pub(super) async fn usage(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let resolver = site.followers.authorize(request.headers())?;
    let (report, _): (UsageReportBody, String) = json_body(&site, request).await?;
    if report.index.len() > MAX_INDEX_NAME_BYTES || report.counts.len() > MAX_REPORT_COUNTS {
        return Err(Problem::bad_request("the report is too long"));
    }
    let counted = run_site_blocking(&site, move |site| {
        let holdings = site.desk.read().map_err(archive_problem)?;
        let count = |count: UsageReportCount| {
            let (holding, _) = holdings.find_bare(&count.ibi).ok()?;
            let is_day = count.day.len() == 10 && count.day.bytes().all(|c| c.is_ascii_digit() || c == b'-');
            is_day.then(|| UsageCount {
                path: holding.path,
                contenttype: count.contenttype.as_str().to_owned(),
                day: count.day,
                what: StatisticsEvent::Resolution.name().to_owned(),
                robots: count.robot,
                times: count.times,
            })
        };
        let counts: Vec<UsageCount> = report.counts.into_iter().filter_map(count).collect();
        let index = format!("{resolver} {}", report.index);
        site.statistics.add_report(&index, report.sequence, &counts).map_err(archive_problem)
    });
    Ok(axum::Json(json!({ "counted": counted.await? })).into_response())
}
