//! Persistent URLs (clause 4.1); responses as in 4.3.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_http::accept::{PAGE_LANGUAGE_PAIR, PreferredFormat, UiLanguage, join_header_lines, query_value};
use ibi_http::robots::is_robot;
use ibi_protocol::analysis::{AcceptedLanguages, NotFoundReason};
use ibi_protocol::persistent::append_query;
use ibi_protocol::{PersistentUrl, PersistentUrlError, Relation, RelationPart};

use crate::alerts::RaisedAlert;
use crate::api_view::AlertView;
use crate::directory::alert_item_name;
use crate::outcome_view::{ClaimEvidence, OutcomeView, words};
use crate::resolve::{ResolutionOutcome, ResolutionRequest, ResolutionResult};
use crate::schemes::ForeignScheme;
use crate::web::site::ResolverSite;
use crate::web::{pages, service};

/// `Retry-After` in seconds, if some Archive did not answer.
const INCOMPLETE_RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Handles every request without another route.
pub(super) async fn get(State(site): State<Arc<ResolverSite>>, request: Request) -> Response {
    let (request, _) = request.into_parts();
    let (path, query) = (request.uri.path(), request.uri.query());
    if request.method != Method::GET && request.method != Method::HEAD {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let problem = Problem::new(status, "method", "Method not allowed", "only GET and HEAD are supported");
        return ([(header::ALLOW, "GET, HEAD")], problem).into_response();
    }
    if let Some(message) = query.filter(|query| service::is_message(&site, path, query)) {
        return service::handle(&site, message, &request).await;
    }
    let headers = &request.headers;
    if service::is_own(&site, path) && query.is_none_or(is_about_language) {
        return service::description(&site, headers, query);
    }
    let parsed = split_explain(query).and_then(|(query, explain)| {
        let url = PersistentUrl::parse(path, query).map_err(|error| UnreadableUrl::Url(Box::new(error)))?;
        Ok((url, explain))
    });
    let (url, explain) = match parsed {
        Ok(parsed) => parsed,
        Err(unreadable) => {
            // A path without a label may be an identifier of another scheme (D35).
            if matches!(unreadable, UnreadableUrl::Url(_))
                && let Some(response) = redirect_foreign(&site, &request)
            {
                return response;
            }
            metrics::counter!("ibi_resolutions_total", "status" => "400").increment(1);
            return bad_request(headers, request.uri.query(), &unreadable);
        }
    };
    // With a link prefix before it, or with unknown query pairs, it is still the service (4.1,
    // D39). Its description is also its metadata, its last edition and its best translation.
    if url.label == site.registry.settings().service && url.file.is_none() && !explain {
        return service::description(&site, headers, request.uri.query());
    }
    let robot = is_robot(headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()));
    let fresh = is_no_cache(headers);
    if !explain
        && !fresh
        && let Some(location) = site.resolver.locate(&url, robot)
        && let Ok(to) = HeaderValue::from_str(&location)
    {
        count(302);
        return redirect_to(&location, to);
    }
    // This asks no Archive, so it costs the client none of its quota.
    if !explain && !fresh && site.resolver.is_unknown(&url.label) {
        count(404);
        let outcome = ResolutionOutcome::NotFound(NotFoundReason::Item);
        let resolution = ResolutionResult { outcome, explanation: None };
        return answer(headers, request.uri.query(), &resolution, Vec::new());
    }
    let asked = ResolutionRequest {
        robot,
        fresh,
        persistent: persistent(&site, &request),
        languages: accepted(headers),
        client: site.clients(&request),
        url,
        explain,
        goes: !explain,
    };
    let (resolution, charge) = match site.resolve_rated(asked).await {
        Ok(resolved) => resolved,
        Err(problem) => return too_many(headers, request.uri.query(), problem),
    };
    count(resolution.outcome.status());
    let evidence = match &resolution.outcome {
        ResolutionOutcome::Alert(suspected) => evidence(&site, suspected).await,
        _ => Vec::new(),
    };
    let mut response = answer(headers, request.uri.query(), &resolution, evidence);
    charge.write_headers(response.headers_mut());
    response
}

/// The response to a client that exhausted its quota: 429 with the quota and the retry delay.
fn too_many(headers: &HeaderMap, query: Option<&str>, problem: Problem) -> Response {
    count(429);
    let language = pages::page_language(headers, query);
    let told = OutcomeView {
        kind: "urn:ibi:problem:too-many-requests".to_owned(),
        title: words(language).too_many,
        status: 429,
        detail: words(language).too_many_detail.to_owned(),
        ..OutcomeView::default()
    };
    let mut response = outcome_response(headers, query, language, &told);
    let limited = problem.into_response();
    for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
        if let Some(value) = limited.headers().get(name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// The evidence gathered so far for the claims of an original.
async fn evidence(site: &Arc<ResolverSite>, suspected: &[RaisedAlert]) -> Vec<ClaimEvidence> {
    let items: Vec<String> = suspected.iter().map(alert_item_name).collect();
    let registry = site.registry.clone();
    let found = tokio::task::spawn_blocking(move || {
        let alerts = items.iter().filter_map(|item| registry.open_alert(item).ok().flatten());
        let each = alerts.map(|alert| ClaimEvidence::of(AlertView::new(&registry, &alert)));
        each.flatten().collect()
    });
    found.await.unwrap_or_default()
}

/// The configured base URL, then path and query as received (3.5).
fn persistent(site: &ResolverSite, request: &Parts) -> String {
    let rest = request.uri.path_and_query().map_or("/", |rest| rest.as_str());
    format!("{}{rest}", site.public_url)
}

/// Whether a client wants nothing that may be outdated (RFC 9111 5.2.1.4).
fn is_no_cache(headers: &HeaderMap) -> bool {
    let words = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("no-cache"));
    headers.get(header::CACHE_CONTROL).is_some_and(words)
}

/// All lines of `Accept-Language`, joined (4.2 step 6).
pub(super) fn accepted(headers: &HeaderMap) -> AcceptedLanguages {
    AcceptedLanguages::parse(&join_header_lines(headers, &header::ACCEPT_LANGUAGE))
}

/// Why a request cannot be parsed.
enum UnreadableUrl {
    Url(Box<PersistentUrlError>),
    /// The value of `ibiurl.explain`.
    Explain,
}

/// Whether a query only selects the page language.
fn is_about_language(query: &str) -> bool {
    query.split('&').all(|pair| pair.starts_with("ibiurl.lang="))
}

/// An identifier of another scheme: redirects to the configured proxy, or returns a 404 that names
/// the scheme (D35).
fn redirect_foreign(site: &ResolverSite, request: &Parts) -> Option<Response> {
    let (path, query) = (request.uri.path(), request.uri.query());
    let (scheme, identifier) = ForeignScheme::of_path(path)?;
    if let Some(location) = site.scheme_proxies.location(scheme, identifier, query)
        && let Ok(to) = HeaderValue::from_str(&location)
    {
        count(302);
        return Some(redirect_to(&location, to));
    }
    count(404);
    let language = pages::page_language(&request.headers, query);
    let words = words(language);
    let told = OutcomeView {
        kind: "urn:ibi:problem:foreign-scheme".to_owned(),
        title: words.scheme,
        status: 404,
        detail: format!("{} {}: {identifier}", words.scheme_detail, scheme.name()),
        ..OutcomeView::default()
    };
    Some(outcome_response(&request.headers, query, language, &told))
}

/// Whether an explanation is wanted, and the remaining query. A query that is exactly `explain` is
/// ours, as is the pair `ibiurl.explain=yes` among others; anything else belongs to the item (D33).
fn split_explain(query: Option<&str>) -> Result<(Option<&str>, bool), UnreadableUrl> {
    if query == Some("explain") {
        return Ok((None, true));
    }
    let pairs = query.unwrap_or_default().split('&');
    let mut wishes = pairs.filter_map(|pair| pair.strip_prefix("ibiurl.explain="));
    match (wishes.next(), wishes.next()) {
        (None, _) | (Some("no"), None) => Ok((query, false)),
        (Some("yes"), None) => Ok((query, true)),
        _ => Err(UnreadableUrl::Explain),
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
        429 => "429",
        503 => "503",
        _ => "508",
    };
    metrics::counter!("ibi_resolutions_total", "status" => text).increment(1);
}

/// Not a persistent URL: 400 with the rule and the position.
fn bad_request(headers: &HeaderMap, query: Option<&str>, unreadable: &UnreadableUrl) -> Response {
    let language = pages::page_language(headers, query);
    let detail = match unreadable {
        UnreadableUrl::Url(error) => error_text(error, language),
        UnreadableUrl::Explain => words(language).bad_explain.to_owned(),
    };
    let told = OutcomeView {
        kind: "urn:ibi:problem:bad-request".to_owned(),
        title: words(language).bad,
        status: 400,
        detail,
        ..OutcomeView::default()
    };
    outcome_response(headers, query, language, &told)
}

/// The violated rule and its position.
fn error_text(error: &PersistentUrlError, language: UiLanguage) -> String {
    match language {
        UiLanguage::English => error.to_string(),
        UiLanguage::Portuguese => error.in_portuguese(),
    }
}

fn answer(
    headers: &HeaderMap,
    query: Option<&str>,
    resolution: &ResolutionResult,
    evidence: Vec<ClaimEvidence>,
) -> Response {
    let language = pages::page_language(headers, query);
    if let Some(explanation) = &resolution.explanation {
        let mut response = match PreferredFormat::of(headers) {
            PreferredFormat::Json => axum::Json(explanation).into_response(),
            PreferredFormat::Text => explanation.to_text(language).into_response(),
            PreferredFormat::Page => pages::explanation(explanation, language, query),
        };
        forbid_caching(&mut response);
        return response;
    }
    if let ResolutionOutcome::Found { location, found, .. } = &resolution.outcome {
        let location = &metadata_page_in_language(location, &found.relation, query);
        if let Ok(to) = HeaderValue::from_str(location) {
            return redirect_to(location, to);
        }
    }
    outcome_response(
        headers,
        query,
        language,
        &OutcomeView { evidence, ..OutcomeView::new(&resolution.outcome, language) },
    )
}

/// Keeps the language that the reader chose for pages: a metadata page is one, a file is not.
fn metadata_page_in_language<'a>(
    location: &'a str,
    relation: &Relation,
    query: Option<&str>,
) -> Cow<'a, str> {
    let is_page = relation.parts().last() == Some(&RelationPart::Metadata(None));
    let chosen = query.and_then(|query| query_value(query, PAGE_LANGUAGE_PAIR));
    match chosen.as_deref().and_then(UiLanguage::from_code).filter(|_| is_page) {
        Some(language) => append_query(location, &format!("lang={}", language.name())).into(),
        None => location.into(),
    }
}

/// Redirects the client.
fn redirect_to(location: &str, to: HeaderValue) -> Response {
    let mut response = (StatusCode::FOUND, format!("{location}\n")).into_response();
    response.headers_mut().insert(header::LOCATION, to);
    forbid_caching(&mut response);
    response
}

/// An outcome in the client's preferred format.
fn outcome_response(
    headers: &HeaderMap,
    query: Option<&str>,
    language: UiLanguage,
    told: &OutcomeView,
) -> Response {
    let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match PreferredFormat::of(headers) {
        PreferredFormat::Page => pages::outcome(status, told, language, query),
        PreferredFormat::Text => (status, told.to_text(language)).into_response(),
        PreferredFormat::Json => {
            let mut response = (status, axum::Json(told)).into_response();
            let kind = HeaderValue::from_static("application/problem+json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, INCOMPLETE_RETRY_AFTER);
    }
    forbid_caching(&mut response);
    response
}

/// A response depends on the moment, the client and its preferences.
pub(super) fn forbid_caching(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4.3: the page in Portuguese names the rule and the position.
    #[test]
    fn what_cannot_be_read_is_told_in_two_languages() {
        let error = PersistentUrl::parse("/LK47B6W/362SFKH!!", None).unwrap_err();
        let told = error_text(&error, UiLanguage::Portuguese);
        assert!(told.starts_with("Depois do IBI, ") && told.ends_with("(no byte 17 do caminho)"), "{told}");
        assert_eq!(error_text(&error, UiLanguage::English), error.to_string());
        let twice = "ibiurl.verblist=GetMetadata&ibiurl.verblist=GetMetadata";
        let error = PersistentUrl::parse("/LK47B6W/362SFKH", Some(twice)).unwrap_err();
        assert!(error_text(&error, UiLanguage::Portuguese).starts_with("ibiurl.verblist aparece duas vezes"));
    }

    #[test]
    fn clause_d33_explain_is_ours_and_nothing_else() {
        let wish = |query| split_explain(query).map_err(|_| "400");
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
