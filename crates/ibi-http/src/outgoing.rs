//! HTTP client: bounded in time and size, with an address guard, without following redirects. All
//! requests go through one connector.

mod connector;
mod guarded;
mod streaming;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::CertificateProblem;
use connector::{GuardedConnector, client_error, is_private_allowed};

pub use connector::allow_private;
pub use guarded::{GuardedClient, GuardedResponse};
pub use streaming::{StreamingClient, StreamingResponse};

/// An HTTP client.
#[derive(Clone, Debug)]
pub struct HttpClient(GuardedConnector);

/// Why a request failed. The URL is not included: it may contain a key.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The client could not be constructed.
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
    /// The guard refuses this address.
    #[error("{0}")]
    Refused(String),
    /// No response, or not in time.
    #[error("no answer: {0}")]
    Silent(String),
    /// The server cannot be asked over TLS. The names in its certificate are left out: whoever
    /// named the server may read this.
    #[error("{problem}: {next}", problem = .0, next = .0.next_step())]
    Certificate(CertificateProblem),
    /// The response is too long.
    #[error("the answer has more than {most} bytes")]
    TooLong {
        /// The limit in bytes.
        most: usize,
    },
}

impl HttpClient {
    /// A client with this timeout for a whole response.
    pub fn new(timeout: Duration) -> Result<Self, HttpClientError> {
        let settings = reqwest::Client::builder().connect_timeout(timeout).timeout(timeout);
        GuardedConnector::new(settings, is_private_allowed()).map(Self)
    }

    /// A client with this timeout for a whole response. `allow_private` also permits private and
    /// loopback addresses.
    pub fn with_guard(timeout: Duration, allow_private: bool) -> Result<Self, HttpClientError> {
        let settings = reqwest::Client::builder().connect_timeout(timeout).timeout(timeout);
        GuardedConnector::new(settings, allow_private || is_private_allowed()).map(Self)
    }

    /// Gets a response of at most `most` bytes.
    pub async fn get(&self, url: &str, most: usize) -> Result<(StatusCode, Bytes), HttpClientError> {
        self.get_with(url, &[], most).await
    }

    /// Gets a response of at most `most` bytes, sending these headers.
    pub async fn get_with(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        self.send(self.0.request(Method::GET, url)?, headers, most).await
    }

    /// Posts a JSON body, and reads a response of at most `most` bytes.
    pub async fn post_json(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        let request = self.0.request(Method::POST, url)?.header("content-type", "application/json");
        self.send(request.body(body), headers, most).await
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        headers: &[(&str, &str)],
        most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = request.send().await.map_err(client_error)?;
        let status = response.status();
        let mut all = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(client_error)? {
            if all.len() + piece.len() > most {
                return Err(HttpClientError::TooLong { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok((status, all.into()))
    }
}

/// An error with its causes.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
