//! Pages for people, in Portuguese and English; they work without scripts.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use ibi_http::accept::{PAGE_LANGUAGE_PAIR, UiLanguage, query_value};
use ibi_http::page;

use crate::archive::{RegisteredArchive, RegistrationStatus};
use crate::link::path_and_query;
use crate::outcome_view::{OutcomeView, ResolverPageTexts, words};
use crate::resolve::ResolutionExplanation;
use crate::web::site::ResolverSite;

#[derive(Template)]
#[template(path = "home.html")]
struct ResolverHomePage<'a> {
    words: &'a ResolverPageTexts,
    switch: String,
    keep: &'static str,
    /// Service, address and status.
    archives: Vec<(&'a str, Option<&'a str>, &'static str)>,
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    words: &'a ResolverPageTexts,
    switch: String,
    keep: &'static str,
    told: &'a OutcomeView,
    lists: Vec<(&'a str, Vec<(String, bool)>)>,
}

#[derive(Template)]
#[template(path = "service.html")]
struct ServicePage<'a> {
    words: &'a ResolverPageTexts,
    switch: String,
    keep: &'static str,
    service: &'a str,
    public_url: &'a str,
    software: &'a str,
}

#[derive(Template)]
#[template(path = "explanation.html")]
struct ExplanationPage<'a> {
    words: &'a ResolverPageTexts,
    switch: String,
    keep: &'static str,
    text: String,
    explanation: &'a ResolutionExplanation,
}

/// The home page: an input for an identifier, and the list of Archives.
pub(super) async fn home(State(site): State<Arc<ResolverSite>>, request: Request) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    if let Some(ibi) = query.and_then(|query| query_value(query, "ibi")) {
        // Whatever was entered becomes a path on this host and is parsed there.
        let path: String = ibi.chars().filter(char::is_ascii_graphic).collect();
        let path = path_and_query(&path);
        // Keep a query that was entered with the identifier.
        let keep = if path.contains('?') { "" } else { language_query(query) };
        // Browsers read `//host` and `/\host` as another host.
        return Redirect::to(&format!("/{}{keep}", path.trim_start_matches(['/', '\\']))).into_response();
    }
    let archives: Vec<Arc<RegisteredArchive>> = site
        .registry
        .archives()
        .iter()
        .filter(|archive| archive.standing != RegistrationStatus::Retired)
        .cloned()
        .collect();
    let language = page_language(headers, query);
    let (words, switch, keep) =
        (words(language), other_language_query(language, query), language_query(query));
    let rows = archives
        .iter()
        .map(|archive| (archive.service.spelling(), archive.address.as_deref(), standing(words, archive)));
    let mut response =
        render_page(StatusCode::OK, &ResolverHomePage { words, switch, keep, archives: rows.collect() });
    page::allow_external_forms(&mut response);
    response
}

fn standing(words: &ResolverPageTexts, archive: &RegisteredArchive) -> &'static str {
    match archive.standing {
        RegistrationStatus::New => words.new,
        RegistrationStatus::Unconfirmed => words.unconfirmed,
        RegistrationStatus::OnLine => words.online,
        RegistrationStatus::OffLine => words.offline,
        RegistrationStatus::Retired => words.retired,
    }
}

/// The page for an outcome without a redirect.
pub(super) fn outcome(
    status: StatusCode,
    told: &OutcomeView,
    language: UiLanguage,
    query: Option<&str>,
) -> Response {
    let (words, switch, keep) =
        (words(language), other_language_query(language, query), language_query(query));
    render_page(status, &OutcomePage { words, switch, keep, told, lists: told.lists(words) })
}

/// The page about the resolver's own service (D39).
pub(super) fn service(
    headers: &HeaderMap,
    query: Option<&str>,
    service: &str,
    public_url: &str,
    software: &str,
) -> Response {
    let language = page_language(headers, query);
    let (words, switch, keep) =
        (words(language), other_language_query(language, query), language_query(query));
    render_page(StatusCode::OK, &ServicePage { words, switch, keep, service, public_url, software })
}

/// The page that explains a resolution.
pub(super) fn explanation(
    explanation: &ResolutionExplanation,
    language: UiLanguage,
    query: Option<&str>,
) -> Response {
    let (words, switch, keep) =
        (words(language), other_language_query(language, query), language_query(query));
    let text = explanation.to_text(language);
    render_page(StatusCode::OK, &ExplanationPage { words, switch, keep, text, explanation })
}

/// The page language: the reader's choice in the query, or the client's preference.
pub(super) fn page_language(headers: &HeaderMap, query: Option<&str>) -> UiLanguage {
    UiLanguage::chosen(query).unwrap_or_else(|| UiLanguage::of(headers, None))
}

/// The query for links to other pages of the resolver: it keeps the language that the reader chose.
fn language_query(query: Option<&str>) -> &'static str {
    match UiLanguage::chosen(query) {
        None => "",
        Some(UiLanguage::English) => "?ibiurl.lang=en",
        Some(UiLanguage::Portuguese) => "?ibiurl.lang=pt",
    }
}

/// The query of the same page in the other language.
fn other_language_query(language: UiLanguage, query: Option<&str>) -> String {
    let pairs = query.unwrap_or_default().split('&');
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some(PAGE_LANGUAGE_PAIR);
    let mut pairs: Vec<&str> = pairs.filter(is_other).collect();
    let lang = format!("{PAGE_LANGUAGE_PAIR}={}", words(language).other);
    pairs.push(&lang);
    pairs.join("&")
}

fn render_page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => page::page(status, text),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be written\n").into_response(),
    }
}
