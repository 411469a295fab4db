//! Large responses: built within the memory budget, on other threads than the small ones, and sent
//! in chunks.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use ibi_http::Problem;
use ibi_http::memory::{hold_response, with_client_network};
use ibi_store::index::{FileRecord, LabelRole};

use crate::ArchiveError;
use crate::archive::{HeldItem, Holdings};
use crate::item_view::ItemView;
use crate::web::site::{ArchiveSite, problem};

/// Memory to read, render and send metadata, as a multiple of their size.
pub(super) const METADATA_MEMORY_FACTOR: u64 = 8;

/// The files of an item with more are streamed.
pub(super) const MAX_UNSTREAMED_FILES: usize = 200;

const FILES_PER_CHUNK: usize = 200;

/// Memory for the page of an item with many files.
pub(super) const FILES_PAGE_BYTES: u64 = 2 << 20;

/// Larger responses hold a memory grant until they are received.
const LARGE_RESPONSE_BYTES: u64 = 32 << 10;

/// Marks a response whose body is not in memory, or already has a grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryAccounted;

/// Builds a response on another thread, with a memory grant of `bytes`.
pub(super) async fn answer_with_grant(
    site: &Arc<ArchiveSite>,
    bytes: u64,
    work: impl FnOnce(&Arc<ArchiveSite>) -> Result<Response, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let grant = site.desk.grant(bytes).await?;
    let at = Arc::clone(site);
    let (made, grant) = site.desk.memory().run(grant, move || work(&at)).await?;
    let response = made?;
    if response.extensions().get::<MemoryAccounted>().is_some() {
        return Ok(response);
    }
    Ok(mark_accounted(hold_response(response, grant).await))
}

pub(super) fn mark_accounted(mut response: Response) -> Response {
    response.extensions_mut().insert(MemoryAccounted);
    response
}

/// Gives every large response a memory grant: clients that do not read theirs together hold no more
/// than the budget.
pub(super) async fn account_memory(
    State(site): State<Arc<ArchiveSite>>,
    request: Request,
    next: Next,
) -> Response {
    let client = site.client_address(&request);
    with_client_network(client, answer_within_budget(site, request, next)).await
}

async fn answer_within_budget(site: Arc<ArchiveSite>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.run(request).await;
    let size = response.body().size_hint().lower();
    if size <= LARGE_RESPONSE_BYTES || response.extensions().get::<MemoryAccounted>().is_some() {
        return response;
    }
    match site.desk.try_grant(size) {
        Some(grant) => hold_response(response, grant).await,
        // What was asked for is done: who is told to try again would do it twice.
        None if !is_read && response.status().is_success() => short_response(&response),
        None => memory_busy_problem().into_response(),
    }
}

/// The response to a change, without what there is no memory to show: where it is.
fn short_response(response: &Response) -> Response {
    let location = response.headers().get(header::LOCATION).cloned();
    let id = location.as_ref().and_then(|to| to.to_str().ok()?.rsplit('/').next());
    let mut short = (response.status(), axum::Json(serde_json::json!({ "id": id }))).into_response();
    short.headers_mut().extend(location.map(|to| (header::LOCATION, to)));
    short
}

/// Memory to show the metadata of an item; 0 if they are short.
pub(super) fn metadata_bytes(holdings: &Holdings, holding: &HeldItem) -> Result<u64, Problem> {
    if !holding.metadata.is_not_loaded() {
        return Ok(0);
    }
    let size = holdings.metadata_size(&holding.path).map_err(|error| problem(&error))?;
    Ok(size * METADATA_MEMORY_FACTOR)
}

/// Formats files as rows of a response.
pub(super) trait FileRows: Send + Sync + 'static {
    /// The rows of some files; `first` if none came before.
    fn rows(&self, files: Vec<FileRecord>, first: bool) -> Vec<u8>;
}

/// Files as elements of a JSON array.
pub(super) struct JsonRows;

impl FileRows for JsonRows {
    fn rows(&self, files: Vec<FileRecord>, first: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for (at, file) in files.into_iter().enumerate() {
            if !first || at > 0 {
                text.push(b',');
            }
            // Strings and a number only: serialization cannot fail.
            text.extend(serde_json::to_vec(&crate::item_view::FileView::from(file)).unwrap_or_default());
        }
        text
    }
}

/// An item with many files as JSON, streamed.
pub(super) fn streamed_item_response(
    site: &Arc<ArchiveSite>,
    holdings: &Holdings,
    holding: &HeldItem,
    role: LabelRole,
    warnings: Vec<String>,
) -> Result<Response, Problem> {
    let failed = |error: ArchiveError| problem(&error);
    let told = ItemView::without_files(holding, role).with_history(holdings, holding).map_err(failed)?;
    let told = ItemView { warnings, ..told };
    let text = serde_json::to_string(&told).unwrap_or_default();
    // Quotes in values are escaped, so this occurs only once.
    let files = "\"files\":[";
    let at = text.find(&format!("{files}]")).ok_or_else(Problem::internal)? + files.len();
    let (before, after) = text.split_at(at);
    let (before, after) = (hold_text(site, before)?, hold_text(site, after)?);
    let mut response = FileStream::new(site, holding, (before, after), JsonRows).into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// A text held in memory until it is sent; a long one gets a memory grant.
fn hold_text(site: &ArchiveSite, text: &str) -> Result<Bytes, Problem> {
    let size = text.len() as u64;
    if size <= LARGE_RESPONSE_BYTES {
        return Ok(text.to_owned().into());
    }
    let grant = site.desk.try_grant(size).ok_or_else(memory_busy_problem)?;
    Ok(grant.hold_bytes(text.as_bytes().to_vec()))
}

fn memory_busy_problem() -> Problem {
    Problem::unavailable("too many large responses in progress; retry")
}

type FileRowsFuture = Pin<Box<dyn Future<Output = io::Result<(Bytes, Option<String>)>> + Send>>;

/// Streams the files of an item in chunks, between two texts. A change to the item cuts the stream
/// off, so that a response never mixes two versions.
pub(super) struct FileStream {
    site: Arc<ArchiveSite>,
    path: String,
    version: u32,
    rows: Arc<dyn FileRows>,
    before: Option<Bytes>,
    /// The name of the last file sent; `None` after the final chunk.
    last: Option<String>,
    is_first: bool,
    next: Option<FileRowsFuture>,
    after: Option<Bytes>,
}

impl FileStream {
    pub(super) fn new(
        site: &Arc<ArchiveSite>,
        holding: &HeldItem,
        (before, after): (Bytes, Bytes),
        rows: impl FileRows,
    ) -> Self {
        Self {
            site: Arc::clone(site),
            path: holding.path.clone(),
            version: holding.version,
            rows: Arc::new(rows),
            before: Some(before),
            last: Some(String::new()),
            is_first: true,
            next: None,
            after: Some(after),
        }
    }

    pub(super) fn into_response(self) -> Response {
        mark_accounted(Response::new(Body::new(UnsyncBoxBody::new(self))))
    }

    /// The rows of the files after `after`, and the last name if more may follow.
    fn read_file_rows(&self, after: String) -> FileRowsFuture {
        let (site, path, version) = (Arc::clone(&self.site), self.path.clone(), self.version);
        let (rows, is_first) = (Arc::clone(&self.rows), self.is_first);
        Box::pin(async move {
            let read = move |site: &Arc<ArchiveSite>| {
                let holdings = site.desk.read()?;
                if holdings.item_bare(&path)?.version != version {
                    return Err(ArchiveError::Changed { label: path });
                }
                let files = holdings.files(&path, &after, FILES_PER_CHUNK)?;
                let last =
                    files.last().filter(|_| files.len() == FILES_PER_CHUNK).map(|file| file.name.clone());
                Ok((rows.rows(files, is_first), last))
            };
            let at = Arc::clone(&site);
            let read = site
                .desk
                .memory()
                .run_queued(move || read(&at))
                .await
                .map_err(|_| io::Error::other("it cannot be read"))?;
            let (text, last) = read.map_err(io::Error::other)?;
            Ok((text.into(), last))
        })
    }
}

impl HttpBody for FileStream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        if let Some(before) = self.before.take() {
            return Poll::Ready(Some(Ok(http_body::Frame::data(before))));
        }
        if self.next.is_none()
            && let Some(last) = self.last.take()
        {
            self.next = Some(self.read_file_rows(last));
        }
        let Some(next) = &mut self.next else {
            return Poll::Ready(self.after.take().map(|after| Ok(http_body::Frame::data(after))));
        };
        let read = ready!(next.as_mut().poll(cx));
        self.next = None;
        self.is_first = false;
        match read {
            Ok((text, last)) => {
                self.last = last;
                Poll::Ready(Some(Ok(http_body::Frame::data(text))))
            }
            Err(error) => {
                tracing::warn!(%error, path = %self.path, "a list of files was cut off");
                self.after = None;
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}
