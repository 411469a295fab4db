//! The arrows of ARCHITECTURE.md, and no others.

use std::process::Command;

use serde_json::{Value, json};

/// What each crate may depend on to run. Tests and benchmarks may use more.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ibi-id", &[]),
    ("ibi-protocol", &["ibi-id", "percent-encoding", "serde", "thiserror"]),
    (
        "ibi-http",
        &[
            "axum",
            "bytes",
            "getrandom",
            "http",
            "http-body-util",
            "hyper",
            "hyper-util",
            "metrics",
            "metrics-exporter-prometheus",
            "percent-encoding",
            "reqwest",
            "rustls",
            "serde",
            "serde_json",
            "sha2",
            "subtle",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tower",
            "tracing",
            "tracing-subscriber",
        ],
    ),
    (
        "ibi-store",
        &[
            "ibi-id",
            "blake3",
            "pulp",
            "rusqlite",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "unicode-normalization",
        ],
    ),
    (
        "ibi-resolver",
        &[
            "ibi-id",
            "ibi-protocol",
            "ibi-store",
            "ibi-http",
            "argon2",
            "askama",
            "axum",
            "bytes",
            "getrandom",
            "http",
            "metrics",
            "percent-encoding",
            "serde",
            "serde_json",
            "subtle",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    (
        "ibi-archive",
        &[
            "ibi-id",
            "ibi-protocol",
            "ibi-store",
            "ibi-http",
            "askama",
            "axum",
            "base64",
            "blake3",
            "bytes",
            "csv",
            "getrandom",
            "http",
            "http-body",
            "http-body-util",
            "httpdate",
            "md-5",
            "metrics",
            "mime_guess",
            "percent-encoding",
            "quick-xml",
            "rustix",
            "serde",
            "serde_json",
            "sha1",
            "sha2",
            "thiserror",
            "thread-priority",
            "tokio",
            "tracing",
            "loom",
        ],
    ),
    (
        "ibi",
        &[
            "ibi-id",
            "ibi-archive",
            "ibi-resolver",
            "ibi-http",
            "ibi-protocol",
            "axum",
            "clap",
            "clap_complete",
            "clap_mangen",
            "getrandom",
            "indicatif",
            "mimalloc",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ],
    ),
];

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    assert_eq!(metadata["packages"].as_array().unwrap().len(), ALLOWED.len());
    assert_eq!(violations(&metadata), [""; 0]);
}

#[test]
fn an_arrow_that_is_not_drawn_is_found() {
    let package = |name: &str, dependency: &str, kind: Value| json!({ "packages": [{ "name": name, "dependencies": [{ "name": dependency, "kind": kind }] }] });
    assert_eq!(violations(&package("ibi-id", "serde", Value::Null)), ["ibi-id depends on serde"]);
    assert_eq!(violations(&package("ibi-id", "ibi", json!("build"))), ["ibi-id depends on ibi"]);
    assert_eq!(violations(&package("new", "ibi-id", Value::Null)), ["new depends on ibi-id"]);
    assert_eq!(violations(&package("ibi-id", "proptest", json!("dev"))), [""; 0]);
}

fn violations(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed =
            ALLOWED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, allowed)| allowed);
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            if dependency["kind"] != "dev" && !allowed.contains(&on) {
                found.push(format!("{name} depends on {on}"));
            }
        }
    }
    found
}
