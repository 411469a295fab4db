//! Resolving over N Archives on loopback, one of which holds the item: beside one bare hyper
//! connection to each of them. The Archives are on one core, who asks on the other. All answers are
//! taken (the original is required), as the peer does.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ibi_protocol::analysis::AcceptedLanguages;
use ibi_protocol::{PersistentUrl, WireProtocol, WireRegistration};
use ibi_resolver::{
    ArchiveHealth, HttpTransport, Registry, ResolutionOutcome, ResolutionRequest, Resolver, ResolverSettings,
};
use tokio::net::{TcpListener, TcpStream};

use crate::archive::{judge, median};
use crate::online::{Server, pin};

const ITEM: &str = "bench.test/item/2026/01.02.03.04";
const TURNS: usize = 5;
const LONG: Duration = Duration::from_millis(1500);

/// Runs all of them, with registries in a folder.
pub fn compare(folder: &str) -> ExitCode {
    pin(std::process::id(), 1);
    let folder = Path::new(folder).join(format!("ibi-bench-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let met = runtime.block_on(async {
        let mut met = true;
        for number in [1, 10, 100] {
            met &= cold(&folder.join(number.to_string()), number).await;
        }
        met & hung(&folder.join("hung")).await
    });
    let _ = fs::remove_dir_all(&folder);
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn cold(folder: &Path, number: usize) -> bool {
    let archives = Archives::start(number, 0);
    let resolver = resolver(folder, &archives.addresses);
    let mut connections = Vec::new();
    for address in &archives.addresses {
        connections.push(connect(address).await);
    }
    let (mut ratios, mut details) = (Vec::new(), String::new());
    for turn in 0..=TURNS {
        let mut theirs = Vec::new();
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            let begun = Instant::now();
            ask_all(&mut connections).await;
            theirs.push(begun.elapsed());
        }
        let ours = resolve_for(&resolver, true).await;
        // The first turn is for the caches.
        if turn > 0 {
            ratios.push(ours.len() as f64 / theirs.len() as f64);
        }
        let a_second = |times: &[Duration]| times.len() as f64 / LONG.as_secs_f64();
        details = format!("{:.0} resolutions a second; bare hyper {:.0}", a_second(&ours), a_second(&theirs));
    }
    // Of one Archive there is no bar: there what is decided weighs as much as what is asked.
    let bar = if number == 1 { 0.0 } else { 0.5 };
    judge(&format!("cold N = {number}"), median(ratios), bar, &details)
}

/// The first answer, with an Archive that takes every question and answers none.
async fn hung(folder: &Path) -> bool {
    let archives = Archives::start(10, 0);
    let well = resolver(&folder.join("well"), &archives.addresses);
    let with = Archives::start(10, 1);
    let hung = resolver(&folder.join("hung"), &with.addresses);
    let (mut ratios, mut details) = (Vec::new(), String::new());
    for turn in 0..=TURNS {
        let (alone, beside) = (p99(resolve_for(&well, false).await), p99(resolve_for(&hung, false).await));
        if turn > 0 {
            ratios.push(alone / beside);
        }
        details = format!("p99 {:.2} ms, {:.2} ms with one of eleven hung", alone * 1e3, beside * 1e3);
    }
    judge("one hung", median(ratios), 1.0 / 3.0, &details)
}

fn p99(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() * 99 / 100].as_secs_f64()
}

async fn resolve_for(resolver: &Resolver<HttpTransport, Registry>, original: bool) -> Vec<Duration> {
    let mut times = Vec::new();
    let until = Instant::now() + LONG;
    let url = PersistentUrl::parse(&format!("/{ITEM}"), None).expect("an IBI");
    while Instant::now() < until {
        let begun = Instant::now();
        let asked = ResolutionRequest {
            robot: false,
            fresh: false,
            url: PersistentUrl { original, ..url.clone() },
            persistent: format!("http://resolver.test/{ITEM}"),
            languages: AcceptedLanguages::default(),
            client: vec![[198, 51, 100, 7].into()],
            explain: false,
            goes: true,
        };
        let resolution = resolver.resolve(asked).await;
        assert!(matches!(resolution.outcome, ResolutionOutcome::Found { .. }), "{:?}", resolution.outcome);
        times.push(begun.elapsed());
    }
    times
}

/// A resolver that knows these Archives, all online.
fn resolver(folder: &Path, addresses: &[String]) -> Resolver<HttpTransport, Registry> {
    fs::create_dir_all(folder).expect("room for a folder");
    let service = "J8LNKB5R7W/3FUQHC5".parse().expect("a label");
    let settings = ResolverSettings { public_url: "http://resolver.test".to_owned(), service };
    let registry = Registry::create(folder, &settings).expect("a registry");
    for (number, address) in addresses.iter().enumerate() {
        let service = service_of(number);
        let key = "1234567890".parse().expect("a key");
        registry.register(service.parse().expect("a label"), Some(key), Vec::new(), 0).expect("registered");
        let registration = WireRegistration {
            address: address.clone(),
            service,
            ip: [127, 0, 0, 1].into(),
            protocol: WireProtocol::Http,
            platform_version: "bench".to_owned(),
            email: "bench@bench.test".to_owned(),
            key: "1234567890".parse().expect("a key"),
        };
        let included = registry.include(&registration, 0).expect("included");
        assert!(
            registry.record_confirmation(included.archive.id, included.turn, Ok(()), 0).expect("confirmed")
        );
    }
    let network = Arc::new(HttpTransport::new(true, ArchiveHealth::default()));
    Resolver::new(network, Arc::new(registry), Arc::new(|| 0))
}

fn service_of(number: usize) -> String {
    format!("bench.test/a{number}/2026/01.02.03.04")
}

async fn connect(address: &str) -> (String, SendRequest<Empty<Bytes>>) {
    let stream = TcpStream::connect(address).await.expect("an Archive");
    stream.set_nodelay(true).expect("a socket");
    let (send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("an Archive that speaks HTTP");
    tokio::spawn(connection);
    (address.to_owned(), send)
}

async fn ask_all(connections: &mut [(String, SendRequest<Empty<Bytes>>)]) {
    let asked = connections.iter_mut().enumerate().map(|(number, (address, send))| {
        let query = format!(
            "/{}?clientinformation.ipaddress=198.51.100.7&parsedibiurl.ibi={ITEM}&servicesubject=urlRequest",
            service_of(number)
        );
        let request =
            Request::get(query).header("host", address.as_str()).body(Empty::new()).expect("a request");
        async move {
            let answer = send.send_request(request).await.expect("an answer");
            answer.into_body().collect().await.expect("a body").to_bytes()
        }
    });
    assert_eq!(join_all(asked).await.iter().filter(|body| !body.is_empty()).count(), 1);
}

/// Archives in a process of their own, on the first core.
struct Archives {
    _server: Server,
    addresses: Vec<String>,
}

impl Archives {
    fn start(number: usize, hung: usize) -> Self {
        let ours = std::env::current_exe().expect("this program").display().to_string();
        let server = Server::start(&[&ours, "archives", &number.to_string(), &hung.to_string()]);
        let addresses = server.address.split(',').map(str::to_owned).collect();
        Self { _server: server, addresses }
    }
}

/// Plays Archives, the first of which holds the item; and some that take every question and answer
/// none.
pub fn serve(number: usize, hung: usize) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let mut addresses = Vec::new();
        for archive in 0..number + hung {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("bound").to_string();
            addresses.push(address.clone());
            let body = match archive {
                0 => held(&address),
                _ => String::new(),
            };
            tokio::spawn(accept(listener, Bytes::from(body), archive >= number));
        }
        println!("{}", addresses.join(","));
        std::future::pending::<ExitCode>().await
    })
}

async fn accept(listener: TcpListener, body: Bytes, hung: bool) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let body = body.clone();
                async move {
                    if hung {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(body)))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// An answer as 3.4 has it; without a key, for then there is nothing to acknowledge, as the peer
/// does not.
fn held(address: &str) -> String {
    format!(
        "archiveaddress {address}\r\ncontenttype Data\r\nibi {{rep {ITEM}}}\r\nibi.archiveservice {{rep {}}}\r\n\
         ibi.platformsoftware {{}}\r\nstate Original\r\ntimestamp 2026-01-02T03:04:05Z\r\nurl http://{address}/col/{ITEM}/doc/a.pdf",
        service_of(0)
    )
}
