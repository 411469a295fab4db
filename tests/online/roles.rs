//! Tokens: who may do what over the API.

use super::Folder;

#[test]
fn each_role_may_do_its_own_and_no_more() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let [minter, depositor, operator] = ["minter", "depositor", "operator"].map(|role| folder.token(role));
    let server = folder.serve();
    let item = format!("/items/{rep}");
    let draft = server.api(&depositor, "POST", "/drafts", b"").json();
    let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
    let file = format!("{draft}/files/a.txt");
    let publish = format!("{draft}/publish");
    let title: &[u8] = br#"{"metadata": [{"element": "title", "value": "New"}]}"#;
    // From the least to the most privileged: with no token, a wrong one, and each role.
    for (method, path, body, expected) in [
        ("POST", "/labels", &b""[..], [401, 401, 201, 201, 201]),
        ("GET", "/drafts", b"", [401, 401, 403, 200, 200]),
        ("POST", "/drafts", b"", [401, 401, 403, 201, 201]),
        ("GET", &draft, b"", [401, 401, 403, 200, 200]),
        ("PUT", &file, b"x", [401, 401, 403, 200, 200]),
        ("PATCH", &draft, title, [401, 401, 403, 200, 200]),
        ("DELETE", &file, b"", [401, 401, 403, 204, 404]),
        ("PUT", &file, b"x", [401, 401, 403, 200, 200]),
        ("POST", &publish, b"", [401, 401, 403, 201, 201]),
        ("DELETE", &draft, b"", [401, 401, 403, 404, 404]),
        ("PATCH", &item, title, [401, 401, 403, 403, 200]),
        ("DELETE", &item, b"{\"reason\": \"by law\"}", [401, 401, 403, 403, 200]),
        ("GET", "/items", b"", [200; 5]),
        ("GET", &item, b"", [410; 5]),
        ("GET", "/changes", b"", [200; 5]),
        ("GET", "/audit", b"", [200; 5]),
    ] {
        let tokens = ["", "ibi_0000", &minter, &depositor, &operator];
        for (token, status) in tokens.into_iter().zip(expected) {
            let answer = server.api(token, method, path, body);
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
            if status == 401 {
                assert!(answer.header("www-authenticate").starts_with("Bearer"));
            }
            if [401, 403, 404].contains(&status) {
                answer.problem();
            }
        }
    }
    let removed = server.api("", "GET", &item, b"").json();
    assert_eq!(
        (&removed["removed"]["by"], &removed["removed"]["reason"]),
        (&"librarian".into(), &"by law".into())
    );
}

#[test]
fn a_draft_is_its_owners_and_the_operators() {
    let folder = Folder::new();
    let [ana, rui, operator] = ["depositor", "depositor", "operator"].map(|role| folder.token(role));
    let server = folder.serve();
    let draft = server.api(&ana, "POST", "/drafts", b"").json();
    let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
    for (method, rest) in
        [("GET", ""), ("PUT", "/files/x"), ("DELETE", "/files/x"), ("DELETE", ""), ("POST", "/publish")]
    {
        assert_eq!(
            server.api(&rui, method, &format!("{draft}{rest}"), b"").problem(),
            404,
            "{method} {rest}"
        );
    }
    assert_eq!(server.api(&rui, "GET", "/drafts", b"").json()["drafts"].as_array().unwrap().len(), 0);
    assert_eq!(server.api(&operator, "GET", &draft, b"").status, 200);
    assert_eq!(server.api(&ana, "GET", &draft, b"").status, 200);
}

#[test]
fn a_token_is_good_at_once_and_until_it_is_revoked() {
    let folder = Folder::new();
    let server = folder.serve();
    let token = folder.token("minter");
    assert_eq!(server.api(&token, "POST", "/labels", b"").status, 201);
    let listed = folder.archive("token list", &[]);
    assert!(!listed.stdout.contains(&token), "only a digest is kept");
    let id = listed.json()[0]["id"].as_str().unwrap().to_owned();
    let data = folder.data().display().to_string();
    assert_eq!(crate::binary::ibi(&["archive", "token", "revoke", &id, "--data", &data]).status, 0);
    assert_eq!(server.api(&token, "POST", "/labels", b"").problem(), 401);
}

/// Operators see a closed item's files, also over the API.
#[test]
fn only_an_operator_is_told_the_files_of_a_closed_item() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &["--access", "until:2199-01-01"]);
    let [depositor, operator] = ["depositor", "operator"].map(|role| folder.token(role));
    let server = folder.serve();
    let files = |token: &str| {
        let told = server.api(token, "GET", &format!("/items/{rep}"), b"").json();
        (told["files"].as_array().unwrap().len(), told["target"].is_string())
    };
    assert_eq!([files(""), files(&depositor), files(&operator)], [(0, false), (0, false), (1, true)]);
}
