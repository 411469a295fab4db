//! The API: its OpenAPI document, minting, idempotent requests, problem bodies.

use serde_json::{Value, json};

use super::client::{Reply, ask};
use super::{Folder, Server, filter};

const OPENAPI: &str = include_str!("../../crates/ibi-archive/src/web/api/openapi.json");

/// The OpenAPI document that clients rely on: it changes only on purpose.
const FROZEN: &str = "81a3490855b6df2c848fd6f084354d9d6f073998838c07c217bedeb9c515a82a";

fn mint(server: &Server, token: &str, name: &str, body: &[u8]) -> Reply {
    let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: {name}\r\n");
    ask(&server.at, "POST", "/api/v1/labels", &headers, body)
}

#[test]
fn the_description_is_the_one_in_the_source_and_frozen() {
    let folder = Folder::new();
    let served = folder.serve().get("/api/v1/openapi.json");
    assert_eq!(served.header("content-type"), "application/json");
    assert_eq!(served.text(), OPENAPI);
    let digest = filter("sha256sum", OPENAPI.as_bytes());
    assert_eq!(digest.split(' ').next(), Some(FROZEN), "the API has changed: is that meant?");
}

#[test]
fn labels_are_minted_one_or_many_and_never_twice() {
    let folder = Folder::new();
    let minter = folder.token("minter");
    let server = folder.serve();
    let mut seen = Vec::new();
    for (body, many) in [(&b""[..], 1), (b"{}", 1), (b"{\"count\": 25}", 25)] {
        let minted = server.api(&minter, "POST", "/labels", body);
        assert_eq!(minted.status, 201, "{}", minted.text());
        let labels = minted.json()["labels"].as_array().unwrap().clone();
        assert_eq!(labels.len(), many);
        seen.extend(labels.iter().map(|label| label["rep"].as_str().unwrap().to_owned()));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 27);
    for (wrong, status) in [
        ("{\"count\": 0}", 422),
        ("{\"count\": 10001}", 422),
        ("{\"count\": -1}", 422),
        ("{\"cont\": 1}", 422),
        ("{\"count\": 1.5}", 422),
        ("5", 400),
        ("[3]", 400),
        ("{", 400),
    ] {
        assert_eq!(server.api(&minter, "POST", "/labels", wrong.as_bytes()).problem(), status, "{wrong}");
    }
}

#[test]
fn a_request_with_a_key_is_carried_out_once() {
    let folder = Folder::new();
    let [minter, other] = [folder.token("minter"), folder.token("depositor")];
    let server = folder.serve();
    let first = mint(&server, &minter, "canteen", b"{\"count\": 2}");
    assert_eq!(first.status, 201);
    let again = mint(&server, &minter, "canteen", b"{\"count\": 2}");
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(mint(&server, &minter, "canteen", b"{\"count\": 3}").problem(), 422, "another request");
    assert_ne!(mint(&server, &other, "canteen", b"{\"count\": 2}").body, first.body, "another token");
    assert_ne!(mint(&server, &minter, "kitchen", b"{\"count\": 2}").body, first.body, "another key");
    assert_eq!(mint(&server, &minter, &"k".repeat(256), b"").problem(), 400, "too long");
    // Concurrently, it is still executed once.
    let at_once: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| mint(&server, &minter, "cellar", b"").body)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(at_once.iter().all(|body| *body == at_once[0]));
    // Also across a restart.
    drop(server);
    let server = folder.serve();
    assert_eq!(mint(&server, &minter, "canteen", b"{\"count\": 2}").body, first.body);
    let draft = |server: &Server| {
        let headers = format!("Authorization: Bearer {other}\r\nIdempotency-Key: draft\r\n");
        ask(&server.at, "POST", "/api/v1/drafts", &headers, b"").json()["id"].clone()
    };
    assert_eq!(draft(&server), draft(&server));
    let drafts = server.api(&other, "GET", "/drafts", b"").json();
    assert_eq!(drafts["drafts"].as_array().unwrap().len(), 1);
}

/// RFC 9457, for every error.
#[test]
fn everything_that_is_wrong_is_told_in_a_problem_body() {
    let folder = Folder::new();
    let operator = folder.token("operator");
    let server = folder.serve();
    let item = format!("/items/{}", folder.service);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (method, path, body, status) in [
        ("GET", "/nothing", "", 404),
        ("GET", "/items/8JMKD3MGP8W/34PGRBS", "", 404),
        ("GET", "/items/nothing", "", 404),
        ("GET", &format!("{item}/nothing"), "", 404),
        ("GET", "/drafts/nothing", "", 404),
        ("GET", "/items?limit=0", "", 400),
        ("GET", "/items?limit=1001", "", 400),
        ("GET", "/items?limit=x", "", 400),
        ("GET", "/changes?after=-1", "", 400),
        ("PUT", "/items", "", 405),
        ("POST", &item, "{}", 405),
        // A label that is also a route prefix: the item is what is missing.
        ("POST", "/items/Zp/audit", "{}", 404),
        ("PATCH", &item, "{}", 422),
        ("PATCH", &item, "{\"labels\": [\"8JMKD3MGP8W/34PGRBS\"]}", 422),
        ("PATCH", &item, "{\"metadata\": [{\"element\": \"titel\", \"value\": \"x\"}]}", 422),
        ("PATCH", &item, "{\"language\": \"xx\"}", 422),
        ("PATCH", &item, "{\"access\": \"nobody\"}", 422),
        ("PATCH", &item, "{\"translation_of\": \"nonsense\"}", 422),
        ("PATCH", &item, "\u{1}", 400),
        ("PATCH", &item, &deep, 400),
        ("DELETE", &item, "{\"reason\": \"why not\"}", 409),
        ("DELETE", &item, "{\"reason\": \" \"}", 422),
        ("DELETE", &item, "{}", 422),
        ("POST", "/drafts", "{\"unknown\": 1}", 422),
        ("POST", "/drafts", "{\"item\": \"8JMKD3MGP8W/34PGRBS\"}", 404),
        ("POST", "/drafts/nothing/publish", "", 404),
    ] {
        let answer = server.api(&operator, method, path, body.as_bytes());
        assert_eq!(answer.problem(), status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("allow").is_empty(), status != 405, "{method} {path}");
    }
    let long = json!({ "metadata": [{ "element": "title", "value": "x".repeat(5 << 20) }] }).to_string();
    assert_eq!(server.api(&operator, "POST", "/drafts", long.as_bytes()).problem(), 413);
}

/// RFC 9457, also for unknown paths.
#[test]
fn a_path_that_is_not_utf_8_is_told_in_a_problem_body() {
    let folder = Folder::new();
    let operator = folder.token("operator");
    let server = folder.serve();
    for path in ["/items/%ff", "/items/%ff/statistics", "/drafts/%ff"] {
        let answer = server.api(&operator, "GET", path, b"");
        assert!([400, 404].contains(&answer.problem()), "{path}");
    }
}

/// The schema requires an object: a list whose positions happen to fit is refused.
#[test]
fn a_body_is_an_object_and_no_list() {
    let folder = Folder::new();
    let operator = folder.token("operator");
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let server = folder.serve();
    let item = format!("/items/{rep}");
    for (method, path, body) in
        [("POST", "/labels", "[]"), ("POST", "/labels", "[2]"), ("DELETE", &item, "[\"by law\", true]")]
    {
        let answer = server.api(&operator, method, path, body.as_bytes());
        assert_eq!(answer.problem(), 400, "{method} {path} {body}");
    }
}

#[test]
fn an_item_is_told_as_the_commands_tell_it() {
    let folder = Folder::new();
    let rep = folder
        .deposit(&[(b"a.txt", b"one")], &["--dc", "title@pt=Relatório", "--alias", "8JMKD3MGP8W/34PGRBS"]);
    let server = folder.serve();
    let told: Value = folder.archive("show", &[&rep]).json().pop().unwrap();
    for label in [rep.clone(), rep.replace('/', "%2F"), "8JMKD3MGP8W/34PGRBS".to_owned()] {
        assert_eq!(server.api("", "GET", &format!("/items/{label}"), b"").json(), told, "{label}");
    }
    let page = server.get_with(&format!("/col/{rep}/"), "Accept: application/json\r\n");
    assert_eq!(page.json(), told);
    let relations = server.api("", "GET", &format!("/items/{rep}/relations"), b"").json();
    let found =
        relations["relations"].as_array().unwrap().iter().any(|led| led["ibi"] == told["metadata"]["rep"]);
    assert!(found, "{relations}");
    assert_eq!(server.api("", "GET", "/audit", b"").json()["state"], "never");
    assert_eq!(folder.archive("audit", &[]).status, 0);
    assert_eq!(server.api("", "GET", "/audit", b"").json()["state"], "finished");
}
