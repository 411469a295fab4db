//! Pages for people: complete without scripts, in Portuguese and English.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use ibi_http::accept::{Tongue, value};
use ibi_http::page;

use crate::archive::{Archive, Standing};
use crate::explain::Explanation;
use crate::link::path_and_query;
use crate::told::{Told, Words, words};
use crate::web::site::Site;

/// Says the language of pages in a query.
const LANG: &str = "ibiurl.lang";

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    words: &'a Words,
    switch: String,
    archives: &'a [Arc<Archive>],
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    words: &'a Words,
    switch: String,
    told: &'a Told,
    lists: Vec<(&'a str, Vec<(String, bool)>)>,
}

#[derive(Template)]
#[template(path = "service.html")]
struct ServicePage<'a> {
    words: &'a Words,
    switch: String,
    service: &'a str,
    public_url: &'a str,
    software: &'a str,
}

#[derive(Template)]
#[template(path = "explanation.html")]
struct ExplanationPage<'a> {
    words: &'a Words,
    switch: String,
    text: String,
    explanation: &'a Explanation,
}

/// The first page: a place for an identifier, and which Archives are asked.
pub(super) async fn home(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    if let Some(ibi) = query.and_then(|query| value(query, "ibi")) {
        // Whatever it is, it is one path on this host, and is read there.
        let path: String = ibi.chars().filter(char::is_ascii_graphic).collect();
        let path = path_and_query(&path);
        // Browsers read `//host` and `/\host` as another host.
        return Redirect::to(&format!("/{}", path.trim_start_matches(['/', '\\']))).into_response();
    }
    let archives: Vec<Arc<Archive>> = site
        .registry
        .archives()
        .iter()
        .filter(|archive| archive.standing != Standing::Retired)
        .cloned()
        .collect();
    let tongue = tongue(headers, query);
    let (words, switch) = (words(tongue), switch(tongue, query));
    page_of(StatusCode::OK, &Home { words, switch, archives: &archives })
}

/// What a resolution came to, if nobody is sent anywhere.
pub(super) fn outcome(status: StatusCode, told: &Told, tongue: Tongue, query: Option<&str>) -> Response {
    let (words, switch) = (words(tongue), switch(tongue, query));
    page_of(status, &OutcomePage { words, switch, told, lists: told.lists(words) })
}

/// What the resolver's own service is (D39).
pub(super) fn service(
    headers: &HeaderMap,
    query: Option<&str>,
    service: &str,
    public_url: &str,
    software: &str,
) -> Response {
    let tongue = tongue(headers, query);
    let (words, switch) = (words(tongue), switch(tongue, query));
    page_of(StatusCode::OK, &ServicePage { words, switch, service, public_url, software })
}

/// How an answer came about.
pub(super) fn explanation(explanation: &Explanation, tongue: Tongue, query: Option<&str>) -> Response {
    let (words, switch) = (words(tongue), switch(tongue, query));
    let text = explanation.to_string();
    page_of(StatusCode::OK, &ExplanationPage { words, switch, text, explanation })
}

/// The language of a page: what the query says in a name that is not passed on to items (4.1), or what the client likes.
pub(super) fn tongue(headers: &HeaderMap, query: Option<&str>) -> Tongue {
    let said = query.and_then(|query| value(query, LANG));
    said.as_deref().and_then(Tongue::named).unwrap_or_else(|| Tongue::of(headers, None))
}

/// The query of the same page in the other language.
fn switch(tongue: Tongue, query: Option<&str>) -> String {
    let pairs = query.unwrap_or_default().split('&');
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some(LANG);
    let mut pairs: Vec<&str> = pairs.filter(is_other).collect();
    let lang = format!("{LANG}={}", words(tongue).other);
    pairs.push(&lang);
    pairs.join("&")
}

fn page_of(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => page::page(status, text),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be written\n").into_response(),
    }
}
