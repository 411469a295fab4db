//! The Archive's web interface: service, files, pages and API.
//!
//! [`router`] serves an [`ArchiveSite`]. `service.rs` responds to resolvers. `item_routes.rs`
//! handles `/col/…` and passes files to `file.rs` and the rest to `pages.rs`. `api.rs` is the API
//! for programs.

mod api;
mod failure;
mod file;
mod item_routes;
mod large_response;
mod metric_descriptions;
mod pages;
mod persistent_url;
mod rates;
mod service;
mod site;
mod target_redirect;
mod upload_slots;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ibi_http::{page, telemetry};

pub use site::{ArchiveSite, ArchiveSiteError, ArchiveSiteOptions};

/// All routes of an Archive.
pub fn router(site: Arc<ArchiveSite>) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/style.css", get(page::style))
        .route("/favicon.ico", get(page::icon))
        .route("/robots.txt", get(page::robots))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(serve_metrics))
        .route("/col/{*path}", get(item_routes::get))
        .nest(
            "/api/v1",
            api::router().layer(middleware::from_fn_with_state(Arc::clone(&site), rates::charge_request)),
        )
        .fallback(service::get)
        .layer(middleware::from_fn_with_state(Arc::clone(&site), large_response::account_memory))
        .layer(middleware::from_fn(telemetry::log_requests))
        .with_state(site)
}

/// Fast path for the most frequent requests of resolvers, tried before [`router`].
pub fn resolver_fast_path(
    site: Arc<ArchiveSite>,
) -> impl Fn(&Method, &Uri) -> Option<Response> + Send + Sync + 'static {
    move |method, uri| service::answer_resolver(&site, method, uri)
}

/// Readiness: the Archive opens, an item can be found and changes are possible. With
/// `?for=reading`, only reading is checked.
async fn ready(State(site): State<Arc<ArchiveSite>>, uri: Uri) -> Response {
    let unavailable = |text: String| (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    let found = site.desk.read().and_then(|holdings| {
        let service = holdings.settings().service.primary().to_owned();
        holdings.find_bare(&service).map(drop)
    });
    match found {
        Ok(()) if site.is_stopping() => return unavailable("stopping\n".to_owned()),
        Ok(()) => {}
        Err(error) => {
            tracing::error!(%error, "not ready");
            return unavailable("not ready: the log says why\n".to_owned());
        }
    }
    if uri.query() == Some("for=reading") {
        return "ready\n".into_response();
    }
    if site.is_clock_refused() {
        return unavailable("not ready to write: clock-refused\n".to_owned());
    }
    match site.writing.check(&site.desk).await {
        Ok(()) => "ready\n".into_response(),
        Err(trouble) => unavailable(format!("not ready to write: {}\n", trouble.code())),
    }
}

async fn serve_metrics(State(site): State<Arc<ArchiveSite>>) -> Response {
    let text = site.figures.as_ref().map(telemetry::ServerMetrics::render).unwrap_or_default();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
