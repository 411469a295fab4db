//! Asking for what may take long: there is no end to how long an answer may come, as long as it comes.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};
use tokio::time::timeout;

use super::{AskError, reason};

/// How long it takes to be connected, at most.
const CONNECT: Duration = Duration::from_secs(10);

/// How long nothing may come.
const STALL: Duration = Duration::from_secs(60);

/// How long a whole answer may take that is read into memory.
const WHOLE: Duration = Duration::from_secs(300);

/// Asks others for what may be long, with a token.
#[derive(Clone, Debug)]
pub struct Patient(reqwest::Client);

/// An answer, whose bytes are still to come.
#[derive(Debug)]
pub struct Answer(reqwest::Response);

impl Patient {
    /// A client that follows nobody elsewhere.
    pub fn new() -> Result<Self, AskError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(STALL)
            .no_proxy()
            .build();
        client.map(Self).map_err(|error| AskError::Client(error.without_url().to_string()))
    }

    /// Gets what is at a URL, with a token and these headers.
    pub async fn get(
        &self,
        url: &str,
        token: Option<&str>,
        headers: &[(HeaderName, String)],
    ) -> Result<Answer, AskError> {
        let asked = self.0.get(url);
        send(headers.iter().fold(asked, |asked, (name, value)| asked.header(name, value)), token).await
    }

    /// Posts JSON to a URL, with a token.
    pub async fn post(&self, url: &str, token: Option<&str>, json: Vec<u8>) -> Result<Answer, AskError> {
        send(self.0.post(url).header(header::CONTENT_TYPE, "application/json").body(json), token).await
    }
}

async fn send(asked: reqwest::RequestBuilder, token: Option<&str>) -> Result<Answer, AskError> {
    let asked = match token {
        Some(token) => asked.bearer_auth(token),
        None => asked,
    };
    asked.send().await.map(Answer).map_err(silent)
}

fn silent(error: reqwest::Error) -> AskError {
    AskError::Silent(reason(&error.without_url()))
}

impl Answer {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The next bytes; nothing after the last.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, AskError> {
        self.0.chunk().await.map_err(silent)
    }

    /// All of it, up to so many bytes.
    pub async fn whole(self, most: usize) -> Result<Bytes, AskError> {
        let slow = |_| AskError::Silent(format!("it took more than {} s", WHOLE.as_secs()));
        timeout(WHOLE, self.all(most)).await.map_err(slow)?
    }

    async fn all(mut self, most: usize) -> Result<Bytes, AskError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            if all.len() + piece.len() > most {
                return Err(AskError::TooLong { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}
