//! The resolver on the Web: persistent URLs, the service that Archives tell when they come and go, and an API.
//!
//! [`router`] answers for a [`Site`]. Whatever has no other route is a persistent URL (`resolve.rs`), or a message of an
//! Archive to the resolver's own service (`service.rs`).

mod api;
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

pub use site::{Role, Site, SiteOptions, Tokens, tokens};

/// Where the API is, below `/api/v1`: whoever serves an Archive at the same address leaves these to the resolver.
pub const API: &[&str] = &["/archives", "/alerts", "/registry", "/resolve", "/resolver.json"];

/// All that a resolver answers.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/style.css", get(page::style))
        .route("/robots.txt", get(|| async { "User-agent: *\nDisallow: /api/\n" }))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(figures))
        .nest("/api/v1", api::router())
        .fallback(resolve::get)
        .layer(middleware::from_fn(telemetry::told))
        .with_state(site)
}

/// Whether it can resolve: the registry can be read.
async fn ready(State(site): State<Arc<Site>>) -> Response {
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

async fn figures(State(site): State<Arc<Site>>) -> Response {
    let text = site.figures.as_ref().map(telemetry::Figures::text).unwrap_or_default();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
