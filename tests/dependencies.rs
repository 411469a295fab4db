//! Dependencies in every lock file (docs/security.md): known advisories, licences, duplicate
//! versions.

mod advisories;
mod duplicates;
mod licences;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folders that have a lock file.
const WORKSPACES: &[&str] =
    &[".", "benches", "fuzz", "tests/hostile-archive", "tests/simulation", "tests/torture"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_lock_file_is_looked_at() {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        if repository().join(&folder).join("Cargo.lock").is_file() {
            found.push(folder.clone());
        }
        for entry in fs::read_dir(repository().join(&folder)).unwrap().flatten() {
            let name = entry.file_name();
            let ours = name != "target" && !name.to_string_lossy().starts_with('.');
            if ours && entry.file_type().unwrap().is_dir() {
                folders.push(folder.join(name));
            }
        }
    }
    let mut known: Vec<PathBuf> = WORKSPACES.iter().map(|folder| folder.trim_matches('.').into()).collect();
    known.sort();
    found.sort();
    assert_eq!(found, known);
}

/// The metadata of a workspace: the packages that are built on this platform.
fn metadata(workspace: &str) -> Value {
    let platform = {
        let rustc = Command::new("rustc").arg("-vV").output().unwrap();
        let said = String::from_utf8(rustc.stdout).unwrap();
        said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
    };
    let cargo = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--all-features",
            "--filter-platform",
            &platform,
        ])
        .current_dir(repository().join(workspace))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{workspace}: {}", String::from_utf8_lossy(&cargo.stderr));
    serde_json::from_slice(&cargo.stdout).unwrap()
}

/// Name and version of each package, except our own.
fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().unwrap().iter().filter(|package| !package["source"].is_null())
}
