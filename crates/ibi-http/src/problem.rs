//! Errors of an API, as RFC 9457 has them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// What went wrong, told to a program and to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind: a name that stays.
    #[serde(rename = "type")]
    kind: String,
    /// The kind, in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What it is this time, and what to do.
    detail: String,
    /// The Archive that has it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_to: Option<String>,
    /// When to come again.
    #[serde(skip)]
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem of a kind that this crate does not know.
    pub fn new(status: StatusCode, name: &str, title: &'static str, detail: impl Into<String>) -> Self {
        let kind = format!("urn:ibi:problem:{name}");
        let detail = detail.into();
        Self { kind, title, status: status.as_u16(), detail, given_to: None, retry_after: None }
    }

    /// Also tells which Archive has it now.
    pub fn given_to(self, url: Option<String>) -> Self {
        Self { given_to: url, ..self }
    }

    /// What was asked for makes no sense.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be understood", detail)
    }

    /// Nobody said who asks, or with a token that is not known.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A token is needed", detail)
    }

    /// Who asks may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    /// There is nothing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// Not in the state that things are in.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "In conflict with what is there", detail)
    }

    /// More than is taken.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too large", detail)
    }

    /// Not now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not available just now", detail);
        Self { retry_after: Some(5), ..problem }
    }

    /// Something that is no fault of who asks. The detail goes to the log, not to the stranger.
    pub fn internal() -> Self {
        let detail = "the server failed; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The server failed", detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What it is this time.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and a number: nothing that JSON could refuse.
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
        response
    }
}
