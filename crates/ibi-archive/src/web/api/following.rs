//! For resolvers that follow this Archive: the location feed, and their reports of usage (4.4).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::query_value;
use ibi_protocol::location::LocationPage;
use serde_json::json;
use tokio::time::Instant;

use crate::service::location_feed::{location_page, wait_for_changes};
use crate::service::usage_report::ReceivedUsageReport;
use crate::web::api::{archive_problem, json_body, query_number, run_site_blocking};
use crate::web::site::ArchiveSite;

/// Maximum and default number of journal lines per page.
const MAX_PAGE_CHANGES: u64 = 2000;
const DEFAULT_PAGE_CHANGES: u64 = 500;

/// Maximum time that a request waits for a change, in milliseconds.
const MAX_WAIT_MILLISECONDS: u64 = 20_000;

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
    let wait = Duration::from_millis(wait);
    let is_over = || site.is_stopping();
    wait_for_changes(|| site.desk.read(), &after, wait, is_over).await.map_err(archive_problem)?;
    let page = run_site_blocking(&site, move |site| {
        let waited = begun.elapsed().as_millis();
        let holdings = site.desk.read().map_err(archive_problem)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = location_page(&holdings, &after, limit).map_err(archive_problem)?;
        Ok(LocationPage { waited: u64::try_from(waited).unwrap_or(u64::MAX), ..page })
    });
    Ok(axum::Json(page.await?).into_response())
}

/// Counts what a resolver reports, once.
pub(super) async fn usage(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
) -> Result<Response, Problem> {
    let resolver = site.followers.authorize(request.headers())?;
    let (report, _): (ReceivedUsageReport, String) = json_body(&site, request).await?;
    report.check_size().map_err(Problem::bad_request)?;
    let counted = run_site_blocking(&site, move |site| {
        let holdings = site.desk.read().map_err(archive_problem)?;
        report.count(&resolver, &holdings, &site.statistics).map_err(archive_problem)
    });
    Ok(axum::Json(json!({ "counted": counted.await? })).into_response())
}
