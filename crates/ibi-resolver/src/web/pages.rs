//! Pages for people: complete without scripts, in Portuguese and English.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use ibi_http::accept::{Tongue, value};
use ibi_http::page;

use crate::archive::{Archive, Standing};
use crate::explain::Explanation;
use crate::told::{Told, Words, words};
use crate::web::site::Site;

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    words: &'a Words,
    archives: &'a [Arc<Archive>],
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    words: &'a Words,
    told: &'a Told,
    lists: Vec<(&'a str, Vec<(String, bool)>)>,
}

#[derive(Template)]
#[template(path = "explanation.html")]
struct ExplanationPage<'a> {
    words: &'a Words,
    text: String,
    explanation: &'a Explanation,
}

/// The first page: a place for an identifier, and which Archives are asked.
pub(super) async fn home(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    if let Some(ibi) = query.and_then(|query| value(query, "ibi")) {
        // Whatever it is, it is one path on this host, and is read there.
        let path = ibi.trim().trim_start_matches(['/', '\\']);
        let path: String = path.chars().filter(|c| c.is_ascii_graphic()).collect();
        return Redirect::to(&format!("/{path}")).into_response();
    }
    let archives: Vec<Arc<Archive>> = site
        .registry
        .archives()
        .iter()
        .filter(|archive| archive.standing != Standing::Retired)
        .cloned()
        .collect();
    let words = words(Tongue::of(headers, query));
    page_of(StatusCode::OK, &Home { words, archives: &archives })
}

/// What a resolution came to, if nobody is sent anywhere.
pub(super) fn outcome(status: StatusCode, told: &Told, tongue: Tongue) -> Response {
    let words = words(tongue);
    page_of(status, &OutcomePage { words, told, lists: told.lists(words) })
}

/// How an answer came about.
pub(super) fn explanation(explanation: &Explanation, tongue: Tongue) -> Response {
    let text = explanation.to_string();
    page_of(StatusCode::OK, &ExplanationPage { words: words(tongue), text, explanation })
}

fn page_of(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => page::page(status, text),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be written\n").into_response(),
    }
}
