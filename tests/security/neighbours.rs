//! Other users of the machine (docs/security.md) can neither read, lock nor block our data.
//!
//! The other user is `nobody`, by `setpriv`. These tests need root, and fail without it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binary::{IBI, ibi};
use crate::online::{Folder, until};

/// Runs a script of the shell as another user.
fn nobody(script: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script]);
    command.stdin(Stdio::null());
    command
}

/// What cannot be tried is an error, never skipped.
fn must_be_root() {
    let is_root = nobody("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    assert!(is_root, "only root can play another user of the machine (setpriv): run the tests as root");
}

/// An Archive in a place that everybody may look into.
fn in_public() -> Folder {
    let folder = Folder::new();
    fs::set_permissions(folder.place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

/// All below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    let mut at = 0;
    while at < all.len() {
        if all[at].is_dir() {
            let entries: Vec<PathBuf> =
                fs::read_dir(&all[at]).unwrap().map(|entry| entry.unwrap().path()).collect();
            all.extend(entries);
        }
        at += 1;
    }
    all
}

#[test]
fn data_folder_and_backup_are_their_owners_alone_from_creation_on() {
    let folder = in_public();
    let rep = folder.deposit(&[(b"a.txt", b"closed")], &["--access", "until:2999-01-01"]);
    folder.token("depositor");
    let server = folder.serve();
    assert_eq!(server.get("/readyz").text(), "ready\n");
    let backup = folder.place.path().join("backup");
    let (data, out) = (folder.data().display().to_string(), backup.display().to_string());
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &out]).status, 0);
    let restored = folder.place.path().join("restored");
    let run = ibi(&["restore", "--from", &out, "--data", &restored.display().to_string()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    for path in [folder.data(), backup, restored].iter().flat_map(|root| below(root)) {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    // What is exported is for others: its modes are the user's own.
    let bag = folder.place.path().join("bag");
    let run = Command::new("sh")
        .args([
            "-c",
            "umask 022; exec \"$0\" \"$@\"",
            IBI,
            "archive",
            "export",
            &rep,
            "--data",
            &data,
            "--out",
        ])
        .arg(&bag)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!((mode(&bag), mode(&bag.join("data/a.txt"))), (0o755, 0o644));
}

#[test]
fn a_data_folder_that_was_open_is_closed_and_that_is_told() {
    let folder = in_public();
    fs::set_permissions(folder.data(), fs::Permissions::from_mode(0o755)).unwrap();
    let from = folder.folder(&[(b"a.txt", b"a")]).display().to_string();
    let run = folder.archive("deposit", &[&from]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("accessible to other users"), "{}", run.stderr);
    assert_eq!(mode(&folder.data()), 0o700);
}

/// An flock on the folder, or a lock on the index's shared memory, stopped all writes.
#[test]
fn no_lock_of_another_user_stops_writing() {
    must_be_root();
    let folder = in_public();
    let data = folder.data().display().to_string();
    let ready = folder.place.path().join("tried").display().to_string();
    fs::write(&ready, "").unwrap();
    fs::set_permissions(&ready, fs::Permissions::from_mode(0o666)).unwrap();
    let script = format!(
        "flock -n {data} sleep 60 & flock -n {data}/minter sleep 60 & flock -n -s {data}/index.sqlite sleep 60 &
         flock -n {data}/lock sleep 60 & cat {data}/journal {data}/archive && echo read > {ready}
         echo tried >> {ready}; wait"
    );
    // A group of its own, so that all of it ends with the test.
    let mut command = nobody(&script);
    let mut other = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the other user has tried", || fs::read_to_string(&ready).unwrap().contains("tried"));
    assert!(!fs::read_to_string(&ready).unwrap().contains("read"), "nobody reads what is ours");
    folder.deposit(&[(b"a.txt", b"a")], &[]);
    assert_eq!(ibi(&["mint", "--data", &data]).status, 0);
    let group = other.id().to_string();
    Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status().unwrap();
    other.wait().unwrap();
}

/// An empty file in /var/tmp or a link in /run/lock refused the prefix; and while another user
/// squats, two minters of ours still see each other.
#[test]
fn squatting_on_a_claim_blocks_nothing_and_hides_nothing() {
    must_be_root();
    let host = format!("squat{}", std::process::id());
    let names = ["/run/lock", "/var/tmp"].map(|folder| format!("{folder}/ibi-neighbours.test+{host}"));
    let squat = format!("ln -s /etc/passwd {}; : > {}", names[0], names[1]);
    assert!(nobody(&squat).status().unwrap().success());
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (first, second) = (path("first"), path("second"));
    let name = format!("{host}.neighbours.test");
    let init = |data: &str| ibi(&["minter", "init", "--data", data, "--host", &name, "--allow-private"]);
    let run = init(&first);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let run = ibi(&["mint", "--data", &first]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("belongs to another user"), "{}", run.stderr);
    let run = init(&second);
    assert_eq!(run.status, 4, "another folder of ours is still found out: {}", run.stderr);
    // The squatter goes: the claim at the usual place is free, and the one of ours is still seen.
    assert!(nobody(&format!("rm -f {} {}", names[0], names[1])).status().unwrap().success());
    let run = init(&second);
    assert_eq!(run.status, 4, "{}", run.stderr);
    assert_eq!(ibi(&["mint", "--data", &first]).status, 0);
    for folder in ["/run/lock", "/var/tmp"] {
        let _ = fs::remove_file(format!("{folder}/ibi-neighbours.test+{host}"));
        for entry in fs::read_dir(folder).unwrap().filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with("ibi-own-") {
                let _ = fs::remove_file(entry.path().join(format!("ibi-neighbours.test+{host}")));
            }
        }
    }
}

/// `/readyz` tells when writing is impossible, with a code; reading goes on.
#[test]
fn readyz_tells_why_nothing_can_be_written() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"a")], &[]);
    let server = folder.serve();
    assert_eq!(server.get("/readyz").text(), "ready\n");
    // Somebody of ours who works on the index by hand.
    let script = "import sqlite3,sys,time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()";
    let index = folder.data().join("index.sqlite");
    let mut holder = Command::new("python3")
        .args(["-c", script])
        .arg(&index)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.take().unwrap()), &mut line)
        .unwrap();
    until("it is told", || {
        let answer = server.get("/readyz");
        answer.status == 503
            && ["not ready to write: busy\n", "not ready to write: locked\n"].contains(&&*answer.text())
    });
    assert_eq!(server.get("/readyz?for=reading").text(), "ready\n");
    assert_eq!(server.get(&format!("/col/{rep}/doc/a.txt")).status, 200);
    drop(holder.stdin.take());
    holder.wait().unwrap();
    until("it is ready again", || server.get("/readyz").status == 200);
}

/// Root took over folders of another user without a word, and that user could not go on with them.
#[test]
fn root_is_told_whose_folder_it_works_in() {
    must_be_root();
    let folder = Folder::new();
    let run = folder.archive("list", &[]);
    assert!(!run.stderr.contains("belongs to"), "{}", run.stderr);
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(folder.data()).status();
    assert!(owned.is_ok_and(|status| status.success()));
    let run = folder.archive("list", &[]);
    assert_eq!((run.status, run.stderr.matches("belongs to user 65534").count()), (0, 1), "{}", run.stderr);
}
