//! Commands on a folder that is online.

use std::process::Command;

use crate::binary::{IBI, ibi};

use super::{Folder, rep, until};

/// Commands work while the server runs, and their changes are visible at once.
#[test]
fn commands_work_on_a_folder_that_is_on_line() {
    let folder = Folder::new();
    let token = folder.token("operator");
    let server = folder.serve();
    let data = folder.data().display().to_string();
    let first = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=One"]);
    assert_eq!(server.get(&format!("/col/{first}/doc/a.txt")).body, b"one");
    let minted = ibi(&["mint", "--data", &data, "-n", "3"]);
    assert_eq!((minted.status, minted.stdout.lines().count()), (0, 3), "{}", minted.stderr);
    let over_http = server.api(&token, "POST", "/labels", b"").json();
    assert!(!minted.stdout.contains(&format!("{}\n", rep(&over_http["labels"][0]))), "never the same twice");
    let newer = folder.folder(&[(b"a.txt", b"two")]).display().to_string();
    assert_eq!(folder.archive("update", &[&first, &newer]).status, 0);
    assert_eq!(server.get(&format!("/col/{first}/doc/a.txt")).body, b"two");
    let second = folder.deposit(&[(b"b.txt", b"two")], &[]);
    assert_eq!(folder.archive("remove", &[&second, "--reason", "by law", "--yes"]).status, 0);
    assert_eq!(server.get(&format!("/col/{second}/doc/b.txt")).status, 410);
    let rebuilt = folder.archive("rebuild", &[]);
    assert_eq!((rebuilt.status, &rebuilt.json()[0]["items"]), (0, &3.into()), "{}", rebuilt.stderr);
    assert_eq!(server.get(&format!("/col/{first}/doc/a.txt")).body, b"two", "from the new index");
    // Changes over the network are visible to commands.
    let title = br#"{"metadata": [{"element": "title", "value": "Over the network"}]}"#;
    assert_eq!(server.api(&token, "PATCH", &format!("/items/{first}"), title).status, 200);
    let shown = folder.archive("show", &[&first]).json().pop().unwrap();
    assert_eq!(shown["metadata"]["dc"][0]["value"], "Over the network");
    let listed = folder.archive("list", &[]).json();
    let over_http = server.api("", "GET", "/items", b"").json();
    assert_eq!(
        listed.iter().map(rep).collect::<Vec<_>>(),
        over_http["items"].as_array().unwrap().iter().map(rep).collect::<Vec<_>>()
    );
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Commands and requests alternate: none is refused, nothing is lost.
#[test]
fn commands_and_requests_at_the_same_time_all_succeed() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let from = folder.folder(&[(b"a.txt", b"one")]).display().to_string();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let run = folder.archive("deposit", &[&from]);
                    assert_eq!(run.status, 0, "{}", run.stderr);
                }
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    let minted = server.api(&token, "POST", "/labels", b"");
                    assert_eq!(minted.status, 201, "{}", minted.text());
                }
            });
        }
    });
    assert_eq!(folder.archive("list", &[]).json().len(), 10);
}

#[test]
fn a_second_server_on_the_folder_is_refused() {
    let folder = Folder::new();
    let server = folder.serve();
    let data = folder.data().display().to_string();
    let second = ibi(&["archive", "serve", "--listen", "127.0.0.1:0", "--data", &data]);
    assert_eq!(second.status, 4, "{}", second.stderr);
    assert_eq!(second.stdout, "", "it never says that it listens");
    assert!(second.stderr.contains("already serves"), "{}", second.stderr);
    assert_eq!(server.get("/readyz").status, 200);
}

/// The lease of a killed command ends.
#[test]
fn a_command_that_was_killed_gives_the_archive_back() {
    let folder = Folder::new();
    let token = folder.token("minter");
    let server = folder.serve();
    let rows: String = (0..2000).map(|row| format!("folder/a.txt,Title {row}\n")).collect();
    folder.folder(&[(b"a.txt", b"one")]);
    let table = folder.place.path().join("t.csv");
    std::fs::write(&table, format!("file,dc.title\n{rows}")).unwrap();
    let mut child = Command::new(IBI)
        .args(["archive", "deposit", "--json", "--data"])
        .arg(folder.data())
        .arg("--table")
        .arg(&table)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    until("the Archive is back", || server.api(&token, "POST", "/labels", b"").status == 201);
    let known = server.api("", "GET", "/changes", b"").json()["last"].as_u64().unwrap();
    assert!(known > 1, "what was told of is there");
    assert_eq!(folder.archive("audit", &[]).status, 0);
}
