//! Outgoing requests reach no private address unless the operator allows it, and responses are not
//! passed back (threat K5).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::binary::IBI;
use crate::holders::Holder;
use crate::online::Folder;
use crate::online::server::Server;

const SECRET: &str = "s3cret-of-the-intranet";

/// A server inside, which nobody outside should reach: it answers all requests alike.
struct Inside {
    port: u16,
    reached: Arc<AtomicUsize>,
}

impl Inside {
    fn new(head: &str, body: &str) -> Self {
        let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0")).unwrap();
        let (port, reached) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let answer =
            format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let count = Arc::clone(&reached);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, reached }
    }

    fn reached(&self) -> usize {
        self.reached.load(Ordering::SeqCst)
    }

    /// This machine, and others that are nobody's business, in every spelling.
    fn spellings(&self) -> Vec<String> {
        let hosts = [
            "127.0.0.1",
            "127.0.0.2",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "127.1",
            "0.0.0.0",
            "0",
            "localhost",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "[fd00::1]",
            "169.254.169.254",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "100.64.0.1",
        ];
        hosts.iter().map(|host| format!("http://{host}:{}", self.port)).collect()
    }
}

const ITEM: &str = "a.br/b/2026/11.17.00.00";

/// Copies over the API, and hand-overs that a giver announces.
#[test]
fn an_archive_on_line_reaches_nobody_inside() {
    let inside = Inside::new("200 OK", &json!({ "detail": SECRET }).to_string());
    let folder = Folder::new();
    let held = folder.deposit(&[(b"a", b"one")], &[]);
    let (operator, holder) = (folder.token("operator"), folder.token("holder"));
    let server = Server::guarded(&folder.data());
    let terms = json!({ "handover": "ab".repeat(16), "epoch": 2, "inventory": "0".repeat(32) });
    for from in inside.spellings() {
        let says = |token: &str, path: &str, body: &Value| {
            let answer = server.api(token, "POST", path, body.to_string().as_bytes());
            assert!(!answer.text().contains(SECRET), "{from} {path}: {}", answer.text());
            answer
        };
        let refused = says(&operator, &format!("/items/{ITEM}/copy"), &json!({ "from": from }));
        assert_eq!(refused.problem(), 422, "{from}: {}", refused.text());
        assert!(
            refused.text().contains("connection refused by the address guard"),
            "{from}: {}",
            refused.text()
        );
        let compared = says(&operator, &format!("/items/{held}/audit"), &json!({ "with": [from] }));
        assert!(
            compared.text().contains("connection refused by the address guard"),
            "{from}: {}",
            compared.text()
        );
        let offer = json!({ "message": "offer", "terms": terms, "from": from, "by": "Eve" });
        let waits = says(&holder, &format!("/items/{ITEM}/handover"), &offer);
        assert!(waits.text().contains("connection refused by the address guard"), "{from}: {}", waits.text());
    }
    assert_eq!(inside.reached(), 0, "nobody came in");
}

/// Commands on the folder ask for the same word.
#[test]
fn a_command_reaches_nobody_inside_unless_it_is_said() {
    let inside = Inside::new("200 OK", SECRET);
    let folder = Folder::new();
    let copy = |from: &str, more: &[&str]| {
        let output = Command::new(IBI)
            .args(["archive", "copy", ITEM, "--from", from, "--data"])
            .arg(folder.data())
            .args(more)
            .env_remove("IBI_ALLOW_PRIVATE")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for from in inside.spellings() {
        let (status, said) = copy(&from, &[]);
        assert!(
            status == Some(1) && said.contains("connection refused by the address guard"),
            "{from}: \
            {status:?} {said}"
        );
    }
    assert_eq!(inside.reached(), 0, "nobody came in");
    let here = format!("http://127.0.0.1:{}", inside.port);
    assert!(copy(&here, &[]).1.contains("`--allow-private` allows it"));
    let (status, said) = copy(&here, &["--allow-private"]);
    assert_eq!((status, inside.reached()), (Some(1), 1), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    // The local link never.
    let (_, said) = copy("http://169.254.169.254", &["--allow-private"]);
    assert!(said.contains("connection refused by the address guard"), "{said}");
}

/// Nothing of a body is given back but the kind of an Archive's own problem; nobody is followed.
#[test]
fn what_answers_is_not_given_back() {
    let taker = Holder::new();
    let elsewhere = Inside::new("200 OK", SECRET);
    let moved = format!("302 Found\r\nLocation: http://127.0.0.1:{}/", elsewhere.port);
    let json_head = |status: &str, kind: &str| format!("{status}\r\nContent-Type: {kind}");
    let detail = json!({ "detail": SECRET, "title": SECRET, "type": "about:blank" }).to_string();
    let own = json!({ "detail": SECRET, "title": "Not found", "type": "urn:ibi:problem:not-found" });
    let problem = "application/problem+json";
    let answers = [
        (json_head("200 OK", "application/json"), json!(SECRET).to_string()),
        (json_head("200 OK", "application/json"), json!({ "format": SECRET }).to_string()),
        (json_head("404 Not Found", "application/json"), detail.clone()),
        (json_head("404 Not Found", problem), detail.clone()),
        (json_head("404 Not Found", problem), own.to_string()),
        (json_head("500 Oops", "text/plain"), SECRET.to_owned()),
        (json_head("403 Forbidden", "text/html"), SECRET.to_owned()),
        (moved, SECRET.to_owned()),
    ];
    let (operator, holder) = (taker.folder.token("operator"), taker.folder.token("holder"));
    for (head, body) in answers {
        let inside = Inside::new(&head, &body);
        let from = format!("http://127.0.0.1:{}", inside.port);
        let copied = json!({ "from": from }).to_string();
        let refused = taker.server.api(&operator, "POST", &format!("/items/{ITEM}/copy"), copied.as_bytes());
        assert_eq!(refused.problem(), 422, "{head}: {}", refused.text());
        assert!(!refused.text().contains(SECRET), "{head}: {}", refused.text());
        let terms = json!({ "handover": "ab".repeat(16), "epoch": 2, "inventory": "0".repeat(32) });
        let offer = json!({ "message": "offer", "terms": terms, "from": from, "by": "Eve" }).to_string();
        let path = format!("/items/{ITEM}/handover");
        let waits = taker.server.api(&holder, "POST", &path, offer.as_bytes());
        assert!(!waits.text().contains(SECRET), "{head}: {}", waits.text());
        assert!(inside.reached() > 0, "it was asked");
    }
    assert_eq!(elsewhere.reached(), 0, "nobody is followed elsewhere");
}
