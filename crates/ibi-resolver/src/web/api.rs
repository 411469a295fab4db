//! The API under `/api/v1`: what it takes and gives is in `openapi.json`, which it also serves.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use ibi_http::accept::value;
use ibi_http::{Problem, paced};
use ibi_id::Label;
use ibi_protocol::{Key, PersistentUrl};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::link::path_and_query;
use crate::registry::{Registry, RegistryError};
use crate::resolve::Asked;
use crate::shown::{AlertShown, ArchiveShown};
use crate::told::Told;
use crate::web::pages::tongue;
use crate::web::resolve::accepted;
use crate::web::site::{Role, Site};

/// The description of the API, frozen.
const OPENAPI: &str = include_str!("api/openapi.json");

/// Bytes of a body: a registry of very many Archives.
const LONGEST_BODY: usize = 16 << 20;

pub(super) fn router() -> Router<Arc<Site>> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/resolver.json", get(openapi))
        .route("/resolve", get(resolve))
        .route("/archives", get(archives).post(register))
        .route("/archives/retire", post(retire))
        .route("/alerts", get(alerts))
        .route("/alerts/{id}", get(alert))
        .route("/alerts/{id}/resolve", post(end_alert))
        .route("/registry", get(export).put(import))
        .fallback(|| async {
            Problem::not_found("the API has nothing here: /api/v1/resolver.json tells what it has")
        })
        .method_not_allowed_fallback(|| async {
            let detail = "/api/v1/resolver.json tells what this address takes";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "Method not allowed", detail)
        })
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], OPENAPI).into_response()
}

/// Resolves without sending anybody anywhere.
async fn resolve(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    let (request, _) = request.into_parts();
    let query = request.uri.query();
    let Some(url) = query.and_then(|query| value(query, "url")) else {
        return Err(Problem::bad_request(
            "say `url=`: a persistent URL, whole or from its path on, percent-encoded",
        ));
    };
    let explain = flag(query, "explain")?;
    // A whole URL, of whatever resolver, is as good as its path.
    let url = path_and_query(&url);
    let (path, passed) =
        url.split_once('?').map_or((url.as_str(), None), |(path, query)| (path, Some(query)));
    let parsed =
        PersistentUrl::parse(path, passed).map_err(|error| Problem::bad_request(error.to_string()))?;
    let base = &site.public_url;
    let asked = Asked {
        persistent: passed.map_or_else(|| format!("{base}{path}"), |passed| format!("{base}{path}?{passed}")),
        languages: accepted(&request.headers),
        client: site.clients(&request),
        url: parsed,
        explain,
        goes: false,
    };
    let resolution = site.resolver.resolve(asked).await;
    let told = Told::new(&resolution.outcome, tongue(&request.headers, query));
    Ok(axum::Json(json!({ "outcome": told, "explanation": resolution.explanation })).into_response())
}

/// Anybody may know which Archives there are; how to reach who runs them is for the operator.
async fn archives(State(site): State<Arc<Site>>, headers: HeaderMap) -> Result<Response, Problem> {
    let is_operator = headers.contains_key(header::AUTHORIZATION);
    if is_operator {
        operator(&site, &headers)?;
    }
    let archives = site.registry.archives();
    let all = archives.iter().map(|archive| ArchiveShown::new(&site.registry, archive));
    let shown: Vec<_> = all.map(|shown| if is_operator { shown } else { shown.for_anybody() }).collect();
    Ok(axum::Json(json!({ "archives": shown })).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToRegister {
    service: String,
    key: Option<String>,
    #[serde(default)]
    hosts: Vec<String>,
}

async fn register(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    operator(&site, request.headers())?;
    let body: ToRegister = json_body(&site, request).await?;
    let service = label(&body.service)?;
    let key = body.key.as_deref().map(str::parse::<Key>).transpose();
    let key = key.map_err(|error| refused(format!("the key: {error}")))?;
    let now = site.now();
    let registered = aside(&site, move |registry| registry.register(service, key, body.hosts, now)).await?;
    let mut shown = json!(ArchiveShown::new(&site.registry, &registered.archive));
    if let (Some(key), Some(shown)) = (&registered.made, shown.as_object_mut()) {
        shown.insert("key".to_owned(), json!(key.reveal()));
    }
    Ok((StatusCode::CREATED, axum::Json(shown)).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToRetire {
    service: String,
}

async fn retire(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    operator(&site, request.headers())?;
    let body: ToRetire = json_body(&site, request).await?;
    let (service, now) = (label(&body.service)?, site.now());
    let archive = aside(&site, move |registry| registry.retire(&service, now)).await?;
    Ok(axum::Json(ArchiveShown::new(&site.registry, &archive)).into_response())
}

async fn alerts(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    operator(&site, request.headers())?;
    let all = flag(request.uri().query(), "all")?;
    let alerts = aside(&site, move |registry| registry.alerts(all)).await?;
    let shown: Vec<_> = alerts.iter().map(|alert| AlertShown::new(&site.registry, alert)).collect();
    Ok(axum::Json(json!({ "alerts": shown })).into_response())
}

async fn alert(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    operator(&site, &headers)?;
    let id = number(&id)?;
    let alert = aside(&site, move |registry| registry.alert(id)).await?;
    alert
        .map(|alert| axum::Json(AlertShown::new(&site.registry, &alert)).into_response())
        .ok_or_else(no_alert)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToEnd {
    note: String,
}

async fn end_alert(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let token = operator(&site, request.headers())?;
    let id = number(&id)?;
    let ToEnd { note } = json_body(&site, request).await?;
    if note.trim().is_empty() {
        return Err(refused("the note says why the alert is over".to_owned()));
    }
    let now = site.now();
    let ended = aside(&site, move |registry| registry.resolve_alert(id, &token, note.trim(), now)).await?;
    ended
        .map(|alert| axum::Json(AlertShown::new(&site.registry, &alert)).into_response())
        .ok_or_else(no_alert)
}

async fn export(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    operator(&site, request.headers())?;
    let text = aside(&site, Registry::export).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

async fn import(State(site): State<Arc<Site>>, request: Request) -> Result<Response, Problem> {
    operator(&site, request.headers())?;
    let bytes = paced::whole(request.into_body(), LONGEST_BODY, &site.limits).await?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| refused("the text is not UTF-8".to_owned()))?;
    let report = aside(&site, move |registry| registry.import(&text)).await?;
    let told = json!({ "added": report.added, "replaced": report.replaced, "kept": report.kept });
    Ok(axum::Json(told).into_response())
}

/// The name of the operator who asks.
fn operator(site: &Site, headers: &HeaderMap) -> Result<String, Problem> {
    let token = site.tokens.allowed(headers, Role::Operator, "ibi resolver token create")?;
    Ok(token.name)
}

/// A pair of the query that is `true` or `false`; without it, `false`.
fn flag(query: Option<&str>, name: &str) -> Result<bool, Problem> {
    match query.and_then(|query| value(query, name)).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::bad_request(format!("`{name}` is true or false"))),
    }
}

fn label(text: &str) -> Result<Label, Problem> {
    text.parse().map_err(|error: ibi_id::ParseError| refused(format!("the service: {error}")))
}

fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| no_alert())
}

fn no_alert() -> Problem {
    Problem::not_found("there is no alert of this number")
}

fn refused(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-described", "Not what is described", detail)
}

/// A body of JSON, whatever it is called: `curl -d` calls it a form.
async fn json_body<T: DeserializeOwned>(site: &Site, request: Request) -> Result<T, Problem> {
    let bytes = paced::whole(request.into_body(), LONGEST_BODY, &site.limits).await?;
    serde_json::from_slice(&bytes).map_err(|error| match error.is_data() {
        true => refused(format!("the body: {error}")),
        false => Problem::bad_request(format!("the body: {error}")),
    })
}

/// Does what waits for the disk on another thread.
async fn aside<T: Send + 'static>(
    site: &Site,
    work: impl FnOnce(&Registry) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, Problem> {
    let registry = site.registry.clone();
    let done = tokio::task::spawn_blocking(move || work(&registry)).await;
    done.map_err(|_| Problem::internal())?.map_err(|error| match error {
        RegistryError::Unknown { .. } => Problem::not_found(error.to_string()),
        RegistryError::Host { .. }
        | RegistryError::ManyHosts { .. }
        | RegistryError::Address(_)
        | RegistryError::Import(_) => refused(error.to_string()),
        error => {
            tracing::error!(%error, "the registry failed");
            Problem::internal()
        }
    })
}

#[cfg(test)]
mod tests;
