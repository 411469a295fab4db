//! Warm redirects: a resolver that follows 20 Archives with 1,000,000 items, asked for labels by
//! chance, one in ten unknown; beside nginx answering from a map of the same labels, and a bare
//! hyper server with a hash map of them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::archive::{Place, judge, median, settle};
use crate::online::{Server, load, text};

const ARCHIVES: u64 = 20;
const ITEMS_EACH: u64 = 50_000;
const PAGE_ITEMS: u64 = 1000;
const CONNECTIONS: usize = 64;
const TURNS: usize = 7;
const LONG: Duration = Duration::from_secs(2);
const NGINX_PORT: u16 = 8472;

/// The label of an item: each Archive gave one a second.
fn label(archive: u64, number: u64, day: u64) -> String {
    let (hour, minute, second) = (number / 3600, number / 60 % 60, number % 60);
    let seconds = if second == 0 { String::new() } else { format!(".{second:02}") };
    format!("bench.test/a{archive}/2020/01.{day:02}.{hour:02}.{minute:02}{seconds}")
}

fn service(archive: u64) -> String {
    format!("bench.test/a{archive}/2019/01.01.00.00")
}

pub(super) fn compare(place: &Place) -> bool {
    let data = text(&place.path("resolver"));
    let resolver = |arguments: &[&str]| {
        let status = Command::new(&place.ibi)
            .arg("resolver")
            .args(arguments)
            .args(["--data", &data])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.expect("ibi").success(), "{arguments:?}");
    };
    resolver(&["init", "--public-url", "http://resolver.bench.test"]);
    for archive in 0..ARCHIVES {
        resolver(&["register", "--service", &service(archive), "--key", &key(archive)]);
    }
    let serve = [place.ibi.as_str(), "resolver", "serve", "--data", &data, "--listen", "127.0.0.1:0"];
    let ours = Server::start(&[&serve[..], &["--allow-private"]].concat());
    let program = text(&std::env::current_exe().expect("this program"));
    let begun = Instant::now();
    let _feeds = Feeds(Command::new(&program).args(["feeds", &ours.address]).spawn().expect("this program"));
    while indexed(&ours.address) < 2 * ARCHIVES * ITEMS_EACH {
        assert!(begun.elapsed() < Duration::from_secs(600), "the index is not filled");
        std::thread::sleep(Duration::from_millis(200));
    }
    println!(
        "index filled   {} items of {ARCHIVES} Archives in {:.1} s",
        ARCHIVES * ITEMS_EACH,
        begun.elapsed().as_secs_f64()
    );
    settle();
    let hash = Server::start(&[&program, "redirects"]);
    let nginx = Nginx::start(place);
    let address = format!("127.0.0.1:{NGINX_PORT}");
    let (mut beside_nginx, mut beside_hash, mut details) = (Vec::new(), Vec::new(), String::new());
    for turn in 0..=TURNS {
        let run = |address: &str| load::run_any(address, CONNECTIONS, LONG, request());
        let (map, bare, own) = (run(&address), run(&hash.address), run(&ours.address));
        // The first turn is for the caches.
        if turn > 0 {
            beside_nginx.push(own.a_second / map.a_second);
            beside_hash.push(own.a_second / bare.a_second);
        }
        details = format!(
            "{:.0} a second, p99 {:.2} ms; nginx from a map {:.0}, bare hyper with a hash map {:.0}",
            own.a_second,
            own.p99.as_secs_f64() * 1e3,
            map.a_second,
            bare.a_second
        );
    }
    let memory = private_memory(ours.child.id());
    println!("memory         {memory} MiB private for {} labels", 2 * ARCHIVES * ITEMS_EACH);
    drop(nginx);
    let first = judge("warm, nginx", median(beside_nginx), 1.0, &details);
    first & judge("warm, hash map", median(beside_hash), 0.75, &details) & (memory < 150)
}

/// Requests for labels by chance, one in ten of which nobody has.
fn request() -> impl FnMut() -> String + Clone + 'static {
    let mut chance = 1_u64;
    move || {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = chance >> 33;
        let day = if number.is_multiple_of(10) { 3 } else { 1 };
        let label = label(number / 10 % ARCHIVES, number / 200 % ITEMS_EACH, day);
        format!("GET /{label} HTTP/1.1\r\nHost: x\r\n\r\n")
    }
}

/// The labels in the index.
fn indexed(address: &str) -> u64 {
    let answer = Command::new("curl").args(["-s", &format!("http://{address}/metrics")]).output();
    let text = String::from_utf8(answer.expect("curl").stdout).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("ibi_index_labels "));
    line.and_then(|count| count.parse::<f64>().ok()).map_or(0, |count| count as u64)
}

/// Memory of a process that is its own, in MiB.
fn private_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

fn key(archive: u64) -> String {
    format!("{}", 1_000_000_000 + archive)
}

/// The Archives, stopped when this is dropped.
struct Feeds(std::process::Child);

impl Drop for Feeds {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Archives that come online at a resolver and have nothing but a location feed.
pub fn serve_feeds(resolver: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime.expect("a runtime"), async {
        for archive in 0..ARCHIVES {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("bound").port();
            tokio::task::spawn_local(async move {
                loop {
                    let (stream, _) = listener.accept().await.expect("a connection");
                    tokio::task::spawn_local(serve_feed(stream, archive));
                }
            });
            let mut stream = TcpStream::connect(resolver).await.expect("a resolver");
            let request = format!(
                "GET /J8LNKB5R7W/3FUQHC5?servicesubject=inclusionRequest&archiveaddress=127.0.0.1:{port}\
                 &archiveserviceibi={}&archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=bench\
                 &archiveadmemailaddress=a@bench.test&registrationkey={} HTTP/1.1\r\nHost: x\r\n\
                 ibi-follow-token: token\r\nConnection: close\r\n\r\n",
                service(archive),
                key(archive)
            );
            stream.write_all(request.as_bytes()).await.expect("a resolver");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.contains("successful"), "{answer}");
        }
        std::future::pending::<ExitCode>().await
    })
}

async fn serve_feed(mut stream: TcpStream, archive: u64) {
    let mut buffer = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            match stream.read(&mut piece).await {
                Ok(read @ 1..) => buffer.extend_from_slice(&piece[..read]),
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
        buffer.drain(..end + 4);
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        let mut left = length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0);
        while left > 0 {
            if buffer.is_empty() {
                match stream.read(&mut piece).await {
                    Ok(read @ 1..) => buffer.extend_from_slice(&piece[..read]),
                    _ => return,
                }
            }
            let taken = left.min(buffer.len());
            buffer.drain(..taken);
            left -= taken;
        }
        let body = feed_body(&head, archive).await;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn feed_body(head: &str, archive: u64) -> String {
    if head.contains("inclusionConfirmationRequest") {
        return "confirmation yes\n".to_owned();
    }
    let number = |name: &str| {
        let rest = head.split_once(name).map_or("", |(_, rest)| rest);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or(0)
    };
    let (after, wait) = (number("after="), number("wait="));
    let next = (after + PAGE_ITEMS).min(ITEMS_EACH);
    if after == ITEMS_EACH {
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    let records: Vec<_> = (after..next)
        .map(|number| {
            let own = label(archive, number, 1);
            json!({
                "path": own, "labels": [own], "metadata": [label(archive, number, 2)], "state": "Original", "epoch": 1,
                "target": {"file": "item.pdf"}, "files": ["item.pdf"], "data_time": "2020-01-01T00:00:00Z",
                "inventories": ["9f86d081884c7d659a2feaa0c55ad015"],
            })
        })
        .collect();
    let waited = if after == ITEMS_EACH { wait } else { 0 };
    let page = json!({
        "service": [service(archive)], "next": next.to_string(), "more": next < ITEMS_EACH, "waited": waited,
        "records": records,
    });
    page.to_string()
}

/// The peer: bare hyper, with a hash map of all labels.
pub fn serve_redirects() -> ExitCode {
    let all = (0..ARCHIVES).flat_map(|archive| (0..ITEMS_EACH).map(move |number| (archive, number)));
    let map: HashMap<String, String> = all
        .map(|(archive, number)| {
            let label = label(archive, number, 1);
            (format!("/{label}"), format!("http://127.0.0.1:8080/col/{label}/doc/item.pdf"))
        })
        .collect();
    let map = Arc::new(map);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("http://{}/", listener.local_addr().expect("bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let map = Arc::clone(&map);
            tokio::spawn(async move {
                let service = service_fn(move |request| redirect(Arc::clone(&map), request));
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

async fn redirect(
    map: Arc<HashMap<String, String>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let response = match map.get(request.uri().path()) {
        Some(to) => Response::builder().status(302).header("location", to).body(Full::default()),
        None => Response::builder().status(404).body(Full::default()),
    };
    Ok(response.expect("a response"))
}

/// nginx with one worker on the first core, and a map of all labels.
struct Nginx(std::path::PathBuf);

impl Nginx {
    fn start(place: &Place) -> Self {
        let folder = place.path("nginx-map");
        fs::create_dir_all(&folder).expect("room for a folder");
        let mut map = String::new();
        for archive in 0..ARCHIVES {
            for number in 0..ITEMS_EACH {
                let label = label(archive, number, 1);
                map += &format!("/{label} http://127.0.0.1:8080/col/{label}/doc/item.pdf;\n");
            }
        }
        fs::write(folder.join("map"), map).expect("room for a file");
        let config = format!(
            "worker_processes 1; pid {0}/pid; error_log {0}/log; user root; events {{}} http {{ access_log off; \
             keepalive_requests 100000000; map_hash_max_size 2097152; map_hash_bucket_size 256; \
             map $uri $target {{ default \"\"; include {0}/map; }} client_body_temp_path {0}/a; proxy_temp_path {0}/b; \
             fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; server {{ listen 127.0.0.1:{NGINX_PORT}; \
             location / {{ if ($target = \"\") {{ return 404; }} return 302 $target; }} }} }}",
            text(&folder)
        );
        fs::write(folder.join("conf"), config).expect("room for a file");
        let status =
            Command::new("taskset").args(["-c", "0", "nginx", "-c", &text(&folder.join("conf"))]).status();
        assert!(status.expect("nginx").success(), "nginx does not start");
        std::thread::sleep(Duration::from_secs(3));
        Self(folder)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.0.join("pid")).unwrap_or_default();
        let _ = Command::new("kill").arg(pid.trim()).status();
    }
}
