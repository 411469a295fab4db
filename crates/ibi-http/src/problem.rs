//! API errors (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;

/// An API error for programs and people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable name for the kind of problem.
    #[serde(rename = "type")]
    kind: Box<str>,
    /// The kind, as text.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened in this case, and what to do about it.
    detail: Box<str>,
    /// The same in Portuguese, for pages.
    #[serde(skip)]
    portuguese: Option<Box<str>>,
    /// The Archive that holds the item now.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_to: Option<String>,
    /// Seconds until a retry makes sense.
    #[serde(skip)]
    retry_after: Option<u32>,
    /// More response headers.
    #[serde(skip)]
    headers: Box<[(HeaderName, HeaderValue)]>,
}

impl Problem {
    /// A problem of a kind that this crate does not define.
    pub fn new(status: StatusCode, name: &str, title: &'static str, detail: impl Into<String>) -> Self {
        let kind = format!("urn:ibi:problem:{name}").into();
        let detail = detail.into().into();
        Self {
            kind,
            title,
            status: status.as_u16(),
            detail,
            portuguese: None,
            given_to: None,
            retry_after: None,
            headers: Box::default(),
        }
    }

    /// Adds the Archive that holds the item now.
    pub fn with_new_holder(self, url: Option<String>) -> Self {
        Self { given_to: url, ..self }
    }

    /// Adds the detail in Portuguese, for pages.
    pub fn in_portuguese(self, detail: impl Into<Box<str>>) -> Self {
        Self { portuguese: Some(detail.into()), ..self }
    }

    /// Adds the retry delay and response headers.
    pub(crate) fn with_retry(self, seconds: u32, headers: Box<[(HeaderName, HeaderValue)]>) -> Self {
        Self { headers, retry_after: Some(seconds), ..self }
    }

    /// A file cannot be opened because the process has no descriptors left; a stable code of its
    /// own, because nothing is damaged.
    pub fn too_many_open_files() -> Self {
        let problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too-many-open-files",
            "Temporarily unavailable",
            "the server cannot open more files at the moment: retry later",
        );
        Self { retry_after: Some(5), ..problem }
    }

    /// The request is malformed.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "Malformed request", detail)
    }

    /// No token, or an unknown one.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A token is required", detail)
    }

    /// The client lacks permission.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    /// No such resource.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// The request conflicts with the current state.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Conflict with the current state", detail)
    }

    /// The request is too large.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too large", detail)
    }

    /// Temporarily unavailable.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable", detail);
        Self { retry_after: Some(5), ..problem }
    }

    /// A server failure. The details go to the log, not to the client.
    pub fn internal() -> Self {
        let detail = "internal error; details are in the server's log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server failed", detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What happened in this case.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What happened in this case, in Portuguese if that was given.
    pub fn detail_in_portuguese(&self) -> Option<&str> {
        self.portuguese.as_deref()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and a number: JSON can represent both.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED.as_u16() {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"ibi\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        headers.extend(self.headers.into_vec());
        response
    }
}
