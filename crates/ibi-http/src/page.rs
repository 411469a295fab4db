//! What all pages share: style, and headers that neutralise untrusted text.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// An HTML page with this text.
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

/// Lets a form on this page lead to another host: browsers apply `form-action` to redirects too.
pub fn allow_external_forms(response: &mut Response) {
    let policy = HeaderValue::from_static(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' http: https:; base-uri 'none'; frame-ancestors 'none'",
    );
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
}

/// The icon of all pages. Browsers request `/favicon.ico` and go by the content type.
pub async fn icon() -> Response {
    let kind = HeaderValue::from_static("image/svg+xml");
    let keep = HeaderValue::from_static("max-age=86400");
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], include_str!("favicon.svg"))
        .into_response()
}

/// Keeps robots out of the API, which programs do not discover by following links.
pub async fn robots() -> &'static str {
    "User-agent: *\nDisallow: /api/\n"
}

/// The style sheet.
pub async fn style() -> Response {
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    let keep = HeaderValue::from_static("max-age=3600");
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], include_str!("style.css")).into_response()
}
