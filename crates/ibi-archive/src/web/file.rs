//! Files over HTTP: ranges, validators, and every block checked before it leaves (RFC 9110).

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
use ibi_store::Checked;
use ibi_store::digests::BLOCK;
use ibi_store::records::FileRecord;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::item::unhex;

/// Blocks that are hashed at a time.
const HASHING: usize = 4;

/// Blocks in memory, waiting for clients to take them.
const HELD: usize = 64;

/// What a client gets at a time when those are all held by others, at first and at most: the block is checked again for each
/// piece. One that takes its pieces at once gets larger ones; one that is slow holds little.
const PIECE: usize = 16 << 10;
const LARGEST_PIECE: usize = 64 << 10;

/// Who takes a piece within this time takes it at once.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Buffers that are kept for the next.
const SPARE: usize = 32;

/// The memory and the hashing that all downloads share.
#[derive(Debug)]
pub(super) struct Blocks {
    hashing: Arc<Semaphore>,
    held: Arc<Semaphore>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Self {
            hashing: Arc::new(Semaphore::new(HASHING)),
            held: Arc::new(Semaphore::new(HELD)),
            spare: Arc::default(),
        }
    }

    /// Some bytes of a file from a place on, checked.
    async fn next(self: Arc<Self>, file: Arc<Checked>, range: Range<u64>, piece: usize) -> io::Result<Bytes> {
        let hashing = Arc::clone(&self.hashing).acquire_owned().await.map_err(io::Error::other)?;
        let held = Arc::clone(&self.held).try_acquire_owned().ok();
        let read = move || {
            let _hashing = hashing;
            let mut buffer = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
            let number = range.start / BLOCK as u64;
            let begin = number * BLOCK as u64;
            file.block(number, &mut buffer).map_err(|error| {
                tracing::error!(%error, "a damaged block was not given out");
                metrics::counter!("ibi_damaged_blocks_total").increment(1);
                io::Error::other("damaged")
            })?;
            // Within a block: both fit.
            let from = (range.start - begin) as usize;
            let to = (range.end - begin).min(buffer.len() as u64) as usize;
            let block = Held { bytes: buffer, spare: Arc::clone(&self.spare), _held: held };
            if block._held.is_none() {
                return Ok(Bytes::copy_from_slice(&block.bytes[from..to.min(from + piece)]));
            }
            Ok(Bytes::from_owner(block).slice(from..to))
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

/// A block that a client has not taken yet.
struct Held {
    bytes: Vec<u8>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    _held: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.spare.lock()
            && spare.len() < SPARE
        {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

type Next = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A range of a file, on its way: one block at a time.
struct Going {
    blocks: Arc<Blocks>,
    file: Arc<Checked>,
    range: Range<u64>,
    /// How large the next piece may be, and when the last one was given.
    piece: usize,
    given: Option<Instant>,
    next: Option<Next>,
}

impl Going {
    fn ask(&mut self) {
        let at_once = self.given.is_some_and(|given| given.elapsed() < AT_ONCE);
        self.piece = if at_once { (self.piece * 2).min(LARGEST_PIECE) } else { PIECE };
        let (blocks, file) = (Arc::clone(&self.blocks), Arc::clone(&self.file));
        self.next = Some(Box::pin(blocks.next(file, self.range.clone(), self.piece)));
    }
}

impl HttpBody for Going {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        if self.range.is_empty() {
            return Poll::Ready(None);
        }
        // The client has taken what it got.
        if self.next.is_none() {
            self.ask();
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

/// A file to be served.
pub(super) struct Served<'a> {
    pub(super) file: &'a FileRecord,
    pub(super) checked: Checked,
    /// When its item was last changed, in seconds since the Unix epoch.
    pub(super) changed: i64,
    /// Now, likewise.
    pub(super) now: i64,
    /// Whether it is open to all: else it is nobody's to pass on.
    pub(super) public: bool,
}

/// Serves a file, or the part of it that is asked for.
pub(super) async fn serve(
    blocks: &Arc<Blocks>,
    served: Served<'_>,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let Served { file, checked, changed, now, public } = served;
    // Of two versions of one second a date tells nothing (RFC 9110 §8.8.2.2): nobody gets it before that second is over.
    let is_told = now > changed.saturating_add(1);
    let tag = format!("\"{}\"", file.sha512.get(..64).unwrap_or(&file.sha512));
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed.max(0).cast_unsigned());
    let mut headers = describe(file, &tag, is_told.then_some(changed), public);
    if let Some(status) = condition(asked, &tag, changed) {
        headers.remove(header::CONTENT_TYPE);
        if status == StatusCode::NOT_MODIFIED {
            // Else it would be said to be 0: the length is that of the file that is not sent (RFC
            // 9110 8.6).
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(file.size));
        }
        return (status, headers).into_response();
    }
    // Ranges are for GET (RFC 9110 §14.2).
    let wanted = asked.get(header::RANGE).filter(|_| method == Method::GET && is_still(asked, &tag, changed));
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
    let mut going = Going {
        blocks: Arc::clone(blocks),
        file: Arc::new(checked),
        range,
        piece: PIECE,
        given: None,
        next: None,
    };
    if !going.range.is_empty() {
        going.ask();
    }
    // Damage in the first block is told in time; later, all that is left is to cut the answer off.
    if let Some(next) = going.next.take() {
        match next.await {
            Ok(bytes) => going.next = Some(Box::pin(async { Ok(bytes) })),
            Err(_) => return damaged(),
        }
    }
    (status, headers, Body::new(UnsyncBoxBody::new(going))).into_response()
}

pub(super) fn damaged() -> Response {
    let text = "this file is damaged here, and is not given out; other holders may have it whole\n";
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

/// Types that a browser shows without running anything of ours or of theirs in our name.
const SHOWN: [&str; 5] = ["application/pdf", "application/xml", "application/json", "text/", "image/"];

/// Types that browsers show in a player or a viewer of their own, which a sandbox would shut out.
const PLAYED: [&str; 4] = ["application/pdf", "image/", "audio/", "video/"];

fn describe(file: &FileRecord, tag: &str, changed: Option<SystemTime>, public: bool) -> HeaderMap {
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
    let shown = SHOWN.iter().chain(&["audio/", "video/"]).any(|kind| file.media.starts_with(kind));
    let raw = crate::keep::raw(&file.name);
    let name = raw.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    // What is no UTF-8 is from the days of ISO 8859-1 (D23).
    let name = String::from_utf8(name.to_vec())
        .unwrap_or_else(|_| name.iter().map(|&byte| char::from(byte)).collect());
    let how = if shown { "inline" } else { "attachment" };
    put(
        header::CONTENT_DISPOSITION,
        &format!("{how}; filename*=UTF-8''{}", percent_encode(name.as_bytes(), NON_ALPHANUMERIC)),
    );
    // Threat W5: whatever was deposited is a stranger to our own pages: of no origin, and without scripts.
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if !PLAYED.iter().any(|kind| file.media.starts_with(kind)) || file.media.contains("svg") {
        put(header::CONTENT_SECURITY_POLICY, "sandbox allow-downloads allow-popups");
    }
    let others = if public { "cross-origin" } else { "same-origin" };
    put(header::HeaderName::from_static("cross-origin-resource-policy"), others);
    if public {
        put(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        put(header::ACCESS_CONTROL_EXPOSE_HEADERS, "Accept-Ranges, Content-Range, ETag, Repr-Digest");
    }
    headers
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn time(headers: &HeaderMap, name: header::HeaderName) -> Option<SystemTime> {
    text(headers, name).and_then(|date| httpdate::parse_http_date(date).ok())
}

/// What conditions end the request with, in the order of RFC 9110 §13.2.2.
fn condition(asked: &HeaderMap, tag: &str, changed: SystemTime) -> Option<StatusCode> {
    let names = |list: &str, weak: bool| {
        let known = |given: &str| given == tag || (weak && given.strip_prefix("W/") == Some(tag));
        list.trim() == "*" || list.split(',').map(str::trim).any(known)
    };
    match text(asked, header::IF_MATCH) {
        Some(list) if !names(list, false) => return Some(StatusCode::PRECONDITION_FAILED),
        Some(_) => {}
        None => {
            if time(asked, header::IF_UNMODIFIED_SINCE).is_some_and(|since| changed > since) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        }
    }
    match text(asked, header::IF_NONE_MATCH) {
        Some(list) => names(list, true).then_some(StatusCode::NOT_MODIFIED),
        None => {
            let since = time(asked, header::IF_MODIFIED_SINCE);
            since.is_some_and(|since| changed <= since).then_some(StatusCode::NOT_MODIFIED)
        }
    }
}

/// Whether the file is still what a client has a part of (RFC 9110 §13.1.5).
fn is_still(asked: &HeaderMap, tag: &str, changed: SystemTime) -> bool {
    match text(asked, header::IF_RANGE) {
        None => !asked.contains_key(header::IF_RANGE),
        Some(given) if given.starts_with('"') => given == tag,
        Some(given) => httpdate::parse_http_date(given).is_ok_and(|given| given == changed),
    }
}

/// One range of bytes; `Some(None)` if it lies outside. What is not understood, and more than one range, is as if it were
/// not there (RFC 9110 §14.2).
fn parse_range(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Beyond all sizes is beyond this one.
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
            condition(&fields.collect(), "\"t\"", changed).map(|status| status.as_u16())
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
