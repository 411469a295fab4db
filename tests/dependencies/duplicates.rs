//! Crates that are built in more than one version: each needs a listed reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{WORKSPACES, metadata, packages};

/// The crate, its number of versions, and the crate that needs the older ones.
const ACCEPTED: &[(&str, usize, &str)] = &[
    ("base64", 2, "metrics-exporter-prometheus has 0.22; reqwest and hyper-util have 0.23"),
    ("getrandom", 3, "rand 0.9 of metrics-util has 0.3; ring, which is locked and not built, has 0.2"),
    ("hashbrown", 2, "metrics-util has 0.16"),
    ("rand", 3, "metrics-util has 0.9; doxygen-rs, which lmdb-master-sys only builds with, has 0.8"),
    ("rand_core", 3, "rand 0.9 of metrics-util, and 0.8 of doxygen-rs"),
    ("syn", 2, "tracing-attributes has 2; it is not in the binary"),
];

#[test]
fn every_crate_is_built_in_one_version_unless_there_is_a_reason() {
    let mut all = BTreeMap::new();
    for workspace in WORKSPACES {
        for (name, versions) in duplicates(&metadata(workspace)) {
            let most = all.entry(name).or_insert(0);
            *most = versions.len().max(*most);
        }
    }
    let accepted = ACCEPTED.iter().map(|(name, versions, _)| ((*name).to_owned(), *versions)).collect();
    assert_eq!(all, accepted, "see `cargo tree --duplicates`");
}

#[test]
fn a_second_version_is_found() {
    let package =
        |name: &str, version: &str| json!({ "name": name, "version": version, "source": "registry" });
    let packages = [package("one", "1.0.0"), package("two", "1.0.0"), package("two", "2.0.0")];
    let found = duplicates(&json!({ "packages": packages }));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["two"]);
}

fn duplicates(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(metadata) {
        let text = |field: &str| package[field].as_str().unwrap().to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}
