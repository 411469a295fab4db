//! Persistent URLs at the Archive's own address: `http://<archiveaddress>/<IBI>` takes all that
//! clause 4.1 allows, for what is held here. What is not held here is sent on to the resolver
//! (clause 2).

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::Problem;
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::persistent::append_query;
use ibi_protocol::{Part, PersistentError, PersistentUrl, UrlRequest, Verbs};
use ibi_store::journal::State;
use ibi_store::records::Role;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::relations::walk::Destination;
use crate::relations::{Led, What};
use crate::service::address;
use crate::service::answer::{may_open, place};
use crate::web::col::{self, Client};
use crate::web::leaving;
use crate::web::site::{Site, problem};

/// Lines of `Accept-Language`, and bytes of all of them, that are read.
const MAX_LANGUAGE_LINES: usize = 16;
const MAX_LANGUAGE_BYTES: usize = 8 << 10;

/// What a URL in a header has only encoded, besides all that is not ASCII.
const IN_LOCATIONS: &AsciiSet = &CONTROLS.add(b' ');

/// Answers for a persistent URL.
pub(super) fn answer(site: &Site, client: &Client) -> Result<Response, Problem> {
    let uri = &client.uri;
    let asked = PersistentUrl::parse(uri.path(), uri.query()).map_err(|error| match error {
        PersistentError::Label { .. } => {
            Problem::not_found("there is nothing at this address: / leads to what this Archive holds")
        }
        error => Problem::bad_request(error.to_string()),
    })?;
    let holdings = &*site.desk.read().map_err(|error| problem(&error))?;
    let label = asked.label.spelling();
    let (holding, role) = match holdings.find(label) {
        Ok(found) => found,
        Err(
            error @ (ArchiveError::Unknown { .. } | ArchiveError::Dropped { .. } | ArchiveError::Lost { .. }),
        ) => return elsewhere(site, client).ok_or_else(|| not_here(label, &error)),
        Err(error) => return Err(problem(&error)),
    };
    let from = Led::new(holding, role);
    let accepted = AcceptedLanguages::parse(&languages(&client.headers));
    let followed = holdings.follow(&from, &asked.verbs.relation, &accepted);
    let led = match followed.map_err(|error| problem(&error))? {
        Destination::Here { led, vouched } => match elsewhere(site, client) {
            // Others may know of a later edition (4.2 step 4).
            Some(response) if !vouched => return Ok(response),
            _ => led,
        },
        Destination::Removed(led) => {
            let role = if led.what == What::Item { Role::Item } else { Role::Metadata };
            return col::tombstone(holdings, &led.holding, role, client);
        }
        Destination::Missing(there) => {
            return elsewhere(site, client).ok_or_else(|| missing(label, &asked.verbs, &there));
        }
    };
    if asked.original && led.holding.state != State::Original {
        return elsewhere(site, client).ok_or_else(|| {
            Problem::not_found(format!("{label} is here as a Copy, and the original is required"))
        });
    }
    deliver(site, holdings, client, &asked, &led)
}

/// Sends a client to what it asked for, within this Archive or to the item's target URL.
fn deliver(
    site: &Site,
    holdings: &Holdings,
    client: &Client,
    asked: &PersistentUrl,
    led: &Led,
) -> Result<Response, Problem> {
    let holding = &led.holding;
    let request = UrlRequest {
        client: vec![client.ip],
        ibi: asked.label.spelling().to_owned(),
        file: asked.file.clone(),
        verbs: Verbs { file_list: asked.verbs.file_list, ..Verbs::default() },
        wants_all: false,
    };
    let found =
        place(holdings, led, &request, Some(client.ip), site.now()).map_err(|error| problem(&error))?;
    let Some((path, _)) = found else {
        let list = address::file_list(&holding.item.labels);
        return Err(Problem::not_found(match led.what {
            What::Item => format!("the item has no file of this name; {list} lists those it has"),
            What::Metadata { .. } => "metadata have no files".to_owned(),
        }));
    };
    let leaves = led.what == What::Item && !asked.verbs.file_list;
    if leaves
        && let Some(url) = &holding.item.url
        && may_open(holding, Some(client.ip), site.now())
    {
        return Ok(leaving::lead(site, holding, url, client, &asked.passed_on));
    }
    let mut response = redirect(&append_query(&path, &asked.passed_on));
    if asked.verbs.relation.parts().contains(&Part::Translation(None)) {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Language"));
    }
    Ok(response)
}

/// All lines of `Accept-Language` together (RFC 9110 5.3).
fn languages(headers: &HeaderMap) -> String {
    let lines = headers.get_all(header::ACCEPT_LANGUAGE).iter().take(MAX_LANGUAGE_LINES);
    let mut all = lines.filter_map(|line| line.to_str().ok()).collect::<Vec<_>>().join(",");
    if all.len() > MAX_LANGUAGE_BYTES {
        // Header values are ASCII here: any byte ends a character.
        all.truncate(MAX_LANGUAGE_BYTES);
    }
    all
}

/// To the resolver with the very same path and query, if there is one.
fn elsewhere(site: &Site, client: &Client) -> Option<Response> {
    let base = site.resolver.as_deref()?.trim_end_matches('/');
    let asked = client.uri.path_and_query().map_or("/", |asked| asked.as_str());
    Some(redirect(&format!("{base}{asked}")))
}

/// 302 to a place that can stand in a header.
pub(super) fn redirect(to: &str) -> Response {
    // What a client sent in its path may hold bytes that no header has.
    let to = utf8_percent_encode(to, IN_LOCATIONS).to_string();
    let Ok(to) = HeaderValue::from_str(&to) else { return Problem::internal().into_response() };
    let fresh = HeaderValue::from_static("no-cache");
    (StatusCode::FOUND, [(header::LOCATION, to), (header::CACHE_CONTROL, fresh)]).into_response()
}

fn not_here(label: &str, error: &ArchiveError) -> Problem {
    match error {
        ArchiveError::Unknown { .. } => Problem::not_found(format!("{label} is not in this Archive")),
        error => problem(error),
    }
}

/// 4.3: item known, but not that translation or format.
fn missing(label: &str, verbs: &Verbs, there: &[String]) -> Problem {
    let asked = verbs.relation.modifiers();
    Problem::not_found(match there {
        [] => format!("{label}{asked}: this Archive has no such thing of it"),
        there => {
            format!("{label}{asked}: this Archive has no such thing of it. There is: {}", there.join(", "))
        }
    })
}
