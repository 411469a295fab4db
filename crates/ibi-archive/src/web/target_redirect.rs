//! Redirects for items with a target URL. If the operator has enabled it, people first see a page
//! with the URL (clause 2.2, D31).

use std::borrow::Cow;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use ibi_http::Problem;
use ibi_protocol::{ContentType, FilePath};

use crate::archive::HeldItem;
use crate::service::{StatisticsEvent, address};
use crate::target_url::TargetUrl;
use crate::web::item_routes::{self, PageRequest};
use crate::web::pages::words::{ArchivePageTexts, words};
use crate::web::pages::{item_name, render_page};
use crate::web::persistent_url::redirect;
use crate::web::site::ArchiveSite;

#[derive(Template)]
#[template(path = "leaving.html")]
struct TargetRedirectPage<'a> {
    words: &'a ArchivePageTexts,
    title: Cow<'a, str>,
    item: &'a HeldItem,
    to: &'a str,
    host: &'a str,
    page: String,
}

/// Redirects to an item's target URL, or below it, with the query pairs that belong to the item.
pub(super) fn redirect_to_target(
    site: &ArchiveSite,
    holding: &HeldItem,
    url: &TargetUrl,
    below: Option<&FilePath>,
    client: &PageRequest,
    pairs: &str,
) -> Result<Response, Problem> {
    let to = match below {
        None => url.with_query(pairs),
        Some(path) => {
            let below = url.below(path).map_err(|error| Problem::bad_request(error.to_string()))?;
            below.with_query(pairs)
        }
    };
    item_routes::count_access(
        site,
        &holding.path,
        ContentType::Data,
        StatisticsEvent::Download,
        "url",
        client,
    );
    let mut response = if site.shows_targets && client.method == Method::GET && accepts_html(&client.headers)
    {
        let template = TargetRedirectPage {
            words: words(client.language()),
            title: item_name(holding, true).0,
            item: holding,
            to: &to,
            host: url.authority(),
            page: address::item_page_path(&holding.item.labels),
        };
        let mut shown = render_page(StatusCode::OK, &template);
        shown.headers_mut().insert("x-robots-tag", HeaderValue::from_static("noindex"));
        shown
    } else {
        redirect(&to)
    };
    if site.shows_targets {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    }
    Ok(response)
}

/// Whether the client is a browser. Programs that ask for HTML also match, which does no harm.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|range| range.split(';').next().is_some_and(|kind| kind.trim() == "text/html"))
}

/// The query that belongs to the item, with characters that a URL cannot contain encoded.
pub(super) fn encode_query(query: Option<&str>) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const QUERY_ENCODE_SET: &AsciiSet = &CONTROLS.add(b' ').add(b'#');
    utf8_percent_encode(query.unwrap_or_default(), QUERY_ENCODE_SET).to_string()
}
