//! A full disk (docs/security.md, *Disk and files*): every writer respects the reserve, and
//! commands that free space work.
//!
//! The disk is an ext4 of 1 KiB blocks in a file. These tests need root, and fail without it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binary::ibi;
use crate::online::client::ask;
use crate::online::{Folder, until};

/// A small disk, mounted on a folder until it is dropped.
struct SmallDisk {
    mount: PathBuf,
}

impl SmallDisk {
    /// Mounted on the future data folder.
    fn new(place: &Path, megabytes: u64) -> Self {
        let (image, mount) = (place.join("image"), place.join("data"));
        fs::create_dir(&mount).unwrap();
        fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let made = run("mkfs.ext4", &["-q", "-F", "-b", "1024", "-m", "0", &image.display().to_string()]);
        let mounted =
            made && run("mount", &["-o", "loop", &image.display().to_string(), &mount.display().to_string()]);
        assert!(
            mounted,
            "only root can mount a disk (mkfs.ext4 of package e2fsprogs): run the tests as root"
        );
        let _ = fs::remove_dir(mount.join("lost+found"));
        Self { mount }
    }

    fn free(&self) -> u64 {
        let said = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&self.mount).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        said.split_whitespace().map(|number| number.parse::<u64>().unwrap()).product()
    }

    /// Other programs fill it, to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.mount.join("filler");
        let mut file = fs::File::create(&path).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![1; size]).is_err() {
                size /= 2;
            }
        }
        let _ = file.sync_all();
        path
    }
}

impl SmallDisk {
    fn remount(&self, mode: &str) {
        let mode = format!("remount,{mode}");
        assert!(run("mount", &["-o", &mode, &self.mount.display().to_string()]));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mount = self.mount.display().to_string();
        if !run("umount", &[&mount]) {
            run("umount", &["-l", &mount]);
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// An Archive on its own disk. The folder is dropped first.
fn on_small_disk(megabytes: u64) -> (Folder, SmallDisk) {
    let place = tempfile::tempdir().unwrap();
    let disk = SmallDisk::new(place.path(), megabytes);
    (Folder::in_place(place, &[]), disk)
}

/// Regression: uploads and stored responses ignored the reserve: 0 KiB were left, and `remove
/// --purge` failed.
#[test]
fn uploads_and_kept_answers_leave_the_reserve_and_purging_works() {
    let (folder, disk) = on_small_disk(48);
    let reserve = (48 << 20) / 20 * 9 / 10;
    let rep = folder.deposit(&[(b"a.bin", &vec![7; 3 << 20])], &[]);
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = server.api(&token, "POST", "/drafts", b"{}");
    assert_eq!(draft.status, 201, "{}", draft.text());
    let draft = draft.json()["id"].as_str().unwrap().to_owned();
    let piece = vec![3; 700 << 10];
    let mut refused = None;
    for number in 0..200 {
        let reply = server.api(&token, "PUT", &format!("/drafts/{draft}/files/{number}.bin"), &piece);
        if reply.status >= 400 {
            refused = Some(reply.status);
            break;
        }
    }
    assert!(refused.is_some_and(|status| status >= 500), "{refused:?}");
    assert!(disk.free() >= reserve - (1 << 20), "{} bytes are left", disk.free());
    // Exactly to the reserve: from here on, nothing grows.
    fs::write(disk.mount.join("others"), vec![1; 1 << 20]).unwrap();
    let before = disk.free();
    assert!(server.api(&token, "POST", "/drafts", b"{}").status >= 500);
    for number in 0..20 {
        let key = format!("Authorization: Bearer {token}\r\nIdempotency-Key: key{number}\r\n");
        let reply = ask(&server.at, "POST", "/api/v1/labels", &key, b"{\"count\": 50}");
        assert!(reply.status >= 500, "{} {}", reply.status, reply.text());
    }
    assert!(before - disk.free() < 256 << 10, "{before} {}", disk.free());
    until("it is told", || server.get("/readyz").text() == "not ready to write: disk-full\n");
    assert_eq!(server.get(&format!("/col/{rep}/doc/a.bin")).status, 200);
    // Operations that free space still work.
    assert!(server.api(&token, "DELETE", &format!("/drafts/{draft}"), b"").status < 300);
    let run = folder.archive("remove", &[&rep, "--purge", "--reason", "room", "--yes"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    until("there is room again", || server.get("/readyz").text() == "ready\n");
}

/// Regression: stored responses went through a database log that grew into the reserve.
#[test]
fn kept_answers_leave_the_reserve_whole_with_the_log_of_their_database() {
    let (folder, disk) = on_small_disk(48);
    let token = folder.token("minter");
    let server = folder.serve();
    // As the rule calculates it: 5 % of the blocks that are not the filesystem's own.
    let said = Command::new("stat").args(["-f", "-c", "%b %S"]).arg(&disk.mount).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let reserve = said.split_whitespace().map(|number| number.parse::<u64>().unwrap()).product::<u64>() / 20;
    let wanted = disk.free() - reserve - (8 << 20);
    fs::write(disk.mount.join("others"), vec![1; wanted as usize]).unwrap();
    let mut refused = None;
    for number in 0..200 {
        let key = format!("Authorization: Bearer {token}\r\nIdempotency-Key: key{number}\r\n");
        let reply = ask(&server.at, "POST", "/api/v1/labels", &key, b"{\"count\": 2000}");
        if reply.status >= 400 {
            refused = Some((number, reply.status));
            break;
        }
    }
    assert!(refused.is_some_and(|(number, status)| number > 0 && status >= 500), "{refused:?}");
    drop(server);
    assert!(disk.free() >= reserve, "{} of {reserve} bytes are left", disk.free());
}

/// Regression: with no free byte, and blocks smaller than pages, SQLite's shared memory killed the
/// process (SIGBUS).
#[test]
fn with_not_a_byte_left_nothing_dies_and_purging_frees_room() {
    let (folder, disk) = on_small_disk(48);
    let reps: Vec<String> = (0..3)
        .map(|number| folder.deposit(&[(b"a.bin", &vec![number; 2 << 20])], &["--dc", "title=Large"]))
        .collect();
    let server = folder.serve();
    let filler = disk.fill();
    for rep in &reps {
        assert_eq!(server.get(&format!("/col/{rep}/doc/a.bin")).status, 200);
    }
    assert_eq!(server.get("/readyz").status, 503);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    disk.fill();
    // Commands on a full disk: a result or a clear refusal, and no signal.
    let list = folder.archive("list", &[]);
    assert_eq!(list.status, 0, "{}", list.stderr);
    let from = folder.folder(&[(b"b.txt", b"more")]).display().to_string();
    let run = folder.archive("deposit", &[&from]);
    assert!([3, 4].contains(&run.status), "{} {}", run.status, run.stderr);
    let run = folder.archive("remove", &[&reps[0], "--purge", "--reason", "room", "--yes"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(disk.free() > 1 << 20, "{}", disk.free());
    let data = folder.data().display().to_string();
    assert_eq!(ibi(&["archive", "show", &reps[1], "--data", &data]).status, 0);
    fs::remove_file(filler).unwrap();
    folder.deposit(&[(b"c.txt", b"again")], &[]);
}

/// Regression: `backup` and `restore` filled the target disk, and failed half-way.
#[test]
fn backup_and_restore_leave_the_reserve_of_their_disk_or_do_not_begin() {
    let folder = Folder::new();
    folder.deposit(&[(b"a.bin", &vec![7; 12 << 20])], &[]);
    let place = tempfile::tempdir().unwrap();
    let disk = SmallDisk::new(place.path(), 14);
    let data = folder.data().display().to_string();
    let (whole, small) = (folder.place.path().join("backup"), disk.mount.join("new"));
    let (whole, out) = (whole.display().to_string(), small.display().to_string());
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &whole]).status, 0);
    let attempts =
        [["backup", "--data", &data, "--out", &out], ["restore", "--from", &whole, "--data", &out]];
    for attempt in attempts {
        let run = ibi(&attempt);
        assert_ne!(run.status, 0, "{attempt:?}");
        assert!(run.stderr.contains("are kept free"), "{}", run.stderr);
        assert!(!small.exists(), "{attempt:?} had begun");
    }
    // Existing data needs no space.
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &whole]).status, 0);
}

/// How a server ended before the one that is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    /// There was none.
    Never,
    Stopped,
    /// With changes in the log of the index that are not in the index yet.
    Killed,
}

/// An Archive with an item on a small disk, and a token of its operator.
fn held(before: Before) -> (Folder, SmallDisk, String, String) {
    let (folder, disk) = on_small_disk(48);
    let rep = folder.deposit(&[(b"a.txt", b"read on")], &["--dc", "title=First"]);
    if before == Before::Never {
        return (folder, disk, rep, String::new());
    }
    let token = folder.token("operator");
    let mut server = folder.serve();
    let patched = server.api(&token, "PATCH", &format!("/items/{rep}"), br#"{"language": "pt"}"#);
    assert_eq!(patched.status, 200, "{}", patched.text());
    if before == Before::Killed {
        server.signal("-KILL");
        server.end();
    } else {
        assert_eq!(server.stop().0, Some(0));
    }
    (folder, disk, rep, token)
}

/// What is read goes on, and a change is refused with this code until it is possible.
fn reads_alone(server: &crate::online::server::Server, rep: &str, token: &str, (why, code): (&str, &str)) {
    assert_eq!(server.get("/readyz").text(), format!("not ready to write: {why}\n"));
    assert_eq!(server.get("/readyz?for=reading").status, 200);
    for _ in 0..3 {
        assert_eq!(server.get(&format!("/col/{rep}/doc/a.txt")).text(), "read on");
        assert_eq!(server.get(&format!("/api/v1/items/{rep}")).status, 200);
    }
    assert_eq!(server.get("/").status, 200);
    if token.is_empty() {
        return;
    }
    let item = server.get(&format!("/api/v1/items/{rep}")).json();
    assert_eq!(item["language"], "pt", "what was acknowledged is there: {item}");
    let patched = server.api(token, "PATCH", &format!("/items/{rep}"), br#"{"language": "en"}"#);
    assert_eq!(patched.problem(), 503, "{}", patched.text());
    assert!(patched.text().contains(code), "{}", patched.text());
    assert!(server.api(token, "POST", "/drafts", b"{}").status >= 500);
}

/// Changes are made again, over the API and by commands that borrow the Archive.
fn writes_again(server: &crate::online::server::Server, folder: &Folder, rep: &str, token: &str) {
    until("it can be written", || server.get("/readyz").text() == "ready\n");
    let token = if token.is_empty() { folder.token("operator") } else { token.to_owned() };
    let patched = server.api(&token, "PATCH", &format!("/items/{rep}"), br#"{"language": "en"}"#);
    assert_eq!(patched.status, 200, "{}", patched.text());
    for _ in 0..3 {
        assert_eq!(server.get(&format!("/api/v1/items/{rep}")).json()["language"], "en");
    }
    let new = folder.deposit(&[(b"b.txt", b"more")], &[]);
    assert_eq!(server.get(&format!("/api/v1/items/{new}")).status, 200);
    let counts = server.api(&token, "GET", &format!("/items/{rep}/counts"), b"");
    assert!(counts.status < 500, "{}", counts.text());
}

/// Issue: a server did not start on a full disk, so that nothing was read then.
#[test]
fn a_server_starts_on_a_full_disk_and_reads() {
    for before in [Before::Never, Before::Stopped, Before::Killed] {
        let (folder, disk, rep, token) = held(before);
        let filler = disk.fill();
        let server = folder.serve();
        reads_alone(&server, &rep, &token, ("disk-full", "storage-full"));
        fs::remove_file(filler).unwrap();
        writes_again(&server, &folder, &rep, &token);
        assert_eq!(server.stop().0, Some(0), "{before:?}");
    }
}

/// The same where the disk is mounted to be read only.
#[test]
fn a_server_starts_on_a_read_only_disk_and_reads() {
    for before in [Before::Never, Before::Stopped, Before::Killed] {
        let (folder, disk, rep, token) = held(before);
        disk.remount("ro");
        let server = folder.serve();
        reads_alone(&server, &rep, &token, ("read-only", "read-only"));
        disk.remount("rw");
        writes_again(&server, &folder, &rep, &token);
        assert_eq!(server.stop().0, Some(0), "{before:?}");
    }
}
