//! `ibi archive links check`: whether the targets of items respond.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::{Folder, rep};

/// A server that answers by path, and records its requests with their times.
struct Targets {
    at: String,
    asked: Arc<Mutex<Vec<(Instant, String, String)>>>,
}

impl Targets {
    fn start(robots: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(request) = lines.next() else { continue };
                let agent = lines.take_while(|line| !line.is_empty());
                let agent = agent.filter(|line| line.to_ascii_lowercase().starts_with("user-agent")).last();
                let mut words = request.split(' ');
                let (method, path) = (words.next().unwrap(), words.next().unwrap().to_owned());
                heard.lock().unwrap().push((now(), format!("{method} {path}"), agent.unwrap_or_default()));
                let (status, more, body) = match (method, path.as_str()) {
                    (_, "/robots.txt") => ("200 OK", String::new(), robots),
                    (_, "/moved") => ("301 Moved", "Location: http://new.test/\r\n".to_owned(), ""),
                    (_, "/gone") => ("404 Not Found", String::new(), ""),
                    ("HEAD", "/only-get") => ("405 Method Not Allowed", String::new(), ""),
                    (_, "/busy") => ("429 Too Many Requests", String::new(), ""),
                    _ => ("200 OK", String::new(), "here"),
                };
                let body = if method == "HEAD" { "" } else { body };
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
                let _ = stream.write_all(format!("{head}{more}\r\n{body}").as_bytes());
            }
        });
        Self { at, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(_, what, _)| what.clone()).collect()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the command waits between two requests is what is tested"
)]
fn now() -> Instant {
    Instant::now()
}

fn check(folder: &Folder, arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let run = folder.archive("links check", &[&["--pause", "0.05"], arguments].concat());
    (run.status, run.json(), run.stderr)
}

#[test]
fn clause_2_2_targets_that_fail_are_reported_politely() {
    let folder = Folder::new();
    let targets = Targets::start("User-agent: *\nDisallow: /private\n");
    let at = &targets.at;
    let put = |path: &str| {
        let run = folder.archive("deposit", &["--url", &format!("http://{at}{path}")]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        rep(&run.json()[0])
    };
    let expected: Vec<(String, &str, Value)> = [
        ("/", "ok", 200.into()),
        ("/gone", "failed", 404.into()),
        ("/moved", "moved", 301.into()),
        ("/only-get", "ok", 200.into()),
        ("/private/x", "skipped", Value::Null),
    ]
    .into_iter()
    .map(|(path, outcome, status)| (put(path), outcome, status))
    .collect();
    let dead = rep(&folder.archive("deposit", &["--url", "http://127.0.0.1:1/dead"]).json()[0]);
    let removed = put("/removed");
    assert_eq!(folder.archive("remove", &[&removed, "--reason", "x", "--yes"]).status, 0);
    // Threat K5: not on this machine, unless that is allowed.
    let (status, told, _) = check(&folder, &[]);
    assert_eq!(status, 1);
    let refused = told
        .iter()
        .filter(|one| one["note"].as_str().is_some_and(|n| n.contains("refused by the address guard")));
    assert_eq!(refused.count(), 6, "{told:?}");
    assert_eq!(targets.asked(), [""; 0]);
    let (status, told, stderr) = check(&folder, &["--allow-private"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("2 ok, 1 moved, 2 failed, 1 skipped"), "{stderr}");
    for (label, outcome, code) in &expected {
        let one = told.iter().find(|one| one["item"] == label.as_str()).unwrap();
        assert_eq!((one["outcome"].as_str(), &one["status"]), (Some(*outcome), code), "{one}");
    }
    let one = told.iter().find(|one| one["item"] == dead.as_str()).unwrap();
    assert_eq!((one["outcome"].as_str(), one.get("status")), (Some("failed"), None));
    // One at a time, with a pause, and with a user agent.
    let asked = targets.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, "GET /robots.txt");
    let each: Vec<&str> = asked[1..].iter().map(|(_, what, _)| what.as_str()).collect();
    assert_eq!(each, ["HEAD /", "HEAD /gone", "GET /gone", "HEAD /moved", "HEAD /only-get", "GET /only-get"]);
    assert!(asked.iter().all(|(_, _, agent)| agent.contains("ibi-links-check/")), "{asked:?}");
    assert!(asked.windows(2).all(|two| (two[1].0 - two[0].0).as_millis() >= 45), "{asked:?}");
    assert!(!folder.data().join("service/links-check.jsonl").exists());
}

#[test]
fn an_interrupted_check_is_resumed() {
    let folder = Folder::new();
    let targets = Targets::start("");
    let mut labels = Vec::new();
    for path in ["/gone", "/b", "/c"] {
        let run = folder.archive("deposit", &["--url", &format!("http://{}{path}", targets.at)]);
        labels.push(rep(&run.json()[0]));
    }
    // The state after a kill: the first is recorded, the second partly.
    let first = format!(
        "{{\"item\":\"{}\",\"url\":\"http://{}/gone\",\"outcome\":\"failed\",\"status\":404,\"time\":\"2026-11-17T00:00:00Z\"}}",
        labels[0], targets.at
    );
    let state = folder.data().join("service/links-check.jsonl");
    std::fs::create_dir_all(state.parent().unwrap()).unwrap();
    std::fs::write(&state, format!("{{\"format\":1}}\n{first}\n{{\"item\":\"")).unwrap();
    let (status, told, stderr) = check(&folder, &["--allow-private"]);
    assert_eq!((status, told.len()), (1, 3), "{stderr}");
    assert!(stderr.contains("resuming"), "{stderr}");
    assert_eq!(targets.asked(), ["GET /robots.txt", "HEAD /b", "HEAD /c"]);
    // Complete: the next one starts over, and so does `--restart`.
    std::fs::write(&state, format!("{{\"format\":1}}\n{first}\n")).unwrap();
    let (_, told, _) = check(&folder, &["--allow-private", "--restart"]);
    assert_eq!(told.len(), 3);
    assert!(targets.asked().contains(&"HEAD /gone".to_owned()));
}

/// `robots.txt` and 429 are respected.
#[test]
fn a_server_that_is_busy_is_left_alone() {
    let folder = Folder::new();
    let targets = Targets::start("");
    for path in ["/busy", "/b", "/c"] {
        folder.archive("deposit", &["--url", &format!("http://{}{path}", targets.at)]);
    }
    let (status, told, stderr) = check(&folder, &["--allow-private"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(told.iter().all(|one| one["outcome"] == "skipped"), "{told:?}");
    assert_eq!(targets.asked(), ["GET /robots.txt", "HEAD /busy"]);
}
