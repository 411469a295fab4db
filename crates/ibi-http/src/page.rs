//! What all pages have in common: headers that keep strangers' texts from doing anything, and how they look.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// A page of these words.
pub fn page(status: StatusCode, text: String) -> Response {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::VARY, "Accept, Accept-Language"),
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::GONE {
        headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    }
    (status, headers, text).into_response()
}

/// How pages look.
pub async fn style() -> Response {
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    let keep = HeaderValue::from_static("max-age=3600");
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], include_str!("style.css")).into_response()
}
