//! The single outgoing HTTP connector. Where untrusted parties may have named the server (threat
//! K5), it makes no connection to an address or port that the guard refuses, and follows no
//! redirects.
//!
//! Names are looked up once per connection, each address is checked, and the connection is made to
//! one that passed. A name that changes its address a moment later gains nothing (DNS rebinding).

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{HttpClientError, error_chain};
use crate::pooled_client::{GuardRefusal, HostLookup, SystemLookup, address_refusal, port_refusal};
use crate::{CertificateProblem, ClientTls};

/// Whether this process may connect to private and loopback addresses. Set by the operator for the
/// whole process, and never unset while it runs.
static PRIVATE_ALLOWED: AtomicBool = AtomicBool::new(false);

/// Permits connections to private and loopback addresses: `--allow-private`.
pub fn allow_private() {
    PRIVATE_ALLOWED.store(true, Ordering::Relaxed);
}

/// Whether private and loopback addresses are permitted.
pub(super) fn is_private_allowed() -> bool {
    PRIVATE_ALLOWED.load(Ordering::Relaxed)
}

/// An HTTP client that connects only to permitted addresses.
#[derive(Clone, Debug)]
pub(super) struct GuardedConnector {
    client: reqwest::Client,
    allow_private: bool,
}

impl GuardedConnector {
    /// A client with these settings. `allow_private` also permits private and loopback addresses.
    pub(super) fn new(
        settings: reqwest::ClientBuilder,
        allow_private: bool,
    ) -> Result<Self, HttpClientError> {
        Self::with_resolver(settings, allow_private, Arc::new(SystemLookup))
    }

    /// The same with another name lookup.
    pub(super) fn with_resolver(
        settings: reqwest::ClientBuilder,
        allow_private: bool,
        lookup: Arc<dyn HostLookup>,
    ) -> Result<Self, HttpClientError> {
        let tls = ClientTls::of_process().map_err(|error| HttpClientError::Client(error.to_string()))?;
        let client = settings
            .tls_backend_preconfigured(tls.config())
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(GuardedLookup { allow_private, lookup }))
            .no_proxy()
            .build();
        let client = client.map_err(|error| HttpClientError::Client(error.without_url().to_string()))?;
        Ok(Self { client, allow_private })
    }

    /// Builds a request, unless the URL itself names a refused address or port.
    pub(super) fn request(
        &self,
        method: Method,
        url: &str,
    ) -> Result<reqwest::RequestBuilder, HttpClientError> {
        let url = reqwest::Url::parse(url).map_err(|error| HttpClientError::Silent(error.to_string()))?;
        let port = url.port_or_known_default().unwrap_or(0);
        if let Some(refusal) = port_refusal(port) {
            return Err(HttpClientError::Refused(format!(
                "connection refused by the address guard: port \
                {port} is {refusal}"
            )));
        }
        // An address in the URL is not looked up. Parse it as the client does, whatever its
        // spelling.
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        if let Ok(ip) = literal
            && let Some(refusal) = refusal_unless_allowed(ip, self.allow_private)
        {
            return Err(HttpClientError::Refused(format!(
                "connection refused by the address guard: {ip} is \
                {refusal}"
            )));
        }
        Ok(self.client.request(method, url))
    }
}

fn refusal_unless_allowed(ip: IpAddr, allow_private: bool) -> Option<GuardRefusal> {
    address_refusal(ip).filter(|refusal| !(allow_private && refusal.is_private()))
}

/// Maps a client error. The URL is omitted: it may contain a key.
pub(super) fn client_error(error: reqwest::Error) -> HttpClientError {
    let error = error.without_url();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        if let Some(refused) = found.downcast_ref::<RefusedName>() {
            return HttpClientError::Refused(refused.to_string());
        }
        cause = found.source();
    }
    match CertificateProblem::find(&error) {
        Some(problem) => HttpClientError::Certificate(problem),
        None => HttpClientError::Silent(error_chain(&error)),
    }
}

/// A name lookup that keeps only the addresses that pass the guard.
struct GuardedLookup {
    allow_private: bool,
    lookup: Arc<dyn HostLookup>,
}

/// A name that has only refused addresses. The address is not revealed to whoever supplied the
/// name.
#[derive(Debug)]
struct RefusedName(GuardRefusal);

impl fmt::Display for RefusedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "connection refused by the address guard: the name resolves to an address that is {}",
            self.0
        )
    }
}

impl Error for RefusedName {}

impl Resolve for GuardedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        let looking = self.lookup.lookup(name.as_str());
        Box::pin(async move {
            let (mut passed, mut last_refusal) = (Vec::new(), None);
            for ip in looking.await? {
                match refusal_unless_allowed(ip, allow_private) {
                    None => passed.push(SocketAddr::new(ip, 0)),
                    Some(refusal) => last_refusal = Some(refusal),
                }
            }
            match (passed.is_empty(), last_refusal) {
                (true, Some(refusal)) => Err(RefusedName(refusal).into()),
                (true, None) => Err("its name has no address".into()),
                (false, _) => Ok(Box::new(passed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    /// A name server that gives another answer each time.
    struct ChangingLookup(Mutex<VecDeque<Vec<IpAddr>>>);

    impl HostLookup for ChangingLookup {
        fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
            let next = self.0.lock().unwrap().pop_front().unwrap_or_default();
            Box::pin(async move { Ok(next) })
        }
    }

    fn connector(answers: &[&[&str]], allow_private: bool) -> GuardedConnector {
        let ips = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let lookup = Arc::new(ChangingLookup(Mutex::new(answers.iter().map(ips).collect())));
        let settings = reqwest::Client::builder().timeout(Duration::from_millis(500));
        GuardedConnector::with_resolver(settings, allow_private, lookup).unwrap()
    }

    async fn ask(connector: &GuardedConnector, url: &str) -> Result<u16, HttpClientError> {
        let sent = connector.request(Method::GET, url)?.send().await.map_err(client_error)?;
        Ok(sent.status().as_u16())
    }

    /// Threat K5, DNS rebinding: a name with a public address resolves to this machine the next
    /// time. The connection goes to the address that was checked.
    #[tokio::test]
    async fn a_name_that_turns_to_this_machine_leads_nowhere() {
        let inside = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://rebound.test:{}/", inside.local_addr().unwrap().port());
        // Documentation addresses are refused too, so use a public address.
        let world = "9.255.255.254";
        let connector = connector(
            &[&[world], &["127.0.0.1"], &[world, "127.0.0.1"], &["::ffff:127.0.0.1"], &["10.0.0.1"]],
            false,
        );
        let mut said = Vec::new();
        for _ in 0..5 {
            let error = ask(&connector, &url).await.unwrap_err();
            said.push(matches!(error, HttpClientError::Refused(_)));
        }
        assert_eq!(said, [false, true, false, true, true]);
        let reached = tokio::time::timeout(Duration::from_millis(100), inside.accept()).await;
        assert!(reached.is_err(), "no connection arrived");
    }

    /// The address of an internal host is not revealed to whoever guessed its name.
    #[tokio::test]
    async fn a_refused_name_does_not_reveal_its_address() {
        let connector = connector(&[&["10.20.30.40"]], false);
        let error = ask(&connector, "http://intranet.test/").await.unwrap_err().to_string();
        assert!(
            error.contains("connection refused by the address guard") && !error.contains("10.20"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn private_addresses_are_reachable_if_allowed() {
        let inside = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://inside.test:{}/", inside.local_addr().unwrap().port());
        let connector = connector(&[&["169.254.169.254"], &["169.254.169.254", "127.0.0.1"]], true);
        assert!(
            matches!(ask(&connector, &url).await, Err(HttpClientError::Refused(_))),
            "link-local is never allowed"
        );
        let asked = tokio::spawn(async move { ask(&connector, &url).await });
        let accepted = tokio::time::timeout(Duration::from_secs(5), inside.accept()).await;
        assert!(accepted.is_ok(), "this machine");
        asked.abort();
    }

    #[tokio::test]
    async fn ports_of_other_protocols_are_refused() {
        let connector = connector(&[], true);
        for port in [22, 25, 587, 6379] {
            let url = format!("http://127.0.0.1:{port}/");
            assert!(matches!(ask(&connector, &url).await, Err(HttpClientError::Refused(_))), "{port}");
        }
    }
}
