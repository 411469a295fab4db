//! The resolver over HTTP: persistent URLs, the service where Archives announce themselves, and an
//! API.
//!
//! [`router`] serves a [`ResolverSite`]. A request without any other route is a persistent URL
//! (`resolve.rs`) or a message from an Archive to the resolver's own service (`service.rs`).

mod api;
mod metric_descriptions;
mod miss_quota;
mod pages;
mod resolve;
mod service;
mod site;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ibi_http::{page, telemetry};

pub use site::{ResolverRole, ResolverSite, ResolverSiteOptions, ResolverTokens, tokens};

/// The API paths below `/api/v1`. A server that also hosts an Archive at the same address routes
/// these to the resolver.
pub const RESOLVER_API_PATHS: &[&str] =
    &["/archives", "/alerts", "/index", "/registry", "/resolve", "/resolver.json"];

/// All routes of a resolver.
pub fn router(site: Arc<ResolverSite>) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/style.css", get(page::style))
        .route("/favicon.ico", get(page::icon))
        .route("/robots.txt", get(page::robots))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .nest("/api/v1", api::router())
        .fallback(resolve::get)
        .layer(middleware::from_fn(telemetry::log_requests))
        .with_state(site)
}

/// Readiness: whether the registry can be read.
async fn ready(State(site): State<Arc<ResolverSite>>) -> Response {
    let registry = site.registry.clone();
    match tokio::task::spawn_blocking(move || registry.open_alerts()).await {
        Ok(Ok(_)) if site.is_stopping() => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
        Ok(Ok(_)) => "ready\n".into_response(),
        Ok(Err(error)) => {
            tracing::error!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "not ready: the log says why\n").into_response()
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

async fn metrics_text(State(site): State<Arc<ResolverSite>>) -> Response {
    let text = site.figures.as_ref().map(telemetry::ServerMetrics::render).unwrap_or_default();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
