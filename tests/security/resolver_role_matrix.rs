//! Every route of a resolver's API × method × client role: `tests/fixtures/resolver-role-matrix.md`
//! has the response to each. A route of the OpenAPI document without a row fails, and so does a row
//! without a route.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::online::client::ask;
use crate::resolver::Resolver;

const OPENAPI: &str = include_str!("../../crates/ibi-resolver/src/web/api/openapi.json");
const TABLE: &str = include_str!("../fixtures/resolver-role-matrix.md");

/// The Archive service that is registered and retired.
const ARCHIVE: &str = "library.test/archive/2026/01.01.00.00";

/// Method and path with the statuses for nobody, an operator, a revoked and an expired token.
fn rows() -> Vec<(String, String, Vec<u16>)> {
    let table = TABLE.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (method, path) = cells[0].trim_matches('`').split_once(' ').unwrap();
        let expected: Vec<u16> = cells[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(expected.len(), 4, "{line}");
        (method.to_owned(), path.to_owned(), expected)
    };
    table.map(row).collect()
}

#[test]
fn every_route_of_a_resolver_has_a_row_and_every_row_a_route() {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut required = BTreeSet::new();
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys().filter(|name| *name != "parameters");
        required.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    let there: BTreeSet<_> = rows().into_iter().map(|(method, path, _)| (method, path)).collect();
    assert_eq!(there, required);
    assert_eq!(there.len(), rows().len(), "a row is there twice");
}

/// As much as a route needs to do something; nothing that leaves the machine.
fn body(method: &str, path: &str, registry: &str) -> String {
    match (method, path) {
        ("PUT", "/registry") => registry.to_owned(),
        ("POST", "/alerts/{id}/resolve") => json!({ "note": "over" }).to_string(),
        ("POST", _) => json!({ "service": ARCHIVE }).to_string(),
        _ => String::new(),
    }
}

#[test]
fn each_who_asks_a_resolver_is_answered_as_the_table_says() {
    let resolver = Resolver::new();
    let token = |arguments: &[&str]| {
        let made = resolver.json("token create", arguments).pop().unwrap();
        ["token", "id"].map(|name| made[name].as_str().unwrap().to_owned())
    };
    let [operator, _] = token(&[]);
    let [revoked, revoked_id] = token(&[]);
    let [expired, _] = token(&["--expires", "2020-01-01"]);
    let run = resolver.run("token revoke", &[&revoked_id]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let server = resolver.serve();
    let asked = |token: &str, method: &str, path: &str, body: &str| {
        let header =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let path = path.replace("{id}", "1");
        let query = if path == "/resolve" { "?url=a.br/b/2001/01.01.00.00" } else { "" };
        ask(&server.at, method, &format!("/api/v1{path}{query}"), &header, body.as_bytes())
    };
    let registry = asked(&operator, "GET", "/registry", "").text();
    let mut wrong = Vec::new();
    for (method, path, expected) in rows() {
        let sent = body(&method, &path, &registry);
        let statuses =
            ["", &operator, &revoked, &expired].map(|token| asked(token, &method, &path, &sent).status);
        if statuses[..] != expected[..] {
            wrong.push(format!("{method} {path}: {statuses:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
