//! Pages for people, in Portuguese and English. They work without scripts.

mod file_list;
pub(super) mod words;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use ibi_http::accept::{PreferredFormat, UiLanguage, query_value};
use ibi_http::{Problem, page};
use ibi_id::Label;

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::dublin_core::{DublinCore, Element, MetadataStatement};
use crate::item::{ItemLabels, ItemRemoval};
use crate::service::address;
use crate::service::answer::may_open;
use crate::target_url::TargetUrl;
use crate::web::large_response;
use crate::web::site::{ArchiveSite, problem};

use file_list::{FileLine, file_lines};
pub(super) use file_list::{closed, files, streamed_files};
use words::{ArchivePageTexts, PageLanguage, words};

/// Items per page of the home page, and files on the page of an item.
const HOME_PAGE_ITEMS: usize = 100;
const ITEM_PAGE_FILES: usize = 1000;

/// Maximum length of a title in a list.
const MAX_TITLE_CHARS: usize = 300;

/// Memory to find titles in long metadata, one at a time.
const LONG_TITLES_MEMORY_BYTES: u64 = 16 << 20;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    words: &'a ArchivePageTexts,
    service: &'a ItemLabels,
    items: Vec<ItemLine>,
    /// The cursors of this page and the next.
    after: String,
    next: Option<String>,
}

/// An item in the list.
struct ItemLine {
    to: String,
    label: String,
    title: String,
    updated: String,
    state: &'static str,
}

#[derive(Template)]
#[template(path = "item.html")]
struct ItemPage<'a> {
    words: &'a ArchivePageTexts,
    title: Cow<'a, str>,
    title_language: &'a str,
    item: &'a HeldItem,
    state: &'static str,
    access: String,
    metadata: String,
    xml: String,
    opens: Option<String>,
    url: Option<&'a str>,
    /// The version that another Archive has of this copy, and its address.
    behind: Option<(u32, String)>,
    links: Vec<(&'static str, &'a str)>,
    statements: Vec<StatementLine<'a>>,
    open: bool,
    files: Vec<FileLine>,
    more: bool,
    list: String,
}

/// A metadata statement.
struct StatementLine<'a> {
    element: &'static str,
    language: &'a str,
    value: &'a str,
    link: bool,
}

#[derive(Template)]
#[template(path = "metadata.html")]
struct MetadataPage<'a> {
    words: &'a ArchivePageTexts,
    title: Cow<'a, str>,
    title_language: &'a str,
    item: &'a HeldItem,
    to: String,
    xml: String,
    statements: Vec<StatementLine<'a>>,
}

#[derive(Template)]
#[template(path = "tombstone.html")]
struct TombstonePage<'a> {
    words: &'a ArchivePageTexts,
    title: Cow<'a, str>,
    item: &'a HeldItem,
    removed: Option<ItemRemoval>,
    statements: Vec<StatementLine<'a>>,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    words: &'a ArchivePageTexts,
    title: &'static str,
    status: u16,
    detail: &'a str,
    /// The detail in English on a page in Portuguese, if it has no translation.
    in_english: Option<&'a str>,
}

/// The home page: lists what the Archive holds.
pub(super) async fn home(State(site): State<Arc<ArchiveSite>>, request: Request) -> Response {
    let (headers, query) = (request.headers(), request.uri().query());
    let after = query.and_then(|query| query_value(query, "after")).unwrap_or_default();
    let (words, client) = (words(PageLanguage::of(headers, query)), site.client_address(&request));
    let page = match home_page(&site, after.clone(), words, client, false) {
        Ok(Some(page)) => Ok(page),
        // Reading titles from long metadata needs a memory grant.
        Ok(None) => {
            large_response::answer_with_grant(&site, LONG_TITLES_MEMORY_BYTES, move |site| {
                let page = home_page(site, after, words, client, true).map_err(|error| problem(&error))?;
                page.ok_or_else(Problem::internal)
            })
            .await
        }
        Err(error) => Err(problem(&error)),
    };
    page.unwrap_or_else(|problem| problem_response(headers, query, problem))
}

fn home_page(
    site: &ArchiveSite,
    after: String,
    words: &ArchivePageTexts,
    client: IpAddr,
    long: bool,
) -> Result<Option<Response>, ArchiveError> {
    let holdings = site.desk.read()?;
    let service = holdings.settings().service.clone();
    let is_open = |holding: &HeldItem| may_open(holding, Some(client), site.now());
    let Some((items, next)) = item_lines(&holdings, after.clone(), words, is_open, long)? else {
        return Ok(None);
    };
    // Echo only valid labels from the query.
    let after = Some(after).filter(|after| Label::parse(after.as_str()).is_ok()).unwrap_or_default();
    Ok(Some(render_page(StatusCode::OK, &HomePage { words, service: &service, items, after, next })))
}

/// The lines of a page, and the cursor of the next.
type ItemLinesPage = (Vec<ItemLine>, Option<String>);

/// The items of a page, read in small steps whatever their metadata weigh. `None` if some metadata
/// are long and `long` is false.
fn item_lines(
    holdings: &Holdings,
    mut after: String,
    words: &ArchivePageTexts,
    is_open: impl Fn(&HeldItem) -> bool,
    long: bool,
) -> Result<Option<ItemLinesPage>, ArchiveError> {
    const LIST_READ_ITEMS: usize = 20;
    let mut lines = Vec::new();
    while lines.len() < HOME_PAGE_ITEMS {
        let items = holdings.list_bare(&after, LIST_READ_ITEMS)?;
        let Some(last) = items.last() else { return Ok(Some((lines, None))) };
        after.clone_from(&last.path);
        for holding in items {
            let title = match holding.metadata.is_not_loaded() {
                true if !long => return Ok(None),
                true => {
                    holdings.load_long_metadata(&holding)?;
                    holding.metadata.first_title()
                }
                false => title(&holding.metadata).0.to_owned(),
            };
            let title = match title.trim().is_empty() {
                true => fallback_title(&holding, is_open(&holding)),
                false => title,
            };
            lines.push(ItemLine {
                to: address::item_page_path(&holding.item.labels),
                label: holding.item.labels.primary().to_owned(),
                title: title.chars().take(MAX_TITLE_CHARS).collect(),
                updated: words.time(&holding.item.updated),
                state: words.state_name(holding.state),
            });
        }
    }
    Ok(Some((lines, Some(after))))
}

pub(super) fn item(
    holdings: &Holdings,
    holding: &HeldItem,
    open: bool,
    language: PageLanguage,
) -> Result<Response, ArchiveError> {
    let words = words(language);
    let labels = &holding.item.labels;
    let mut files = if open { file_lines(holdings, holding, ITEM_PAGE_FILES + 1)? } else { Vec::new() };
    let more = files.len() > ITEM_PAGE_FILES;
    files.truncate(ITEM_PAGE_FILES);
    let (title, title_language) = item_name(holding, open);
    let links = [
        (words.translation_of, &holding.item.translation_of),
        (words.next_edition_of, &holding.item.next_edition_of),
    ];
    let page = ItemPage {
        words,
        title,
        title_language,
        item: holding,
        state: words.state_name(holding.state),
        access: words.access_rule(&holding.item.access),
        metadata: address::item_page_path(&holding.item.metadata),
        xml: format!("{}oai_dc", address::item_page_path(&holding.item.metadata)),
        opens: match (&holding.item.target, &holding.item.url) {
            _ if !open => None,
            (Some(target), _) => Some(address::item_file_path(labels, target)),
            (None, Some(_)) => Some(address::item_folder_path(labels)),
            (None, None) => None,
        },
        url: holding.item.url.as_ref().filter(|_| open).map(TargetUrl::as_str),
        behind: holdings
            .stale_copy_note(holding)
            .map(|note| (note.latest, format!("{}/col/{}/", note.holder, labels.primary()))),
        links: links.into_iter().filter_map(|(name, to)| Some((name, to.as_deref()?))).collect(),
        statements: statements(words, &holding.metadata, None),
        open,
        files,
        more,
        list: address::file_list_path(labels),
    };
    Ok(with_last_modified(render_page(StatusCode::OK, &page), &holding.item.updated))
}

/// The metadata page of an item. Statements in the requested language come first, whichever it is
/// (clause 2.4); the page itself uses the nearest supported language.
pub(super) fn metadata(
    holding: &HeldItem,
    open: bool,
    language: PageLanguage,
    asked: Option<&str>,
) -> Response {
    let words = words(language);
    let first = asked.unwrap_or(language.ui.name());
    let mut titles = holding.metadata.of(Element::Title).map(|title| (title.value(), tag(title)));
    let (title, title_language) = match titles.find(|(_, tag)| is_in_language(tag, first)) {
        Some((title, tag)) => (Cow::from(title), tag),
        None => item_name(holding, open),
    };
    let page = MetadataPage {
        words,
        title,
        title_language,
        item: holding,
        to: address::item_page_path(&holding.item.labels),
        xml: format!("{}oai_dc", address::item_page_path(&holding.item.metadata)),
        statements: statements(words, &holding.metadata, Some(first)),
    };
    with_last_modified(render_page(StatusCode::OK, &page), holding.item.metadata_time())
}

/// The page of a removed item.
pub(super) fn tombstone(
    holding: &HeldItem,
    removed: Option<ItemRemoval>,
    language: PageLanguage,
) -> Response {
    let words = words(language);
    let page = TombstonePage {
        words,
        title: item_name(holding, false).0,
        item: holding,
        removed,
        statements: statements(words, &holding.metadata, None),
    };
    render_page(StatusCode::GONE, &page)
}

/// A problem in the format that the client prefers: a page for people.
pub(super) fn problem_response(headers: &HeaderMap, query: Option<&str>, problem: Problem) -> Response {
    let mut response = match PreferredFormat::of(headers) {
        PreferredFormat::Json => problem.into_response(),
        PreferredFormat::Text => (problem.status(), format!("{}\n", problem.detail())).into_response(),
        PreferredFormat::Page => error(PageLanguage::of(headers, query), &problem),
    };
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

/// The page of an error. What has no text in Portuguese gets a general one, and the English detail.
fn error(language: PageLanguage, problem: &Problem) -> Response {
    let (words, status) = (words(language), problem.status());
    let title = words.error_title(status);
    let (detail, in_english) = match (language.ui, problem.detail_in_portuguese()) {
        (UiLanguage::English, _) => (problem.detail(), None),
        (UiLanguage::Portuguese, Some(detail)) => (detail, None),
        (UiLanguage::Portuguese, None) => (words.error_detail(status), Some(problem.detail())),
    };
    render_page(status, &ErrorPage { words, title, status: status.as_u16(), detail, in_english })
}

/// Adds `Last-Modified`.
pub(super) fn with_last_modified(mut response: Response, changed: &str) -> Response {
    let seconds = changed.parse::<ibi_id::Instant>().map_or(0, |time| time.seconds());
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.max(0).cast_unsigned());
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(time)) {
        response.headers_mut().insert(header::LAST_MODIFIED, value);
    }
    response
}

/// The display name of an item and its language: the first title. Without a title, its target file,
/// if the client may open it, or its label.
pub(super) fn item_name(holding: &HeldItem, open: bool) -> (Cow<'_, str>, &str) {
    let (title, language) = title(&holding.metadata);
    match title.trim().is_empty() {
        true => (Cow::from(fallback_title(holding, open)), ""),
        false => (Cow::from(title), language),
    }
}

/// The display name of an item without a title.
fn fallback_title(holding: &HeldItem, open: bool) -> String {
    let target = holding.item.target.as_ref().filter(|_| open);
    let target =
        target.map(|target| String::from_utf8_lossy(&crate::store::decode_logical_path(target)).into_owned());
    let file = target.as_deref().and_then(|target| target.rsplit('/').next());
    file.filter(|file| !file.trim().is_empty()).unwrap_or(holding.item.labels.primary()).to_owned()
}

pub(super) fn render_page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => page::page(status, text),
        Err(_) => html_page(None),
    }
}

fn html_page(text: Option<String>) -> Response {
    match text {
        Some(text) => page::page(StatusCode::OK, text),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be written\n").into_response(),
    }
}

/// The first title, and its language.
fn title(metadata: &DublinCore) -> (&str, &str) {
    metadata.of(Element::Title).next().map_or(("", ""), |title| (title.value(), tag(title)))
}

fn tag(statement: &MetadataStatement) -> &str {
    statement.language().map_or("", |tag| tag.as_str())
}

/// Whether a language tag, possibly with a region, matches the requested language.
fn is_in_language(tag: &str, asked: &str) -> bool {
    let begins = tag.get(..asked.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(asked));
    begins && !asked.is_empty() && (tag.len() == asked.len() || tag.as_bytes()[asked.len()] == b'-')
}

/// The metadata statements; those in language `first` come first.
fn statements<'a>(
    words: &ArchivePageTexts,
    metadata: &'a DublinCore,
    first: Option<&str>,
) -> Vec<StatementLine<'a>> {
    let mut lines: Vec<StatementLine<'_>> = metadata
        .statements()
        .iter()
        .map(|statement| {
            let value = statement.value();
            let link = value.starts_with("https://") || value.starts_with("http://");
            StatementLine {
                element: words.element_name(statement.element()),
                language: tag(statement),
                value,
                link,
            }
        })
        .collect();
    if let Some(language) = first {
        lines.sort_by_key(|line| !is_in_language(line.language, language));
    }
    lines
}
