//! Ownership: items by the id of a token, minted labels by the token that minted them, labels from
//! elsewhere by an operator's grant (docs/security.md, *Identity and ownership*).

use std::fs;

use serde_json::{Value, json};

use crate::online::client::Reply;
use crate::online::server::Server;
use crate::online::{Folder, filter};

/// A label of another Archive.
const FOREIGN: &str = "dpi.inpe.br/banon/1998/08.02.08.56";

/// The secret and the id of a token made with these arguments.
fn token(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let run = folder.archive("token create", arguments);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let made = run.json().pop().unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

/// Whose name commands write to the journal.
fn system_user() -> String {
    let id = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(id.stdout).unwrap().trim().to_owned()
}

fn depositor(folder: &Folder, name: &str) -> String {
    token(folder, &["--role", "depositor", "--name", name]).0
}

/// Deposits what is described, with one file.
fn publish(server: &Server, token: &str, described: &Value) -> Reply {
    let begun = server.api(token, "POST", "/drafts", described.to_string().as_bytes());
    if begun.status != 201 {
        return begun;
    }
    let draft = format!("/drafts/{}", begun.json()["id"].as_str().unwrap());
    assert_eq!(server.api(token, "PUT", &format!("{draft}/files/a.txt"), b"one").status, 200);
    server.api(token, "POST", &format!("{draft}/publish"), b"")
}

fn published(server: &Server, token: &str, described: &Value) -> String {
    let reply = publish(server, token, described);
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()["rep"].as_str().unwrap().to_owned()
}

/// Every way in which somebody may try to change an item.
fn attempts(server: &Server, token: &str, item: &str) -> Vec<u16> {
    let patch = |body: &Value| {
        server.api(token, "PATCH", &format!("/items/{item}"), body.to_string().as_bytes()).status
    };
    let minted = server.api(token, "POST", "/labels", b"").json();
    let alias = minted["labels"][0]["rep"].as_str().unwrap().to_owned();
    let draft = json!({ "item": item }).to_string();
    vec![
        patch(&json!({ "metadata": [{ "element": "title", "value": "New" }] })),
        patch(&json!({ "access": "until:2199-01-01" })),
        patch(&json!({ "aliases": [alias] })),
        patch(&json!({ "transferable": false })),
        patch(&json!({ "language": "pt" })),
        patch(&json!({ "next_edition_of": FOREIGN })),
        server.api(token, "POST", "/drafts", draft.as_bytes()).status,
    ]
}

/// A depositor changes what it owns, whether it is open or closed, and nothing else; operators all.
#[test]
fn only_who_deposited_an_item_changes_it() {
    let folder = Folder::new();
    let [ana, rui] = ["Ana", "Rui"].map(|name| depositor(&folder, name));
    let operator = folder.token("operator");
    let server = folder.serve();
    for described in [json!({}), json!({ "access": "until:2199-01-01" })] {
        let item = published(&server, &ana, &described);
        assert_eq!(attempts(&server, &rui, &item), [403; 7], "another's");
        let changed = attempts(&server, &ana, &item);
        assert_eq!(changed, [200, 200, 200, 200, 200, 200, 201], "one's own");
        let item = published(&server, &ana, &described);
        assert_eq!(attempts(&server, &operator, &item), [200, 200, 200, 200, 200, 200, 201]);
    }
    // A hand-over brings an item away and back: whoever deposited it owns it still.
    let journal = fs::read_to_string(folder.data().join("journal")).unwrap();
    assert!(journal.starts_with("ibi journal, format 5\n"));
    assert!(journal.lines().filter(|line| line.contains(" deposit ")).all(|line| line.contains(" owner=")));
}

/// Two tokens that nobody named, and one named like a user of the machine, own nothing of each
/// other nor of what commands deposit.
#[test]
fn a_name_owns_nothing() {
    let folder = Folder::new();
    let local = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let by = system_user();
    let namesake = depositor(&folder, &by);
    let [first, second] = [(); 2].map(|()| token(&folder, &["--role", "depositor"]).0);
    let server = folder.serve();
    assert_eq!(attempts(&server, &namesake, &local), [403; 7], "named {by}");
    let item = published(&server, &first, &json!({ "access": "until:2199-01-01" }));
    assert_eq!(attempts(&server, &second, &item), [403; 7]);
    // The name of a token that was revoked gives another nothing.
    let old = published(&server, &namesake, &json!({}));
    let listed = folder.archive("token list", &[]).json();
    let revoked = listed.iter().find(|token| token["name"] == by.as_str()).unwrap()["id"].clone();
    let data = folder.data().display().to_string();
    let revoke = ["archive", "token", "revoke", revoked.as_str().unwrap(), "--data", &data];
    assert_eq!(crate::binary::ibi(&revoke).status, 0);
    let newer = depositor(&folder, &by);
    assert_eq!(attempts(&server, &newer, &old), [403; 7]);
}

/// Names tell people apart: no two tokens have the same.
#[test]
fn a_name_that_is_taken_is_refused() {
    let folder = Folder::new();
    depositor(&folder, "Ana");
    let again = folder.archive("token create", &["--role", "minter", "--name", "ana"]);
    assert_ne!(again.status, 0);
    assert!(again.stderr.contains("is a token named"), "{}", again.stderr);
    let [one, two] = [(); 2].map(|()| token(&folder, &["--role", "minter"]).1);
    assert_ne!(one, two);
}

/// What a token owns stays its own when its secret is renewed; the old secret is no good.
#[test]
fn a_renewed_token_owns_what_it_owned() {
    let folder = Folder::new();
    let (old, id) = token(&folder, &["--role", "depositor"]);
    let server = folder.serve();
    let item = published(&server, &old, &json!({}));
    let data = folder.data().display().to_string();
    let renewed = crate::binary::ibi(&["archive", "token", "renew", &id, "--data", &data]);
    assert_eq!(renewed.status, 0, "{}", renewed.stderr);
    let item = format!("/items/{item}");
    let patch = br#"{"language": "pt"}"#;
    assert_eq!(server.api(&old, "PATCH", &item, patch).status, 401);
    assert_eq!(server.api(renewed.stdout.trim(), "PATCH", &item, patch).status, 200);
}

/// Clause 2.1: labels of elsewhere are for operators, by whatever field they are brought.
#[test]
fn clause_2_1_a_depositor_brings_no_foreign_label() {
    let folder = Folder::new();
    let ana = depositor(&folder, "Ana");
    let operator = folder.token("operator");
    let server = folder.serve();
    let own = published(&server, &ana, &json!({}));
    for field in ["labels", "metadata_labels", "aliases"] {
        let brought = json!({ field: [FOREIGN] });
        assert_eq!(publish(&server, &ana, &brought).problem(), 403, "{field}, begun");
        let draft = server.api(&ana, "POST", "/drafts", b"").json();
        let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
        let body = brought.to_string();
        assert_eq!(server.api(&ana, "PATCH", &draft, body.as_bytes()).problem(), 403, "{field}, said later");
        // Said by an operator in another's draft: who publishes it answers for it.
        assert_eq!(server.api(&operator, "PATCH", &draft, body.as_bytes()).status, 200, "{field}");
        assert_eq!(server.api(&ana, "POST", &format!("{draft}/publish"), b"").problem(), 403, "{field}");
        assert_eq!(server.api(&ana, "DELETE", &draft, b"").status, 204);
    }
    let alias = json!({ "aliases": [FOREIGN] }).to_string();
    assert_eq!(server.api(&ana, "PATCH", &format!("/items/{own}"), alias.as_bytes()).problem(), 403);
    assert_eq!(server.get(&format!("/api/v1/items/{FOREIGN}")).status, 404);
    assert_eq!(publish(&server, &operator, &json!({ "labels": [FOREIGN] })).status, 201);
}

/// Clause 2.1: an operator grants prefixes, and takes them away; they are compared whole.
#[test]
fn clause_2_1_a_granted_prefix_lets_its_labels_in() {
    let folder = Folder::new();
    let (ana, id) = token(&folder, &["--role", "depositor", "--prefix", "DPI.inpe.br/banon"]);
    let server = folder.serve();
    let status = |label: &str| publish(&server, &ana, &json!({ "labels": [label] })).status;
    assert_eq!(status(FOREIGN), 201);
    assert_eq!(status("dpi.inpe.br/banon-2/1998/08.02.08.56"), 403);
    assert_eq!(status("iconet.com.br/banon/2001/02.10.22.55"), 403);
    let data = folder.data().display().to_string();
    let set = |arguments: &[&str]| {
        let run =
            crate::binary::ibi(&[&["archive", "token", "set", &id, "--data", &data], arguments].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
    };
    set(&["--prefix", "iconet.com.br/banon"]);
    assert_eq!(status("iconet.com.br/banon/2001/02.10.22.55"), 201);
    assert_eq!(status("dpi.inpe.br/banon/1998/08.02.08.57"), 403);
    set(&["--no-prefixes"]);
    assert_eq!(status("iconet.com.br/banon/2001/02.10.22.56"), 403);
    let original = json!({ "labels": [FOREIGN], "original": true });
    assert_eq!(publish(&server, &ana, &original).status, 403, "the Original of an item from another Archive");
    let wrong = folder.archive("token create", &["--role", "depositor", "--prefix", "not a valid prefix"]);
    assert_eq!(wrong.status, 2, "{}", wrong.stderr);
}

/// A label that one token minted is of no use to another, though it be unused; operators may use
/// it.
#[test]
fn a_minted_label_is_for_who_minted_it() {
    let folder = Folder::new();
    let [ana, rui] = ["Ana", "Rui"].map(|name| depositor(&folder, name));
    let operator = folder.token("operator");
    let local = folder.archive("token create", &["--role", "minter"]);
    assert_eq!(local.status, 0);
    let server = folder.serve();
    let mint = |token: &str| {
        let minted = server.api(token, "POST", "/labels", br#"{"count": 3}"#).json();
        [0, 1, 2].map(|number| minted["labels"][number]["rep"].as_str().unwrap().to_owned())
    };
    let [first, second, third] = mint(&ana);
    let rui_s = mint(&rui);
    let status = |token: &str, described: Value| publish(&server, token, &described).status;
    for field in ["labels", "metadata_labels", "aliases"] {
        assert_eq!(status(&rui, json!({ field: [first] })), 403, "{field}");
    }
    assert_eq!(status(&ana, json!({ "labels": [rui_s[1]] })), 403);
    assert_eq!(status(&ana, json!({ "labels": [first] })), 201);
    assert_eq!(status(&operator, json!({ "labels": [second] })), 201);
    drop(server);
    // Remembered, not only known to the process.
    let server = folder.serve();
    let again = |token: &str| publish(&server, token, &json!({ "labels": [third] })).status;
    assert_eq!((again(&rui), again(&ana)), (403, 201));
    // What an operator minted with a command is the operators'.
    drop(server);
    let data = folder.data().display().to_string();
    let minted = crate::binary::ibi(&["mint", "--data", &data]);
    let minted = minted.stdout.split_whitespace().next().unwrap().to_owned();
    let server = folder.serve();
    assert_eq!(publish(&server, &ana, &json!({ "labels": [minted] })).status, 403);
    assert_eq!(publish(&server, &operator, &json!({ "labels": [minted] })).status, 201);
}

/// Drafts and named requests are the token's, too: another of the same name finds nothing.
#[test]
fn drafts_and_named_requests_are_by_token() {
    let folder = Folder::new();
    let [first, second] = [(); 2].map(|()| token(&folder, &["--role", "depositor"]).0);
    let server = folder.serve();
    let named = |token: &str, body: &[u8]| {
        let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: same\r\n");
        crate::online::client::ask(&server.at, "POST", "/api/v1/drafts", &headers, body)
    };
    let one = named(&first, b"{}").json();
    let two = named(&second, b"{}").json();
    assert_ne!(one["id"], two["id"]);
    let draft = format!("/drafts/{}", one["id"].as_str().unwrap());
    assert_eq!(server.api(&second, "GET", &draft, b"").status, 404);
    assert_eq!(server.api(&second, "POST", &format!("{draft}/publish"), b"").status, 404);
    assert_eq!(server.api(&first, "POST", &format!("{draft}/publish"), b"").status, 201);
    assert_eq!(server.api(&second, "POST", &format!("{draft}/publish"), b"").status, 404);
}

/// Writes the journal as a program of format 3 would have: without owners.
fn forget_owners(folder: &Folder) {
    let path = folder.data().join("journal");
    let journal = fs::read_to_string(&path).unwrap();
    let mut older = "ibi journal, format 3\n".to_owned();
    for line in journal.lines().skip(1) {
        let (text, _) = line.rsplit_once(" sha256=").unwrap();
        let words = text.split(' ').filter(|word| !word.starts_with("owner="));
        let text = words.collect::<Vec<_>>().join(" ");
        let check = filter("sha256sum", text.as_bytes());
        older += &format!("{text} sha256={}\n", &check[..16]);
    }
    fs::write(&path, older).unwrap();
    assert_eq!(folder.archive("rebuild", &[]).status, 0);
    // Tokens of that time had neither unique names nor what came with them.
    let path = folder.data().join("service/tokens.json");
    let tokens = fs::read_to_string(&path).unwrap();
    fs::write(&path, tokens.replace("\"format\": 2", "\"format\": 1")).unwrap();
}

/// Threat: of two namesakes from before ids were recorded, one is revoked, and the other owns the
/// items of both.
#[test]
fn a_name_that_two_had_owns_nothing_when_one_is_revoked() {
    let folder = Folder::new();
    let (ana, rui) = (depositor(&folder, "Ana"), depositor(&folder, "Rui"));
    let server = folder.serve();
    let item = published(&server, &ana, &json!({}));
    drop(server);
    forget_owners(&folder);
    let path = folder.data().join("service/tokens.json");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"Rui\"", "\"Ana\"")).unwrap();
    let listed = folder.archive("token list", &[]).json();
    let data = folder.data().display().to_string();
    let server = folder.serve();
    let status =
        |token: &str| server.api(token, "PATCH", &format!("/items/{item}"), br#"{"language": "pt"}"#).status;
    assert_eq!((status(&ana), status(&rui)), (403, 403));
    let revoke = ["archive", "token", "revoke", listed[0]["id"].as_str().unwrap(), "--data", &data];
    assert_eq!(crate::binary::ibi(&revoke).status, 0);
    assert_eq!((status(&ana), status(&rui)), (401, 403));
}

/// Names of files of a closed item are for its owner and for operators.
#[test]
fn the_owner_of_a_closed_item_is_told_its_files() {
    let folder = Folder::new();
    let (ana, rui, operator) =
        (depositor(&folder, "Ana"), depositor(&folder, "Rui"), folder.token("operator"));
    let server = folder.serve();
    let item = published(&server, &ana, &json!({ "access": "until:2099-01-01" }));
    let files =
        |token: &str| server.api(token, "GET", &format!("/items/{item}"), b"").json()["files"].clone();
    for token in [&ana, &operator] {
        assert_eq!(files(token)[0]["path"], "a.txt", "{}", files(token));
    }
    for token in [&rui, "nonsense"] {
        assert_eq!(files(token), json!([]));
    }
}

/// Items from before ids were recorded: owned by the one token that can have deposited them, else
/// by operators alone.
#[test]
fn an_item_from_before_is_its_depositors_if_that_is_certain() {
    let folder = Folder::new();
    let local = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let by = system_user();
    let [ana, api, namesake] = ["Ana", "api", by.as_str()].map(|name| depositor(&folder, name));
    let operator = folder.token("operator");
    let server = folder.serve();
    let [ana_s, api_s] = [&ana, &api].map(|token| published(&server, token, &json!({})));
    drop(server);
    forget_owners(&folder);
    let server = folder.serve();
    let status = |token: &str, item: &str, language: &str| {
        let body = json!({ "language": language }).to_string();
        server.api(token, "PATCH", &format!("/items/{item}"), body.as_bytes()).status
    };
    assert_eq!((status(&ana, &ana_s, "pt"), status(&api, &ana_s, "en")), (200, 403));
    assert_eq!((status(&api, &api_s, "pt"), status(&operator, &api_s, "en")), (403, 200), "a shared name");
    assert_eq!((status(&namesake, &local, "pt"), status(&operator, &local, "en")), (403, 200));
    let journal = fs::read_to_string(folder.data().join("journal")).unwrap();
    assert!(journal.starts_with("ibi journal, format 5\n"), "migrated when it was opened");
}
