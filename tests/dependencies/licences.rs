//! Licences of all dependencies: only those that allow distributing the binary under ours.

use serde_json::{Value, json};

use super::{WORKSPACES, metadata, packages};

/// None of them requires more than attribution.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[test]
fn every_licence_is_one_that_we_may_use() {
    for workspace in WORKSPACES {
        assert_eq!(refused(&metadata(workspace)), [""; 0], "{workspace}/Cargo.lock");
    }
}

#[test]
fn a_licence_that_we_may_not_use_is_found() {
    let package = |licence: Value| json!({ "packages": [{ "name": "planted", "version": "1.0.0", "license": licence, "source": "registry" }] });
    for allowed in ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR GPL-2.0) AND Unicode-3.0"] {
        assert_eq!(refused(&package(json!(allowed))), [""; 0], "{allowed}");
    }
    for not in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT AND AGPL-3.0) OR SSPL-1.0", "MIT AND", "(MIT"] {
        assert_eq!(refused(&package(json!(not))), [format!("planted 1.0.0: {not}")]);
    }
    assert_eq!(refused(&package(Value::Null)), ["planted 1.0.0: it names no licence"]);
}

fn refused(metadata: &Value) -> Vec<String> {
    let licence = |package: &Value| package["license"].as_str().map(str::to_owned);
    let bad = packages(metadata).filter(|package| !licence(package).is_some_and(|text| is_allowed(&text)));
    bad.map(|package| {
        let name = package["name"].as_str().unwrap();
        let licence = licence(package).unwrap_or_else(|| "it names no licence".to_owned());
        format!("{name} {}: {licence}", package["version"].as_str().unwrap())
    })
    .collect()
}

/// An SPDX expression of `OR`, `AND` and brackets; a slash is an old form of `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut place = 0;
    either(&words, &mut place) == Some(true) && place == words.len()
}

fn either(words: &[&str], place: &mut usize) -> Option<bool> {
    let mut holds = both(words, place)?;
    while words.get(*place) == Some(&"OR") {
        *place += 1;
        holds |= both(words, place)?;
    }
    Some(holds)
}

fn both(words: &[&str], place: &mut usize) -> Option<bool> {
    let mut holds = one(words, place)?;
    while words.get(*place) == Some(&"AND") {
        *place += 1;
        holds &= one(words, place)?;
    }
    Some(holds)
}

fn one(words: &[&str], place: &mut usize) -> Option<bool> {
    let word = *words.get(*place)?;
    *place += 1;
    if word == "(" {
        let holds = either(words, place)?;
        let closed = words.get(*place) == Some(&")");
        *place += 1;
        return closed.then_some(holds);
    }
    if words.get(*place) == Some(&"WITH") {
        let with = format!("{word} WITH {}", words.get(*place + 1)?);
        *place += 2;
        return Some(ALLOWED.contains(&with.as_str()));
    }
    Some(ALLOWED.contains(&word))
}
