//! Idempotent requests: a repeated `Idempotency-Key` returns the first response.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_store::service::RecordedResponse;

use crate::service::ServiceToken;
use crate::web::site::{ArchiveSite, problem};

const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// A request with an `Idempotency-Key`.
pub(super) struct IdempotentRequest {
    owner: String,
    name: String,
    asked: String,
}

impl IdempotentRequest {
    /// The key of a request with the operation and a digest of the body; `None` if it has no key.
    pub(super) fn of(
        headers: &HeaderMap,
        token: &ServiceToken,
        what: &str,
        asked: &str,
    ) -> Result<Option<Self>, Problem> {
        let Some(name) = headers.get("idempotency-key") else { return Ok(None) };
        let once = headers.get_all("idempotency-key").iter().count() == 1;
        let name = name
            .to_str()
            .ok()
            .filter(|_| once)
            .map(str::trim)
            .filter(|name| (1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&name.len()));
        let name = name.ok_or_else(|| {
            Problem::bad_request(format!(
                "Idempotency-Key is a text of 1 to {MAX_IDEMPOTENCY_KEY_BYTES} printable characters"
            ))
        })?;
        let asked = format!("{what} {asked}");
        Ok(Some(Self { owner: token.id.clone(), name: name.to_owned(), asked }))
    }

    /// The recorded response, if the request was sent before.
    pub(super) fn earlier_response(&self, site: &ArchiveSite) -> Result<Option<Response>, Problem> {
        let before =
            site.statistics.stored_answer(&self.owner, &self.name).map_err(|error| problem(&error))?;
        let Some(before) = before else { return Ok(None) };
        if before.asked != self.asked {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let detail = "this Idempotency-Key was used for another request: use a new one";
            return Err(Problem::new(status, "key-reused", "Idempotency key reused", detail));
        }
        let status = StatusCode::from_u16(before.status).unwrap_or(StatusCode::OK);
        Ok(Some(json_response(status, before.answer)))
    }

    /// Records the response before it is sent.
    pub(super) fn store_response(
        &self,
        site: &ArchiveSite,
        status: StatusCode,
        answer: &str,
    ) -> Result<(), Problem> {
        let answered = RecordedResponse {
            asked: self.asked.clone(),
            status: status.as_u16(),
            answer: answer.to_owned(),
        };
        site.statistics
            .store_answer(&self.owner, &self.name, &answered, site.now())
            .map_err(|error| problem(&error))
    }
}

/// A response whose body is serialized JSON.
pub(super) fn json_response(status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let fresh = HeaderValue::from_static("no-store");
    (status, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)], text).into_response()
}
