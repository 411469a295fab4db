//! The transport to the interface for resolvers of followed Archives: feeds, and reports of
//! redirects. Handed in, so that a simulation can be the network.

use bytes::Bytes;
use http::StatusCode;
use ibi_http::outgoing::{HttpClient, HttpClientError};

/// Sends requests to the interface for resolvers of an Archive (4.4).
pub trait FeedTransport: Clone + Send + Sync + 'static {
    /// Gets a response of at most `most` bytes, with the token of the resolver.
    fn get_feed(
        &self,
        url: &str,
        token: &str,
        most: usize,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), HttpClientError>> + Send;

    /// Posts JSON, likewise.
    fn post_report(
        &self,
        url: &str,
        token: &str,
        body: Vec<u8>,
        most: usize,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), HttpClientError>> + Send;
}

impl FeedTransport for HttpClient {
    async fn get_feed(
        &self,
        url: &str,
        token: &str,
        most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        let authorization = format!("Bearer {token}");
        self.get_with(url, &[("authorization", &authorization)], most).await
    }

    async fn post_report(
        &self,
        url: &str,
        token: &str,
        body: Vec<u8>,
        most: usize,
    ) -> Result<(StatusCode, Bytes), HttpClientError> {
        let authorization = format!("Bearer {token}");
        self.post_json(url, &[("authorization", &authorization)], body, most).await
    }
}
