//! Pages for people: complete without scripts, in Portuguese and English.

pub(super) mod words;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::accept::{Tongue, value};
use ibi_http::page;

use crate::ArchiveError;
use crate::archive::{Holding, Holdings};
use crate::dublin_core::{DublinCore, Element, Statement};
use crate::item::{Labels, Removed};
use crate::service::address;
use crate::target_url::TargetUrl;
use crate::web::errors::told;
use crate::web::site::{Site, problem};

use words::{Words, words};

/// Items on a page of the list, and files on a page of an item.
const PAGE: usize = 100;
const FILES: usize = 1000;

/// Characters of a title in a list.
const LONGEST_TITLE: usize = 300;

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    words: &'a Words,
    service: &'a Labels,
    items: Vec<Line>,
    next: Option<String>,
}

/// An item in the list.
struct Line {
    to: String,
    label: String,
    title: String,
    updated: String,
    state: &'static str,
}

#[derive(Template)]
#[template(path = "item.html")]
struct ItemPage<'a> {
    words: &'a Words,
    title: &'a str,
    title_language: &'a str,
    item: &'a Holding,
    state: &'static str,
    metadata: String,
    xml: String,
    opens: Option<String>,
    url: Option<&'a str>,
    /// The version that another Archive has of this copy, and where.
    behind: Option<(u32, String)>,
    links: Vec<(&'static str, &'a str)>,
    statements: Vec<Line2<'a>>,
    open: bool,
    files: Vec<FileLine>,
    more: bool,
    list: String,
}

/// A statement of the metadata.
struct Line2<'a> {
    element: &'static str,
    language: &'a str,
    value: &'a str,
    link: bool,
}

/// A file in a list.
struct FileLine {
    to: String,
    name: String,
    size: u64,
    media: String,
    sha512: String,
}

#[derive(Template)]
#[template(path = "metadata.html")]
struct MetadataPage<'a> {
    words: &'a Words,
    title: &'a str,
    title_language: &'a str,
    item: &'a Holding,
    to: String,
    xml: String,
    statements: Vec<Line2<'a>>,
}

#[derive(Template)]
#[template(path = "files.html")]
struct FilesPage<'a> {
    words: &'a Words,
    title: &'a str,
    item: &'a Holding,
    to: String,
    metadata: String,
    open: bool,
    files: Vec<FileLine>,
}

#[derive(Template)]
#[template(path = "tombstone.html")]
struct Tombstone<'a> {
    words: &'a Words,
    title: &'a str,
    item: &'a Holding,
    removed: Option<&'a Removed>,
    statements: Vec<Line2<'a>>,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    words: &'a Words,
    status: u16,
    detail: &'a str,
}

/// The first page: what the Archive holds.
pub(super) async fn home(State(site): State<Arc<Site>>, request: Request) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    let after = query.and_then(|query| value(query, "after")).unwrap_or_default();
    let listed = site.desk.read().and_then(|holdings| {
        let service = holdings.settings().service.clone();
        Ok((service, lines(&holdings, after)?))
    });
    let (service, (items, next)) = match listed {
        Ok(listed) => listed,
        Err(error) => return told(headers, query, problem(&error)),
    };
    let words = words(Tongue::of(headers, query));
    page_of(StatusCode::OK, &Home { words, service: &service, items, next })
}

/// Items of a page of the list, and where the next one begins: read in small steps, whatever their metadata weigh.
fn lines(holdings: &Holdings, mut after: String) -> Result<(Vec<Line>, Option<String>), ArchiveError> {
    const STEP: usize = 20;
    let mut lines = Vec::new();
    while lines.len() < PAGE {
        let items = holdings.list(&after, STEP)?;
        let Some(last) = items.last() else { return Ok((lines, None)) };
        after.clone_from(&last.path);
        lines.extend(items.iter().map(|holding| Line {
            to: address::item(&holding.item.labels),
            label: holding.item.labels.primary().to_owned(),
            title: title(&holding.metadata).0.chars().take(LONGEST_TITLE).collect(),
            updated: holding.item.updated.clone(),
            state: holding.state.name(),
        }));
    }
    Ok((lines, Some(after)))
}

/// The page of an item.
pub(super) fn item(
    holdings: &Holdings,
    holding: &Holding,
    open: bool,
    tongue: Tongue,
) -> Result<Response, ArchiveError> {
    let words = words(tongue);
    let labels = &holding.item.labels;
    let mut files = if open { file_lines(holdings, holding, FILES + 1)? } else { Vec::new() };
    let more = files.len() > FILES;
    files.truncate(FILES);
    let (title, title_language) = title(&holding.metadata);
    let links = [
        (words.translation_of, &holding.item.translation_of),
        (words.next_edition_of, &holding.item.next_edition_of),
    ];
    let page = ItemPage {
        words,
        title,
        title_language,
        item: holding,
        state: holding.state.name(),
        metadata: address::item(&holding.item.metadata),
        xml: format!("{}oai_dc", address::item(&holding.item.metadata)),
        opens: match (&holding.item.target, &holding.item.url) {
            _ if !open => None,
            (Some(target), _) => Some(address::file(labels, target)),
            (None, Some(_)) => Some(address::folder(labels)),
            (None, None) => None,
        },
        url: holding.item.url.as_ref().filter(|_| open).map(TargetUrl::as_str),
        behind: holdings
            .behind(holding)
            .map(|note| (note.latest, format!("{}/col/{}/", note.holder, labels.primary()))),
        links: links.into_iter().filter_map(|(name, to)| Some((name, to.as_deref()?))).collect(),
        statements: statements(&holding.metadata, None),
        open,
        files,
        more,
        list: address::file_list(labels),
    };
    Ok(dated(page_of(StatusCode::OK, &page), &holding.item.updated))
}

/// The page of an item's metadata: what is said in the language that was asked for comes first, whichever that is (clause 2.4); the
/// page's own words are in the one that is nearest.
pub(super) fn metadata(holding: &Holding, tongue: Tongue, asked: Option<&str>) -> Response {
    let language = asked.unwrap_or(tongue.name());
    let titles = holding.metadata.of(Element::Title);
    let in_language = titles.map(|title| (title.value(), tag(title))).find(|(_, tag)| is_in(tag, language));
    let (title, title_language) = in_language.unwrap_or_else(|| title(&holding.metadata));
    let page = MetadataPage {
        words: words(tongue),
        title,
        title_language,
        item: holding,
        to: address::item(&holding.item.labels),
        xml: format!("{}oai_dc", address::item(&holding.item.metadata)),
        statements: statements(&holding.metadata, Some(language)),
    };
    dated(page_of(StatusCode::OK, &page), holding.item.metadata_time())
}

/// The list of an item's files, or that it is closed.
pub(super) fn files(
    holdings: &Holdings,
    holding: &Holding,
    open: bool,
    tongue: Tongue,
) -> Result<Response, ArchiveError> {
    let files = if open { file_lines(holdings, holding, usize::MAX)? } else { Vec::new() };
    Ok(files_page(StatusCode::OK, holding, open, files, tongue))
}

fn files_page(
    status: StatusCode,
    holding: &Holding,
    open: bool,
    files: Vec<FileLine>,
    tongue: Tongue,
) -> Response {
    let page = FilesPage {
        words: words(tongue),
        title: title(&holding.metadata).0,
        item: holding,
        to: address::item(&holding.item.labels),
        metadata: address::item(&holding.item.metadata),
        open,
        files,
    };
    page_of(status, &page)
}

/// What is left of an item that was removed.
pub(super) fn tombstone(holding: &Holding, tongue: Tongue) -> Response {
    let page = Tombstone {
        words: words(tongue),
        title: title(&holding.metadata).0,
        item: holding,
        removed: holding.item.removed.as_ref(),
        statements: statements(&holding.metadata, None),
    };
    page_of(StatusCode::GONE, &page)
}

/// Files that are closed to the one who asks: 403, and where the metadata are.
pub(super) fn closed(holding: &Holding, tongue: Tongue) -> Response {
    files_page(StatusCode::FORBIDDEN, holding, false, Vec::new(), tongue)
}

/// Something that went wrong.
pub(super) fn error(tongue: Tongue, status: StatusCode, detail: &str) -> Response {
    page_of(status, &ErrorPage { words: words(tongue), status: status.as_u16(), detail })
}

/// Says when what a page tells last changed.
pub(super) fn dated(mut response: Response, changed: &str) -> Response {
    let seconds = changed.parse::<ibi_id::Instant>().map_or(0, |time| time.seconds());
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.max(0).cast_unsigned());
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(time)) {
        response.headers_mut().insert(header::LAST_MODIFIED, value);
    }
    response
}

/// The first title of an item.
pub(super) fn noted_title(holding: &Holding) -> &str {
    title(&holding.metadata).0
}

pub(super) fn page_of(status: StatusCode, template: &impl Template) -> Response {
    let Ok(text) = template.render() else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be written\n").into_response();
    };
    page::page(status, text)
}

/// The first title, and its language.
fn title(metadata: &DublinCore) -> (&str, &str) {
    metadata.of(Element::Title).next().map_or(("", ""), |title| (title.value(), tag(title)))
}

fn tag(statement: &Statement) -> &str {
    statement.language().map_or("", |tag| tag.as_str())
}

/// Whether something in a language, maybe of a country, is in the one that is asked for.
fn is_in(tag: &str, asked: &str) -> bool {
    let begins = tag.get(..asked.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(asked));
    begins && !asked.is_empty() && (tag.len() == asked.len() || tag.as_bytes()[asked.len()] == b'-')
}

/// What metadata say; those in a language first, if it matters.
fn statements<'a>(metadata: &'a DublinCore, first: Option<&str>) -> Vec<Line2<'a>> {
    let mut lines: Vec<Line2<'_>> = metadata
        .statements()
        .iter()
        .map(|statement| {
            let value = statement.value();
            let link = value.starts_with("https://") || value.starts_with("http://");
            Line2 { element: statement.element().name(), language: tag(statement), value, link }
        })
        .collect();
    if let Some(language) = first {
        lines.sort_by_key(|line| !is_in(line.language, language));
    }
    lines
}

fn file_lines(holdings: &Holdings, holding: &Holding, most: usize) -> Result<Vec<FileLine>, ArchiveError> {
    let labels = &holding.item.labels;
    let (mut lines, mut after) = (Vec::new(), String::new());
    while lines.len() < most {
        let page = holdings.files(&holding.path, &after, FILES)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.name);
        lines.extend(page.into_iter().map(|file| FileLine {
            to: address::file(labels, &file.name),
            name: String::from_utf8_lossy(&crate::keep::raw(&file.name)).into_owned(),
            size: file.size,
            media: file.media,
            sha512: file.sha512,
        }));
    }
    lines.truncate(most);
    Ok(lines)
}
