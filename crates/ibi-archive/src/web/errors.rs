//! Errors on pages: a person gets a page, a program what it asks for.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;

use crate::web::pages::{self, Tongue};

/// What a client would rather read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taste {
    Page,
    Json,
    Text,
}

/// The first of what is accepted that we have; a browser accepts pages, `curl` anything.
pub(super) fn taste(headers: &HeaderMap) -> Taste {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    for kind in accept.split(',') {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "text/html" | "application/xhtml+xml" => return Taste::Page,
            "application/json" | "application/problem+json" => return Taste::Json,
            "text/plain" => return Taste::Text,
            _ => {}
        }
    }
    Taste::Page
}

/// A problem in the form that the client likes.
pub(super) fn told(headers: &HeaderMap, query: Option<&str>, problem: Problem) -> Response {
    let mut response = match taste(headers) {
        Taste::Json => problem.into_response(),
        Taste::Text => (problem.status(), format!("{}\n", problem.detail())).into_response(),
        Taste::Page => pages::error(Tongue::of(headers, query), problem.status(), problem.detail()),
    };
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
