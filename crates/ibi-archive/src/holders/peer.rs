//! Another Archive, asked over HTTP (`docs/formats/holders.md`).

mod url;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, StatusCode, header};
use ibi_http::outgoing::{Answer, AskError, Patient};
use ibi_store::journal::State;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::holders::held::{Held, state};
use crate::holders::messages::Standing;
use crate::item::Labels;

/// Bytes of an answer that is read whole: what a page of items, an object or a message may have, and a problem.
const LONGEST: usize = 32 << 20;
const LONGEST_PROBLEM: usize = 64 << 10;

/// Bytes of a file a second, at least, and the time from which on that is asked.
const SLOWEST: u64 = 1024;
const GRACE: Duration = Duration::from_secs(60);

/// Characters of a stranger's words that are told on.
const TOLD: usize = 500;

/// Labels and paths keep their slashes and what needs no escape.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Another Archive.
#[derive(Clone)]
pub struct Peer {
    url: String,
    token: Option<String>,
    client: Patient,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "…");
        f.debug_struct("Peer").field("url", &self.url).field("token", &token).finish_non_exhaustive()
    }
}

/// Why another Archive did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Not the URL of an Archive.
    #[error(
        "`{url}` is not the URL of an Archive: {why}. It looks like https://archive.example.org or http://192.0.2.7:8080"
    )]
    Url {
        /// What was given.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A token that no Archive made.
    #[error(
        "the token for {url} has characters that no token has: give it as `ibi archive token create` printed it there"
    )]
    BadToken {
        /// The Archive.
        url: String,
    },
    /// Nobody can be asked.
    #[error("{0}")]
    Client(String),
    /// Nobody answers, or no longer.
    #[error("{url} does not answer: {why}. Is it on line, and is this its address? Try again later")]
    Silent {
        /// The Archive.
        url: String,
        /// What the network said.
        why: String,
    },
    /// Somebody else answers.
    #[error(
        "{url} does not answer as an Archive does: {what}. Is this its address, and is its program as new as this one?"
    )]
    NotAnArchive {
        /// Who was asked.
        url: String,
        /// What came instead.
        what: String,
    },
    /// Somebody else answers than a resolver.
    #[error(
        "{url} does not answer as a resolver does: {what}. Is this its address, and is its program as new as this one?"
    )]
    NotAResolver {
        /// Who was asked.
        url: String,
        /// What came instead.
        what: String,
    },
    /// A token is a secret between two.
    #[error("the copies come from {many} Archives, and a token is for one of them: name that one")]
    OneToken {
        /// How many.
        many: usize,
    },
    /// It lists items without an end.
    #[error(
        "{url} lists more than {most} such items: name fewer at a time, by a longer prefix or a later date"
    )]
    TooMany {
        /// Who was asked.
        url: String,
        /// Items that are taken.
        most: usize,
    },
    /// It does not want to.
    #[error("{url} refuses ({status}): {detail}")]
    Refused {
        /// The Archive.
        url: String,
        /// The HTTP status.
        status: u16,
        /// Its words.
        detail: String,
    },
    /// It has no such thing.
    #[error("{url} has no such thing: {detail}")]
    Unknown {
        /// The Archive.
        url: String,
        /// Its words.
        detail: String,
        /// The Archive that it was handed over to, if it says so.
        given_to: Option<String>,
    },
    /// It has it no longer.
    #[error("{url} has it no longer: {detail}")]
    Gone {
        /// The Archive.
        url: String,
        /// Its words.
        detail: String,
    },
    /// It wants to know who asks.
    #[error(
        "{url} asks for a token: {detail}. Its operator makes one with `ibi archive token create --role holder`"
    )]
    NeedsToken {
        /// The Archive.
        url: String,
        /// Its words.
        detail: String,
    },
    /// More than is read.
    #[error("{url} answers with more than {most} bytes, which are not taken: ask its operator")]
    TooLong {
        /// The Archive.
        url: String,
        /// As many as are read.
        most: u64,
    },
}

/// Items of another Archive, in order of their paths.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Page {
    /// The items.
    pub items: Vec<Listed>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// An item of another Archive, as its list has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// The path of its object.
    pub path: String,
    /// What it is there.
    #[serde(with = "state")]
    pub state: State,
    /// Its version.
    pub version: u32,
    /// When it was last changed.
    pub updated: String,
}

/// What changed at another Archive, in order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Changes {
    /// Of each item the last change.
    pub changes: Vec<Change>,
    /// Where to go on.
    pub next: u64,
    /// The number of the last change of all.
    pub last: u64,
}

/// A change at another Archive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Change {
    /// Its number there.
    pub change: u64,
    /// The labels of the item.
    pub item: Labels,
    /// What it is there.
    #[serde(with = "state")]
    pub state: State,
    /// Its version.
    pub version: u32,
    /// How often its original was handed over.
    pub epoch: u64,
    /// When it was last updated.
    pub updated: String,
    /// When it was last changed there, whatever its own dates are. Older programs do not tell.
    #[serde(default)]
    pub time: Option<String>,
}

/// A file of an object, on its way.
#[derive(Debug)]
pub struct Coming {
    url: String,
    answer: Answer,
    /// Where it begins: at the first byte, or where it was asked to go on.
    pub from: u64,
    since: Instant,
    came: u64,
}

impl Coming {
    /// The next bytes; nothing after the last.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, PeerError> {
        let piece = self.answer.piece().await.map_err(|error| asked(&self.url, error))?;
        self.came += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        if piece.is_some() && is_drip(self.since.elapsed(), self.came) {
            let why = format!("less than {SLOWEST} bytes a second came");
            return Err(PeerError::Silent { url: self.url.clone(), why });
        }
        Ok(piece)
    }
}

impl Peer {
    /// The Archive at `http://host[:port]` or `https://host[:port]`.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, PeerError> {
        let url = url::plain(url).map_err(|why| PeerError::Url { url: told(url), why })?;
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(PeerError::BadToken { url });
        }
        let client = Patient::new().map_err(|error| PeerError::Client(error.to_string()))?;
        Ok(Self { url, token, client })
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The object of an item.
    pub async fn held(&self, label: &str) -> Result<Held, PeerError> {
        let held: Held = self.json(&format!("/items/{}/object", encoded(label))).await?;
        held.check().map_err(|what| self.not_an_archive(what))?;
        Ok(held)
    }

    /// The same, from who is not waited for longer than this.
    pub async fn held_within(&self, patience: Duration, label: &str) -> Result<Held, PeerError> {
        tokio::time::timeout(patience, self.held(label)).await.unwrap_or_else(|_| {
            let why = format!("nothing came for {} s", patience.as_secs());
            Err(PeerError::Silent { url: self.url.clone(), why })
        })
    }

    /// A file of an object. Who has its beginning gives the length of that and the SHA-512 of the whole; what comes then goes
    /// on from there if the file is still the same, or begins anew.
    pub async fn file(
        &self,
        label: &str,
        file: &str,
        part: Option<(u64, &str)>,
    ) -> Result<Coming, PeerError> {
        let url = self.address(&format!("/items/{}/object/{}", encoded(label), encoded(file)));
        let mut headers: Vec<(HeaderName, String)> = Vec::new();
        let part = part.filter(|(from, _)| *from > 0);
        if let Some((from, sha512)) = part {
            headers.push((header::RANGE, format!("bytes={from}-")));
            headers.push((header::IF_RANGE, format!("\"{}\"", sha512.get(..64).unwrap_or(sha512))));
        }
        let answer = self.client.get(&url, self.token.as_deref(), &headers).await;
        let answer = answer.map_err(|error| asked(&self.url, error))?;
        let from = match answer.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT => {
                let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
                let first: Option<u64> =
                    range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok());
                match (first, part) {
                    (Some(first), Some((from, _))) if first == from => from,
                    _ => return Err(self.not_an_archive("a part that was not asked for".to_owned())),
                }
            }
            // The part is all of it, or more: only the whole can tell.
            StatusCode::RANGE_NOT_SATISFIABLE if part.is_some() => {
                return Box::pin(self.file(label, file, None)).await;
            }
            _ => return Err(self.refused(answer).await),
        };
        Ok(Coming { url: self.url.clone(), answer, from, since: Instant::now(), came: 0 })
    }

    /// What it tells of an item, below its address in the API.
    pub(crate) async fn item_json<T: DeserializeOwned>(
        &self,
        label: &str,
        what: &str,
    ) -> Result<T, PeerError> {
        self.json(&format!("/items/{}/{what}", encoded(label))).await
    }

    /// How a hand-over stands there, if that Archive gives.
    pub async fn standing(&self, label: &str, handover: &str) -> Result<Standing, PeerError> {
        self.json(&format!("/items/{}/handover?name={handover}", encoded(label))).await
    }

    /// Its items in order of their paths, after one.
    pub async fn list(&self, after: &str) -> Result<Page, PeerError> {
        let after = utf8_percent_encode(after, NON_ALPHANUMERIC);
        self.json(&format!("/items?limit=1000&after={after}")).await
    }

    /// What changed there, after a change.
    pub async fn changes(&self, after: u64) -> Result<Changes, PeerError> {
        self.json(&format!("/changes?limit=1000&after={after}")).await
    }

    /// The Archives that it has registered, if it is a resolver.
    pub(crate) async fn archives<T: DeserializeOwned>(&self) -> Result<T, PeerError> {
        self.json("/archives").await
    }

    /// How it comes to its answer about an item, if it is a resolver.
    pub async fn explain<T: DeserializeOwned>(&self, label: &str) -> Result<T, PeerError> {
        let label = utf8_percent_encode(label, NON_ALPHANUMERIC);
        self.json(&format!("/resolve?url={label}&explain=true")).await
    }

    /// What a resolver says of an item whose Original is required; explained, also which Archives said what.
    pub async fn resolve_original<T: DeserializeOwned>(
        &self,
        label: &str,
        explain: bool,
    ) -> Result<T, PeerError> {
        let url = format!("{label}?ibiurl.requireditemstatus=Original");
        let url = utf8_percent_encode(&url, NON_ALPHANUMERIC);
        self.json(&format!("/resolve?url={url}&explain={explain}")).await
    }

    /// Tells it something, at a path below `/api/v1`.
    pub async fn post(&self, path: &str, message: &impl Serialize) -> Result<serde_json::Value, PeerError> {
        let not_json =
            |error: serde_json::Error| PeerError::Client(format!("cannot tell {}: {error}", self.url));
        let message = serde_json::to_vec(message).map_err(not_json)?;
        let answer = self.client.post(&self.address(path), self.token.as_deref(), message).await;
        self.understood(answer).await
    }

    async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, PeerError> {
        let answer = self.client.get(&self.address(path), self.token.as_deref(), &[]).await;
        self.understood(answer).await
    }

    async fn understood<T: DeserializeOwned>(
        &self,
        answer: Result<Answer, AskError>,
    ) -> Result<T, PeerError> {
        let answer = answer.map_err(|error| asked(&self.url, error))?;
        if !answer.status().is_success() {
            return Err(self.refused(answer).await);
        }
        let bytes = answer.whole(LONGEST).await.map_err(|error| asked(&self.url, error))?;
        let read = serde_json::from_slice(if bytes.is_empty() { b"null" } else { &bytes[..] });
        read.map_err(|error| self.not_an_archive(format!("what it says is not understood ({error})")))
    }

    /// What an answer other than the one hoped for means.
    async fn refused(&self, answer: Answer) -> PeerError {
        #[derive(Deserialize)]
        struct Problem {
            detail: String,
            #[serde(default)]
            given_to: Option<String>,
        }
        let (url, status) = (self.url.clone(), answer.status());
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_plain = kind.is_some_and(|kind| kind.starts_with("text/plain"));
        if status.is_redirection() {
            return self.not_an_archive(format!("it leads elsewhere ({})", status.as_u16()));
        }
        let bytes = match answer.whole(LONGEST_PROBLEM).await {
            Ok(bytes) => bytes,
            Err(error) => return asked(&url, error),
        };
        let mut moved = None;
        let detail = match serde_json::from_slice::<Problem>(&bytes) {
            Ok(Problem { detail, given_to }) => {
                moved = given_to;
                told(&detail)
            }
            // A damaged file is told of in plain words.
            Err(_) if is_plain && status == StatusCode::INTERNAL_SERVER_ERROR => {
                told(String::from_utf8_lossy(&bytes).trim_end())
            }
            // A proxy before an Archive that is being started anew.
            Err(_) if status.is_server_error() => "without a reason".to_owned(),
            Err(_) => return self.not_an_archive(format!("{} without a reason", status.as_u16())),
        };
        match status {
            StatusCode::NOT_FOUND => PeerError::Unknown { url, detail, given_to: moved },
            StatusCode::GONE => PeerError::Gone { url, detail },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => PeerError::NeedsToken { url, detail },
            _ => PeerError::Refused { url, status: status.as_u16(), detail },
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.url)
    }

    pub(crate) fn not_an_archive(&self, what: String) -> PeerError {
        PeerError::NotAnArchive { url: self.url.clone(), what }
    }
}

fn asked(url: &str, error: AskError) -> PeerError {
    let url = url.to_owned();
    match error {
        AskError::Client(why) => PeerError::Client(why),
        AskError::Silent(why) => PeerError::Silent { url, why },
        AskError::TooLong { most } => PeerError::TooLong { url, most: most as u64 },
    }
}

/// Whether bytes come so slowly that nobody would wait for them: what has come is not lost, and is gone on with.
fn is_drip(time: Duration, bytes: u64) -> bool {
    time > GRACE && bytes < time.as_secs().saturating_mul(SLOWEST)
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// A stranger's words: not too many, and nothing that a terminal would obey.
fn told(words: &str) -> String {
    words.chars().take(TOLD).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_and_is_one_word() {
        let peer = Peer::new("http://a.example", Some("ibi_secret".to_owned())).unwrap();
        assert_eq!(format!("{peer:?}"), "Peer { url: \"http://a.example\", token: Some(\"…\"), .. }");
        for bad in ["", "a b", "a\r\nHost: b", "ü"] {
            let error = Peer::new("http://a.example", Some(bad.to_owned())).unwrap_err();
            assert!(matches!(error, PeerError::BadToken { .. }), "{bad}");
        }
    }

    #[test]
    fn a_drip_is_not_waited_for() {
        let is = |seconds, bytes| is_drip(Duration::from_secs(seconds), bytes);
        assert!(!is(59, 0) && is(61, 100) && is(3600, 3600) && !is(3600, 4 << 20));
    }

    #[test]
    fn words_of_strangers_stay_words() {
        assert_eq!(told("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(told(&"x".repeat(1000)).len(), TOLD);
    }
}
