//! Fetches the beginning of a resource from a server that an untrusted party named.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::HttpClientError;
use super::connector::{GuardedConnector, client_error};

/// A client for servers named by untrusted parties.
#[derive(Clone, Debug)]
pub struct GuardedClient(GuardedConnector);

/// A response: status, headers, and the beginning of the body.
#[derive(Debug)]
pub struct GuardedResponse {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The requested prefix of the body.
    pub body: Bytes,
}

impl GuardedClient {
    /// A client with this timeout and user agent. `allow_private` also permits private and loopback
    /// addresses.
    pub fn new(timeout: Duration, user_agent: &str, allow_private: bool) -> Result<Self, HttpClientError> {
        let settings = reqwest::Client::builder();
        let settings = settings.connect_timeout(timeout).timeout(timeout).user_agent(user_agent);
        GuardedConnector::new(settings, allow_private).map(Self)
    }

    /// Requests a URL and reads at most this many bytes of the body; the rest is not awaited.
    pub async fn fetch_prefix(
        &self,
        method: Method,
        url: &str,
        most: usize,
    ) -> Result<GuardedResponse, HttpClientError> {
        let mut response = self.0.request(method, url)?.send().await.map_err(client_error)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while body.len() < most
            && let Some(piece) = response.chunk().await.map_err(client_error)?
        {
            let left = most - body.len();
            body.extend_from_slice(piece.get(..left).unwrap_or(&piece));
        }
        Ok(GuardedResponse { status, headers, body: body.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat K5: no requests to this machine, neither by address in any spelling nor by name.
    #[tokio::test]
    async fn private_addresses_are_refused() {
        let client = GuardedClient::new(Duration::from_secs(5), "test", false).unwrap();
        for url in [
            "http://127.0.0.1:8080/",
            "http://2130706433:8080/",
            "http://0x7f000001:8080/",
            "http://0x7f.1:8080/",
            "http://017700000001:8080/",
            "http://0177.0.0.01:8080/",
            "http://127.1:8080/",
            "http://127.0.0.1.:8080/",
            "http://0:8080/",
            "http://[::]:8080/",
            "http://[::1]:8080/",
            "http://[::ffff:127.0.0.1]:8080/",
            "http://[::ffff:7f00:1]:8080/",
            "http://[::127.0.0.1]:8080/",
            "http://[64:ff9b::127.0.0.1]:8080/",
            "http://[2002:7f00:1::]:8080/",
            "http://[fe80::1]:8080/",
            "http://[fd00::1]:8080/",
            "http://[ff02::1]:8080/",
            "http://[2001:db8::1]/",
            "http://localhost:8080/",
            "http://169.254.169.254/",
            "http://10.0.0.1/",
            "http://172.16.0.1/",
            "http://192.168.0.1/",
            "http://100.64.0.1/",
            "http://192.0.2.1/",
            "http://224.0.0.1/",
        ] {
            let error = client.fetch_prefix(Method::GET, url, 10).await.unwrap_err();
            assert!(matches!(error, HttpClientError::Refused(_)), "{url}: {error}");
        }
        // Link-local is refused even if private addresses are permitted.
        let client = GuardedClient::new(Duration::from_secs(5), "test", true).unwrap();
        let error = client.fetch_prefix(Method::GET, "http://169.254.169.254/", 10).await.unwrap_err();
        assert!(matches!(error, HttpClientError::Refused(_)), "{error}");
        let error = client.fetch_prefix(Method::GET, "http://127.0.0.1:1/", 10).await.unwrap_err();
        assert!(matches!(error, HttpClientError::Silent(_)), "{error}");
    }
}
