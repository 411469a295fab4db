//! Files over HTTP: ranges, validators, and every block verified before it is sent (RFC 9110).

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use ibi_http::Problem;
use ibi_http::descriptors::is_exhausted;
use ibi_store::digests::DIGEST_BLOCK_BYTES;
use ibi_store::index::FileRecord;
use ibi_store::{StorageError, VerifiedFile};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::item::unhex;

/// Blocks hashed concurrently.
const MAX_CONCURRENT_HASHES: usize = 4;

/// Blocks in memory that clients have not yet received.
const MAX_BUFFERED_BLOCKS: usize = 32;

/// Initial and maximum chunk size for a client while all buffered blocks are in use: the block is
/// verified again for each chunk. Fast clients get larger chunks; slow ones hold little memory.
const INITIAL_CHUNK_BYTES: usize = 16 << 10;
const MAX_CHUNK_BYTES: usize = 64 << 10;

/// A client that takes a chunk within this time is fast.
const FAST_CLIENT_TIMEOUT: Duration = Duration::from_millis(200);

/// Buffers kept for reuse.
const MAX_SPARE_BUFFERS: usize = 8;

/// The buffers and hashing permits shared by all downloads.
#[derive(Debug)]
pub(super) struct BlockPool {
    hashing: Arc<Semaphore>,
    held: Arc<Semaphore>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl BlockPool {
    pub(super) fn new() -> Self {
        Self {
            hashing: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            held: Arc::new(Semaphore::new(MAX_BUFFERED_BLOCKS)),
            spare: Arc::default(),
        }
    }

    /// Reads and verifies the start of a range: up to the end of its block, or `piece` bytes if all
    /// buffers are in use.
    async fn read_checked_block(
        self: Arc<Self>,
        file: Arc<VerifiedFile>,
        range: Range<u64>,
        piece: usize,
    ) -> io::Result<Bytes> {
        let hashing = Arc::clone(&self.hashing).acquire_owned().await.map_err(io::Error::other)?;
        let held = Arc::clone(&self.held).try_acquire_owned().ok();
        let read = move || {
            let _hashing = hashing;
            let mut buffer = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
            let number = range.start / DIGEST_BLOCK_BYTES as u64;
            let begin = number * DIGEST_BLOCK_BYTES as u64;
            let checked = file.read_block(number, &mut buffer);
            // The client may be slow: free the descriptor while it receives this block.
            file.release();
            checked.map_err(|error| match error {
                StorageError::Io { error, .. } if is_exhausted(&error) => error,
                error => {
                    tracing::error!(%error, "a damaged block was not served");
                    metrics::counter!("ibi_damaged_blocks_total").increment(1);
                    io::Error::other("damaged")
                }
            })?;
            // Both offsets are within a block, so the casts fit.
            let from = (range.start - begin) as usize;
            let to = (range.end - begin).min(buffer.len() as u64) as usize;
            let block = PooledBlock { bytes: buffer, spare: Arc::clone(&self.spare), _held: held };
            if block._held.is_none() {
                return Ok(Bytes::copy_from_slice(&block.bytes[from..to.min(from + piece)]));
            }
            Ok(Bytes::from_owner(block).slice(from..to))
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

/// A block that the client has not received yet.
struct PooledBlock {
    bytes: Vec<u8>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    _held: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for PooledBlock {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBlock {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.spare.lock()
            && spare.len() < MAX_SPARE_BUFFERS
        {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

type BlockFuture = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A range of a file, sent one block at a time.
struct FileBody {
    blocks: Arc<BlockPool>,
    file: Arc<VerifiedFile>,
    range: Range<u64>,
    /// Size limit of the next chunk, and when the last one was sent.
    piece: usize,
    given: Option<Instant>,
    next: Option<BlockFuture>,
}

impl FileBody {
    fn request_next_block(&mut self) {
        let at_once = self.given.is_some_and(|given| given.elapsed() < FAST_CLIENT_TIMEOUT);
        self.piece = if at_once { (self.piece * 2).min(MAX_CHUNK_BYTES) } else { INITIAL_CHUNK_BYTES };
        let (blocks, file) = (Arc::clone(&self.blocks), Arc::clone(&self.file));
        self.next = Some(Box::pin(blocks.read_checked_block(file, self.range.clone(), self.piece)));
    }
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        if self.range.is_empty() {
            return Poll::Ready(None);
        }
        // The client has received the previous block.
        if self.next.is_none() {
            self.request_next_block();
        }
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let bytes = ready!(next.as_mut().poll(cx));
        self.next = None;
        self.given = Some(Instant::now());
        match bytes {
            Ok(bytes) => {
                self.range.start += bytes.len() as u64;
                Poll::Ready(Some(Ok(http_body::Frame::data(bytes))))
            }
            Err(error) => {
                self.range.start = self.range.end;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.range.end - self.range.start)
    }
}

pub(super) struct ServedFile<'a> {
    pub(super) file: &'a FileRecord,
    pub(super) checked: VerifiedFile,
    /// When the item was last changed, in seconds since the Unix epoch.
    pub(super) changed: i64,
    /// The current time, likewise.
    pub(super) now: i64,
    /// Whether the file is public; if not, shared caches and other origins may not have it.
    pub(super) public: bool,
}

/// Serves a file or the requested range of it.
pub(super) async fn serve(
    blocks: &Arc<BlockPool>,
    served: ServedFile<'_>,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let ServedFile { file, checked, changed, now, public } = served;
    // A date cannot distinguish two versions from the same second (RFC 9110 §8.8.2.2), so it is
    // omitted until that second is over.
    let is_told = now > changed.saturating_add(1);
    let tag = format!("\"{}\"", file.sha512.get(..64).unwrap_or(&file.sha512));
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed.max(0).cast_unsigned());
    let mut headers = file_headers(file, &tag, is_told.then_some(changed), public);
    if let Some(status) = evaluate_conditions(asked, &tag, changed) {
        headers.remove(header::CONTENT_TYPE);
        if status == StatusCode::NOT_MODIFIED {
            // Otherwise it would be sent as 0: the length is that of the file not sent (RFC 9110
            // 8.6).
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(file.size));
        }
        return (status, headers).into_response();
    }
    // Ranges apply to GET only (RFC 9110 §14.2).
    let wanted =
        asked.get(header::RANGE).filter(|_| method == Method::GET && matches_if_range(asked, &tag, changed));
    let wanted = wanted.and_then(|range| range.to_str().ok()).and_then(|range| parse_range(range, file.size));
    let (status, range) = match wanted {
        None => (StatusCode::OK, 0..file.size),
        Some(None) => {
            let all = HeaderValue::from_str(&format!("bytes */{}", file.size));
            all.into_iter().for_each(|all| drop(headers.insert(header::CONTENT_RANGE, all)));
            return (StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response();
        }
        Some(Some(range)) => {
            let part = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size);
            let part = HeaderValue::from_str(&part);
            part.into_iter().for_each(|part| drop(headers.insert(header::CONTENT_RANGE, part)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
    };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if method == Method::HEAD {
        return (status, headers).into_response();
    }
    let mut going = FileBody {
        blocks: Arc::clone(blocks),
        file: Arc::new(checked),
        range,
        piece: INITIAL_CHUNK_BYTES,
        given: None,
        next: None,
    };
    if !going.range.is_empty() {
        going.request_next_block();
    }
    // Damage in the first block still sets the status; later, the response can only be cut off.
    if let Some(next) = going.next.take() {
        match next.await {
            Ok(bytes) => going.next = Some(Box::pin(async { Ok(bytes) })),
            Err(error) if is_exhausted(&error) => return Problem::too_many_open_files().into_response(),
            Err(_) => return damaged_file_response(),
        }
    }
    super::large_response::mark_accounted(
        (status, headers, Body::new(UnsyncBoxBody::new(going))).into_response(),
    )
}

pub(super) fn damaged_file_response() -> Response {
    let text = "this file is damaged and is not served; other Archives may have an intact copy\n";
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

/// Types that a browser may display inline without running code in this site's origin.
const INLINE_MEDIA_TYPES: [&str; 5] =
    ["application/pdf", "application/xml", "application/json", "text/", "image/"];

/// Types that browsers open in their own viewer or player, which a sandbox would block.
const UNSANDBOXED_MEDIA_TYPES: [&str; 4] = ["application/pdf", "image/", "audio/", "video/"];

/// Policy for deposited documents: no scripts, no origin, and no loading from other hosts, which
/// would reveal the reader to them.
const DEPOSITED_CONTENT_POLICY: &str = "sandbox allow-downloads allow-popups; \
     default-src 'self' data: blob:; style-src 'self' data: 'unsafe-inline'; script-src 'none'; \
     form-action 'none'; base-uri 'self'";

fn file_headers(file: &FileRecord, tag: &str, changed: Option<SystemTime>, public: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: header::HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(header::CONTENT_TYPE, &file.media);
    put(header::ETAG, tag);
    if let Some(changed) = changed {
        put(header::LAST_MODIFIED, &httpdate::fmt_http_date(changed));
    }
    put(header::ACCEPT_RANGES, "bytes");
    put(header::CACHE_CONTROL, if public { "no-cache" } else { "private, no-cache" });
    let digest = unhex(&file.sha512).map(|digest| base64::engine::general_purpose::STANDARD.encode(digest));
    if let Some(digest) = digest {
        put(header::HeaderName::from_static("repr-digest"), &format!("sha-512=:{digest}:"));
    }
    let shown =
        INLINE_MEDIA_TYPES.iter().chain(&["audio/", "video/"]).any(|kind| file.media.starts_with(kind));
    let raw = crate::store::decode_logical_path(&file.name);
    let name = raw.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    // Names that are not UTF-8 date from ISO 8859-1 (D23).
    let name = String::from_utf8(name.to_vec())
        .unwrap_or_else(|_| name.iter().map(|&byte| char::from(byte)).collect());
    let how = if shown { "inline" } else { "attachment" };
    put(
        header::CONTENT_DISPOSITION,
        &format!("{how}; filename*=UTF-8''{}", percent_encode(name.as_bytes(), NON_ALPHANUMERIC)),
    );
    // Threat W5: deposited content is isolated from our pages: no origin, no scripts.
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if !UNSANDBOXED_MEDIA_TYPES.iter().any(|kind| file.media.starts_with(kind)) || file.media.contains("svg")
    {
        put(header::CONTENT_SECURITY_POLICY, DEPOSITED_CONTENT_POLICY);
        // Not covered by the policy: DNS lookups of other hosts.
        put(header::HeaderName::from_static("x-dns-prefetch-control"), "off");
    }
    let others = if public { "cross-origin" } else { "same-origin" };
    put(header::HeaderName::from_static("cross-origin-resource-policy"), others);
    if public {
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        put(header::ACCESS_CONTROL_EXPOSE_HEADERS, "Accept-Ranges, Content-Range, ETag, Repr-Digest");
    }
    headers
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn header_time(headers: &HeaderMap, name: header::HeaderName) -> Option<SystemTime> {
    header_text(headers, name).and_then(|date| httpdate::parse_http_date(date).ok())
}

/// The status that ends a conditional request, in the order of RFC 9110 §13.2.2.
fn evaluate_conditions(asked: &HeaderMap, tag: &str, changed: SystemTime) -> Option<StatusCode> {
    let names = |list: &str, weak: bool| {
        let known = |given: &str| given == tag || (weak && given.strip_prefix("W/") == Some(tag));
        list.trim() == "*" || list.split(',').map(str::trim).any(known)
    };
    match header_text(asked, header::IF_MATCH) {
        Some(list) if !names(list, false) => return Some(StatusCode::PRECONDITION_FAILED),
        Some(_) => {}
        None => {
            if header_time(asked, header::IF_UNMODIFIED_SINCE).is_some_and(|since| changed > since) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        }
    }
    match header_text(asked, header::IF_NONE_MATCH) {
        Some(list) => names(list, true).then_some(StatusCode::NOT_MODIFIED),
        None => {
            let since = header_time(asked, header::IF_MODIFIED_SINCE);
            since.is_some_and(|since| changed <= since).then_some(StatusCode::NOT_MODIFIED)
        }
    }
}

/// Whether the file still matches the part that the client has (RFC 9110 §13.1.5).
fn matches_if_range(asked: &HeaderMap, tag: &str, changed: SystemTime) -> bool {
    match header_text(asked, header::IF_RANGE) {
        None => !asked.contains_key(header::IF_RANGE),
        Some(given) if given.starts_with('"') => given == tag,
        Some(given) => httpdate::parse_http_date(given).is_ok_and(|given| given == changed),
    }
}

/// One byte range; `Some(None)` if it is outside the file. Invalid and multiple ranges are ignored
/// (RFC 9110 §14.2).
fn parse_range(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that overflows is beyond the end of any file.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let range = match (first.is_empty(), last.is_empty()) {
        (true, _) => size.saturating_sub(number(last)?)..size,
        (false, true) => number(first)?..size,
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some((range.start < range.end).then_some(range))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        let read = |text: &str| parse_range(text, 100);
        assert_eq!(read("bytes=0-0"), Some(Some(0..1)));
        assert_eq!(read("bytes=10-19"), Some(Some(10..20)));
        assert_eq!(read("bytes=10-"), Some(Some(10..100)));
        assert_eq!(read("bytes=-10"), Some(Some(90..100)));
        assert_eq!(read("bytes=-1000"), Some(Some(0..100)));
        assert_eq!(read("Bytes=5-99999999999999999999999"), Some(Some(5..100)));
        for beyond in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(read(beyond), Some(None), "{beyond}");
        }
        for nothing in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-4",
            "lines=1-2",
            "bytes=0-1,2-3",
            "bytes=+1-2",
        ] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Some(None), "of nothing, nothing");
    }

    proptest! {
        #[test]
        fn any_range_lies_within_the_file(text in "(bytes=)?[-0-9, ]{0,24}", size in 0_u64..1000) {
            if let Some(Some(range)) = parse_range(&text, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }

    #[test]
    fn conditions_hold_in_the_order_of_rfc_9110() {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let (before, after) = (Duration::from_secs(60), Duration::from_secs(60));
        let date = |time| httpdate::fmt_http_date(time);
        let condition = |fields: &[(header::HeaderName, String)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            evaluate_conditions(&fields.collect(), "\"t\"", changed).map(|status| status.as_u16())
        };
        assert_eq!(condition(&[]), None);
        assert_eq!(condition(&[(header::IF_NONE_MATCH, "\"a\", W/\"t\"".into())]), Some(304));
        assert_eq!(condition(&[(header::IF_NONE_MATCH, "*".into())]), Some(304));
        assert_eq!(condition(&[(header::IF_NONE_MATCH, "\"a\"".into())]), None);
        assert_eq!(condition(&[(header::IF_MATCH, "\"a\"".into())]), Some(412));
        assert_eq!(condition(&[(header::IF_MATCH, "W/\"t\"".into())]), Some(412), "strong only");
        assert_eq!(condition(&[(header::IF_MATCH, "\"t\"".into())]), None);
        assert_eq!(condition(&[(header::IF_MODIFIED_SINCE, date(changed + after))]), Some(304));
        assert_eq!(condition(&[(header::IF_MODIFIED_SINCE, date(changed - before))]), None);
        assert_eq!(condition(&[(header::IF_UNMODIFIED_SINCE, date(changed - before))]), Some(412));
        let both =
            [(header::IF_NONE_MATCH, "\"a\"".into()), (header::IF_MODIFIED_SINCE, date(changed + after))];
        assert_eq!(condition(&both), None, "the tag decides");
    }
}
