//! Tokens: revocation is permanent, expiry immediate, and after a restore none is valid before the
//! operator confirms (docs/security.md, *Identity and ownership*).

use std::thread;

use crate::binary::ibi;
use crate::online::server::Server;
use crate::online::{Folder, until};

fn ids(folder: &Folder) -> Vec<String> {
    let listed = folder.archive("token list", &[]);
    assert_eq!(listed.status, 0, "{}", listed.stderr);
    listed.json().iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect()
}

/// Of 31 revocations by commands beside others that make tokens, none is undone.
#[test]
fn no_revocation_is_undone_by_a_token_that_is_made_meanwhile() {
    let folder = Folder::new();
    let data = folder.data().display().to_string();
    let create = || {
        let run = folder.archive("token create", &["--role", "minter"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.json()[0]["id"].as_str().unwrap().to_owned()
    };
    let revoked: Vec<String> = (0..31).map(|_| create()).collect();
    let made: Vec<String> = thread::scope(|scope| {
        let making = scope.spawn(|| (0..31).map(|_| create()).collect::<Vec<_>>());
        for half in revoked.chunks(16) {
            let data = &data;
            scope.spawn(move || {
                for id in half {
                    let run = ibi(&["archive", "token", "revoke", id, "--data", data]);
                    assert_eq!(run.status, 0, "{}", run.stderr);
                }
            });
        }
        making.join().unwrap()
    });
    assert_eq!(ids(&folder), made);
}

/// A token is good until the second in which it expires, also one that a server knows already.
#[test]
fn an_expired_token_is_refused_at_once() {
    let folder = Folder::new();
    let data = folder.data().display().to_string();
    let create = |expires: &str| folder.archive("token create", &["--role", "minter", "--expires", expires]);
    let made = create("12h").json().pop().unwrap();
    let (token, id) = (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned());
    let server = folder.serve();
    let status = || server.api(&token, "POST", "/labels", b"").status;
    assert_eq!(status(), 201);
    let set = |expires: &str| ibi(&["archive", "token", "set", &id, "--data", &data, "--expires", expires]);
    assert_eq!(set("2020-01-31").status, 0);
    assert_eq!(status(), 401);
    let listed = folder.archive("token list", &[]).json();
    assert_eq!(listed[0]["expires"], "2020-01-31T00:00:00Z");
    assert!(ibi(&["archive", "token", "list", "--data", &data]).stdout.contains("2020-01-31T00:00:00Z"));
    assert_eq!(set("never").status, 0);
    assert_eq!(status(), 201);
    for wrong in ["tomorrow", "2027-13-01", "0d", "-1d", "99999999999999d", ""] {
        assert_eq!(create(wrong).status, 2, "{wrong}");
    }
}

/// A backup has tokens that were revoked after it was made: none is good before `confirm`.
#[test]
fn a_restore_revives_no_revoked_token() {
    let folder = Folder::new();
    let [kept, revoked] = ["operator", "minter"].map(|role| folder.token(role));
    let data = folder.data().display().to_string();
    let at = |name: &str| folder.place.path().join(name).display().to_string();
    let (backup, restored) = (at("backup"), at("restored"));
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    let id = ids(&folder).pop().unwrap();
    assert_eq!(ibi(&["archive", "token", "revoke", &id, "--data", &data]).status, 0);
    let run = ibi(&["restore", "--from", &backup, "--data", &restored]);
    assert!(run.stderr.contains("tokens are refused"), "{}", run.stderr);
    let server = Server::start(restored.as_ref(), &[]);
    assert_eq!(server.get("/readyz").text(), "not ready to write: mint-refused\n");
    assert_eq!(server.get("/readyz?for=reading").text(), "ready\n");
    for token in [&kept, &revoked] {
        let answer = server.api(token, "POST", "/labels", b"");
        assert_eq!(answer.problem(), 401);
        assert!(answer.text().contains("until its operator confirms"), "{}", answer.text());
    }
    let confirmed = ibi(&["archive", "confirm", "--data", &restored]);
    assert_eq!(confirmed.status, 0, "{}", confirmed.stderr);
    assert!(confirmed.stderr.contains(&id), "it lists what is good again: {}", confirmed.stderr);
    assert_eq!(server.api(&kept, "GET", "/links", b"").status, 200);
    assert_eq!(ibi(&["minter", "recover", "--data", &restored]).status, 0);
    until("it mints again", || server.get("/readyz").text() == "ready\n");
    assert_eq!(ibi(&["archive", "token", "revoke", &id, "--data", &restored]).status, 0);
    assert_eq!(server.api(&revoked, "POST", "/labels", b"").status, 401);
}
