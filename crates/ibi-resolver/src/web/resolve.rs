//! Persistent URLs (clause 4.1), answered as 4.3 says.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::{Taste, Tongue, lines};
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{PersistentError, PersistentUrl, Place};

use crate::alerts::Suspected;
use crate::resolve::{Asked, Outcome, Resolution, name};
use crate::schemes::ForeignScheme;
use crate::shown::AlertShown;
use crate::told::{ClaimEvidence, Told, words};
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
    let headers = &request.headers;
    if service::is_own(&site, path) && query.is_none_or(is_about_language) {
        return service::description(&site, headers, query);
    }
    let parsed = explain_wish(query).and_then(|(query, explain)| {
        let url = PersistentUrl::parse(path, query).map_err(|error| Unreadable::Url(Box::new(error)))?;
        Ok((url, explain))
    });
    let (url, explain) = match parsed {
        Ok(parsed) => parsed,
        Err(unreadable) => {
            // What is no label may be one of another scheme (D35).
            if matches!(unreadable, Unreadable::Url(_))
                && let Some(response) = foreign(&site, &request)
            {
                return response;
            }
            metrics::counter!("ibi_resolutions_total", "status" => "400").increment(1);
            return bad(headers, request.uri.query(), &unreadable);
        }
    };
    // With what links in the field put before it, or with pairs that are nobody's, it is the service
    // still (4.1, D39).
    let is_bare = url.verbs.is_empty() && url.file.is_none() && !url.original && !explain;
    if is_bare && url.label == site.registry.settings().service {
        return service::description(&site, headers, request.uri.query());
    }
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
    let evidence = match &resolution.outcome {
        Outcome::Alert(suspected) => evidence(&site, suspected).await,
        _ => Vec::new(),
    };
    answer(headers, request.uri.query(), &resolution, evidence)
}

/// What is known by now of the claims of an original.
async fn evidence(site: &Arc<Site>, suspected: &[Suspected]) -> Vec<ClaimEvidence> {
    let items: Vec<String> = suspected.iter().map(name).collect();
    let registry = site.registry.clone();
    let found = tokio::task::spawn_blocking(move || {
        let alerts = items.iter().filter_map(|item| registry.open_alert(item).ok().flatten());
        let each = alerts.map(|alert| ClaimEvidence::of(AlertShown::new(&registry, &alert)));
        each.flatten().collect()
    });
    found.await.unwrap_or_default()
}

/// The configured base, then path and query as they came (3.5).
fn persistent(site: &Site, request: &Parts) -> String {
    let rest = request.uri.path_and_query().map_or("/", |rest| rest.as_str());
    format!("{}{rest}", site.public_url)
}

/// All lines of `Accept-Language` together (4.2 step 6).
pub(super) fn accepted(headers: &HeaderMap) -> AcceptedLanguages {
    AcceptedLanguages::parse(&lines(headers, &header::ACCEPT_LANGUAGE))
}

/// What cannot be read.
enum Unreadable {
    Url(Box<PersistentError>),
    /// The value of `ibiurl.explain`.
    Explain,
}

/// Whether a query only says in which language a page is wanted.
fn is_about_language(query: &str) -> bool {
    query.split('&').all(|pair| pair.starts_with("ibiurl.lang="))
}

/// An identifier of another scheme: to the proxy that the operator set, or 404 naming it (D35).
fn foreign(site: &Site, request: &Parts) -> Option<Response> {
    let (path, query) = (request.uri.path(), request.uri.query());
    let (scheme, identifier) = ForeignScheme::of_path(path)?;
    if let Some(location) = site.scheme_proxies.location(scheme, identifier, query)
        && let Ok(to) = HeaderValue::from_str(&location)
    {
        count(302);
        return Some(found(&location, to));
    }
    count(404);
    let tongue = pages::tongue(&request.headers, query);
    let words = words(tongue);
    let told = Told {
        kind: "urn:ibi:problem:foreign-scheme".to_owned(),
        title: words.scheme,
        status: 404,
        detail: format!("{} {}: {identifier}", words.scheme_detail, scheme.name()),
        ..Told::default()
    };
    Some(tell(&request.headers, query, tongue, &told))
}

/// Whether an explanation is wanted, and the query that is left: one that is exactly `explain` is ours, and so is the pair
/// `ibiurl.explain=yes` beside others; anything else is the item's (D33).
fn explain_wish(query: Option<&str>) -> Result<(Option<&str>, bool), Unreadable> {
    if query == Some("explain") {
        return Ok((None, true));
    }
    let pairs = query.unwrap_or_default().split('&');
    let mut wishes = pairs.filter_map(|pair| pair.strip_prefix("ibiurl.explain="));
    match (wishes.next(), wishes.next()) {
        (None, _) | (Some("no"), None) => Ok((query, false)),
        (Some("yes"), None) => Ok((query, true)),
        _ => Err(Unreadable::Explain),
    }
}

fn count(status: u16) {
    let text = match status {
        300 => "300",
        302 => "302",
        403 => "403",
        404 => "404",
        409 => "409",
        410 => "410",
        503 => "503",
        _ => "508",
    };
    metrics::counter!("ibi_resolutions_total", "status" => text).increment(1);
}

/// What is no persistent URL: 400, which rule and where.
fn bad(headers: &HeaderMap, query: Option<&str>, unreadable: &Unreadable) -> Response {
    let tongue = pages::tongue(headers, query);
    let detail = match unreadable {
        Unreadable::Url(error) => in_words(error, tongue),
        Unreadable::Explain => words(tongue).bad_explain.to_owned(),
    };
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

fn answer(
    headers: &HeaderMap,
    query: Option<&str>,
    resolution: &Resolution,
    evidence: Vec<ClaimEvidence>,
) -> Response {
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
        return found(location, to);
    }
    tell(headers, query, tongue, &Told { evidence, ..Told::new(&resolution.outcome, tongue) })
}

/// The client goes there.
fn found(location: &str, to: HeaderValue) -> Response {
    let mut response = (StatusCode::FOUND, format!("{location}\n")).into_response();
    response.headers_mut().insert(header::LOCATION, to);
    fresh(&mut response);
    response
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
pub(super) fn fresh(response: &mut Response) {
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
    fn clause_d33_explain_is_ours_and_nothing_else() {
        let wish = |query| explain_wish(query).map_err(|_| "400");
        assert_eq!(wish(None), Ok((None, false)));
        assert_eq!(wish(Some("explain")), Ok((None, true)));
        assert_eq!(wish(Some("a=1&ibiurl.explain=yes&b")), Ok((Some("a=1&ibiurl.explain=yes&b"), true)));
        assert_eq!(wish(Some("ibiurl.explain=no")), Ok((Some("ibiurl.explain=no"), false)));
        for items in ["a=1&explain&b", "explain=1", "explain&", "", "?", "explain=yes"] {
            assert_eq!(wish(Some(items)), Ok((Some(items), false)), "{items}");
        }
        assert_eq!(wish(Some("ibiurl.explain=maybe")), Err("400"));
        assert_eq!(wish(Some("ibiurl.explain=yes&ibiurl.explain=yes")), Err("400"));
    }
}
