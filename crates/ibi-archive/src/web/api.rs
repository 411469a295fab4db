//! The API under `/api/v1`: what it takes and gives is in `openapi.json`, which it also serves.

mod collection;
mod drafts;
mod holders;
mod items;
mod labels;
mod links;
mod object;
mod once;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post, put};
use ibi_http::accept::value;
use ibi_http::{Problem, paced};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::ArchiveError;
use crate::links::LinkAuthority;
use crate::service::{Role, Token};
use crate::web::site::{Site, problem};

/// The description of the API, frozen.
pub(super) const OPENAPI: &str = include_str!("api/openapi.json");

/// Bytes of a body that is not a file.
const LONGEST_BODY: usize = 4 << 20;

pub(super) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/labels", post(labels::mint))
        .route("/items", get(items::list))
        .route("/items/{*rest}", any(items::any))
        .route("/copy", post(collection::copy))
        .route("/refresh", post(collection::refresh))
        .route("/confirm", post(confirm))
        .route("/changes", get(items::changes))
        .route("/links", get(links::list).post(links::hint))
        .route("/links/again", post(links::again))
        .route("/links/accept", post(links::accept))
        .route("/links/refuse", post(links::refuse))
        .route("/links/withdraw", post(links::withdraw))
        .route("/audit", get(audit))
        .route("/drafts", get(drafts::list).post(drafts::begin))
        .route("/drafts/{id}", get(drafts::get).patch(drafts::describe).delete(drafts::delete))
        .route("/drafts/{id}/files/{*name}", put(drafts::put).delete(drafts::take_out))
        .route("/drafts/{id}/publish", post(drafts::publish))
        .fallback(|| async {
            Problem::not_found("the API has nothing here: /api/v1/openapi.json tells what it has")
        })
        .method_not_allowed_fallback(|| async {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Problem::new(
                status,
                "method",
                "Method not allowed",
                "/api/v1/openapi.json tells what this address takes",
            )
        })
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], OPENAPI).into_response()
}

/// How the last audit went, or how far this one is.
async fn audit(State(site): State<Arc<Site>>) -> Result<Response, Problem> {
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

/// Says that a restored Archive has its originals still.
async fn confirm(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, Problem> {
    allowed(&site, &headers, Role::Operator)?;
    let confirmed = site.desk.confirm().await.map_err(refused)?;
    Ok(axum::Json(json!({ "confirmed": confirmed })).into_response())
}

/// The token of a request, if it allows what is asked.
fn allowed(site: &Site, headers: &HeaderMap, role: Role) -> Result<Token, Problem> {
    site.tokens.allowed(headers, role, "ibi archive token create")
}

/// Whose word counts for links that are stated with a token (clause 2.4, *Consent*).
fn authority(token: &Token) -> LinkAuthority {
    match token.role {
        Role::Operator => LinkAuthority::Operator,
        _ => LinkAuthority::Depositor(token.name.clone()),
    }
}

/// A body of JSON, whatever it is called: `curl -d` calls it a form.
async fn json_body<T: DeserializeOwned>(site: &Site, request: Request) -> Result<(T, String), Problem> {
    let bytes = paced::whole(request.into_body(), LONGEST_BODY, &site.limits).await?;
    let text = if bytes.is_empty() { &b"{}"[..] } else { &bytes[..] };
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::bad_request("the body is a JSON object"));
    }
    let read = serde_json::from_slice(text).map_err(|error| not_taken(&error))?;
    Ok((read, ibi_store::digests::sha512(text)))
}

/// Does what waits for the disk on another thread: those who only ask are answered meanwhile.
async fn aside<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&Arc<Site>) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let site = Arc::clone(site);
    tokio::task::spawn_blocking(move || work(&site)).await.unwrap_or_else(|_| Err(Problem::internal()))
}

/// Why a body is not taken: it is no JSON, or JSON of something else.
fn not_taken(error: &serde_json::Error) -> Problem {
    let detail = format!("the body: {error}");
    match error.is_data() {
        true => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-described", "Not what is described", detail)
        }
        false => Problem::bad_request(detail),
    }
}

/// A number in the query, within bounds.
fn number(query: Option<&str>, name: &str, default: u64, most: u64) -> Result<u64, Problem> {
    let Some(text) = query.and_then(|query| value(query, name)) else { return Ok(default) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse::<u64>()
        .ok()
        .filter(|number| digits && (u64::from(name == "limit")..=most).contains(number));
    number.ok_or_else(|| Problem::bad_request(format!("`{name}` is a number up to {most}, and not `{text}`")))
}

/// An error of the Archive.
fn refused(error: ArchiveError) -> Problem {
    problem(&error)
}
