//! The Archive on the Web: its service, its files and pages, its API.
//!
//! [`router`] answers for a [`Site`]. Resolvers are answered in `service.rs`, `/col/…` by `col.rs`, which hands files to
//! `file.rs` and the rest to `pages.rs`; programs speak to `api.rs`.

mod api;
mod arriving;
mod col;
mod errors;
mod file;
mod leaving;
mod own_address;
mod pages;
mod service;
mod site;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ibi_http::{page, telemetry};

pub use site::{Site, SiteError, SiteOptions};

/// All that an Archive answers.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(pages::home))
        .route("/style.css", get(page::style))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(figures))
        .route("/col/{*path}", get(col::get))
        .nest("/api/v1", api::router())
        .fallback(service::get)
        .layer(middleware::from_fn(telemetry::told))
        .with_state(site)
}

/// What resolvers ask all day, answered before [`router`] is asked.
pub fn first(site: Arc<Site>) -> impl Fn(&Method, &Uri) -> Option<Response> + Send + Sync + 'static {
    move |method, uri| service::asked(&site, method, uri)
}

/// Whether it can serve: the Archive opens, and an item is found.
async fn ready(State(site): State<Arc<Site>>) -> Response {
    let found = site.desk.read().and_then(|holdings| {
        let service = holdings.settings().service.primary().to_owned();
        holdings.find(&service).map(drop)
    });
    match found {
        Ok(()) if site.is_stopping() => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response(),
        Ok(()) => "ready\n".into_response(),
        Err(error) => {
            tracing::error!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "not ready: the log says why\n").into_response()
        }
    }
}

async fn figures(State(site): State<Arc<Site>>) -> Response {
    let text = site.figures.as_ref().map(telemetry::Figures::text).unwrap_or_default();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
