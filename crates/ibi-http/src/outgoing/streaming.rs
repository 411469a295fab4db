//! Streaming requests: a response may take any time as long as data keeps arriving.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use tokio::time::timeout;

use super::HttpClientError;
use super::connector::{GuardedConnector, client_error, is_private_allowed};

/// Connect timeout.
const STREAMING_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time without any data.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout for a whole response that is read into memory.
const WHOLE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);

/// A client for long responses, with a token.
#[derive(Clone, Debug)]
pub struct StreamingClient(GuardedConnector);

/// A response whose body is streamed.
#[derive(Debug)]
pub struct StreamingResponse(reqwest::Response);

impl StreamingClient {
    /// A client that follows no redirects.
    pub fn new() -> Result<Self, HttpClientError> {
        let settings =
            reqwest::Client::builder().connect_timeout(STREAMING_CONNECT_TIMEOUT).read_timeout(STALL_TIMEOUT);
        GuardedConnector::new(settings, is_private_allowed()).map(Self)
    }

    /// Gets a URL with a token and these headers.
    pub async fn get(
        &self,
        url: &str,
        token: Option<&str>,
        headers: &[(HeaderName, String)],
    ) -> Result<StreamingResponse, HttpClientError> {
        let asked = self.0.request(Method::GET, url)?;
        send(headers.iter().fold(asked, |asked, (name, value)| asked.header(name, value)), token).await
    }

    /// Posts JSON to a URL, with a token.
    pub async fn post(
        &self,
        url: &str,
        token: Option<&str>,
        json: Vec<u8>,
    ) -> Result<StreamingResponse, HttpClientError> {
        let asked = self.0.request(Method::POST, url)?;
        send(asked.header(header::CONTENT_TYPE, "application/json").body(json), token).await
    }
}

async fn send(
    asked: reqwest::RequestBuilder,
    token: Option<&str>,
) -> Result<StreamingResponse, HttpClientError> {
    let asked = match token {
        Some(token) => asked.bearer_auth(token),
        None => asked,
    };
    asked.send().await.map(StreamingResponse).map_err(client_error)
}

impl StreamingResponse {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The next bytes; `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, HttpClientError> {
        self.0.chunk().await.map_err(client_error)
    }

    /// The whole body, up to `most` bytes.
    pub async fn read_all(self, most: usize) -> Result<Bytes, HttpClientError> {
        let slow =
            |_| HttpClientError::Silent(format!("timed out after {} s", WHOLE_RESPONSE_TIMEOUT.as_secs()));
        timeout(WHOLE_RESPONSE_TIMEOUT, self.collect_chunks(most)).await.map_err(slow)?
    }

    async fn collect_chunks(mut self, most: usize) -> Result<Bytes, HttpClientError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next_chunk().await? {
            if all.len() + piece.len() > most {
                return Err(HttpClientError::TooLong { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}
