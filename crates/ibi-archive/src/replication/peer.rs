//! HTTP client for another Archive (`docs/formats/holders.md`).

mod url;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};
use ibi_http::outgoing::{HttpClientError, StreamingClient, StreamingResponse};
use ibi_store::journal::State;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::item::ItemLabels;
use crate::replica::object_description::{ObjectDescription, state};
use crate::replica::object_validation::MAX_PEER_INVENTORY_BYTES;
use crate::replication::messages::TransferStatus;

/// Maximum size of a response body that is read into memory (a page of items, an object or a
/// message), and of a problem document.
const MAX_PEER_RESPONSE_BYTES: usize = 32 << 20;
const MAX_PEER_PROBLEM_BYTES: usize = 64 << 10;

/// Minimum transfer rate of a file, enforced after the grace period.
const MIN_PEER_BYTES_PER_SECOND: u64 = 1024;
const SLOW_PEER_GRACE_PERIOD: Duration = Duration::from_secs(60);

/// Attempts for a request that the peer's quota rejects, and the longest pause between two.
const MAX_RATE_LIMITED_TRIES: usize = 10;
const MAX_RATE_LIMIT_PAUSE: Duration = Duration::from_secs(60);

/// Maximum length of a problem title that is quoted from a peer.
const MAX_QUOTED_CHARS: usize = 120;

/// Labels and paths keep slashes and unreserved characters.
const PATH_ESCAPE_SET: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Another Archive.
#[derive(Clone)]
pub struct PeerArchive {
    url: String,
    token: Option<String>,
    client: StreamingClient,
    /// Maximum size of an inventory that is accepted from it.
    max_inventory_bytes: usize,
}

impl fmt::Debug for PeerArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "…");
        f.debug_struct("Peer").field("url", &self.url).field("token", &token).finish_non_exhaustive()
    }
}

/// Why a request to another Archive failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Not the URL of an Archive.
    #[error(
        "`{url}` is not the URL of an Archive: {why}. It looks like https://archive.example.org or http://192.0.2.7:8080"
    )]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A token with characters that no Archive issues.
    #[error(
        "the token for {url} has characters that no token has: give it as `ibi archive token create` printed it there"
    )]
    BadToken {
        /// The Archive.
        url: String,
    },
    /// The HTTP client cannot be created or used.
    #[error("{0}")]
    Client(String),
    /// No request was sent.
    #[error("{url}: {why}")]
    NotAsked {
        /// The URL as given.
        url: String,
        /// Why.
        why: String,
    },
    /// No response, or the connection broke.
    #[error("{url} does not answer: {why}. Is it online, and is this its address? Try again later")]
    Silent {
        /// The Archive.
        url: String,
        /// The network error.
        why: String,
    },
    /// The response is not that of an Archive.
    #[error(
        "{url} does not answer as an Archive does: {what}. Is this its address, and is its program as new as this one?"
    )]
    NotAnArchive {
        /// The URL of the request.
        url: String,
        /// The response.
        what: String,
    },
    /// The response is not that of a resolver.
    #[error(
        "{url} does not answer as a resolver does: {what}. Is this its address, and is its program as new as this one?"
    )]
    NotAResolver {
        /// The URL of the request.
        url: String,
        /// The response.
        what: String,
    },
    /// A token is valid for one Archive only.
    #[error("the copies come from {many} Archives, and a token is for one of them: name that one")]
    OneToken {
        /// The number of Archives.
        many: usize,
    },
    /// The list of items exceeds the limit.
    #[error(
        "{url} lists more than {most} such items: name fewer at a time, by a longer prefix or a later date"
    )]
    TooMany {
        /// The URL of the request.
        url: String,
        /// Maximum number of items.
        most: usize,
    },
    /// The request was refused.
    #[error("{url} refuses ({status}): {detail}")]
    Refused {
        /// The Archive.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The problem title.
        detail: String,
    },
    /// Not found.
    #[error("{url} has no such thing: {detail}")]
    Unknown {
        /// The Archive.
        url: String,
        /// The problem title.
        detail: String,
        /// The Archive that it was handed over to, if stated.
        given_to: Option<String>,
    },
    /// Gone: the item was removed there.
    #[error("{url} has it no longer: {detail}")]
    Gone {
        /// The Archive.
        url: String,
        /// The problem title.
        detail: String,
    },
    /// Authentication is required.
    #[error(
        "{url} asks for a token: {detail}. Its operator makes one with `ibi archive token create --role holder`"
    )]
    NeedsToken {
        /// The Archive.
        url: String,
        /// The problem title.
        detail: String,
    },
    /// The response exceeds the limit.
    #[error("response of {url} too large: more than {most} bytes; contact its operator")]
    TooLong {
        /// The Archive.
        url: String,
        /// Maximum number of bytes.
        most: u64,
    },
}

/// Items of another Archive, in order of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PeerItemPage {
    /// The items.
    pub items: Vec<PeerItem>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// An item in another Archive's list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PeerItem {
    /// The path of its object.
    pub path: String,
    /// Its state there.
    #[serde(with = "state")]
    pub state: State,
    /// Its version.
    pub version: u32,
    /// When it was last changed.
    pub updated: String,
}

/// Changes at another Archive, in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PeerChangePage {
    /// The last change of each item.
    pub changes: Vec<PeerChange>,
    /// Where the next page begins.
    pub next: u64,
    /// The number of the latest change overall.
    pub last: u64,
}

/// A change at another Archive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PeerChange {
    /// Its number there.
    pub change: u64,
    /// The labels of the item.
    pub item: ItemLabels,
    /// Its state there.
    #[serde(with = "state")]
    pub state: State,
    /// Its version.
    pub version: u32,
    /// How often its Original was handed over.
    pub epoch: u64,
    /// When it was last updated.
    pub updated: String,
    /// When the change happened there, independent of the item's own dates. Older programs omit it.
    #[serde(default)]
    pub time: Option<String>,
}

/// A file of an object that is being downloaded.
#[derive(Debug)]
pub struct PeerFileStream {
    url: String,
    answer: StreamingResponse,
    /// Offset of the first byte: 0, or the offset at which the download resumes.
    pub from: u64,
    since: Instant,
    came: u64,
}

impl PeerFileStream {
    /// The next chunk; `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, PeerError> {
        let piece = self.answer.next_chunk().await.map_err(|error| client_error(&self.url, error))?;
        self.came += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        if piece.is_some() && is_too_slow(self.since.elapsed(), self.came) {
            let why = format!("less than {MIN_PEER_BYTES_PER_SECOND} bytes a second came");
            return Err(PeerError::Silent { url: self.url.clone(), why });
        }
        Ok(piece)
    }
}

/// The pause that a peer requests when its quota is used up, if short enough to wait for.
fn retry_after(answer: &StreamingResponse) -> Option<Duration> {
    let after = answer
        .headers()
        .get(header::RETRY_AFTER)
        .filter(|_| answer.status() == StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = after?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|pause| *pause <= MAX_RATE_LIMIT_PAUSE)
}

impl PeerArchive {
    /// The Archive at `http://host[:port]` or `https://host[:port]`.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, PeerError> {
        let url =
            url::parse_base_url(url).map_err(|why| PeerError::Url { url: quote_untrusted(url), why })?;
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(PeerError::BadToken { url });
        }
        let client = StreamingClient::new().map_err(|error| PeerError::Client(error.to_string()))?;
        Ok(Self { url, token, client, max_inventory_bytes: MAX_PEER_INVENTORY_BYTES })
    }

    /// Limits inventories to this size, and at most [`MAX_PEER_INVENTORY_BYTES`]. Descriptions may
    /// be twice as long.
    #[must_use]
    pub fn with_max_inventory(self, bytes: usize) -> Self {
        Self { max_inventory_bytes: bytes.min(MAX_PEER_INVENTORY_BYTES), ..self }
    }

    /// Maximum size of an inventory that is accepted from it.
    pub fn max_inventory_bytes(&self) -> usize {
        self.max_inventory_bytes
    }

    /// Its URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The object of an item.
    pub async fn describe_object(&self, label: &str) -> Result<ObjectDescription, PeerError> {
        let held: ObjectDescription = self.json(&format!("/items/{}/object", encode_path(label))).await?;
        held.check().map_err(|what| self.not_an_archive(what))?;
        Ok(held)
    }

    /// [`Self::describe_object`] with a timeout.
    pub async fn describe_object_within(
        &self,
        patience: Duration,
        label: &str,
    ) -> Result<ObjectDescription, PeerError> {
        tokio::time::timeout(patience, self.describe_object(label)).await.unwrap_or_else(|_| {
            let why = format!("no data for {} s", patience.as_secs());
            Err(PeerError::Silent { url: self.url.clone(), why })
        })
    }

    /// Downloads a file of an object. To resume, pass the length of the partial file and the
    /// SHA-512 of the whole. The stream continues there if the file is unchanged, and starts over
    /// otherwise.
    pub async fn file(
        &self,
        label: &str,
        file: &str,
        part: Option<(u64, &str)>,
    ) -> Result<PeerFileStream, PeerError> {
        let url = self.api_url(&format!("/items/{}/object/{}", encode_path(label), encode_path(file)));
        let mut headers: Vec<(HeaderName, String)> = Vec::new();
        let part = part.filter(|(from, _)| *from > 0);
        if let Some((from, sha512)) = part {
            headers.push((header::RANGE, format!("bytes={from}-")));
            headers.push((header::IF_RANGE, format!("\"{}\"", sha512.get(..64).unwrap_or(sha512))));
        }
        let answer = self.client.get(&url, self.token.as_deref(), &headers).await;
        let answer = answer.map_err(|error| client_error(&self.url, error))?;
        let from = match answer.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT => {
                let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
                let first: Option<u64> =
                    range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
                match (first, part) {
                    (Some(first), Some((from, _))) if first == from => from,
                    _ => return Err(self.not_an_archive("a range that was not requested".to_owned())),
                }
            }
            // The partial file is complete or too long: only a full download can tell.
            StatusCode::RANGE_NOT_SATISFIABLE if part.is_some() => {
                return Box::pin(self.file(label, file, None)).await;
            }
            _ => return Err(self.response_error(answer).await),
        };
        Ok(PeerFileStream { url: self.url.clone(), answer, from, since: Instant::now(), came: 0 })
    }

    /// Reads JSON at a path below an item's API address.
    pub(crate) async fn item_json<T: DeserializeOwned>(
        &self,
        label: &str,
        what: &str,
    ) -> Result<T, PeerError> {
        self.json(&format!("/items/{}/{what}", encode_path(label))).await
    }

    /// The status of a transfer for which that Archive is the giver.
    pub async fn transfer_status(&self, label: &str, handover: &str) -> Result<TransferStatus, PeerError> {
        self.json(&format!("/items/{}/handover?name={handover}", encode_path(label))).await
    }

    /// A page of its items in order of path, after one.
    pub async fn list(&self, after: &str) -> Result<PeerItemPage, PeerError> {
        let after = utf8_percent_encode(after, NON_ALPHANUMERIC);
        self.json(&format!("/items?limit=1000&after={after}")).await
    }

    /// A page of its changes, after a change number.
    pub async fn changes(&self, after: u64) -> Result<PeerChangePage, PeerError> {
        self.json(&format!("/changes?limit=1000&after={after}")).await
    }

    /// The Archives registered there, if it is a resolver.
    pub(crate) async fn archives<T: DeserializeOwned>(&self) -> Result<T, PeerError> {
        self.json("/archives").await
    }

    /// How a resolver arrives at its answer about an item.
    pub async fn explain<T: DeserializeOwned>(&self, label: &str) -> Result<T, PeerError> {
        let label = utf8_percent_encode(label, NON_ALPHANUMERIC);
        self.json(&format!("/resolve?url={label}&explain=true")).await
    }

    /// A resolver's answer when the Original is required. With `explain`, it includes each
    /// Archive's response.
    pub async fn resolve_original<T: DeserializeOwned>(
        &self,
        label: &str,
        explain: bool,
    ) -> Result<T, PeerError> {
        let url = format!("{label}?ibiurl.requireditemstatus=Original");
        let url = utf8_percent_encode(&url, NON_ALPHANUMERIC);
        self.json(&format!("/resolve?url={url}&explain={explain}")).await
    }

    /// Posts a message to a path below `/api/v1`.
    pub async fn post(&self, path: &str, message: &impl Serialize) -> Result<serde_json::Value, PeerError> {
        let not_json =
            |error: serde_json::Error| PeerError::Client(format!("cannot tell {}: {error}", self.url));
        let message = serde_json::to_vec(message).map_err(not_json)?;
        let answer = self.client.post(&self.api_url(path), self.token.as_deref(), message).await;
        self.parse_response(answer).await
    }

    async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, PeerError> {
        let mut tries = 1;
        loop {
            let answer = self.client.get(&self.api_url(path), self.token.as_deref(), &[]).await;
            match answer.as_ref().ok().and_then(retry_after).filter(|_| tries < MAX_RATE_LIMITED_TRIES) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return self.parse_response(answer).await,
            }
            tries += 1;
        }
    }

    async fn parse_response<T: DeserializeOwned>(
        &self,
        answer: Result<StreamingResponse, HttpClientError>,
    ) -> Result<T, PeerError> {
        let answer = answer.map_err(|error| client_error(&self.url, error))?;
        if !answer.status().is_success() {
            return Err(self.response_error(answer).await);
        }
        let bytes =
            answer.read_all(MAX_PEER_RESPONSE_BYTES).await.map_err(|error| client_error(&self.url, error))?;
        let read = serde_json::from_slice(if bytes.is_empty() { b"null" } else { &bytes[..] });
        // Report the position, never the content: the body is untrusted.
        let place = |error: serde_json::Error| format!("line {}, column {}", error.line(), error.column());
        read.map_err(|error| {
            self.not_an_archive(format!("what it says is not understood ({})", place(error)))
        })
    }

    /// Maps an unexpected response to an error.
    async fn response_error(&self, answer: StreamingResponse) -> PeerError {
        #[derive(Deserialize)]
        struct PeerProblem {
            #[serde(rename = "type")]
            kind: String,
            title: String,
            #[serde(default)]
            given_to: Option<String>,
        }
        let (url, status) = (self.url.clone(), answer.status());
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_problem = kind.is_some_and(|kind| kind.starts_with("application/problem+json"));
        if status.is_redirection() {
            return self.not_an_archive(format!("redirected ({})", status.as_u16()));
        }
        let bytes = match answer.read_all(MAX_PEER_PROBLEM_BYTES).await {
            Ok(bytes) => bytes,
            Err(error) => return client_error(&url, error),
        };
        // The body is untrusted: only the kind of problem (RFC 9457) is passed on.
        let problem = serde_json::from_slice::<PeerProblem>(&bytes).ok().filter(|_| is_problem);
        let problem = problem.filter(|problem| problem.kind.starts_with("urn:ibi:problem:"));
        let (detail, moved) = match problem {
            Some(PeerProblem { title, given_to, .. }) => {
                let moved = given_to.and_then(|to| url::parse_base_url(&to).ok());
                let to = moved.as_ref().map(|to| format!(", it was transferred to {to}"));
                (quote_untrusted(&title) + &to.unwrap_or_default(), moved)
            }
            // A damaged file, or a proxy in front of an Archive that is restarting.
            None if status == StatusCode::INTERNAL_SERVER_ERROR => {
                ("server error, see its log".to_owned(), None)
            }
            None if status.is_server_error() => ("without a reason".to_owned(), None),
            None => return self.not_an_archive(format!("{} without a reason", status.as_u16())),
        };
        match status {
            StatusCode::NOT_FOUND => PeerError::Unknown { url, detail, given_to: moved },
            StatusCode::GONE => PeerError::Gone { url, detail },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => PeerError::NeedsToken { url, detail },
            _ => PeerError::Refused { url, status: status.as_u16(), detail },
        }
    }

    fn api_url(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.url)
    }

    pub(crate) fn not_an_archive(&self, what: String) -> PeerError {
        PeerError::NotAnArchive { url: self.url.clone(), what }
    }
}

fn client_error(url: &str, error: HttpClientError) -> PeerError {
    let url = url.to_owned();
    match error {
        HttpClientError::Client(why) => PeerError::Client(why),
        HttpClientError::Refused(why) => PeerError::NotAsked { url, why },
        HttpClientError::Silent(why) => PeerError::Silent { url, why },
        HttpClientError::Certificate(_) => PeerError::NotAsked { url, why: error.to_string() },
        HttpClientError::TooLong { most } => PeerError::TooLong { url, most: most as u64 },
    }
}

/// Whether a download is too slow to continue. What has arrived is kept, so a retry resumes.
fn is_too_slow(time: Duration, bytes: u64) -> bool {
    time > SLOW_PEER_GRACE_PERIOD && bytes < time.as_secs().saturating_mul(MIN_PEER_BYTES_PER_SECOND)
}

fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH_ESCAPE_SET).to_string()
}

/// Untrusted text, truncated and without terminal control characters.
fn quote_untrusted(words: &str) -> String {
    words.chars().take(MAX_QUOTED_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_and_is_one_word() {
        let peer = PeerArchive::new("http://a.example", Some("ibi_secret".to_owned())).unwrap();
        assert_eq!(format!("{peer:?}"), "Peer { url: \"http://a.example\", token: Some(\"…\"), .. }");
        for bad in ["", "a b", "a\r\nHost: b", "ü"] {
            let error = PeerArchive::new("http://a.example", Some(bad.to_owned())).unwrap_err();
            assert!(matches!(error, PeerError::BadToken { .. }), "{bad}");
        }
    }

    #[test]
    fn a_drip_is_not_waited_for() {
        let is = |seconds, bytes| is_too_slow(Duration::from_secs(seconds), bytes);
        assert!(!is(59, 0) && is(61, 100) && is(3600, 3600) && !is(3600, 4 << 20));
    }

    #[test]
    fn words_of_strangers_stay_words() {
        assert_eq!(quote_untrusted("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(quote_untrusted(&"x".repeat(1000)).len(), MAX_QUOTED_CHARS);
    }
}
