//! Lists of an item's files.

use std::borrow::Cow;
use std::sync::Arc;

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::Response;
use ibi_store::index::FileRecord;

use super::words::{ArchivePageTexts, PageLanguage, words};
use super::{ITEM_PAGE_FILES, html_page, item_name, render_page};
use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::item::ItemLabels;
use crate::service::address;
use crate::web::large_response::{FileRows, FileStream};
use crate::web::site::ArchiveSite;

/// A file in a list.
#[derive(Default)]
pub(super) struct FileLine {
    pub(super) to: String,
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) media: String,
    pub(super) sha512: String,
}

#[derive(Template)]
#[template(path = "files.html")]
struct FilesPage<'a> {
    words: &'a ArchivePageTexts,
    title: Cow<'a, str>,
    item: &'a HeldItem,
    to: String,
    metadata: String,
    open: bool,
    files: Vec<FileLine>,
}

/// Rows of a file list.
#[derive(Template)]
#[template(path = "filerows.html")]
struct FileRowsPart {
    files: Vec<FileLine>,
}

/// The list of an item's files, or a notice that they are closed.
pub(in crate::web) fn files(
    holdings: &Holdings,
    holding: &HeldItem,
    open: bool,
    language: PageLanguage,
) -> Result<Response, ArchiveError> {
    let files = if open { file_lines(holdings, holding, usize::MAX)? } else { Vec::new() };
    Ok(files_page(StatusCode::OK, holding, open, files, language))
}

/// The list of many files, streamed.
pub(in crate::web) fn streamed_files(
    site: &Arc<ArchiveSite>,
    holding: &HeldItem,
    language: PageLanguage,
) -> Response {
    // Values are escaped, so this empty row occurs only once.
    let row = FileLine::default();
    let page = files_template(holding, true, vec![row], language).render();
    let row = FileRowsPart { files: vec![FileLine::default()] }.render();
    let (Ok(page), Ok(row)) = (page, row) else { return html_page(None) };
    let Some((before, after)) = page.split_once(&row) else { return html_page(None) };
    let rows = HtmlRows { labels: holding.item.labels.clone() };
    let stream = FileStream::new(site, holding, (before.to_owned().into(), after.to_owned().into()), rows);
    let stream = stream.into_response();
    let (mut parts, _) = html_page(Some(String::new())).into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let (streamed, body) = stream.into_parts();
    parts.extensions = streamed.extensions;
    Response::from_parts(parts, body)
}

/// The response to a client without access to the files: 403, with a link to the metadata.
pub(in crate::web) fn closed(holding: &HeldItem, language: PageLanguage) -> Response {
    files_page(StatusCode::FORBIDDEN, holding, false, Vec::new(), language)
}

/// Files as rows of an HTML table.
struct HtmlRows {
    labels: ItemLabels,
}

impl FileRows for HtmlRows {
    fn rows(&self, files: Vec<FileRecord>, _: bool) -> Vec<u8> {
        let files = files.into_iter().map(|file| file_line(&self.labels, file)).collect();
        FileRowsPart { files }.render().unwrap_or_default().into_bytes()
    }
}

fn files_page(
    status: StatusCode,
    holding: &HeldItem,
    open: bool,
    files: Vec<FileLine>,
    language: PageLanguage,
) -> Response {
    render_page(status, &files_template(holding, open, files, language))
}

fn files_template(
    holding: &HeldItem,
    open: bool,
    files: Vec<FileLine>,
    language: PageLanguage,
) -> FilesPage<'_> {
    FilesPage {
        words: words(language),
        title: item_name(holding, open).0,
        item: holding,
        to: address::item_page_path(&holding.item.labels),
        metadata: address::item_page_path(&holding.item.metadata),
        open,
        files,
    }
}

/// The first `most` files of an item.
pub(super) fn file_lines(
    holdings: &Holdings,
    holding: &HeldItem,
    most: usize,
) -> Result<Vec<FileLine>, ArchiveError> {
    let labels = &holding.item.labels;
    let (mut lines, mut after) = (Vec::new(), String::new());
    while lines.len() < most {
        let page = holdings.files(&holding.path, &after, ITEM_PAGE_FILES)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.name);
        lines.extend(page.into_iter().map(|file| file_line(labels, file)));
    }
    lines.truncate(most);
    Ok(lines)
}

fn file_line(labels: &ItemLabels, file: FileRecord) -> FileLine {
    FileLine {
        to: address::item_file_path(labels, &file.name),
        name: String::from_utf8_lossy(&crate::store::decode_logical_path(&file.name)).into_owned(),
        size: file.size,
        media: file.media,
        sha512: file.sha512,
    }
}
