//! The API under `/api/v1`, specified in `openapi.json`, which it also serves.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use ibi_http::accept::{UiLanguage, query_value};
use ibi_http::{Problem, body};
use ibi_id::Label;
use ibi_protocol::{PersistentUrl, RegistrationKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::api_view::{AlertView, ResolverArchiveView};
use crate::link::path_and_query;
use crate::outcome_view::OutcomeView;
use crate::registry::{Registry, ResolverRegistryError};
use crate::resolve::ResolutionRequest;
use crate::web::resolve::accepted;
use crate::web::site::{ResolverRole, ResolverSite};

/// The API description; frozen.
const OPENAPI_JSON: &str = include_str!("api/openapi.json");

/// Maximum body size: enough for a registry of very many Archives.
const MAX_BODY_BYTES: usize = 16 << 20;

pub(super) fn router() -> Router<Arc<ResolverSite>> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/resolver.json", get(openapi))
        .route("/resolve", get(resolve))
        .route("/archives", get(archives).post(register))
        .route("/archives/retire", post(retire))
        .route("/alerts", get(alerts))
        .route("/alerts/{id}", get(alert))
        .route("/alerts/{id}/resolve", post(end_alert))
        .route("/index", get(index_status))
        .route("/registry", get(export).put(import))
        .fallback(|| async { Problem::not_found("no such endpoint; see /api/v1/resolver.json") })
        .method_not_allowed_fallback(|| async {
            let detail = "not supported by this endpoint; see /api/v1/resolver.json";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "Method not allowed", detail)
        })
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], OPENAPI_JSON).into_response()
}

/// Resolves without redirecting.
async fn resolve(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    let (request, _) = request.into_parts();
    let query = request.uri.query();
    let Some(url) = query.and_then(|query| query_value(query, "url")) else {
        return Err(Problem::bad_request(
            "say `url=`: a persistent URL, whole or from its path on, percent-encoded",
        ));
    };
    let explain = flag(query, "explain")?;
    // A whole URL of any resolver is equivalent to its path.
    let url = path_and_query(&url);
    let (path, passed) =
        url.split_once('?').map_or((url.as_str(), None), |(path, query)| (path, Some(query)));
    let parsed =
        PersistentUrl::parse(path, passed).map_err(|error| Problem::bad_request(error.to_string()))?;
    let base = &site.public_url;
    let asked = ResolutionRequest {
        robot: false,
        // Programs act on this: Archives ask who has an Original before they hand it over.
        fresh: true,
        persistent: passed.map_or_else(|| format!("{base}{path}"), |passed| format!("{base}{path}?{passed}")),
        languages: accepted(&request.headers),
        client: site.clients(&request),
        url: parsed,
        explain,
        goes: false,
    };
    let (resolution, charge) = site.resolve_rated(asked).await?;
    let told = OutcomeView::new(&resolution.outcome, UiLanguage::of(&request.headers, query));
    let answer = json!({ "outcome": told, "explanation": resolution.explanation });
    let mut response = axum::Json(answer).into_response();
    charge.write_headers(response.headers_mut());
    Ok(response)
}

/// The list of Archives is public; contact data are for the operator.
async fn archives(State(site): State<Arc<ResolverSite>>, headers: HeaderMap) -> Result<Response, Problem> {
    let is_operator = headers.contains_key(header::AUTHORIZATION);
    if is_operator {
        require_operator(&site, &headers)?;
    }
    let archives = site.registry.archives();
    let all = archives.iter().map(|archive| {
        ResolverArchiveView::new(&site.registry, archive).with_breaker(site.health.breaker(archive.id))
    });
    let shown: Vec<_> = all.map(|shown| if is_operator { shown } else { shown.without_contact() }).collect();
    Ok(axum::Json(json!({ "archives": shown })).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterArchiveBody {
    service: String,
    key: Option<String>,
    #[serde(default)]
    hosts: Vec<String>,
}

async fn register(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    require_operator(&site, request.headers())?;
    let body: RegisterArchiveBody = json_body(&site, request).await?;
    let service = label(&body.service)?;
    let key = body.key.as_deref().map(str::parse::<RegistrationKey>).transpose();
    let key = key.map_err(|error| unprocessable(format!("the key: {error}")))?;
    let now = site.now();
    let registered =
        run_on_registry(&site, move |registry| registry.register(service, key, body.hosts, now)).await?;
    let mut shown = json!(ResolverArchiveView::new(&site.registry, &registered.archive));
    if let (Some(key), Some(shown)) = (&registered.made, shown.as_object_mut()) {
        shown.insert("key".to_owned(), json!(key.reveal()));
    }
    Ok((StatusCode::CREATED, axum::Json(shown)).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetireArchiveBody {
    service: String,
}

async fn retire(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    require_operator(&site, request.headers())?;
    let body: RetireArchiveBody = json_body(&site, request).await?;
    let (service, now) = (label(&body.service)?, site.now());
    let archive = run_on_registry(&site, move |registry| registry.retire(&service, now)).await?;
    Ok(axum::Json(ResolverArchiveView::new(&site.registry, &archive)).into_response())
}

async fn alerts(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    require_operator(&site, request.headers())?;
    let all = flag(request.uri().query(), "all")?;
    let alerts = run_on_registry(&site, move |registry| registry.alerts(all)).await?;
    let shown: Vec<_> = alerts.iter().map(|alert| AlertView::new(&site.registry, alert)).collect();
    Ok(axum::Json(json!({ "alerts": shown })).into_response())
}

async fn alert(
    State(site): State<Arc<ResolverSite>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    require_operator(&site, &headers)?;
    let id = number(&id)?;
    let alert = run_on_registry(&site, move |registry| registry.alert(id)).await?;
    alert.map(|alert| axum::Json(AlertView::new(&site.registry, &alert)).into_response()).ok_or_else(no_alert)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveAlertBody {
    note: String,
}

async fn end_alert(
    State(site): State<Arc<ResolverSite>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let token = require_operator(&site, request.headers())?;
    let id = number(&id)?;
    let ResolveAlertBody { note } = json_body(&site, request).await?;
    if note.trim().is_empty() {
        return Err(unprocessable("the note says why the alert is over".to_owned()));
    }
    let now = site.now();
    let ended =
        run_on_registry(&site, move |registry| registry.resolve_alert(id, &token, note.trim(), now)).await?;
    ended.map(|alert| axum::Json(AlertView::new(&site.registry, &alert)).into_response()).ok_or_else(no_alert)
}

/// What the location index knows, and how it follows the Archives.
async fn index_status(
    State(site): State<Arc<ResolverSite>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    require_operator(&site, &headers)?;
    let done = tokio::task::spawn_blocking(move || site.index_status()).await;
    match done.map_err(|_| Problem::internal())? {
        Some(status) => Ok(axum::Json(status).into_response()),
        None => Err(Problem::not_found("this resolver has no location index: its log says why")),
    }
}

async fn export(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    require_operator(&site, request.headers())?;
    let text = run_on_registry(&site, Registry::export).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

async fn import(State(site): State<Arc<ResolverSite>>, request: Request) -> Result<Response, Problem> {
    require_operator(&site, request.headers())?;
    let bytes = body::read_whole_body(request.into_body(), MAX_BODY_BYTES, &site.limits).await?;
    let text =
        String::from_utf8(bytes.to_vec()).map_err(|_| unprocessable("the text is not UTF-8".to_owned()))?;
    let report = run_on_registry(&site, move |registry| registry.import(&text)).await?;
    let told = json!({ "added": report.added, "replaced": report.replaced, "kept": report.kept });
    Ok(axum::Json(told).into_response())
}

/// The name of the authenticated operator.
fn require_operator(site: &ResolverSite, headers: &HeaderMap) -> Result<String, Problem> {
    let now = ibi_id::Instant::new(site.now(), 0).map(|now| now.to_string()).unwrap_or_default();
    let token = site.tokens.authorize(headers, ResolverRole::Operator, "ibi resolver token create", &now)?;
    Ok(token.name)
}

/// A query pair that is `true` or `false`; `false` if absent.
fn flag(query: Option<&str>, name: &str) -> Result<bool, Problem> {
    match query.and_then(|query| query_value(query, name)).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::bad_request(format!("`{name}` is true or false"))),
    }
}

fn label(text: &str) -> Result<Label, Problem> {
    text.parse().map_err(|error: ibi_id::ParseError| unprocessable(format!("the service: {error}")))
}

fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| no_alert())
}

fn no_alert() -> Problem {
    Problem::not_found("there is no alert of this number")
}

fn unprocessable(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not-described", "Invalid request body", detail)
}

/// A JSON body, whatever its content type: `curl -d` declares it a form.
async fn json_body<T: DeserializeOwned>(site: &ResolverSite, request: Request) -> Result<T, Problem> {
    let bytes = body::read_whole_body(request.into_body(), MAX_BODY_BYTES, &site.limits).await?;
    serde_json::from_slice(&bytes).map_err(|error| match error.is_data() {
        true => unprocessable(format!("the body: {error}")),
        false => Problem::bad_request(format!("the body: {error}")),
    })
}

/// Runs blocking registry work on another thread.
async fn run_on_registry<T: Send + 'static>(
    site: &ResolverSite,
    work: impl FnOnce(&Registry) -> Result<T, ResolverRegistryError> + Send + 'static,
) -> Result<T, Problem> {
    let registry = site.registry.clone();
    let done = tokio::task::spawn_blocking(move || work(&registry)).await;
    done.map_err(|_| Problem::internal())?.map_err(|error| match error {
        ResolverRegistryError::Unknown { .. } => Problem::not_found(error.to_string()),
        ResolverRegistryError::Host { .. }
        | ResolverRegistryError::ManyHosts { .. }
        | ResolverRegistryError::Address(_)
        | ResolverRegistryError::Import(_) => unprocessable(error.to_string()),
        error => {
            tracing::error!(%error, "the registry failed");
            Problem::internal()
        }
    })
}

#[cfg(test)]
mod tests;
