//! Persistent URLs (clause 4.1), answered as 4.3 says.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::{Taste, Tongue};
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{PersistentError, PersistentUrl, Place};

use crate::resolve::{Asked, Outcome, Resolution};
use crate::told::{Told, words};
use crate::web::site::Site;
use crate::web::{pages, service};

/// When to come again, in seconds, if some Archive did not answer.
const AGAIN: HeaderValue = HeaderValue::from_static("5");

/// Everything that has no other route.
pub(super) async fn get(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let (path, query) = (request.uri.path(), request.uri.query());
    if request.method != Method::GET && request.method != Method::HEAD {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let problem = Problem::new(status, "method", "Method not allowed", "this address is only read");
        return ([(header::ALLOW, "GET, HEAD")], problem).into_response();
    }
    if let Some(message) = query.filter(|query| service::is_message(&site, path, query)) {
        return service::handle(&site, message, &request).await;
    }
    let (query, explain) = without_explain(query);
    let headers = &request.headers;
    let url = match PersistentUrl::parse(path, query.as_deref()) {
        Ok(url) => url,
        Err(error) => {
            metrics::counter!("ibi_resolutions_total", "status" => "400").increment(1);
            return bad(headers, request.uri.query(), &error);
        }
    };
    let asked = Asked {
        persistent: persistent(&site, &request),
        languages: accepted(headers),
        client: site.clients(&request),
        url,
        explain,
        goes: !explain,
    };
    let resolution = site.resolver.resolve(asked).await;
    count(resolution.outcome.status());
    answer(headers, request.uri.query(), &resolution)
}

/// The configured base, then path and query as they came (3.5).
fn persistent(site: &Site, request: &Parts) -> String {
    let rest = request.uri.path_and_query().map_or("/", |rest| rest.as_str());
    format!("{}{rest}", site.public_url)
}

pub(super) fn accepted(headers: &HeaderMap) -> AcceptedLanguages {
    let liked = headers.get(header::ACCEPT_LANGUAGE).and_then(|liked| liked.to_str().ok());
    AcceptedLanguages::parse(liked.unwrap_or_default())
}

/// Takes `explain`, a pair without a value, out of a query: it is meant for us.
fn without_explain(query: Option<&str>) -> (Option<String>, bool) {
    let Some(query) = query else { return (None, false) };
    let pairs: Vec<&str> = query.split('&').filter(|pair| *pair != "explain").collect();
    let rest = pairs.join("&");
    let explain = rest.len() != query.len();
    (Some(rest).filter(|rest| !explain || !rest.is_empty()), explain)
}

fn count(status: u16) {
    let text = match status {
        302 => "302",
        404 => "404",
        409 => "409",
        410 => "410",
        503 => "503",
        _ => "508",
    };
    metrics::counter!("ibi_resolutions_total", "status" => text).increment(1);
}

/// What is no persistent URL: 400, which rule and where.
fn bad(headers: &HeaderMap, query: Option<&str>, error: &PersistentError) -> Response {
    let tongue = pages::tongue(headers, query);
    let detail = in_words(error, tongue);
    let told = Told {
        kind: "urn:ibi:problem:bad-request".to_owned(),
        title: words(tongue).bad,
        status: 400,
        detail,
        ..Told::default()
    };
    tell(headers, query, tongue, &told)
}

/// Which rule is broken, and where. The rules themselves are worded in English.
fn in_words(error: &PersistentError, tongue: Tongue) -> String {
    let (place, at) = error.position();
    match (tongue, place) {
        (Tongue::English, _) => error.to_string(),
        (Tongue::Portuguese, Place::Path) => {
            format!("Regra `{}`, no byte {at} do caminho. Em inglês: {error}", error.code())
        }
        (Tongue::Portuguese, Place::Query) => {
            format!("Regra `{}`, no byte {at} da consulta. Em inglês: {error}", error.code())
        }
    }
}

fn answer(headers: &HeaderMap, query: Option<&str>, resolution: &Resolution) -> Response {
    let tongue = pages::tongue(headers, query);
    if let Some(explanation) = &resolution.explanation {
        let mut response = match Taste::of(headers) {
            Taste::Json => axum::Json(explanation).into_response(),
            Taste::Text => explanation.to_string().into_response(),
            Taste::Page => pages::explanation(explanation, tongue, query),
        };
        fresh(&mut response);
        return response;
    }
    if let Outcome::Found { location, .. } = &resolution.outcome
        && let Ok(to) = HeaderValue::from_str(location)
    {
        let mut response = (StatusCode::FOUND, format!("{location}\n")).into_response();
        response.headers_mut().insert(header::LOCATION, to);
        fresh(&mut response);
        return response;
    }
    tell(headers, query, tongue, &Told::new(&resolution.outcome, tongue))
}

/// Tells an outcome in the form that the client likes.
fn tell(headers: &HeaderMap, query: Option<&str>, tongue: Tongue, told: &Told) -> Response {
    let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match Taste::of(headers) {
        Taste::Page => pages::outcome(status, told, tongue, query),
        Taste::Text => (status, told.to_text(tongue)).into_response(),
        Taste::Json => {
            let mut response = (status, axum::Json(told)).into_response();
            let kind = HeaderValue::from_static("application/problem+json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, AGAIN);
    }
    fresh(&mut response);
    response
}

/// An answer is of this moment, of this client and of what it reads.
fn fresh(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4.3: a page in Portuguese says which rule, and where.
    #[test]
    fn what_cannot_be_read_is_told_in_two_languages() {
        let error = PersistentUrl::parse("/LK47B6W/362SFKH!!", None).unwrap_err();
        let told = in_words(&error, Tongue::Portuguese);
        assert!(told.starts_with("Regra `modifiers`, no byte 17 do caminho."), "{told}");
        assert_eq!(in_words(&error, Tongue::English), error.to_string());
        let twice = "ibiurl.verblist=GetMetadata&ibiurl.verblist=GetMetadata";
        let error = PersistentUrl::parse("/LK47B6W/362SFKH", Some(twice)).unwrap_err();
        assert!(in_words(&error, Tongue::Portuguese).starts_with("Regra `pair-twice`, no byte"));
    }

    #[test]
    fn explain_is_ours_and_nothing_else() {
        let taken = |query| without_explain(query);
        assert_eq!(taken(None), (None, false));
        assert_eq!(taken(Some("explain")), (None, true));
        assert_eq!(taken(Some("a=1&explain&b")), (Some("a=1&b".to_owned()), true));
        assert_eq!(taken(Some("explain=1")), (Some("explain=1".to_owned()), false));
        assert_eq!(taken(Some("")), (Some(String::new()), false));
        assert_eq!(taken(Some("?")), (Some("?".to_owned()), false));
    }
}
