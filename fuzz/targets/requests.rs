//! What comes in over HTTP: raw requests to an Archive and a resolver online, with heads, queries,
//! ranges, `Forwarded`, tokens and JSON bodies. Nothing panics, no answer is a failure of the
//! server's own, and none shows a path of the machine.
//!
//! `TOKEN`, `LABEL` and `DRAFT` stand for a depositor's token, the label of an item and the number
//! of a draft, which differ from run to run. After an `R`, the resolver is asked.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ibi_archive::service::address::ServiceAddress;
use ibi_archive::service::{ServiceRole, open_tokens};
use ibi_archive::{opening, web};
use ibi_http::client::TrustedProxies;
use ibi_http::rate::{RateLimiter, RatePolicy, RateQuotas};
use ibi_http::token_store::NewToken;
use ibi_http::{ServerLimits, server};
use ibi_resolver::registry::{Registry, ResolverSettings};
use tokio::net::TcpListener;

/// An answer comes sooner, or something hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Two servers of this process.
struct Servers {
    folder: PathBuf,
    archive: SocketAddr,
    resolver: SocketAddr,
    token: String,
    label: String,
    draft: String,
    _runtime: tokio::runtime::Runtime,
}

static SERVERS: OnceLock<Servers> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let servers = SERVERS.get_or_init(Servers::start);
    let (address, bytes) = match bytes {
        [b'R', rest @ ..] => (servers.resolver, rest),
        all => (servers.archive, all),
    };
    let answer = ask(address, &servers.fill_in(bytes));
    if answer.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 "), "not an answer: {text}");
    assert!(!text.starts_with("HTTP/1.1 500"), "{text}");
    assert!(!text.contains(&*servers.folder.to_string_lossy()), "a path of the machine: {text}");
});

impl Servers {
    fn start() -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = place.join(format!("ibi-fuzz-requests-{}", std::process::id()));
        let (data, registry) = (folder.join("archive"), folder.join("registry"));
        std::fs::create_dir_all(&registry).expect("room for a folder");
        std::fs::create_dir_all(&data).expect("room for a folder");
        let host = format!("fuzz{}.test", std::process::id());
        let host = ibi_id::Host::parse(&host).expect("a host");
        let from = ibi_mint::MinterConfig {
            host: Some((host, None)),
            ip: None,
            edition: ibi_mint::DistributorEdition::Rtc2015,
            allow_private: true,
        };
        drop(opening::init(&data, &from, [7; 16], "fuzz").expect("an Archive"));
        let new = NewToken::new(Some("fuzz"), ServiceRole::Depositor, "2026-11-17T00:00:00Z".to_owned());
        let (_, secret) = open_tokens(&data).create(new).expect("a token");
        let service = "8JMKD3MGP8W/35MMLL8".parse().expect("a label");
        let settings = ResolverSettings { public_url: "http://resolver.test".to_owned(), service };
        drop(Registry::create(&registry, &settings).expect("a registry"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let [archive, resolver] = runtime.block_on(listen(&data, &registry));
        let token = secret.reveal().to_owned();
        let mut servers = Self {
            folder,
            archive,
            resolver,
            token,
            label: String::new(),
            draft: String::new(),
            _runtime: runtime,
        };
        servers.deposit();
        servers
    }

    /// An item and a draft, over the API.
    fn deposit(&mut self) {
        let item = self.begin();
        let put = "PUT /api/v1/drafts/DRAFT/files/a.txt HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 10\r\n\r\n0123456789";
        self.draft = item;
        let put = ask(self.archive, &self.fill_in(put.as_bytes()));
        assert!(put.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&put));
        let publish = "POST /api/v1/drafts/DRAFT/publish HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 0\r\n\r\n";
        let published = ask(self.archive, &self.fill_in(publish.as_bytes()));
        self.label = field(&published, "\"rep\":\"");
        self.draft = self.begin();
    }

    fn begin(&self) -> String {
        let request = "POST /api/v1/drafts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 2\r\n\r\n{}";
        field(&ask(self.archive, &self.fill_in(request.as_bytes())), "\"id\":\"")
    }

    fn fill_in(&self, bytes: &[u8]) -> Vec<u8> {
        let names = [
            (&b"TOKEN"[..], self.token.as_bytes()),
            (&b"LABEL"[..], self.label.as_bytes()),
            (&b"DRAFT"[..], self.draft.as_bytes()),
        ];
        let mut filled = Vec::with_capacity(bytes.len() + 100);
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            match names.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.extend_from_slice(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push(first);
                    rest = after;
                }
            }
        }
        filled
    }
}

async fn listen(data: &Path, registry: &Path) -> [SocketAddr; 2] {
    let mut addresses = Vec::new();
    let limits = ServerLimits::default();
    for name in ["archive", "resolver"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        addresses.push(address);
        // What stands in `Forwarded` is believed, so that it is read to its end.
        let proxies = TrustedProxies::new(|address: IpAddr| address.is_loopback());
        let rates = unlimited();
        let router = if name == "archive" {
            let address = ServiceAddress { archive: address.to_string(), secure: false };
            let options = web::ArchiveSiteOptions { proxies, rates, ..web::ArchiveSiteOptions::new(address) };
            let (site, _) = web::ArchiveSite::open(data, "fuzz", options, None).expect("a site");
            web::router(Arc::new(site))
        } else {
            let options = ibi_resolver::web::ResolverSiteOptions::new(Arc::new(|| 1_800_000_000));
            let options = ibi_resolver::web::ResolverSiteOptions { proxies, rates, ..options };
            let site = ibi_resolver::web::ResolverSite::open(registry, options, None).expect("a site");
            ibi_resolver::web::router(Arc::new(site))
        };
        tokio::spawn(server::serve(listener, None, limits, router, std::future::pending()));
    }
    [addresses[0], addresses[1]]
}

/// Nobody is told to come back later: what is behind that is to be tried.
fn unlimited() -> Arc<RateLimiter> {
    let mut quotas = RateQuotas::default();
    RatePolicy::ALL.iter().for_each(|policy| quotas.set(*policy, None));
    Arc::new(RateLimiter::new(quotas))
}

/// All that is answered to these bytes, behind which nothing more comes.
fn ask(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).expect("a socket");
    // It may hang up before it has read all.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "no answer: {error}");
    }
    answer
}

fn field(answer: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(answer);
    let value = text.split_once(name).and_then(|(_, rest)| rest.split_once('"'));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).0.to_owned()
}
