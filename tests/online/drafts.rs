//! Deposits and updates over the API: draft, files, publish.

use serde_json::Value;

use super::client::{Reply, connect};
use super::{Folder, Server, bytes, filter};

/// Creates a draft and returns its address.
fn begin(server: &Server, token: &str, body: &[u8]) -> String {
    let draft = server.api(token, "POST", "/drafts", body);
    assert_eq!(draft.status, 201, "{}", draft.text());
    format!("/drafts/{}", draft.json()["id"].as_str().unwrap())
}

fn paths(told: &Value) -> Vec<&str> {
    told["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn a_draft_takes_files_and_becomes_an_item() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = begin(
        &server,
        &token,
        br#"{"metadata": [{"element": "title", "language": "pt", "value": "Relat\u00f3rio"}]}"#,
    );
    let large = bytes((2 << 20) + 77);
    for (name, content) in
        [("a.txt", &b"one"[..]), ("sub/large%20file.bin", &large), ("wrong", b"x"), ("a.txt", b"two")]
    {
        let put = server.api(&token, "PUT", &format!("{draft}/files/{name}"), content);
        assert_eq!(put.status, 200, "{name}: {}", put.text());
    }
    assert_eq!(server.api(&token, "DELETE", &format!("{draft}/files/wrong"), b"").status, 204);
    let told = server.api(&token, "GET", &draft, b"").json();
    assert_eq!(paths(&told), ["a.txt", "sub/large file.bin"]);
    assert_eq!(told["files"][1]["sha512"], filter("sha512sum", &large)[..128]);
    assert_eq!(server.api(&token, "DELETE", &format!("{draft}/files/wrong"), b"").problem(), 404);
    let more = br#"{"language": "pt-BR", "target": "a.txt"}"#;
    assert_eq!(server.api(&token, "PATCH", &draft, more).status, 200);
    let published = server.api(&token, "POST", &format!("{draft}/publish"), b"");
    assert_eq!(published.status, 201, "{}", published.text());
    let item = published.json();
    let rep = item["rep"].as_str().unwrap();
    assert_eq!(published.header("location"), format!("/api/v1/items/{rep}"));
    assert_eq!((&item["language"], &item["target"]), (&"pt-BR".into(), &"a.txt".into()));
    assert_eq!(item["metadata"]["dc"][0]["value"], "Relatório");
    assert_eq!(item["history"][0]["by"], "depositor");
    assert_eq!(server.get(&format!("/col/{rep}/doc/a.txt")).body, b"two");
    assert!(server.get(&format!("/col/{rep}/doc/sub/large%20file.bin")).body == large);
    // The response was lost, and the request is repeated.
    let again = server.api(&token, "POST", &format!("{draft}/publish"), b"");
    assert_eq!((again.status, again.json()["rep"].as_str()), (201, Some(rep)));
    assert_eq!(server.api(&token, "GET", &draft, b"").problem(), 404);
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Names are bytes, as with every other kind of deposit.
#[test]
fn a_file_of_a_draft_may_be_named_in_iso_8859_1() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = begin(&server, &token, b"");
    let put = server.api(&token, "PUT", &format!("{draft}/files/Relat%F3rio.txt"), b"old");
    assert_eq!(put.status, 200, "{}", put.text());
    let put = server.api(&token, "PUT", &format!("{draft}/files/Relat%C3%B3rio.txt"), b"new");
    assert_eq!(put.status, 200, "{}", put.text());
    let item = server.api(&token, "POST", &format!("{draft}/publish"), b"").json();
    let at = |name: &str| server.get(&format!("/col/{}/doc/{name}", item["rep"].as_str().unwrap())).text();
    assert_eq!((at("Relat%F3rio.txt"), at("Relat%C3%B3rio.txt")), ("old".to_owned(), "new".to_owned()));
}

#[test]
fn a_draft_of_an_item_is_its_next_version_and_only_the_next() {
    let folder = Folder::new();
    // The item is deposited by a command: it belongs to the operators.
    let token = folder.token("operator");
    let rep = folder.deposit(&[(b"kept.txt", b"kept"), (b"old.txt", b"old")], &["--dc", "title=First"]);
    let server = folder.serve();
    let body = format!("{{\"item\": \"{rep}\"}}");
    let [draft, late] = [begin(&server, &token, body.as_bytes()), begin(&server, &token, body.as_bytes())];
    assert_eq!(paths(&server.api(&token, "GET", &draft, b"").json()), ["kept.txt", "old.txt"]);
    assert_eq!(server.api(&token, "DELETE", &format!("{draft}/files/old.txt"), b"").status, 204);
    assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/new.txt"), b"new").status, 200);
    let published = server.api(&token, "POST", &format!("{draft}/publish"), b"");
    assert_eq!(published.status, 200, "{}", published.text());
    let item = published.json();
    assert_eq!((paths(&item), &item["version"]), (vec!["kept.txt", "new.txt"], &2.into()));
    // The response was lost, and the request is repeated.
    let again = server.api(&token, "POST", &format!("{draft}/publish"), b"");
    assert_eq!((again.status, again.json()), (200, item.clone()));
    assert_eq!(item["metadata"]["dc"][0]["value"], "First");
    assert_eq!(server.get(&format!("/col/{rep}/v1/doc/old.txt")).body, b"old");
    assert_eq!(server.api(&token, "PUT", &format!("{late}/files/late.txt"), b"late").status, 200);
    assert_eq!(
        server.api(&token, "POST", &format!("{late}/publish"), b"").problem(),
        409,
        "begun from version 1"
    );
    let told = server
        .api(
            &token,
            "PATCH",
            &format!("/items/{rep}"),
            br#"{"metadata": [{"element": "title", "value": "Third"}], "access": "until:2199-01-01"}"#,
        )
        .json();
    assert_eq!((&told["version"], &told["metadata"]["dc"][0]["value"]), (&3.into(), &"Third".into()));
    assert_eq!(server.get(&format!("/col/{rep}/doc/kept.txt")).status, 403);
}

/// Acknowledged uploads survive `kill -9`, and the draft continues.
#[test]
fn drafts_survive_the_death_of_the_server() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let mut server = folder.serve();
    let draft = begin(&server, &token, br#"{"metadata": [{"element": "title", "value": "Kept"}]}"#);
    let large = bytes(1 << 20);
    assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/large.bin"), &large).status, 200);
    // An upload that never completes.
    let mut cut = connect(&server.at);
    let head = format!(
        "PUT /api/v1{draft}/files/cut.bin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 99\r\n\r\nhalf"
    );
    std::io::Write::write_all(&mut cut, head.as_bytes()).unwrap();
    let before = server.api(&token, "GET", &draft, b"").json();
    server.child.kill().unwrap();
    server.end();
    let server = folder.serve();
    assert_eq!(server.api(&token, "GET", &draft, b"").json(), before);
    assert_eq!(paths(&before), ["large.bin"]);
    let item = server.api(&token, "POST", &format!("{draft}/publish"), b"").json();
    let served = server.get(&format!("/col/{}/doc/large.bin", item["rep"].as_str().unwrap()));
    assert!(served.status == 200 && served.body == large);
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// A body that is shorter than announced is no file.
#[test]
fn a_file_that_was_cut_off_is_not_taken() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = begin(&server, &token, b"");
    let head = format!(
        "PUT /api/v1{draft}/files/cut.bin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    );
    let mut cut = connect(&server.at);
    std::io::Write::write_all(&mut cut, format!("{head}Content-Length: 99\r\n\r\nhalf").as_bytes()).unwrap();
    cut.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut cut, &mut answer);
    assert!(Reply::read(&answer).is_none_or(|reply| reply.status == 400), "{answer:?}");
    assert_eq!(paths(&server.api(&token, "GET", &draft, b"").json()), [""; 0]);
    let chunked =
        server.raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n").as_bytes());
    assert_eq!(Reply::read(&chunked).unwrap().status, 200);
    assert_eq!(server.api(&token, "GET", &draft, b"").json()["files"][0]["size"], 4);
}

/// Published by many clients at once, a draft becomes one item.
#[test]
fn a_draft_that_is_published_by_many_at_once_is_one_item() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let before = folder.archive("list", &[]).json().len();
    for _ in 0..5 {
        let draft = begin(&server, &token, b"");
        assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/a.txt"), b"one").status, 200);
        let answers: Vec<u16> = std::thread::scope(|scope| {
            let publish = || server.api(&token, "POST", &format!("{draft}/publish"), b"").status;
            let all: Vec<_> = (0..6).map(|_| scope.spawn(publish)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(answers.iter().all(|status| [201, 409].contains(status)), "{answers:?}");
        assert!(answers.contains(&201), "{answers:?}");
    }
    assert_eq!(folder.archive("list", &[]).json().len(), before + 5);
}

/// Clause 2.1: only an operator may declare an item from elsewhere the Original, or add labels to
/// it.
#[test]
fn only_an_operator_claims_what_is_of_elsewhere() {
    let folder = Folder::new();
    let (depositor, operator) = (folder.token("depositor"), folder.token("operator"));
    let server = folder.serve();
    for body in [
        &br#"{"labels": ["sid.inpe.br/mtc-m18/2009/02.16.17.46"], "original": true}"#[..],
        br#"{"aliases": ["sid.inpe.br/mtc-m18/2009/02.16.17.46"]}"#,
    ] {
        assert_eq!(server.api(&depositor, "POST", "/drafts", body).problem(), 403);
        assert_eq!(server.api(&operator, "POST", "/drafts", body).status, 201);
    }
}

/// Metadata can be removed only with their item.
#[test]
fn metadata_are_not_removed_by_themselves() {
    let folder = Folder::new();
    let operator = folder.token("operator");
    let rep = folder.deposit(&[(b"a.txt", b"a")], &[]);
    let server = folder.serve();
    let item = server.api("", "GET", &format!("/items/{rep}"), b"").json();
    let metadata = item["metadata"]["rep"].as_str().unwrap();
    let answer = server.api(&operator, "DELETE", &format!("/items/{metadata}"), br#"{"reason": "x"}"#);
    assert_eq!(answer.problem(), 409);
    assert_eq!(server.api("", "GET", &format!("/items/{rep}"), b"").status, 200);
}

/// OCFL 1.1: a file cannot also be a folder.
#[test]
fn a_file_and_a_folder_of_one_name_are_refused_together() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = begin(&server, &token, b"");
    for name in ["x/y/z", "x/y"] {
        assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/{name}"), b"1").status, 200);
    }
    let publish = format!("{draft}/publish");
    assert_eq!(server.api(&token, "POST", &publish, b"").problem(), 422);
    assert_eq!(server.api(&token, "DELETE", &format!("{draft}/files/x/y"), b"").status, 204);
    assert_eq!(server.api(&token, "POST", &publish, b"").status, 201);
}

/// RFC 9110 §14.5: a partial PUT must not be taken for the whole file.
#[test]
fn a_file_that_is_sent_in_part_or_packed_is_refused() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = begin(&server, &token, b"");
    for (field, status) in [("Content-Range: bytes 4-9/10", 400), ("Content-Encoding: gzip", 415)] {
        let headers = format!("Authorization: Bearer {token}\r\n{field}\r\n");
        let path = format!("/api/v1{draft}/files/a.txt");
        assert_eq!(super::client::ask(&server.at, "PUT", &path, &headers, b"456789").problem(), status);
    }
    assert_eq!(paths(&server.api(&token, "GET", &draft, b"").json()), [""; 0]);
}

/// Threat W14: the names of closed files are for their depositor and for operators.
#[test]
fn what_is_closed_is_not_shown_to_others_who_deposit() {
    let folder = Folder::new();
    let [token, operator] = ["depositor", "operator"].map(|role| folder.token(role));
    let made =
        folder.archive("token create", &["--role", "depositor", "--name", "Bob"]).json().pop().unwrap();
    let bob = made["token"].as_str().unwrap().to_owned();
    let server = folder.serve();
    let draft = begin(&server, &token, br#"{"access": "until:2199-01-01"}"#);
    assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/secret.txt"), b"1").status, 200);
    let publish = format!("{draft}/publish");
    let item = server.api(&token, "POST", &publish, b"").json();
    let (rep, update) = (item["rep"].as_str().unwrap(), br#"{"language": "es"}"#);
    let begun = format!("{{\"item\": \"{rep}\"}}");
    for (token, statuses) in
        [(&bob, [404, 403, 403]), (&token, [201, 201, 200]), (&operator, [201, 201, 200])]
    {
        let answers = [
            server.api(token, "POST", &publish, b""),
            server.api(token, "POST", "/drafts", begun.as_bytes()),
            server.api(token, "PATCH", &format!("/items/{rep}"), update),
        ];
        assert_eq!(answers.each_ref().map(|answer| answer.status), statuses);
        let told = answers.iter().any(|answer| answer.text().contains("secret.txt"));
        assert_eq!(told, token != &bob);
        // The next one has something to change.
        let _ = server.api(token, "PATCH", &format!("/items/{rep}"), br#"{"language": "pt"}"#);
    }
}
