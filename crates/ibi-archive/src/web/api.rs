//! The API under `/api/v1`, described by `openapi.json`, which it also serves.

mod collection;
mod drafts;
mod following;
mod holders;
mod idempotency;
mod items;
mod labels;
mod links;
mod object;
mod rights;

use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post, put};
use ibi_http::accept::query_value;
use ibi_http::{MemoryGrant, Problem, body};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::ArchiveError;
use crate::service::{ServiceRole, ServiceToken};
use crate::web::site::{ArchiveSite, problem};

/// The description of the API. Frozen.
pub(super) const OPENAPI: &str = include_str!("api/openapi.json");

/// Maximum size of a body that is not a file.
const MAX_JSON_BODY_BYTES: usize = 4 << 20;

/// Longer bodies need a memory grant. Parsed JSON takes this factor of its size.
const MAX_SHORT_BODY_BYTES: usize = 64 << 10;
const JSON_MEMORY_FACTOR: u64 = 4;

pub(super) fn router() -> Router<Arc<ArchiveSite>> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/labels", post(labels::mint))
        .route("/items", get(items::list))
        .route("/items/{*rest}", any(items::dispatch))
        .route("/copy", post(collection::copy))
        .route("/refresh", post(collection::refresh))
        .route("/changes", get(items::changes))
        .route("/links", get(links::list).post(links::hint))
        .route("/links/again", post(links::again))
        .route("/links/accept", post(links::accept))
        .route("/links/refuse", post(links::refuse))
        .route("/links/withdraw", post(links::withdraw))
        .route("/locations", get(following::locations))
        .route("/usage", post(following::usage))
        .route("/audit", get(audit))
        .route("/drafts", get(drafts::list).post(drafts::begin))
        .route("/drafts/{id}", get(drafts::get).patch(drafts::describe).delete(drafts::delete))
        .route("/drafts/{id}/files/{*name}", put(drafts::put).delete(drafts::delete_file))
        .route("/drafts/{id}/publish", post(drafts::publish))
        .fallback(|| async { Problem::not_found("no such endpoint; see /api/v1/openapi.json") })
        .method_not_allowed_fallback(|| async {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Problem::new(
                status,
                "method",
                "Method not allowed",
                "not supported by this endpoint; see /api/v1/openapi.json",
            )
        })
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], OPENAPI).into_response()
}

/// The result of the last audit, or the progress of the current one.
async fn audit(State(site): State<Arc<ArchiveSite>>) -> Result<Response, Problem> {
    let holdings = site.desk.read().map_err(|error| problem(&error))?;
    let audit = holdings.last_audit().map_err(|error| problem(&error))?;
    Ok(axum::Json(match audit {
        None => json!({ "state": "never" }),
        Some(audit) => json!({
            "state": if audit.finished.is_some() { "finished" } else { "interrupted" },
            "started": audit.started,
            "finished": audit.finished,
            "items": audit.items,
            "files": audit.files,
            "bytes": audit.bytes,
            "findings": audit.findings.len(),
        }),
    })
    .into_response())
}

/// The token of a request, if its role suffices.
fn authorize(site: &ArchiveSite, headers: &HeaderMap, role: ServiceRole) -> Result<ServiceToken, Problem> {
    // A backup contains tokens that were revoked after it was made (clause 2.1: until it is
    // confirmed).
    if headers.contains_key(header::AUTHORIZATION) && crate::backup::has_tokens_in_doubt(site.desk.data()) {
        return Err(Problem::unauthorized(
            "this Archive was restored from a backup: no token is valid until its operator confirms the restore",
        ));
    }
    site.tokens.authorize(headers, role, "ibi archive token create", &site.believed_text())
}

/// Reads a JSON body whatever its `Content-Type`: `curl -d` declares a form.
///
/// A long body needs a memory grant before it arrives, for itself and for the parsed value.
async fn json_body<T: DeserializeOwned + Send + 'static>(
    site: &ArchiveSite,
    request: Request,
) -> Result<(T, String), Problem> {
    json_body_with_grant(site, request).await.map(|(read, digest, _)| (read, digest))
}

/// Like [`json_body`], with the memory grant, to be held while the value is in use.
async fn json_body_with_grant<T: DeserializeOwned + Send + 'static>(
    site: &ArchiveSite,
    request: Request,
) -> Result<(T, String, Option<MemoryGrant>), Problem> {
    json_body_within(site, request, MAX_JSON_BODY_BYTES).await
}

/// A short JSON body, from any client.
async fn short_json_body<T: DeserializeOwned + Send + 'static>(
    site: &ArchiveSite,
    request: Request,
) -> Result<(T, String), Problem> {
    json_body_within(site, request, MAX_SHORT_BODY_BYTES).await.map(|(read, digest, _)| (read, digest))
}

async fn json_body_within<T: DeserializeOwned + Send + 'static>(
    site: &ArchiveSite,
    request: Request,
    most: usize,
) -> Result<(T, String, Option<MemoryGrant>), Problem> {
    let length = request.body().size_hint().upper().and_then(|length| usize::try_from(length).ok());
    let length = length.unwrap_or(most).min(most);
    let is_long = length > MAX_SHORT_BODY_BYTES;
    // For the body and for what is parsed from it, at once: a request that waits for memory while it
    // holds some could block itself, and one that holds uncounted memory while it waits could
    // exceed the budget.
    let share = match is_long {
        true => Some(site.desk.grant(length as u64 * (1 + JSON_MEMORY_FACTOR)).await?),
        false => None,
    };
    let bytes = body::read_whole_body(request.into_body(), most, &site.limits).await?;
    let text = if bytes.is_empty() { &b"{}"[..] } else { &bytes[..] };
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::bad_request("the body is a JSON object"));
    }
    let Some(share) = share else {
        let read = serde_json::from_slice(text).map_err(|error| body_problem(&error))?;
        return Ok((read, ibi_store::digests::sha512(text), None));
    };
    let parsed = site.desk.memory().run(share, move || {
        let read = serde_json::from_slice(&bytes).map_err(|error| body_problem(&error))?;
        Ok((read, ibi_store::digests::sha512(&bytes)))
    });
    let (parsed, share) = parsed.await?;
    parsed.map(|(read, digest)| (read, digest, Some(share)))
}

/// Runs blocking work on another thread, so that other requests are answered meanwhile.
async fn run_site_blocking<T: Send + 'static>(
    site: &Arc<ArchiveSite>,
    work: impl FnOnce(&Arc<ArchiveSite>) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    site.run_blocking(work).await?
}

/// Why a body is rejected: not JSON, or JSON that does not match.
fn body_problem(error: &serde_json::Error) -> Problem {
    let detail = format!("the body: {error}");
    match error.is_data() {
        true => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-described", "Invalid request body", detail)
        }
        false => Problem::bad_request(detail),
    }
}

/// A number in the query, within bounds.
fn query_number(query: Option<&str>, name: &str, default: u64, most: u64) -> Result<u64, Problem> {
    let Some(text) = query.and_then(|query| query_value(query, name)) else { return Ok(default) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse::<u64>()
        .ok()
        .filter(|number| digits && (u64::from(name == "limit")..=most).contains(number));
    number.ok_or_else(|| Problem::bad_request(format!("`{name}` is a number up to {most}, and not `{text}`")))
}

fn archive_problem(error: ArchiveError) -> Problem {
    problem(&error)
}
