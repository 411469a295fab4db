use super::*;

fn settings() -> RegistrySettingsRow {
    RegistrySettingsRow {
        public_url: "http://urlib.net".to_owned(),
        service: "J8LNKB5R7W/3FUQHC5".to_owned(),
    }
}

fn row(canonical: &str) -> ArchiveRow {
    ArchiveRow {
        id: 0,
        canonical: canonical.to_owned(),
        service: canonical.to_uppercase(),
        key_hash: "hash".to_owned(),
        address: Some("a.br:8080".to_owned()),
        hosts: vec!["b.br".to_owned(), "c.br".to_owned()],
        standing: "new".to_owned(),
        registered: 1,
        changed: 2,
        email: None,
        turn: 0,
        asked: None,
        confirmed: Some(3),
        ip: Some("192.0.2.1".to_owned()),
        protocol: Some("HTTP".to_owned()),
        platform: None,
        problem: None,
    }
}

fn put(store: &mut RegistryStorage, canonical: &str) -> ArchiveRow {
    let put = store.update_archives(&[canonical], |_, _| Ok::<_, RegistryStorageError>(Some(row(canonical))));
    put.unwrap().remove(0).unwrap()
}

fn claim(archive: &str, seen: i64) -> AlertClaim {
    let url = Some(format!("http://{archive}/{seen}"));
    AlertClaim { archive: archive.to_owned(), url, timestamp: None, seen, evidence: None, copies: Vec::new() }
}

#[test]
fn it_is_created_once_and_can_be_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/registry.sqlite");
    assert!(matches!(RegistryStorage::open(&path), Err(RegistryStorageError::Missing { .. })));
    drop(RegistryStorage::create(&path, &settings()).unwrap());
    assert!(matches!(RegistryStorage::create(&path, &settings()), Err(RegistryStorageError::Exists { .. })));
    assert_eq!(RegistryStorage::open(&path).unwrap().settings().unwrap(), settings());
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let later = REGISTRY_SCHEMA_VERSION + 1;
    Connection::open(&path).unwrap().execute("UPDATE form SET form = ?1", [later]).unwrap();
    assert!(matches!(RegistryStorage::open(&path), Err(RegistryStorageError::Newer { .. })));
    // Its creation was interrupted after the file existed.
    std::fs::write(folder.path().join("empty.sqlite"), "").unwrap();
    let opened = RegistryStorage::open(&folder.path().join("empty.sqlite"));
    assert!(matches!(opened, Err(RegistryStorageError::Unfinished { .. })));
}

#[test]
fn archives_come_back_as_they_were_and_keep_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.sqlite");
    let mut store = RegistryStorage::create(&path, &settings()).unwrap();
    let (first, second) = (put(&mut store, "a"), put(&mut store, "b"));
    assert_eq!(((first.id, first.turn), (second.id, second.turn)), ((1, 1), (2, 1)));
    let again = put(&mut store, "a");
    assert_eq!((again.id, again.turn), (1, 2));
    drop(store);
    assert_eq!(RegistryStorage::open(&path).unwrap().archives().unwrap(), [again, second]);
}

#[test]
fn changes_are_made_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RegistryStorage::create(&folder.path().join("registry.sqlite"), &settings()).unwrap();
    let changed = store.update_archives(&["a", "b"], |index, _| match index {
        0 => Ok(Some(row("a"))),
        _ => Err(RegistryStorageError::Full { what: "test", most: 0 }),
    });
    assert!(matches!(changed, Err(RegistryStorageError::Full { what: "test", .. })));
    assert!(store.archives().unwrap().is_empty());
}

#[test]
fn a_stale_confirmation_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RegistryStorage::create(&folder.path().join("registry.sqlite"), &settings()).unwrap();
    let archive = put(&mut store, "a");
    assert!(store.record_probe(archive.id, archive.turn, "online", Ok(()), 9).unwrap());
    let there = store.archives().unwrap().remove(0);
    let seen = (there.standing.as_str(), there.changed, there.asked, there.confirmed, there.turn);
    assert_eq!(seen, ("online", 9, Some(9), Some(9), 1));
    // The same status again is no change. A probe without confirmation keeps the time of the last
    // one.
    assert!(store.record_probe(archive.id, archive.turn, "online", Ok(()), 10).unwrap());
    assert_eq!(store.archives().unwrap().remove(0).changed, 9);
    put(&mut store, "a");
    assert!(!store.record_probe(archive.id, archive.turn, "online", Ok(()), 11).unwrap());
    assert_eq!(store.archives().unwrap().remove(0).standing, "new");
}

#[test]
fn the_version_changes_with_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.sqlite");
    let mut one = RegistryStorage::create(&path, &settings()).unwrap();
    let mut other = RegistryStorage::open(&path).unwrap();
    let mut seen = one.version().unwrap();
    assert_eq!(one.version().unwrap(), seen);
    for step in 0..4 {
        put(if step % 2 == 0 { &mut one } else { &mut other }, "a");
        assert_ne!(one.version().unwrap(), seen, "{step}");
        seen = one.version().unwrap();
        assert_eq!(one.version().unwrap(), seen);
    }
}

#[test]
fn alerts_are_brought_up_to_date_until_they_are_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RegistryStorage::create(&folder.path().join("registry.sqlite"), &settings()).unwrap();
    let first = store.raise_alert("rep a", &[claim("x", 1), claim("y", 1)], 1).unwrap();
    let again = store.raise_alert("rep a", &[claim("y", 5), claim("z", 5)], 5).unwrap();
    assert_eq!((again.id, again.first_seen, again.last_seen, again.times), (first.id, 1, 5, 2));
    assert_eq!(again.claims, [claim("x", 1), claim("y", 5), claim("z", 5)]);
    let other = store.raise_alert("rep b", &[claim("x", 6)], 6).unwrap();
    assert_eq!(store.alerts(false).unwrap(), [other.clone(), again.clone()]);
    let resolved = store.resolve_alert(first.id, "Ana", "z was a mistake", 7).unwrap().unwrap();
    let end = AlertResolution { at: 7, by: "Ana".to_owned(), note: "z was a mistake".to_owned() };
    assert_eq!(resolved.resolved, Some(end));
    assert_eq!(store.resolve_alert(first.id, "Rui", "me too", 8).unwrap().unwrap(), resolved);
    assert_eq!(store.resolve_alert(99, "Ana", "", 8).unwrap(), None);
    assert_eq!((store.alerts(false).unwrap(), store.open_alert_count().unwrap()), (vec![other.clone()], 1));
    // A resolved alert is not reopened.
    let new = store.raise_alert("rep a", &[claim("x", 9)], 9).unwrap();
    assert_eq!((new.id, new.times, new.first_seen), (3, 1, 9));
    assert_eq!(store.alerts(true).unwrap(), [new.clone(), other, resolved]);
    assert_eq!(store.alert(new.id).unwrap(), Some(new));
}

#[test]
fn untrusted_input_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.sqlite");
    let mut store = RegistryStorage::create(&path, &settings()).unwrap();
    let claims: Vec<AlertClaim> = (0..1000).map(|number| claim(&format!("archive {number}"), 1)).collect();
    let long = AlertClaim { url: Some("é".repeat(100_000)), ..claim("a", 1) };
    let alert = store.raise_alert(&"é".repeat(100_000), &[&[long], &claims[..]].concat(), 1).unwrap();
    assert_eq!(alert.claims.len(), MAX_ALERT_CLAIMS);
    assert_eq!((alert.item.len(), alert.claims[0].url.as_ref().unwrap().len()), (2048, 2048));
    // The maximum number, and one more.
    let fill = "INSERT INTO alert (id, item, claims, first_seen, last_seen, times)
                WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                SELECT n, 'rep ' || n, '[]', 1, 1, 1 FROM n";
    Connection::open(&path).unwrap().execute(fill, [MAX_OPEN_ALERTS as i64]).unwrap();
    let more = store.raise_alert("rep a", &[], 1);
    assert!(matches!(more, Err(RegistryStorageError::Full { most: MAX_OPEN_ALERTS, .. })), "{more:?}");
    // An open alert is still updated.
    assert_eq!(store.raise_alert("rep 2", &[], 3).unwrap().times, 2);
}

/// Frozen files written by this program: they must stay readable. Those of earlier versions are
/// migrated, once.
#[test]
fn the_frozen_samples_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let older = ArchiveRow { ip: None, protocol: None, ..row("a") };
    let told = ArchiveRow { problem: Some("the certificate has expired".to_owned()), ..row("a") };
    let samples =
        [("registry-1.sqlite", older), ("registry-2.sqlite", row("a")), ("registry-3.sqlite", told)];
    for (name, row) in samples {
        let path = folder.path().join(name);
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name), &path).unwrap();
        for _ in 0..2 {
            let store = RegistryStorage::open(&path).unwrap();
            assert_eq!(
                (store.registry_schema_version().unwrap(), store.settings().unwrap()),
                (REGISTRY_SCHEMA_VERSION, settings())
            );
            assert_eq!(store.archives().unwrap(), [ArchiveRow { id: 1, turn: 1, ..row.clone() }]);
            let alert = &store.alerts(true).unwrap()[0];
            let mut claims = alert.claims.clone();
            let evidence = claims[0].evidence.take();
            assert_eq!((alert.item.as_str(), &claims[..]), ("rep a", &[claim("x", 1)][..]));
            assert_eq!(alert.resolved.as_ref().map(|end| end.by.as_str()), Some("Ana"));
            assert_eq!(evidence.is_some(), name != "registry-1.sqlite");
        }
        // A migrated file is written like any other.
        put(&mut RegistryStorage::open(&path).unwrap(), "a");
        assert_eq!(
            RegistryStorage::open(&path).unwrap().archives().unwrap()[0].ip.as_deref(),
            Some("192.0.2.1")
        );
    }
}

#[test]
fn copies_of_an_alert_are_merged_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RegistryStorage::create(&folder.path().join("registry.sqlite"), &settings()).unwrap();
    let with = |labels: std::ops::Range<u32>| AlertClaim {
        copies: labels.map(|number| number.to_string()).collect(),
        ..claim("x", 1)
    };
    store.raise_alert("copies y x", &[claim("y", 1), with(0..2)], 1).unwrap();
    let alert = store.raise_alert("copies y x", &[with(1..4)], 2).unwrap();
    assert_eq!((alert.times, &alert.claims[1].copies[..]), (2, &["0", "1", "2", "3"].map(String::from)[..]));
    let alert = store.raise_alert("copies y x", &[with(0..1000)], 3).unwrap();
    assert_eq!(alert.claims[1].copies.len(), MAX_ALERT_COPIES);
    let alert = store.raise_alert("copies z x", &[with(0..1000)], 3).unwrap();
    assert_eq!(alert.claims[0].copies.len(), MAX_ALERT_COPIES);
}

#[test]
fn evidence_is_added_to_open_alerts_kept_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RegistryStorage::create(&folder.path().join("registry.sqlite"), &settings()).unwrap();
    store.raise_alert("rep a", &[claim("x", 1), claim("y", 1)], 1).unwrap();
    let version = |version| VersionDigest { version, inventory: "é".repeat(1000) };
    let evidence = AlertEvidence {
        depositor: Some("Ana".repeat(1000)),
        epoch: Some(2),
        versions: (0..100).map(version).collect(),
        ..AlertEvidence::default()
    };
    store.add_evidence("rep a", &[("y".to_owned(), evidence.clone()), ("z".to_owned(), evidence)]).unwrap();
    // Raised again, it keeps its evidence.
    let alert = store.raise_alert("rep a", &[claim("y", 5)], 5).unwrap();
    let kept = alert.claims[1].evidence.clone().unwrap();
    assert_eq!((alert.claims.len(), alert.claims[1].seen, kept.epoch), (2, 5, Some(2)));
    assert_eq!((kept.versions.len(), kept.versions[0].inventory.len()), (MAX_EVIDENCE_VERSIONS, 128));
    assert_eq!((kept.depositor.unwrap().len(), &alert.claims[0].evidence), (255, &None));
    store.add_evidence("rep b", &[("y".to_owned(), AlertEvidence::default())]).unwrap();
}
