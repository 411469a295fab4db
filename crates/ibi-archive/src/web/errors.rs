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

/// What is accepted with the highest weight, of several the first; a browser likes pages best, `curl` anything.
pub(super) fn taste(headers: &HeaderMap) -> Taste {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let mut best = (Taste::Page, 0);
    for range in accept.split(',') {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        let taste = match kind.trim() {
            "text/html" | "application/xhtml+xml" => Taste::Page,
            "application/json" | "application/problem+json" => Taste::Json,
            "text/plain" => Taste::Text,
            _ => continue,
        };
        let weight = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
        let weight = weight.map_or(1000, thousandths);
        if weight > best.1 {
            best = (taste, weight);
        }
    }
    best.0
}

/// A weight of RFC 9110 §12.4.2: at most 1, with at most three digits.
pub(super) fn thousandths(weight: &str) -> u32 {
    let (whole, digits) = weight.trim().split_once('.').unwrap_or((weight.trim(), ""));
    format!("{whole}{digits:0<3.3}").parse::<u32>().map_or(0, |weight| weight.min(1000))
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
