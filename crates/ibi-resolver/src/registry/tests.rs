mod round_trip;

use super::snapshot::SNAPSHOT_CHECK_INTERVAL;
use super::*;

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const SAME: &str = "sid.INPE.br/mtc-m18/2008/03.17.15.17.00";
const OTHER: &str = "dpi.inpe.br/banon/1998/08.02.08.56";

pub(crate) fn label(text: &str) -> Label {
    text.parse().unwrap()
}

pub(crate) fn settings() -> ResolverSettings {
    ResolverSettings { public_url: "http://urlib.net/".to_owned(), service: label("J8LNKB5R7W/3FUQHC5") }
}

/// A precomputed hash, so that tests are fast.
const HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zp2LhTBxuFbB9Ff1f7Mrjl1mMQ2QUOdLyBzDNBbLWvo";

fn text(changed: &str, standing: &str) -> String {
    format!(
        "ibi registry, format 1\n\n# a comment\narchive {SERVICE}\n  standing {standing}\n  address a.br:8080\n  host b.br\n  \
         host c.br\n  registered 2008-03-17T15:17:00Z\n  changed {changed}\n  email a@b.br\n  key {HASH}\n"
    )
}

fn registration(service: &str, address: &str) -> WireRegistration {
    WireRegistration {
        address: address.to_owned(),
        service: service.to_owned(),
        ip: [127, 0, 0, 1].into(),
        protocol: ibi_protocol::WireProtocol::Http,
        platform_version: "ibi".to_owned(),
        email: "adm@a.br".to_owned(),
        key: "1234567890".parse().unwrap(),
    }
}

#[test]
fn it_is_made_once_and_remembers_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    drop(Registry::create(folder.path(), &settings()).unwrap());
    assert!(Registry::create(folder.path(), &settings()).is_err());
    let found = Registry::open(folder.path()).unwrap().settings().clone();
    assert_eq!(found, ResolverSettings { public_url: "http://urlib.net".to_owned(), ..settings() });
    for url in [
        "urlib.net",
        "ftp://urlib.net",
        "http://",
        "http:///a",
        "http://a b",
        "http://a?b",
        "http://u@a",
        "http://é",
    ] {
        let settings = ResolverSettings { public_url: url.to_owned(), ..settings() };
        let made = Registry::create(&folder.path().join("x"), &settings);
        assert!(matches!(made, Err(ResolverRegistryError::PublicUrl { .. })), "{url}");
    }
}

#[test]
fn clause_1_3_two_spellings_of_a_label_are_one_archive() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    let first = registry.register(label(SERVICE), None, vec!["b.br".to_owned()], 1).unwrap();
    assert_eq!(first.made.as_ref().map(|key| key.reveal().len()), Some(32));
    assert_eq!((first.archive.standing, first.archive.registered), (RegistrationStatus::New, 1));
    let hash = registry.fresh_entry(&label(SAME)).unwrap().unwrap().key_hash;
    let key: RegistrationKey = "1234567890".parse().unwrap();
    let again = registry.register(label(SAME), Some(key), vec![], 2).unwrap();
    assert!(again.made.is_none());
    assert_eq!((again.archive.id, again.archive.registered, again.archive.changed), (first.archive.id, 1, 2));
    // The Archive's own spelling stays; the key is a new one.
    assert_eq!(again.archive.service.spelling(), SERVICE);
    assert_ne!(registry.fresh_entry(&label(SAME)).unwrap().unwrap().key_hash, hash);
    assert_eq!(registry.archives().len(), 1);
    let wrong = registry.register(label(SAME), None, vec!["http://b.br/".to_owned()], 3);
    assert!(matches!(wrong, Err(ResolverRegistryError::Host { .. })));
    assert!(matches!(registry.retire(&label(OTHER), 3), Err(ResolverRegistryError::Unknown { .. })));
}

#[test]
fn an_archive_comes_moves_goes_and_is_retired() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    registry.import(&text("2020-01-01T00:00:00Z", "new")).unwrap();
    let stands = || registry.find(&label(SERVICE)).unwrap().standing;
    let included = registry.include(&registration(SAME, "here.br:8080"), 10).unwrap();
    assert_eq!(included.archive.standing, RegistrationStatus::Unconfirmed);
    assert_eq!(included.archive.url_hosts(), ["here.br:8080", "b.br", "c.br"]);
    // The Archive is named by its own spelling.
    assert_eq!(included.archive.service.spelling(), SAME);
    let id = included.archive.id;
    assert!(registry.record_confirmation(id, included.turn, Ok(()), 11).unwrap());
    assert_eq!(stands(), RegistrationStatus::OnLine);
    assert_eq!(registry.times(id), Some(ProbeTimes { asked: Some(11), confirmed: Some(11) }));
    // At the same address it still receives requests; at a new one, only after its confirmation.
    assert_eq!(
        registry.include(&registration(SAME, "here.br:8080"), 12).unwrap().archive.standing,
        RegistrationStatus::OnLine
    );
    let moved = registry.include(&registration(SAME, "there.br"), 13).unwrap();
    assert_eq!(
        (stands(), moved.archive.address.as_deref()),
        (RegistrationStatus::Unconfirmed, Some("there.br"))
    );
    assert!(!registry.record_confirmation(id, included.turn, Ok(()), 14).unwrap());
    assert_eq!(stands(), RegistrationStatus::Unconfirmed);
    // It goes offline while its confirmation is pending.
    registry.exclude(&label(SERVICE), 15).unwrap();
    assert!(!registry.record_confirmation(id, moved.turn, Ok(()), 16).unwrap());
    assert_eq!(stands(), RegistrationStatus::OffLine);
    registry.retire(&label(SERVICE), 17).unwrap();
    assert!(matches!(
        registry.include(&registration(SAME, "x.br"), 18),
        Err(ResolverRegistryError::Unknown { .. })
    ));
    assert_eq!(stands(), RegistrationStatus::Retired);
    let back = registry.register(label(SERVICE), None, vec![], 19).unwrap();
    assert_eq!((back.archive.standing, back.archive.id), (RegistrationStatus::New, id));
    assert!(matches!(
        registry.include(&registration(SAME, "127.1"), 20),
        Err(ResolverRegistryError::Address(_))
    ));
    assert!(matches!(
        registry.include(&registration(OTHER, "x.br"), 20),
        Err(ResolverRegistryError::Unknown { .. })
    ));
    let hosts = registry.set_hosts(&label(SAME), vec!["d.br".to_owned()], 21).unwrap();
    assert_eq!(hosts.hosts, ["d.br"]);
}

#[tokio::test(start_paused = true)]
async fn changes_of_other_processes_are_seen_a_moment_later() {
    let folder = tempfile::tempdir().unwrap();
    let server = Registry::create(folder.path(), &settings()).unwrap();
    let command = Registry::open(folder.path()).unwrap();
    tokio::time::advance(SNAPSHOT_CHECK_INTERVAL).await;
    assert!(server.archives().is_empty());
    command.import(&text("2020-01-01T00:00:00Z", "online")).unwrap();
    assert_eq!(command.archives().len(), 1);
    assert!(server.archives().is_empty());
    tokio::time::advance(SNAPSHOT_CHECK_INTERVAL).await;
    let seen = server.archives();
    assert_eq!(seen.len(), 1);
    // Nothing is reread if nothing has changed.
    tokio::time::advance(SNAPSHOT_CHECK_INTERVAL).await;
    assert!(Arc::ptr_eq(&seen, &server.archives()));
    // Keys are looked up in the current state.
    command.retire(&label(SERVICE), 2_000_000_000).unwrap();
    let known = server.fresh_entry(&label(SERVICE)).unwrap().unwrap();
    assert_eq!(known.archive.standing, RegistrationStatus::Retired);
}

#[test]
fn alerts_are_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    let alert = registry.raise_alert("rep a", &[], 1).unwrap();
    assert_eq!((registry.alerts(false).unwrap(), registry.open_alerts().unwrap()), (vec![alert.clone()], 1));
    let resolved = registry.resolve_alert(alert.id, "Ana", "", 2).unwrap();
    assert_eq!(registry.alert(alert.id).unwrap(), resolved);
}

#[test]
fn the_later_change_counts_when_it_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    let import = |text: &str| registry.import(text).unwrap();
    let text = text("2020-01-01T00:00:00Z", "online");
    assert_eq!(import(&text), RegistryImportReport { added: 1, ..RegistryImportReport::default() });
    assert_eq!(import(&text), RegistryImportReport { kept: 1, ..RegistryImportReport::default() });
    let archive = registry.find(&label(SAME)).unwrap();
    assert_eq!(
        (archive.standing, archive.address.as_deref()),
        (RegistrationStatus::OnLine, Some("a.br:8080"))
    );
    assert_eq!(
        (archive.hosts.as_slice(), archive.email.as_deref()),
        (&["b.br".to_owned(), "c.br".to_owned()][..], Some("a@b.br"))
    );
    let later = self::text("2020-01-02T00:00:00Z", "retired");
    assert_eq!(import(&later), RegistryImportReport { replaced: 1, ..RegistryImportReport::default() });
    assert_eq!(import(&text), RegistryImportReport { kept: 1, ..RegistryImportReport::default() });
    assert_eq!(registry.find(&label(SAME)).unwrap().standing, RegistrationStatus::Retired);
}

#[test]
fn a_wrong_text_is_refused_with_line_and_rule_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    let good = text("2020-01-01T00:00:00Z", "online");
    let twice = format!("{good}{}", &good["ibi registry, format 1\n".len()..].replace(SERVICE, SAME));
    for (text, line, rule) in [
        (String::new(), 1, "the first line has to be"),
        (good.replace("format 1", "format 2"), 1, "newer program"),
        (good.replace("ibi registry", "registry"), 1, "the first line has to be"),
        (good.replace("archive ", "arch "), 4, "begins with `archive`"),
        (good.replace(SERVICE, "nothing"), 4, "not a valid IBI"),
        (good.replace("standing online", "standing maybe"), 5, "a standing is"),
        (good.replace("a.br:8080", "127.1"), 6, "not a valid address"),
        (good.replace("host b.br", "host b br"), 7, "not a valid address"),
        (good.replace("2008-03", "2008-13"), 9, ""),
        (good.replace("email a@b.br", "email "), 11, "e-mail"),
        (good.replace(HASH, "1234567890"), 12, "Argon2id digest"),
        (good.replace("m=19456", "m=99999999"), 12, "Argon2id digest"),
        (good.replace("argon2id", "argon2i"), 12, "Argon2id digest"),
        (good.replace("email", "mail"), 11, "unknown field"),
        (good.replace("email a@b.br", "standing new"), 11, "duplicate field"),
        (good.replace("  address a.br:8080\n", ""), 4, "has an `address`"),
        (good.replace("  standing online\n", ""), 4, "no `standing`"),
        (twice, 15, "duplicate Archive"),
    ] {
        let Err(ResolverRegistryError::Import(error)) = registry.import(&text) else {
            panic!("{line} {rule}")
        };
        assert!(error.line == line && error.rule.contains(rule), "{error}, not {line}: {rule}");
        assert!(!error.to_string().contains("1234567890"));
    }
    assert!(registry.archives().is_empty());
}

/// What this program once wrote must stay readable, and is what it still writes.
#[test]
fn the_frozen_sample_is_read_and_written() {
    let sample = include_str!("tests/registry-1.txt");
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(folder.path(), &settings()).unwrap();
    assert_eq!(
        registry.import(sample).unwrap(),
        RegistryImportReport { added: 2, ..RegistryImportReport::default() }
    );
    assert_eq!(registry.export().unwrap(), sample);
}
