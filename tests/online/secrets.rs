//! Threat K1: secrets are in no log, response, metric or file.

use super::client::ask;
use super::{Folder, Reply};

/// Planted secrets, none of which may appear anywhere.
const KEY: &str = "5550199555-0199555019955501995550";
const WRONG: &str = "ibi_canarycanarycanarycanarycanarycanarycanarycanarycanarycanary42";

#[test]
fn no_secret_is_seen_again() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let token = folder.token("operator");
    let key = folder.place.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    // Nothing listens there, so that every attempt is logged.
    let server =
        folder.serve_with(&["--resolver", "http://127.0.0.1:9", "--key-file", &key.display().to_string()]);
    let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
    let mut keep = |what: String, reply: Reply| {
        let headers = format!("{:?}", reply.lasting_headers());
        seen.push((what, [headers.as_bytes(), &reply.body].concat()));
    };
    for secret in [token.as_str(), WRONG] {
        for scheme in ["Bearer ", "bearer  ", "Basic ", "", "Digest username="] {
            for (method, path, body) in [
                ("POST", "/api/v1/labels", "{"),
                ("POST", "/api/v1/labels", "{\"count\": 1}"),
                ("GET", "/api/v1/drafts", ""),
                ("POST", "/api/v1/drafts", "{\"item\": 5}"),
                ("PATCH", &*format!("/api/v1/items/{rep}"), "{\"language\": \"xx\"}"),
                ("DELETE", "/api/v1/items/8JMKD3MGP8W/34PGRBS", "{}"),
                ("BREW", "/api/v1/items", ""),
                ("TRACE", "/", ""),
                ("GET", &*format!("/col/{rep}/doc/a.txt"), ""),
                ("GET", "/col/nothing", ""),
            ] {
                let headers = format!(
                    "Authorization: {scheme}{secret}\r\nCookie: session={secret}\r\nProxy-Authorization: {secret}\r\nIdempotency-Key: {method}\r\n"
                );
                let reply = ask(&server.at, method, path, &headers, body.as_bytes());
                assert_ne!(reply.status, 500, "{method} {path}");
                keep(format!("{method} {path}"), reply);
            }
        }
        // In the wrong place: in a query, and in a malformed request.
        for query in ["access_token", "limit", "after", "lang", "registrationkey", "urlkey", "servicesubject"]
        {
            for path in ["/", "/api/v1/openapi.json", "/readyz"] {
                keep(query.to_owned(), server.get(&format!("{path}?{query}={secret}")));
            }
        }
        let broken = format!("GET /livez HTTP/1.1\r\nAuthorization: Bearer {secret}\r\nHost\r\n\r\n");
        keep("broken".to_owned(), Reply::read(&server.raw(broken.as_bytes())).unwrap());
    }
    // A resolver's message, sent to the wrong server.
    for subject in ["inclusionRequest", "exclusionRequest", "acknowledgment", "urlRequest"] {
        let query =
            format!("servicesubject={subject}&registrationkey={KEY}&urlkey={KEY}&archiveserviceibi={rep}");
        keep(subject.to_owned(), server.service(&folder, &query));
    }
    super::until("the resolver was tried again", || {
        server.log().matches("cannot reach the resolver").count() > 1
    });
    for path in ["/metrics", "/", "/api/v1/changes"] {
        keep(path.to_owned(), server.get(path));
    }
    let (_, log) = server.stop();
    assert!(log.contains("\"path\":\"/api/v1/labels\""), "there is a log to look at: {log}");
    seen.push(("the log".to_owned(), log.into_bytes()));
    for (what, bytes) in &seen {
        let text = String::from_utf8_lossy(bytes);
        for secret in [token.strip_prefix("ibi_").unwrap(), &WRONG[4..], &KEY[..10], &KEY[11..]] {
            assert!(!text.contains(secret), "{what} tells a secret");
        }
    }
    let kept = folder.data().display().to_string();
    for secret in [token.strip_prefix("ibi_").unwrap(), &WRONG[4..], &KEY[11..]] {
        let found = std::process::Command::new("grep").args(["-rlaF", secret, &kept]).output().unwrap();
        assert_eq!(String::from_utf8(found.stdout).unwrap(), "", "a secret is on disk");
    }
}

/// Statistics store no address, and logs no part of a query, which may contain a client's.
#[test]
fn the_address_of_a_client_is_kept_nowhere() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let server = folder.serve_with(&["--trusted-proxy", "127.0.0.1"]);
    let who = "203.0.113.77";
    let query = format!("servicesubject=urlRequest&clientinformation.ipaddress={who}&parsedibiurl.ibi={rep}");
    assert_eq!(server.service(&folder, &query).status, 200);
    let agent = "User-Agent: Mozilla/5.0 Firefox/145.0\r\n";
    let file =
        server.get_with(&format!("/col/{rep}/doc/a.txt"), &format!("X-Forwarded-For: {who}\r\n{agent}"));
    assert_eq!(file.status, 200);
    let (_, log) = server.stop();
    assert!(!log.contains(who), "{log}");
    let kept = folder.data().display().to_string();
    let found = std::process::Command::new("grep").args(["-rlaF", who, &kept]).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
    assert_eq!(folder.archive("stats", &[&rep]).json()[0]["days"][0]["what"], "download");
}
