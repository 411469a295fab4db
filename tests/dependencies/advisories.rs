//! Compares every lock file with a dated snapshot of the RustSec advisory database, which
//! `tools/compare-advisories CLONE` creates. Informational advisories (unmaintained, unsound)
//! count, too.

use std::fs;

use semver::{Version, VersionReq};

use super::{WORKSPACES, repository};

/// Accepted advisories: the advisory, the date of the review, and the reason.
const ACCEPTED: &[(&str, &str, &str)] = &[];

/// A row of the snapshot.
struct KnownAdvisory<'a> {
    id: &'a str,
    package: &'a str,
    kind: &'a str,
    /// Versions that are patched, or were never affected.
    sound: Vec<VersionReq>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LockedPackage {
    name: String,
    version: Version,
}

#[test]
#[ignore = "needs a clone of the RustSec database: tools/compare-advisories CLONE"]
fn no_lock_file_has_a_crate_with_a_known_advisory() {
    let snapshot = snapshot();
    let advisories = read_advisories(&snapshot);
    assert!(advisories.len() > 1000, "the snapshot is not whole: make it with tools/compare-advisories");
    let mut unused: Vec<&str> = ACCEPTED.iter().map(|(id, ..)| *id).collect();
    let mut found = Vec::new();
    for workspace in WORKSPACES {
        for hit in hits(&locked(workspace), &advisories) {
            unused.retain(|id| !hit.starts_with(id));
            if !ACCEPTED.iter().any(|(id, ..)| hit.starts_with(id)) {
                found.push(format!("{workspace}/Cargo.lock: {hit}"));
            }
        }
    }
    assert_eq!(found, [""; 0], "https://rustsec.org/advisories/ tells what to do");
    assert_eq!(unused, [""; 0], "accepted, and not there any more");
}

/// A past dependency with a known advisory.
#[test]
#[ignore = "needs a clone of the RustSec database: tools/compare-advisories CLONE"]
fn known_advisories_are_in_the_snapshot() {
    let old = [
        LockedPackage { name: "quick-xml".into(), version: Version::new(0, 40, 0) },
        LockedPackage { name: "paste".into(), version: Version::new(1, 0, 15) },
    ];
    let snapshot = snapshot();
    let found = hits(&old, &read_advisories(&snapshot)).join("\n");
    for id in ["RUSTSEC-2024-0436", "RUSTSEC-2026-0194", "RUSTSEC-2026-0195"] {
        assert!(found.contains(id), "{found}");
    }
}

/// The control: a planted advisory for a crate that we use, in that version, is found.
#[test]
fn a_planted_advisory_is_found() {
    let locked = locked(".");
    let ours = locked.iter().find(|package| package.name == "tokio").unwrap();
    let Version { major, minor, patch, .. } = ours.version;
    let next = format!("{major}.{minor}.{}", patch + 1);
    let look = |row: &str| hits(&locked, &read_advisories(row));
    let planted = |kind: &str, patched: &str, unaffected: &str| {
        look(&format!("RUSTSEC-0000-0001\ttokio\t2026-11-17\t{kind}\t{patched}\t{unaffected}\t\n"))
    };
    let expected = [format!("RUSTSEC-0000-0001: tokio {} ({{}})", ours.version)];
    for kind in ["vulnerability", "unmaintained", "unsound"] {
        let expected = expected.each_ref().map(|hit| hit.replace("{}", kind));
        assert_eq!(planted(kind, "", ""), expected);
        assert_eq!(planted(kind, &format!(">= {next}"), "< 0.2.0"), expected);
        assert_eq!(planted(kind, &format!(">= {}", ours.version), ""), [""; 0]);
        assert_eq!(planted(kind, "^0.1.3; >= 99.0", &format!("<= {}", ours.version)), [""; 0]);
    }
}

fn snapshot() -> String {
    let path = repository().join("target/advisories.tsv");
    let text = fs::read_to_string(&path);
    text.map_err(|error| format!("{}: {error}: make it with tools/compare-advisories CLONE", path.display()))
        .unwrap()
}

fn read_advisories(snapshot: &str) -> Vec<KnownAdvisory<'_>> {
    let rows = snapshot.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let fields: [&str; 7] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let [id, package, _day, kind, patched, unaffected, _source] = fields;
        let sound = patched.split("; ").chain(unaffected.split("; ")).filter(|text| !text.is_empty());
        KnownAdvisory { id, package, kind, sound: sound.map(|text| text.parse().unwrap()).collect() }
    })
    .collect()
}

/// The packages of a lock file that come from a registry.
fn locked(workspace: &str) -> Vec<LockedPackage> {
    let text = fs::read_to_string(repository().join(workspace).join("Cargo.lock")).unwrap();
    let packages = text.split("[[package]]").skip(1);
    let field = |package: &str, name: &str| {
        let line =
            package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")).map(str::to_owned));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    packages
        .filter(|package| field(package, "source").is_some())
        .map(|package| LockedPackage {
            name: field(package, "name").unwrap(),
            version: field(package, "version").unwrap().parse().unwrap(),
        })
        .collect()
}

fn hits(locked: &[LockedPackage], advisories: &[KnownAdvisory<'_>]) -> Vec<String> {
    let mut hits = Vec::new();
    for LockedPackage { name, version } in locked {
        let of_package = advisories.iter().filter(|advisory| advisory.package == name);
        for KnownAdvisory { id, kind, sound, .. } in of_package {
            if !sound.iter().any(|range| range.matches(version)) {
                hits.push(format!("{id}: {name} {version} ({kind})"));
            }
        }
    }
    hits
}
