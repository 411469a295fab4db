//! Requests that are carried out once, however often they are sent: `Idempotency-Key`.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_store::service::Answered;

use crate::service::Token;
use crate::web::site::{Site, problem};

/// The longest name of a request.
const LONGEST: usize = 255;

/// A request with a name.
pub(super) struct Once {
    owner: String,
    name: String,
    asked: String,
}

impl Once {
    /// The name that a client gives its request, with what it asks, and a digest of its body; nothing if it gives none.
    pub(super) fn of(
        headers: &HeaderMap,
        token: &Token,
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
            .filter(|name| (1..=LONGEST).contains(&name.len()));
        let name = name.ok_or_else(|| {
            Problem::bad_request(format!("Idempotency-Key is a text of 1 to {LONGEST} printable characters"))
        })?;
        let asked = format!("{what} {asked}");
        Ok(Some(Self { owner: token.id.clone(), name: name.to_owned(), asked }))
    }

    /// The answer that the request got before.
    pub(super) fn before(&self, site: &Site) -> Result<Option<Response>, Problem> {
        let before = site.statistics.answered(&self.owner, &self.name).map_err(|error| problem(&error))?;
        let Some(before) = before else { return Ok(None) };
        if before.asked != self.asked {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let detail = "this Idempotency-Key was used for another request: use a new one";
            return Err(Problem::new(status, "key-reused", "Another request has this key", detail));
        }
        let status = StatusCode::from_u16(before.status).unwrap_or(StatusCode::OK);
        Ok(Some(json(status, before.answer)))
    }

    /// Remembers the answer, before it is given.
    pub(super) fn remember(&self, site: &Site, status: StatusCode, answer: &str) -> Result<(), Problem> {
        let answered =
            Answered { asked: self.asked.clone(), status: status.as_u16(), answer: answer.to_owned() };
        site.statistics
            .answer(&self.owner, &self.name, &answered, site.now())
            .map_err(|error| problem(&error))
    }
}

/// An answer of JSON that is text already.
pub(super) fn json(status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let fresh = HeaderValue::from_static("no-store");
    (status, [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)], text).into_response()
}
