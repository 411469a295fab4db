//! Several Archives online: copies, refreshing, hand-overs and repair between them, through the
//! built binary.

mod collections;
mod compared;
mod giving;
mod restored;
mod taken;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;

use crate::binary::{Run, ibi};
use crate::online::server::Server;
use crate::online::{Folder, until};

/// An Archive online.
pub(crate) struct Holder {
    pub(crate) folder: Folder,
    pub(crate) server: Server,
}

impl Holder {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        Self { folder, server }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.at)
    }

    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> Run {
        self.folder.archive(command, arguments)
    }

    /// Runs a command, which must succeed.
    pub(crate) fn does(&self, command: &str, arguments: &[&str]) -> String {
        let run = self.run(command, arguments);
        assert_eq!(run.status, 0, "{command} {arguments:?}: {}{}", run.stdout, run.stderr);
        run.stdout
    }

    /// Creates a token of the role, in a file.
    pub(crate) fn token_file(&self, role: &str) -> String {
        let path = self.folder.data().join(format!("{role}.token"));
        fs::write(&path, self.folder.token(role)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Allows another Archive to hand Originals over: a token, and trust, because there is no
    /// resolver.
    pub(crate) fn takes_from(&self, giver: &Self) -> String {
        self.folder.trusts_giver(&giver.url(), None);
        self.token_file("holder")
    }

    pub(crate) fn shown(&self, label: &str) -> serde_json::Value {
        let run = self.run("show", &[label]);
        if run.status == 0 { run.json().remove(0) } else { json!({ "state": null, "said": run.stderr }) }
    }

    pub(crate) fn state(&self, label: &str) -> String {
        self.shown(label)["state"].as_str().unwrap_or("nothing").to_owned()
    }

    fn tree(&self, label: &str) -> PathBuf {
        self.folder.data().join("tree").join(label)
    }

    /// Kills it, as a power cut would, and restarts it at another address.
    fn restart(&mut self) {
        self.server.signal("-KILL");
        self.server.end();
        self.server = self.folder.serve();
    }
}

/// A taker that answers that it is ready, and then nothing useful.
pub(crate) struct Promising {
    at: SocketAddr,
    is_gone: Arc<AtomicBool>,
    answers: JoinHandle<()>,
}

impl Promising {
    fn new() -> Self {
        Self::of("a.test/b/2026/11.16.00.00")
    }

    /// A server that claims to be this Archive.
    pub(crate) fn of(service: &str) -> Self {
        let ready = json!({ "answer": "ready", "archive": service }).to_string();
        let taker = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, is_gone) = (taker.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let gone = Arc::clone(&is_gone);
        let answers = std::thread::spawn(move || {
            for (number, stream) in taker.incoming().flatten().enumerate() {
                if gone.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                let (head, body) = match number {
                    0 => ("200 OK", ready.as_str()),
                    _ => ("500 Internal Server Error", "{}"),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { at, is_gone, answers }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Nothing listens there any more.
    pub(crate) fn go(self) {
        self.is_gone.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.at);
        self.answers.join().unwrap();
    }
}

fn byte_equal(a: &PathBuf, b: &PathBuf) -> bool {
    Command::new("diff").arg("-r").args([a, b]).status().unwrap().success()
}

/// Clause 2.1; seed 001 §5: under the same name, at the same path, so that relative links work.
#[test]
fn a_copy_has_everything_and_follows_its_original() {
    let (here, there) = (Holder::new(), Holder::new());
    let link = b"<a href=\"../../../../../x\">x</a>";
    let rep = here.folder.deposit(&[(b"a.html", link), (b"caf\xe9 %.txt", b"odd")], &["--dc", "title=One"]);
    here.does("update", &[&rep, "--dc", "title=Two"]);
    let found = |run: &Run| run.json()[0]["found"].as_str().unwrap().to_owned();
    let copied = there.run("copy", &[&rep, "--from", &here.url()]);
    assert_eq!((copied.status, found(&copied).as_str()), (0, "new"), "{}", copied.stderr);
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    let shown = there.shown(&rep);
    assert_eq!((shown["state"].as_str(), shown["version"].as_u64()), (Some("Copy"), Some(2)));
    let events: Vec<&str> =
        shown["history"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["deposit", "update", "copy"], "with its history");
    assert_eq!((&shown["history"][2]["source"], &shown["source"]), (&json!(here.url()), &json!(here.url())));
    let page = there.server.get(&format!("/col/{rep}/doc/a.html"));
    assert_eq!((page.status, page.body.as_slice()), (200, &link[..]));
    let again = there.run("copy", &[&rep, "--from", &here.url()]);
    assert_eq!((again.status, found(&again).as_str()), (0, "equal"));
    assert_eq!(
        there.run("update", &[&rep, "--dc", "title=Mine"]).status,
        4,
        "a copy is changed where its Original is"
    );
    here.does("update", &[&rep, "--dc", "title=Three"]);
    let refreshed = there.run("refresh", &[]);
    assert_eq!((refreshed.status, found(&refreshed).as_str()), (0, "behind"), "{}", refreshed.stderr);
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    here.does("remove", &[&rep, "--reason", "by law", "--purge", "--yes"]);
    assert_eq!(found(&there.run("refresh", &[&rep])), "removed");
    assert_eq!(there.state(&rep), "Deleted");
    assert!(!there.tree(&rep).join("v1/content/doc/a.html").exists(), "destroyed here too");
    assert_eq!(found(&there.run("copy", &[&rep, "--from", &here.url()])), "equal", "it never comes back");
    let again = there.run("refresh", &[]);
    assert_eq!(again.status, 0, "two tombstones are in order: {}", again.stderr);
    assert_eq!(there.server.get(&format!("/col/{rep}/")).status, 410);
}

/// ADR 0009: the stations of a large file, deposited by a command or over the API, are copied with
/// it.
#[test]
fn a_large_file_is_copied_with_its_stations() {
    let (here, there) = (Holder::new(), Holder::new());
    let bytes: Vec<u8> = (0..21_u32 << 20).map(|place| ((place >> 9) ^ place) as u8).collect();
    let deposited = here.folder.deposit(&[(b"large.bin", &bytes)], &[]);
    let token = here.folder.token("depositor");
    let draft = here.server.api(&token, "POST", "/drafts", b"").json();
    let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
    assert_eq!(here.server.api(&token, "PUT", &format!("{draft}/files/large.bin"), &bytes).status, 200);
    let published = here.server.api(&token, "POST", &format!("{draft}/publish"), b"").json();
    for rep in [deposited.as_str(), published["rep"].as_str().unwrap()] {
        let item = fs::read(here.tree(rep).join("v1/content/item.json")).unwrap();
        let item: serde_json::Value = serde_json::from_slice(&item).unwrap();
        assert_eq!(item["files"][0]["stations"].as_str().unwrap().len(), 5 * 128);
        there.does("copy", &[rep, "--from", &here.url()]);
        assert!(byte_equal(&here.tree(rep), &there.tree(rep)));
    }
    there.does("audit", &[]);
}

#[test]
fn an_original_is_handed_over_while_both_are_killed_and_comes_back() {
    let (mut here, mut there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &["--access", "until:2999-01-01"]);
    let token = there.takes_from(&here);
    let handed = here.run("transfer", &[&rep, "--to", &there.url(), "--token-file", &token]);
    assert_eq!(handed.status, 0, "a closed item too: {}", handed.stderr);
    assert_eq!((here.state(&rep).as_str(), there.state(&rep).as_str()), ("Copy", "Original"));
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    here.restart();
    there.restart();
    assert_eq!((here.state(&rep).as_str(), there.state(&rep).as_str()), ("Copy", "Original"));
    let back = here.token_file("holder");
    // Both have new addresses, and nothing answers at the known ones.
    here.folder.trusts_giver(&there.url(), Some(&rep));
    there.does("transfer", &[&rep, "--to", &here.url(), "--token-file", &back, "--keep", "nothing"]);
    assert_eq!((here.state(&rep).as_str(), there.state(&rep).as_str()), ("Original", "nothing"));
    assert!(!there.tree(&rep).exists());
    let gone = there.run("show", &[&rep]);
    assert!(gone.stderr.contains(&format!("transferred to {}", here.url())), "{}", gone.stderr);
    assert_eq!(there.server.get(&format!("/col/{rep}/")).status, 404);
    let again = there.folder.data().join("x");
    fs::write(&again, "x").unwrap();
    let again = there.run("deposit", &[again.to_str().unwrap(), "--label", &rep]);
    assert_eq!(again.status, 4, "its label is nobody else's: {}", again.stderr);
}

#[test]
fn a_hand_over_waits_for_its_taker_and_the_operators_word_ends_it() {
    let (here, mut there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let token = there.folder.token("holder");
    let operator = here.folder.token("operator");
    let to = there.url();
    let transfer = format!("/items/{rep}/transfer");
    // The taker is down: the hand-over waits, and can be cancelled, because nothing was granted.
    there.server.signal("-KILL");
    there.server.end();
    let begun = here.server.api(
        &operator,
        "POST",
        &transfer,
        json!({ "to": to, "token": token }).to_string().as_bytes(),
    );
    assert_eq!(begun.status, 202, "{}", begun.text());
    until("it says why it waits", || {
        here.server.api(&operator, "GET", &transfer, b"").json()["handover"]["said"].is_string()
    });
    let standing = here.server.api(&operator, "GET", &transfer, b"").json();
    assert_eq!((&standing["state"], &standing["handover"]["step"]), (&json!("Original"), &json!("offered")));
    let told = ibi(&["archive", "show", &rep, "--data", here.folder.data().to_str().unwrap()]).stdout;
    assert!(told.contains(&format!("hand-over        to {to}, since ")), "{told}");
    assert_eq!(here.shown(&rep)["handover"], standing["handover"]);
    let cancelled = here.run("transfer", &[&rep, "--cancel"]);
    assert_eq!(cancelled.json()[0]["handover"], json!(null), "{}", cancelled.stderr);
    assert_eq!(here.run("transfer", &[&rep, "--taker-destroyed"]).status, 4, "there is no taker");
    assert_eq!(here.state(&rep), "Original");
    // A taker that answers that it is ready, and then nothing.
    let taker = Promising::new();
    let url = taker.url();
    here.server.api(&operator, "POST", &transfer, json!({ "to": url }).to_string().as_bytes());
    until("it is granted", || here.state(&rep) == "Copy");
    for (command, arguments) in [("transfer", ["--cancel"]), ("update", ["--original"]), ("drop", ["--yes"])]
    {
        let refused = here.run(command, &[&rep, arguments[0]]);
        assert_eq!(refused.status, 4, "{command}: {}", refused.stderr);
        assert!(refused.stderr.contains("--taker-destroyed"), "{}", refused.stderr);
    }
    let elsewhere = here.run("transfer", &[&rep, "--to", "http://127.0.0.1:1"]);
    assert_eq!(elsewhere.status, 3, "nobody there says that it is the taker: {}", elsewhere.stderr);
    here.does("transfer", &[&rep, "--taker-destroyed"]);
    let shown = here.shown(&rep);
    assert_eq!(shown["state"], "Original");
    let last = shown["history"].as_array().unwrap().last().unwrap().clone();
    assert!(last["note"].as_str().unwrap().contains("permanently lost"), "{last}");
}

#[test]
fn who_may_not_take_or_give_is_refused() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &["--non-transferable"]);
    let open = here.folder.deposit(&[(b"a", b"one")], &[]);
    let holder = there.token_file("holder");
    let refused = here.run("transfer", &[&rep, "--to", &there.url(), "--token-file", &holder]);
    assert!(refused.status == 4 && refused.stderr.contains("non-transferable"), "{}", refused.stderr);
    for token in [there.token_file("depositor"), here.token_file("holder")] {
        let refused = here.run("transfer", &[&open, "--to", &there.url(), "--token-file", &token]);
        assert_eq!(refused.status, 4, "{}", refused.stderr);
        assert!(refused.stderr.contains("nothing was transferred"), "{}", refused.stderr);
        assert_eq!((here.state(&open).as_str(), there.state(&open).as_str()), ("Original", "nothing"));
    }
    let closed = here.folder.deposit(&[(b"a", b"one")], &["--access", "until:2999-01-01"]);
    let from = here.url();
    assert_eq!(there.run("copy", &[&closed, "--from", &from]).status, 1);
    let token = here.token_file("holder");
    there.does("copy", &[&closed, "--from", &from, "--token-file", &token]);
    assert_eq!(there.state(&closed), "Copy");
}

/// Threats S5, S7: repair uses only bytes that match the item's own inventory.
#[test]
fn damage_is_put_right_from_another_holder_or_an_alarm() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one"), (b"b", b"two")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    let file = here.tree(&rep).join("v1/content/doc/a");
    fs::write(&file, "0ne").unwrap();
    fs::remove_file(here.tree(&rep).join("v1/inventory.json")).unwrap();
    let with = ["--with", &there.url()];
    let compared = here.run("audit", &[&rep, with[0], with[1]]);
    assert_eq!(compared.status, 1);
    assert_eq!(compared.json()[0]["findings"].as_array().unwrap().len(), 2, "{}", compared.stdout);
    let repaired = here.run("audit", &[&rep, with[0], with[1], "--repair"]);
    assert_eq!(repaired.status, 0, "{}{}", repaired.stdout, repaired.stderr);
    assert_eq!(fs::read(&file).unwrap(), b"one");
    assert_eq!(here.run("audit", &[]).status, 0);
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    // Both are damaged: there is no intact file.
    for holder in [&here, &there] {
        fs::write(holder.tree(&rep).join("v1/content/doc/b"), "tw0").unwrap();
    }
    let alarm = here.run("audit", &[&rep, with[0], with[1], "--repair"]);
    assert_eq!(alarm.status, 1);
    assert!(alarm.stderr.contains("ALARM"), "{}", alarm.stderr);
    assert_eq!(
        fs::read(here.tree(&rep).join("v1/content/doc/b")).unwrap(),
        b"tw0",
        "and nothing is overwritten"
    );
}

#[test]
fn the_token_of_a_taker_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = Holder::new();
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let operator = here.folder.token("operator");
    let body = json!({ "to": "http://127.0.0.1:1", "token": "ibi_canary0canary" }).to_string();
    here.server.api(&operator, "POST", &format!("/items/{rep}/transfer"), body.as_bytes());
    let folder = here.folder.data().join("service/handovers");
    until("it is tried", || {
        let entries = fs::read_dir(&folder).unwrap();
        entries
            .flatten()
            .any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("\"said\"")))
    });
    for entry in fs::read_dir(&folder).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0);
    }
    assert!(!here.server.log().contains("canary"), "not in the log");
    assert!(!fs::read_to_string(here.folder.data().join("journal")).unwrap().contains("canary"));
    assert!(!here.server.get("/metrics").text().contains("canary"));
    let told =
        ibi(&["archive", "transfer", &rep, "--cancel", "--data", here.folder.data().to_str().unwrap()]);
    assert_eq!(told.status, 0);
}

/// A slow taker: what the operator decides meanwhile stands.
#[test]
fn what_is_given_up_while_the_taker_is_asked_is_not_granted() {
    use std::io::{Read as _, Write as _};
    let here = Holder::new();
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let operator = here.folder.token("operator");
    let taker = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", taker.local_addr().unwrap());
    let (asked, was_asked) = std::sync::mpsc::channel();
    let (go_on, may_answer) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for mut stream in taker.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = asked.send(());
            if may_answer.recv().is_err() {
                return;
            }
            let body = "{\"answer\":\"ready\"}";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let begun = json!({ "to": url }).to_string();
    let transfer = format!("/items/{rep}/transfer");
    assert_eq!(here.server.api(&operator, "POST", &transfer, begun.as_bytes()).status, 202);
    was_asked.recv().unwrap();
    here.does("transfer", &[&rep, "--cancel"]);
    go_on.send(()).unwrap();
    // Otherwise it would be granted at once, and requested again.
    assert!(was_asked.recv_timeout(std::time::Duration::from_secs(3)).is_err(), "it is not gone on with");
    assert_eq!(here.state(&rep), "Original");
    assert_eq!(fs::read_dir(here.folder.data().join("service/handovers")).unwrap().count(), 0);
}

/// Threats S7, S9: a tombstone is permanent, so it is accepted only from the source of the copy,
/// and withdrawn bytes are never served.
#[test]
fn a_removal_travels_from_the_source_and_from_nobody_else() {
    let (here, there, third) = (Holder::new(), Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    third.does("copy", &[&rep, "--from", &there.url()]);
    // The copy missed an update and the removal; only the latter is available.
    let files = here.folder.folder(&[(b"a", b"withdrawn")]);
    here.does("update", &[&rep, files.to_str().unwrap()]);
    here.does("remove", &[&rep, "--reason", "by law", "--yes"]);
    let other = third.run("copy", &[&rep, "--from", &here.url()]);
    assert_eq!(other.status, 1);
    assert!(other.stderr.contains("the copy here came from"), "{}", other.stderr);
    assert_eq!(third.state(&rep), "Copy");
    there.does("refresh", &[]);
    let shown = there.shown(&rep);
    assert_eq!((&shown["state"], &shown["removed"]["reason"]), (&json!("Deleted"), &json!("by law")));
    let found = Command::new("grep")
        .args(["-r", "withdrawn"])
        .arg(there.folder.data().join("tree"))
        .status()
        .unwrap();
    assert!(!found.success(), "nobody is given what was withdrawn");
    // The bytes are purged later: here, too.
    assert!(there.tree(&rep).join("v1/content/doc/a").exists());
    here.does("purge", &["--older-than", "0d", "--yes"]);
    there.does("refresh", &[]);
    assert!(!there.tree(&rep).join("v1/content/doc/a").exists());
    third.does("refresh", &[&rep, "--from", &here.url()]);
    assert_eq!(third.state(&rep), "Deleted", "the operator's word");
    for holder in [&here, &there, &third] {
        assert_eq!(holder.run("audit", &[]).status, 0);
        assert!(holder.does("rebuild", &[]).contains("adopted\":[]"));
    }
}

#[test]
fn what_was_altered_is_told_and_overwritten_only_on_the_operators_word() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one"), (b"b", b"two")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    fs::write(there.tree(&rep).join("v1/content/doc/a"), "0ne").unwrap();
    let altered = there.run("refresh", &[&rep]);
    assert_eq!(
        (altered.status, altered.json()[0]["found"].as_str()),
        (1, Some("altered")),
        "{}",
        altered.stderr
    );
    assert_eq!(fs::read(there.tree(&rep).join("v1/content/doc/a")).unwrap(), b"0ne", "left as it is");
    there.does("refresh", &[&rep, "--overwrite"]);
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    // The whole object is lost: it is copied again.
    fs::remove_dir_all(there.tree(&rep)).unwrap();
    there.does("copy", &[&rep, "--from", &here.url()]);
    assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    assert_eq!(there.state(&rep), "Copy");
}

/// Threat S8: a `holder` token cannot create a second Original.
#[test]
fn a_grant_of_somebody_who_has_not_the_original_is_refused() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    let token = there.folder.token("holder");
    let held = here.server.get(&format!("/api/v1/items/{rep}/object")).json();
    let inventory = &held["inventory"].as_str().unwrap()[..32];
    let grant = |epoch: u64, from: &str, name: &str| {
        let terms = json!({ "handover": name, "epoch": epoch, "inventory": inventory });
        let body = json!({ "message": "grant", "terms": terms, "from": from, "by": "Eve" }).to_string();
        there.server.api(&token, "POST", &format!("/items/{rep}/handover"), body.as_bytes())
    };
    for (epoch, from, name) in [
        (2, "http://127.0.0.1:1", "h"),
        (1, "http://127.0.0.1:1", "h"),
        (2, "\u{1b}[2J not a url", "h"),
        (u64::MAX, "http://127.0.0.1:1", "h"),
        (0, "http://127.0.0.1:1", "h"),
        (2, "http://127.0.0.1:1", "h h"),
    ] {
        let refused = grant(epoch, from, name);
        // A giver that cannot be reached is not believed yet.
        let waits = refused.status == 200 && refused.json()["answer"] == "fetching";
        assert!(waits || [400, 409, 422].contains(&refused.status), "{epoch} {from}: {}", refused.text());
    }
    assert_eq!((here.state(&rep).as_str(), there.state(&rep).as_str()), ("Original", "Copy"));
}
