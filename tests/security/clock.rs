//! A clock that is ahead (docs/security.md, *Clock*): a time that the minter does not trust ends no
//! embargo.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::binary::{IBI, ibi};
use crate::online::client::ask;
use crate::online::{Folder, until};

/// A server whose clock offset is in a file. It is stopped when it is dropped.
struct OffServer(Child, String);

impl OffServer {
    fn start(folder: &Folder, library: &str, offset: &std::path::Path) -> Self {
        let mut child = Command::new(IBI)
            .args(["archive", "serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.data())
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", offset)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self(child, at)
    }

    fn status(&self, path: &str) -> u16 {
        ask(&self.1, "GET", path, "", b"").status
    }
}

impl Drop for OffServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn faketime() -> String {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
    let all = folders.iter().map(|folder| format!("{folder}/faketime/libfaketimeMT.so.1"));
    let found = all.into_iter().find(|path| fs::exists(path).unwrap_or(false));
    assert!(found.is_some(), "libfaketime is not installed: ./check installs it, package faketime");
    found.unwrap()
}

/// Regression: a clock five years ahead ended embargoes although minting refused it.
#[test]
fn a_clock_that_minting_refuses_opens_no_embargo() {
    let library = faketime();
    let folder = Folder::new();
    let closed = folder.deposit(&[(b"a.txt", b"closed")], &["--access", "until:2029-01-01"]);
    let open = folder.deposit(&[(b"b.txt", b"open")], &["--access", "until:2020-01-01"]);
    let offset = folder.place.path().join("offset");
    let (closed, open) = (format!("/col/{closed}/doc/a.txt"), format!("/col/{open}/doc/b.txt"));
    // Ahead from the start on.
    fs::write(&offset, "+157680000").unwrap();
    let server = OffServer::start(&folder, &library, &offset);
    assert_eq!((server.status(&closed), server.status(&open)), (403, 200));
    let told = ask(&server.1, "GET", "/readyz", "", b"");
    assert_eq!((told.status, told.text().trim()), (503, "not ready to write: clock-refused"));
    assert_eq!(server.status("/readyz?for=reading"), 200);
    drop(server);
    // Set forward while it runs, and back again.
    fs::write(&offset, "+0").unwrap();
    let server = OffServer::start(&folder, &library, &offset);
    assert_eq!((server.status(&closed), server.status(&open), server.status("/readyz")), (403, 200, 200));
    fs::write(&offset, "+157680000").unwrap();
    for _ in 0..20 {
        assert_eq!((server.status(&closed), server.status(&open)), (403, 200));
    }
    until("it is told", || server.status("/readyz") == 503);
    fs::write(&offset, "+0").unwrap();
    until("all is well again", || server.status("/readyz") == 200);
    assert_eq!((server.status(&closed), server.status(&open)), (403, 200));
}

/// Regression: an expired token was valid again when the clock went back; and any clock expired
/// tokens.
#[test]
fn an_expired_token_stays_expired_when_the_clock_goes_back() {
    let library = faketime();
    let folder = Folder::new();
    folder.deposit(&[(b"a.txt", b"a")], &[]);
    let offset = folder.place.path().join("offset");
    fs::write(&offset, "+0").unwrap();
    let create = |expires: &str| {
        let made = folder.archive("token create", &["--role", "operator", "--expires", expires]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        let made = made.json().pop().unwrap();
        (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
    };
    let soon = Command::new("date").args(["-u", "-d", "+3 min", "+%FT%TZ"]).output().unwrap();
    let soon = String::from_utf8(soon.stdout).unwrap();
    let (long, (short, id)) = (create("12h").0, create(soon.trim()));
    let server = OffServer::start(&folder, &library, &offset);
    let status = |server: &OffServer, token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        ask(&server.1, "GET", "/api/v1/links", &header, b"").status
    };
    assert_eq!((status(&server, &short), status(&server, &long)), (200, 200));
    // A clock that the minter does not trust expires nothing.
    fs::write(&offset, "+157680000").unwrap();
    assert_eq!((status(&server, &short), status(&server, &long)), (200, 200));
    // Within the trusted range.
    fs::write(&offset, "+240").unwrap();
    until("it has expired", || status(&server, &short) == 401);
    fs::write(&offset, "+0").unwrap();
    for _ in 0..20 {
        assert_eq!((status(&server, &short), status(&server, &long)), (401, 200));
    }
    drop(server);
    let server = OffServer::start(&folder, &library, &offset);
    assert_eq!((status(&server, &short), status(&server, &long)), (401, 200));
    let listed = folder.archive("token list", &[]).json();
    assert_eq!(listed.iter().find(|token| token["id"] == id.as_str()).unwrap()["has_expired"], true);
    // An operator makes it valid again.
    let data = folder.data().display().to_string();
    assert_eq!(ibi(&["archive", "token", "set", &id, "--data", &data, "--expires", "1h"]).status, 0);
    assert_eq!(status(&server, &short), 200);
}

/// Regression: without the minter's state, a clock that was ahead ended embargoes; and `purge`
/// trusted any clock.
#[test]
fn a_clock_that_nobody_can_vouch_for_opens_and_destroys_nothing() {
    let library = faketime();
    let folder = Folder::new();
    let closed = folder.deposit(&[(b"a.txt", b"closed")], &["--access", "until:2029-01-01"]);
    let removed = folder.deposit(&[(b"b.txt", b"removed")], &[]);
    assert_eq!(folder.archive("remove", &[&removed, "--reason", "a test", "--yes"]).status, 0);
    let offset = folder.place.path().join("offset");
    fs::write(&offset, "+157680000").unwrap();
    let data = folder.data().display().to_string();
    let purged = Command::new(IBI)
        .args(["archive", "purge", "--data", &data, "--older-than", "90d", "--yes"])
        .env("LD_PRELOAD", &library)
        .env("FAKETIME_TIMESTAMP_FILE", &offset)
        .env("FAKETIME_NO_CACHE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&purged.stderr).into_owned();
    assert!(purged.status.code() == Some(4) && said.contains("nothing was destroyed"), "{said}");
    let state = folder.data().join("minter/state");
    for damage in [None, Some("nonsense")] {
        match damage {
            None => fs::rename(&state, folder.place.path().join("kept")).unwrap(),
            Some(text) => fs::write(&state, text).unwrap(),
        }
        let server = OffServer::start(&folder, &library, &offset);
        assert_eq!(server.status(&format!("/col/{closed}/doc/a.txt")), 403, "{damage:?}");
    }
}
