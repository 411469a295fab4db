//! Error responses: pages for people, the requested format for programs.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::PreferredFormat;

use crate::web::pages;
use crate::web::pages::words::PageLanguage;

/// A problem in the format that the client prefers.
pub(super) fn problem_response(headers: &HeaderMap, query: Option<&str>, problem: Problem) -> Response {
    let mut response = match PreferredFormat::of(headers) {
        PreferredFormat::Json => problem.into_response(),
        PreferredFormat::Text => (problem.status(), format!("{}\n", problem.detail())).into_response(),
        PreferredFormat::Page => pages::error(PageLanguage::of(headers, query), &problem),
    };
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
