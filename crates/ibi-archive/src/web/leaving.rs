//! An item with a target URL leads there: a redirect, or, if the operator wants that, a page that
//! shows the URL to a person first (clause 2.2, D31).

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use ibi_protocol::ContentType;

use crate::archive::Holding;
use crate::service::{What, address};
use crate::target_url::TargetUrl;
use crate::web::col::{self, Client};
use crate::web::own_address::redirect;
use crate::web::pages::words::{Words, words};
use crate::web::pages::{noted_title, page_of};
use crate::web::site::Site;

#[derive(Template)]
#[template(path = "leaving.html")]
struct LeavingPage<'a> {
    words: &'a Words,
    title: &'a str,
    item: &'a Holding,
    to: &'a str,
    host: &'a str,
    page: String,
}

/// Sends a client to an item's target URL, with the pairs of the query that belong to the item.
pub(super) fn lead(
    site: &Site,
    holding: &Holding,
    url: &TargetUrl,
    client: &Client,
    pairs: &str,
) -> Response {
    let to = url.with_query(pairs);
    col::count(site, &holding.path, ContentType::Data, What::Download, "url", client);
    let mut response = if site.shows_targets && client.method == Method::GET && is_person(&client.headers) {
        let template = LeavingPage {
            words: words(client.tongue()),
            title: noted_title(holding),
            item: holding,
            to: &to,
            host: url.authority(),
            page: address::item(&holding.item.labels),
        };
        let mut shown = page_of(StatusCode::OK, &template);
        shown.headers_mut().insert("x-robots-tag", HeaderValue::from_static("noindex"));
        shown
    } else {
        redirect(&to)
    };
    if site.shows_targets {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    }
    response
}

/// Whether a browser asks: programs that want HTML name it too, but are not harmed by a page.
fn is_person(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|range| range.split(';').next().is_some_and(|kind| kind.trim() == "text/html"))
}

/// A query that belongs to the item, as it came: what no URL can have is encoded.
pub(super) fn raw_pairs(query: Option<&str>) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const IN_QUERIES: &AsciiSet = &CONTROLS.add(b' ').add(b'#');
    utf8_percent_encode(query.unwrap_or_default(), IN_QUERIES).to_string()
}
