//! Usage counts per item and day; robots are counted separately.

use super::client::ask;
use super::{Folder, Server};

const PERSON: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0\r\n";
const ROBOT: &str = "User-Agent: Mozilla/5.0 (compatible; somebot/2.1)\r\n";

fn total(server: &Server, rep: &str, what: &str, who: &str) -> u64 {
    let statistics = server.api("", "GET", &format!("/items/{rep}/statistics"), b"").json();
    statistics["totals"][what][who].as_u64().unwrap()
}

#[test]
fn people_and_robots_are_counted_apart_and_once_each() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"0123456789")], &[]);
    let server = folder.serve();
    let file = format!("/col/{rep}/doc/a.txt");
    for who in [PERSON, PERSON, ROBOT, ROBOT, ""] {
        assert_eq!(server.get_with(&file, who).status, 200);
        assert_eq!(server.get_with(&format!("/col/{rep}/"), who).status, 200);
    }
    for what in ["downloads", "views"] {
        assert_eq!(
            (total(&server, &rep, what, "people"), total(&server, &rep, what, "robots")),
            (1, 2),
            "{what}"
        );
    }
}

/// HEAD requests, resumed downloads and refused requests are not downloads.
#[test]
fn only_what_was_fetched_is_counted() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"0123456789")], &[]);
    let server = folder.serve();
    let file = format!("/col/{rep}/doc/a.txt");
    for (method, headers, status) in [
        ("HEAD", "", 200),
        ("GET", "Range: bytes=5-\r\n", 206),
        ("GET", "Range: bytes=-2\r\n", 206),
        ("GET", "If-Match: \"x\"\r\n", 412),
        ("GET", "Range: bytes=10-\r\n", 416),
    ] {
        assert_eq!(ask(&server.at, method, &file, &format!("{PERSON}{headers}"), b"").status, status);
        assert_eq!(total(&server, &rep, "downloads", "people"), 0, "{method} {headers}");
    }
    assert_eq!(server.get_with(&file, &format!("{PERSON}Range: bytes=0-\r\n")).status, 206);
    assert_eq!(total(&server, &rep, "downloads", "people"), 1);
}

/// COUNTER counts resources that have their own address.
#[test]
fn two_files_with_the_same_bytes_are_two_downloads() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"same"), (b"b.txt", b"same")], &[]);
    let server = folder.serve();
    for name in ["a.txt", "b.txt"] {
        assert_eq!(server.get_with(&format!("/col/{rep}/doc/{name}"), PERSON).status, 200);
    }
    assert_eq!(total(&server, &rep, "downloads", "people"), 2);
}
