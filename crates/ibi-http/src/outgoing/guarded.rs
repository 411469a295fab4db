//! Asking servers that strangers named, over http or https: no connection is made to an address
//! that the guard refuses (threat K5), and nobody is followed elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{AskError, reason};
use crate::asking::refusal;

/// Asks servers that strangers named.
#[derive(Clone, Debug)]
pub struct GuardedClient {
    client: reqwest::Client,
    allow_private: bool,
}

/// What a server answered: its status, its headers, and the beginning of its body.
#[derive(Debug)]
pub struct GuardedAnswer {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// As much of the body as was asked for.
    pub body: Bytes,
}

/// Looks names up, and leaves of their addresses those that the guard lets pass: the connection is
/// made to one of them, and the name is not looked up again in between.
struct GuardedLookup {
    allow_private: bool,
}

impl Resolve for GuardedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (mut passed, mut refused) = (Vec::new(), None);
            for address in found {
                match refused_address(address, allow_private) {
                    None => passed.push(address),
                    Some(why) => refused = Some(why),
                }
            }
            match (passed.is_empty(), refused) {
                (true, Some(why)) => Err(why.into()),
                (true, None) => Err("its name leads to no address".into()),
                (false, _) => Ok(Box::new(passed.into_iter()) as Addrs),
            }
        })
    }
}

fn refused_address(address: SocketAddr, allow_private: bool) -> Option<String> {
    let refused = refusal(address.ip()).filter(|refusal| !(allow_private && refusal.is_private()));
    refused.map(|refusal| format!("{} is not asked: it is {refusal}", address.ip()))
}

impl GuardedClient {
    /// A client that waits so long for an answer and calls itself so. `allow_private`: also on
    /// private and loopback addresses.
    pub fn new(timeout: Duration, user_agent: &str, allow_private: bool) -> Result<Self, AskError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(timeout)
            .timeout(timeout)
            .user_agent(user_agent)
            .dns_resolver(Arc::new(GuardedLookup { allow_private }))
            .no_proxy()
            .build();
        let client = client.map_err(|error| AskError::Client(error.without_url().to_string()))?;
        Ok(Self { client, allow_private })
    }

    /// Asks for a URL, and reads at most so many bytes of the body; the rest is not waited for.
    pub async fn ask(&self, method: Method, url: &str, most: usize) -> Result<GuardedAnswer, AskError> {
        let silent = |error: reqwest::Error| AskError::Silent(reason(&error.without_url()));
        let url = reqwest::Url::parse(url).map_err(|error| AskError::Silent(error.to_string()))?;
        // An address in the URL is not looked up. It is read as the client reads it.
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        if let Ok(ip) = literal
            && let Some(why) = refused_address(SocketAddr::new(ip, 0), self.allow_private)
        {
            return Err(AskError::Silent(why));
        }
        let mut response = self.client.request(method, url).send().await.map_err(silent)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while body.len() < most
            && let Some(piece) = response.chunk().await.map_err(silent)?
        {
            let left = most - body.len();
            body.extend_from_slice(piece.get(..left).unwrap_or(&piece));
        }
        Ok(GuardedAnswer { status, headers, body: body.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat K5: neither by address, however it is spelled, nor by name is this machine asked.
    #[tokio::test]
    async fn private_addresses_are_not_asked() {
        let client = GuardedClient::new(Duration::from_secs(5), "test", false).unwrap();
        for url in [
            "http://127.0.0.1:1/",
            "http://2130706433:1/",
            "http://0x7f.1:1/",
            "http://[::1]:1/",
            "http://[::ffff:127.0.0.1]:1/",
            "http://localhost:1/",
            "http://169.254.169.254/",
            "http://10.0.0.1/",
        ] {
            let error = client.ask(Method::GET, url, 10).await.unwrap_err().to_string();
            assert!(error.contains("is not asked"), "{url}: {error}");
        }
        // Also where private ones are allowed, the local link is not.
        let client = GuardedClient::new(Duration::from_secs(5), "test", true).unwrap();
        let error = client.ask(Method::GET, "http://169.254.169.254/", 10).await.unwrap_err().to_string();
        assert!(error.contains("is not asked"), "{error}");
        let error = client.ask(Method::GET, "http://127.0.0.1:1/", 10).await.unwrap_err().to_string();
        assert!(!error.contains("is not asked"), "{error}");
    }
}
