//! Attribution: tokens and the operator are named; users of the operating system never are.

use super::{Folder, rep};

const USER: &str = "canary-user";

/// `ibi archive COMMAND`, run by a user of the machine.
fn run(folder: &Folder, command: &[&str]) -> (i32, String, String) {
    let done = std::process::Command::new(crate::binary::IBI)
        .arg("archive")
        .args(command)
        .args(["--data", &folder.data().display().to_string(), "--json"])
        .env("LOGNAME", USER)
        .env("USER", USER)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_user_of_the_machine_is_told_nowhere() {
    for (more, name) in
        [(&[][..], "operator"), (&["--operator-name", "Biblioteca Central"], "Biblioteca Central")]
    {
        let folder = Folder::begun_with(more);
        let file = folder.folder(&[(b"a.txt", b"one")]).display().to_string();
        let (status, item, error) = run(&folder, &["deposit", &file, "--dc", "title=One"]);
        assert_eq!(status, 0, "{error}");
        let item = rep(&serde_json::from_str(&item).unwrap());
        assert_eq!(run(&folder, &["remove", &item, "--reason", "a mistake", "--yes"]).0, 0);
        let server = folder.serve();
        let token = folder.token("operator");
        let page = server.get_with(&format!("/col/{item}/"), "Accept: text/html\r\n").text();
        assert!(page.contains(&format!("<dd>{name}</dd>")), "{page}");
        let told = server.api(&token, "GET", &format!("/items/{item}"), b"");
        assert_eq!(told.json()["removed"]["by"], name);
        assert_eq!(told.json()["history"][0]["by"], name);
        let feed = server.api(&token, "GET", "/changes", b"");
        assert_eq!(feed.status, 200);
        let (_, shown, _) = run(&folder, &["show", &item]);
        for text in [page, told.text(), feed.text(), shown] {
            assert!(!text.contains(USER), "{text}");
        }
        // It is nowhere in the folder either.
        let found =
            std::process::Command::new("grep").args(["-rl", USER]).arg(folder.data()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
}

/// One name applies to all commands on the folder, and can be changed.
#[test]
fn the_operator_has_the_name_that_it_has_now() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=One"]);
    let by = || folder.archive("show", &[&item]).json()[0]["history"][0]["by"].clone();
    assert_eq!(by(), "operator");
    let settings = folder.archive("settings", &["--operator-name", "Ana"]);
    assert_eq!((settings.status, &settings.json()[0]["operator_name"]), (0, &"Ana".into()));
    assert_eq!(by(), "Ana");
    assert_eq!(folder.archive("settings", &["--operator-name", "two\nlines"]).status, 2);
    assert_eq!(folder.archive("token create", &["--role", "minter", "--name", "ana"]).status, 3);
    assert_eq!(folder.archive("token create", &["--role", "minter", "--name", "Rui"]).status, 0);
    for name in ["Rui", "Аna", "Ana\u{202e}"] {
        assert_eq!(folder.archive("settings", &["--operator-name", name]).status, 2, "{name:?}");
    }
    assert_eq!(folder.archive("settings", &["--operator-name", ""]).json()[0]["operator_name"], "operator");
    assert_eq!(by(), "operator");
    // Over the API, the token's name is used.
    let server = folder.serve();
    let token = folder.token("depositor");
    let draft = server.api(&token, "POST", "/drafts", b"").json();
    let publish = format!("/drafts/{}/publish", draft["id"].as_str().unwrap());
    assert_eq!(server.api(&token, "POST", &publish, b"").json()["history"][0]["by"], "depositor");
}

#[test]
fn one_of_something_is_not_many() {
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a.txt", b"1")], &["--dc", "title=One"]);
    let audit = folder.archive("audit", &[&item]);
    assert!(audit.stderr.contains("1 item, "), "{}", audit.stderr);
    let out = folder.place.path().join("bag").display().to_string();
    let exported = folder.archive("export", &[&item, "--out", &out]);
    assert!(exported.stderr.contains("exported: 1 file, 1 byte,"), "{}", exported.stderr);
    let data = folder.data().display().to_string();
    let shown = crate::binary::ibi(&["archive", "show", &item, "--data", &data]);
    assert!(shown.stdout.contains("a.txt  1 byte  "), "{}", shown.stdout);
}
