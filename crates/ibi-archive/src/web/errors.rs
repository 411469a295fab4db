//! Errors on pages: a person gets a page, a program what it asks for.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::{Taste, Tongue};

use crate::web::pages;

/// A problem in the form that the client likes.
pub(super) fn told(headers: &HeaderMap, query: Option<&str>, problem: Problem) -> Response {
    let mut response = match Taste::of(headers) {
        Taste::Json => problem.into_response(),
        Taste::Text => (problem.status(), format!("{}\n", problem.detail())).into_response(),
        Taste::Page => pages::error(Tongue::of(headers, query), problem.status(), problem.detail()),
    };
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
