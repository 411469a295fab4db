//! A scripted Archive: answers over the wire with what a test specifies.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use super::{Reply, Resolver, SERVICE, ask};

/// The key that scripted Archives are registered with.
pub(crate) const KEY: &str = "1234567890-0987654321";

/// The whole head of a request, as received.
#[derive(Debug, Clone)]
pub(crate) struct Question(pub(crate) String);

impl Question {
    /// The query, as received.
    pub(crate) fn query(&self) -> &str {
        let target = self.0.split(' ').nth(1).unwrap();
        target.split_once('?').map_or("", |(_, query)| query)
    }

    /// Whether it is a service request, and not another request to our Archives.
    fn is_for_service(&self) -> bool {
        !self.query().is_empty()
    }

    /// The value of a pair, as received, if present.
    pub(crate) fn value(&self, name: &str) -> &str {
        let pairs: BTreeMap<&str, &str> =
            self.query().split('&').filter_map(|pair| pair.split_once('=')).collect();
        pairs.get(name).copied().unwrap_or_default()
    }
}

/// An Archive of a test. It confirms its inclusion, receives acknowledgments, and answers queries
/// as specified.
pub(crate) struct Scripted {
    pub(crate) at: String,
    pub(crate) service: String,
    asked: Arc<Mutex<Vec<Question>>>,
    /// The name of the service in answers.
    forms: Arc<Mutex<String>>,
    /// Its report on the links of any item (`docs/formats/links.md`).
    pub(crate) report: Arc<Mutex<Option<String>>>,
}

impl Scripted {
    /// The answers are bodies: pairs, one per line. The common pairs are added.
    pub(crate) fn new(service: &str, answer: impl Fn(&Question, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let forms = Arc::new(Mutex::new(format!("rep {service}")));
        let told = Arc::clone(&forms);
        let report = Arc::new(Mutex::new(None));
        let (at_links, service) = (Arc::clone(&report), service.to_owned());
        let archive = Self { at: at.clone(), service, asked: Arc::clone(&asked), forms, report };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                if head.is_empty() {
                    continue;
                }
                let question = Question(head.join("\n"));
                asked.lock().unwrap().push(question.clone());
                let body = match question.value("servicesubject") {
                    "inclusionConfirmationRequest" => "confirmation yes".to_owned(),
                    "acknowledgment" => "notice {acknowledgment received}".to_owned(),
                    _ => match answer(&question, &at) {
                        said if said.is_empty() => said,
                        said => format!(
                            "archiveaddress {at}\r\nibi.archiveservice {{{}}}\r\nibi.platformsoftware {{}}\r\n{said}",
                            told.lock().unwrap()
                        ),
                    },
                };
                let report = at_links.lock().unwrap().clone().filter(|_| question.0.contains("/links "));
                if let Some(report) = report {
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
                    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{report}", report.len());
                    continue;
                }
                if !question.is_for_service() {
                    let _ = write!(
                        stream,
                        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    continue;
                }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
            }
        });
        archive
    }

    /// An Archive with one item: its only file is at this path.
    pub(crate) fn with(service: &str, ibi: &'static str, path: &'static str) -> Self {
        Self::new(service, move |question, at| {
            if question.value("parsedibiurl.ibi") == ibi { item(ibi, at, path) } else { String::new() }
        })
    }

    /// The same under another form, which its answers contain, too.
    pub(crate) fn also_known_as(self, ibip: &str) -> Self {
        self.forms.lock().unwrap().push_str(&format!(" ibip {ibip}"));
        self
    }

    /// Registers it and announces it to the resolver.
    pub(crate) fn come(&self, resolver: &Resolver) {
        let registered =
            resolver.json("register", &["--service", &self.service, "--key", KEY]).pop().unwrap();
        assert_eq!(registered["key"], serde_json::Value::Null, "a key that was given is not repeated");
        let told = self.tell(resolver, "inclusionRequest", KEY);
        assert_eq!(told.text().replace("\r\n", " ").trim_end(), SUCCESSFUL);
    }

    /// Announces to a resolver that it goes online or offline.
    pub(crate) fn tell(&self, resolver: &Resolver, subject: &str, key: &str) -> Reply {
        tell(resolver, subject, &self.at, &self.service, key)
    }

    /// All requests of a kind.
    pub(crate) fn asked(&self, subject: &str) -> Vec<Question> {
        let asked = self.asked.lock().unwrap().clone();
        asked.into_iter().filter(|question| question.value("servicesubject") == subject).collect()
    }

    /// All requests.
    pub(crate) fn all(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }
}

const SUCCESSFUL: &str = "status.archive included status.confirmation successful";

/// The pairs of an item in its one form `rep`, with a file (clause 3.4).
pub(crate) fn item(ibi: &str, at: &str, path: &str) -> String {
    format!(
        "ibi {{rep {ibi}}}\r\ncontenttype Data\r\nstate Original\r\ntimestamp 2009-07-21T14:43:31Z\r\n\
         url http://{at}{path}\r\nurlkey 1427244889-5349022633744855\r\n"
    )
}

/// A message of an Archive to a resolver (clause 3.3).
pub(crate) fn tell(resolver: &Resolver, subject: &str, at: &str, service: &str, key: &str) -> Reply {
    let path = format!(
        "/{SERVICE}?servicesubject={subject}&archiveaddress={at}&archiveserviceibi={service}&archiveip=127.0.0.1\
         &archiveprotocol=HTTP&archiveplatformversion=script&archiveadmemailaddress=ana@library.test\
         &registrationkey={key}"
    );
    ask(&resolver.at, "GET", &path, "", b"")
}
