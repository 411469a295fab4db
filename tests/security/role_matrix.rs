//! Every route of the API × method × role × state of an item: `tests/fixtures/role-matrix.md` has
//! the response to each. A route of the OpenAPI document without a row fails, and so does a row
//! without a route.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::binary::ibi;
use crate::online::Folder;
use crate::online::server::Server;

const OPENAPI: &str = include_str!("../../crates/ibi-archive/src/web/api/openapi.json");
const TABLE: &str = include_str!("../fixtures/role-matrix.md");

/// The columns of the table behind route and item: who asks. Revoked and expired ones were
/// operators'.
const ROLES: [&str; 8] = ["nobody", "minter", "owner", "other", "holder", "operator", "revoked", "expired"];

/// What an item may be, where a route has one.
const STATES: [&str; 3] = ["public", "closed", "removed"];

/// A row of the table.
struct MatrixRow {
    method: String,
    path: String,
    /// A state of an item; `draft`; or `-`.
    item: String,
    expected: Vec<u16>,
}

fn rows() -> Vec<MatrixRow> {
    let table = TABLE.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (method, path) = cells[0].trim_matches('`').split_once(' ').unwrap();
        let expected: Vec<u16> = cells[2..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(expected.len(), ROLES.len(), "{line}");
        MatrixRow { method: method.to_owned(), path: path.to_owned(), item: cells[1].to_owned(), expected }
    };
    table.map(row).collect()
}

/// The rows that there must be: of each route and method, for each state of an item if it has one.
fn required() -> BTreeSet<(String, String, String)> {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut required = BTreeSet::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        for method in methods.filter(|name| *name != "parameters").map(|name| name.to_uppercase()) {
            let items: &[&str] = match path.as_str() {
                path if path.contains("{ibi}") => &STATES,
                path if path.contains("{id}") => &["draft"],
                // A draft of a new item, and of one that is there.
                "/drafts" if method == "POST" => &["-", "public", "closed", "removed"],
                _ => &["-"],
            };
            let row = |item: &&str| (method.clone(), path.clone(), (*item).to_owned());
            required.extend(items.iter().map(row));
        }
    }
    required
}

/// The source of the router: a route that the OpenAPI document leaves out has no row either.
const ROUTER: &str = include_str!("../../crates/ibi-archive/src/web/api.rs");

#[test]
fn every_route_of_the_router_is_in_the_openapi_document() {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
    let described = openapi["paths"].as_object().unwrap();
    let routes: Vec<&str> =
        ROUTER.split(".route(\"").skip(1).map(|route| route.split('"').next().unwrap()).collect();
    assert!(routes.len() > 15, "{routes:?}");
    for route in routes {
        // Everything below an item is one route here.
        let beginning = route.replace("{*rest}", "{ibi}").replace("{*name}", "{name}");
        let is_described = described.keys().any(|path| path == &beginning || path.starts_with(&beginning));
        assert!(is_described, "{route} is not in openapi.json");
    }
}

#[test]
fn every_route_has_its_rows_and_every_row_a_route() {
    let named = |row: MatrixRow| (row.method, row.path, row.item);
    let there: BTreeSet<_> = rows().into_iter().map(named).collect();
    assert_eq!(there.len(), rows().len(), "a row is there twice");
    let required = required();
    let missing: Vec<_> = required.difference(&there).collect();
    let superfluous: Vec<_> = there.difference(&required).collect();
    assert!(missing.is_empty() && superfluous.is_empty(), "missing {missing:?}, superfluous {superfluous:?}");
}

/// An Archive with one token of each kind.
struct MatrixStage {
    server: Server,
    tokens: Vec<String>,
}

impl MatrixStage {
    fn new(folder: &Folder) -> Self {
        let data = folder.data().display().to_string();
        let token = |role: &str| {
            let made = folder.archive("token create", &["--role", role]).json().pop().unwrap();
            ["token", "id"].map(|name| made[name].as_str().unwrap().to_owned())
        };
        let plain =
            ["minter", "depositor", "depositor", "holder", "operator"].map(|role| token(role)[0].clone());
        let ([revoked, revoked_id], [expired, expired_id]) = (token("operator"), token("operator"));
        let done = |arguments: &[&str]| {
            let run = ibi(&[&["archive", "token"], arguments, &["--data", &data]].concat());
            assert_eq!(run.status, 0, "{}", run.stderr);
        };
        done(&["revoke", &revoked_id]);
        done(&["set", &expired_id, "--expires", "2020-01-01"]);
        let tokens = [String::new()].into_iter().chain(plain).chain([revoked, expired]).collect();
        Self { server: folder.serve(), tokens }
    }

    fn token(&self, role: &str) -> &str {
        &self.tokens[ROLES.iter().position(|known| *known == role).unwrap()]
    }

    /// A draft of the owner's with a file.
    fn draft(&self, described: &Value) -> String {
        let owner = self.token("owner");
        let begun = self.server.api(owner, "POST", "/drafts", described.to_string().as_bytes());
        assert_eq!(begun.status, 201, "{}", begun.text());
        let id = begun.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(self.server.api(owner, "PUT", &format!("/drafts/{id}/files/a.txt"), b"one").status, 200);
        id
    }

    /// An item of the owner's in a state.
    fn item(&self, state: &str) -> String {
        let access = if state == "closed" { "until:2199-01-01" } else { "public" };
        let id = self.draft(&json!({ "access": access }));
        let made = self.server.api(self.token("owner"), "POST", &format!("/drafts/{id}/publish"), b"");
        assert_eq!(made.status, 201, "{}", made.text());
        let rep = made.json()["rep"].as_str().unwrap().to_owned();
        if state == "removed" {
            let reason = br#"{"reason": "by law"}"#;
            let removed = self.server.api(self.token("operator"), "DELETE", &format!("/items/{rep}"), reason);
            assert_eq!(removed.status, 200, "{}", removed.text());
        }
        rep
    }

    /// What a row is about, made anew.
    fn subject(&self, item: &str) -> String {
        match item {
            "-" => String::new(),
            "draft" => self.draft(&json!({})),
            state => self.item(state),
        }
    }

    fn status(&self, row: &MatrixRow, subject: &str, token: &str) -> u16 {
        let path = row.path.replace("{ibi}", subject).replace("{id}", subject);
        let path = path.replace("{path}", "v1/content/doc/a.txt").replace("{name}", "a.txt");
        let body = body(&row.method, &row.path, subject);
        self.server.api(token, &row.method, &path, body.as_bytes()).status
    }
}

/// What is sent: as much as the route needs to do something, or to refuse it for another reason
/// than who asks; nothing that leaves the machine.
fn body(method: &str, path: &str, subject: &str) -> String {
    match (method, path) {
        ("DELETE", "/items/{ibi}") => json!({ "reason": "by law" }).to_string(),
        ("PATCH", _) => json!({ "language": "pt" }).to_string(),
        ("POST", "/drafts") if !subject.is_empty() => json!({ "item": subject }).to_string(),
        ("PUT", _) => "two".to_owned(),
        ("POST", "/links") => {
            json!({ "kind": "edition", "older": "a.br/b/2001/01.01.00.00", "newer": "a.br/b/2001/01.01.00.01" })
                .to_string()
        }
        ("POST", _) => "{}".to_owned(),
        _ => String::new(),
    }
}

/// The answers of a running server are those of the table.
#[test]
fn each_role_is_answered_as_the_table_says() {
    let folder = Folder::new();
    let stage = MatrixStage::new(&folder);
    let (mut found, mut wrong) = (String::new(), Vec::new());
    for row in rows() {
        let mut subject = stage.subject(&row.item);
        let mut statuses = Vec::new();
        for (role, token) in ROLES.iter().zip(&stage.tokens) {
            let status = stage.status(&row, &subject, token);
            statuses.push(status);
            let expected = row.expected[statuses.len() - 1];
            if status != expected {
                wrong.push(format!(
                    "{} {} ({}) by {role}: {status}, not {expected}",
                    row.method, row.path, row.item
                ));
            }
            if row.method != "GET" && status < 300 {
                subject = stage.subject(&row.item);
            }
        }
        let cells: Vec<String> = statuses.iter().map(u16::to_string).collect();
        let _ = writeln!(found, "| `{} {}` | {} | {} |", row.method, row.path, row.item, cells.join(" | "));
    }
    assert!(wrong.is_empty(), "{}\n\nfound:\n{found}", wrong.join("\n"));
}
