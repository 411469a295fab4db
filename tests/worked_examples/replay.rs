//! A resolver of the built binary, and an Archive that replays the answers of a founding document.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{Run, ibi};
use crate::online::client::{Reply, ask};
use crate::online::server::Server;

/// The base of persistent URLs in the founding documents.
pub(super) const PUBLIC_URL: &str = "http://urlib.net";

/// The service of the resolver.
pub(super) const RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// The registration key of the examples.
pub(super) const REGISTRATION_KEY: &str = "1234567890";

/// A resolver in a folder of its own, that believes the test when it speaks for clients behind
/// proxies.
pub(super) struct TestResolver {
    place: TempDir,
    pub(super) server: Server,
}

impl TestResolver {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let place = tempfile::tempdir().unwrap();
        let run = run_in(&place, "init", &["--public-url", PUBLIC_URL]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let (number, process) = (COUNT.fetch_add(1, Ordering::Relaxed), std::process::id());
        let at = format!("127.{}.{}.{}:8643", 1 + process / 250 % 250, 1 + process % 250, 1 + number % 250);
        let all = ["--trusted-proxy", "127.0.0.0/8", "--trusted-proxy", "150.163.68.0/24"];
        let arguments = [&["--allow-private"], &all[..]].concat();
        let server =
            Server::run(&["resolver", "serve", "--listen", &at], &place.path().join("data"), &arguments);
        Self { place, server }
    }

    pub(super) fn run(&self, command: &str, arguments: &[&str]) -> Run {
        run_in(&self.place, command, arguments)
    }

    /// Registers an Archive, as Example 5.1 does.
    pub(super) fn register(&self, service: &str, hosts: &[&str]) {
        let mut arguments = vec!["--service", service, "--key", REGISTRATION_KEY];
        for host in hosts {
            arguments.extend(["--host", host]);
        }
        let run = self.run("register", &arguments);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }

    /// A request in the name of a client and its proxies; the test itself is the last of these.
    pub(super) fn get(&self, path: &str, client: &str, languages: &str) -> Reply {
        let headers = format!("X-Forwarded-For: {client}\r\nAccept-Language: {languages}\r\n");
        self.server.get_with(path, &headers)
    }
}

fn run_in(place: &TempDir, command: &str, arguments: &[&str]) -> Run {
    let data = place.path().join("data").display().to_string();
    ibi(&[&["resolver", command, "--data", &data], arguments].concat())
}

/// An Archive that gives one answer after the other, and then none.
pub(super) struct ReplayArchive {
    /// Where it listens; in the documents it is `archiveaddress`.
    pub(super) at: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ReplayArchive {
    /// Answers to `urlRequest`: whole bodies.
    pub(super) fn new(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let archive = Self { at, asked: Arc::clone(&asked) };
        thread::spawn(move || {
            let mut answers = answers.into_iter();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(request) = lines.next() else { continue };
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let target = request.split(' ').nth(1).unwrap().to_owned();
                let body = if target.contains("=inclusionConfirmationRequest") {
                    "confirmation yes".to_owned()
                } else if target.contains("=acknowledgment") {
                    "notice {acknowledgment received}".to_owned()
                } else {
                    answers.next().unwrap_or_default()
                };
                asked.lock().unwrap().push(target);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
            }
        });
        archive
    }

    /// Registers it and says that it goes online.
    pub(super) fn come(&self, resolver: &TestResolver, service: &str, hosts: &[&str]) {
        resolver.register(service, hosts);
        let message = inclusion("inclusionRequest", &self.at, service);
        let told = ask(&resolver.server.at, "GET", &message, "", b"");
        assert!(told.text().contains("successful"), "{}", told.text());
    }

    /// The targets of requests with this subject: path and query, as they came.
    pub(super) fn asked(&self, subject: &str) -> Vec<String> {
        let all = self.asked.lock().unwrap().clone();
        all.into_iter().filter(|target| target.contains(&format!("servicesubject={subject}"))).collect()
    }
}

/// The message of Examples 5.2 and 5.3.
pub(super) fn inclusion(subject: &str, address: &str, service: &str) -> String {
    format!(
        "/{RESOLVER_SERVICE}?servicesubject={subject}&archiveaddress={address}&archiveserviceibi={service}\
         &archiveip=150.163.34.239&archiveprotocol=HTTP&archiveplatformversion=2014:11.09.02.16.15\
         &archiveadmemailaddress=banon@dpi.inpe.br&registrationkey={REGISTRATION_KEY}"
    )
}

/// An answer as the fixtures have it, `[[name, word | [word, …]], …]`, as an Archive writes it.
pub(super) fn body(list: &Value) -> String {
    let pair = |pair: &Value| {
        let value = match &pair[1] {
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
                format!("{{{}}}", words.join(" "))
            }
            word => word.as_str().unwrap().to_owned(),
        };
        format!("{} {value}\r\n", pair[0].as_str().unwrap())
    };
    list.as_array().unwrap().iter().map(pair).collect()
}

/// The same as an object, to be compared with what an Archive answers.
pub(super) fn normal_pairs(list: &Value) -> Value {
    let pair = |pair: &Value| {
        let name = pair[0].as_str().unwrap();
        let value = match &pair[1] {
            Value::Array(words) => {
                words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(" ")
            }
            word => word.as_str().unwrap().to_owned(),
        };
        (name.to_owned(), normal(name, &value))
    };
    list.as_array().unwrap().iter().map(pair).collect()
}

/// A value that can be compared: forms of an IBI by form; a key that is fresh for each answer by
/// its grammar (Table 5.1); of the URL of metadata what the documents prescribe, for the script
/// that shows them is the Archive's own.
pub(super) fn normal(name: &str, value: &str) -> Value {
    if name == "ibi" || name.starts_with("ibi.") {
        let words: Vec<&str> = value.split(' ').collect();
        let forms = words.chunks_exact(2).map(|form| (form[0].to_owned(), Value::String(form[1].to_owned())));
        return forms.collect();
    }
    let is_key =
        value.split('-').all(|number| number.len() >= 10 && number.bytes().all(|b| b.is_ascii_digit()));
    if name == "urlkey" && is_key && value.split('-').count() <= 2 {
        return "a key".into();
    }
    if name.starts_with("url.") && name.contains(".metadata") {
        let item =
            value.split_once("/col/").map(|(_, path)| path.split('/').take(4).collect::<Vec<_>>().join("/"));
        return item.map_or_else(|| value.into(), |item| format!("below /col/{item}/").into());
    }
    if name == "url" || name.starts_with("url.") {
        return same_codes(value).into();
    }
    value.into()
}

/// A URL with the digits of its percent codes in upper case (RFC 3986 §6.2.2.1): `%f3` is `%F3`.
fn same_codes(url: &str) -> String {
    let mut parts = url.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |url, part| {
        let (code, rest) = part.split_at(part.len().min(2));
        format!("{url}%{}{rest}", code.to_ascii_uppercase())
    })
}
