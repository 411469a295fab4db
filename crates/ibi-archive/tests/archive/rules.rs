//! The rules of clauses 1.3 and 2.1 to 2.4, each by its number.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use ibi_archive::deposit::{DepositRequest, DepositSource};
use ibi_archive::store::{LabelRole, State};
use ibi_archive::{Archive, ArchiveError, ItemChanges};
use ibi_id::Granularity;
use ibi_mint::clock::SystemClock;
use ibi_mint::{ClockLimits, MintRequest};

use crate::ours::{Ours, deposit, titled};

fn some_file(ours: &Ours) -> PathBuf {
    ours.files(&BTreeMap::from([("a.txt".to_owned(), b"bytes".to_vec())]))
}

fn update(archive: &mut Archive, label: &str, changes: ItemChanges) -> Result<(), ArchiveError> {
    match archive.prepare_update(label, None, changes, "tester", &|_| ())? {
        Some(change) => archive.commit(vec![change]).pop().unwrap().map(drop),
        None => Ok(()),
    }
}

fn state(archive: &Archive, label: &str) -> State {
    archive.holdings().find(label).unwrap().0.state
}

/// 2.1: brought in under a foreign label, it is a Copy unless the operator declares it the
/// Original.
#[test]
fn clause_2_1_an_item_from_elsewhere_is_a_copy_unless_declared() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let foreign =
        |label: &str, original| DepositRequest { labels: vec![label.to_owned()], original, ..titled("x") };
    let copy = deposit(&mut archive, &path, foreign("dpi.inpe.br/banon/1998/08.02.08.56", false)).unwrap();
    let original = deposit(&mut archive, &path, foreign("83LX3pFwXQZeBBx/hwiTk", true)).unwrap();
    assert_eq!((state(&archive, &copy), state(&archive, &original)), (State::Copy, State::Original));
    let again = deposit(&mut archive, &path, foreign("DPI.inpe.br/Banon/1998/08.02.08.56", false));
    assert!(matches!(again, Err(ArchiveError::Taken { .. })), "one Archive never holds both: {again:?}");
    let changes = ItemChanges { non_transferable: true, ..ItemChanges::default() };
    assert!(matches!(update(&mut archive, &copy, changes.clone()), Err(ArchiveError::IsCopy { .. })));
    update(&mut archive, &original, changes).unwrap();
    assert!(!archive.holdings().find(&original).unwrap().0.item.transferable);
}

/// A label minted here earlier is used once; one that was not minted yet is refused.
#[test]
fn a_label_minted_here_is_used_once() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let minter = ibi_mint::open(&ours.data(), SystemClock::new(), ClockLimits::default()).unwrap();
    let request = MintRequest {
        count: 1,
        granularity: Granularity::NANOSECOND,
        max_wait: std::time::Duration::from_secs(1),
    };
    let minted = minter.mint(request).unwrap().labels().next().unwrap();
    drop(minter);
    let rep = minted.rep.unwrap();
    let draft = DepositRequest { labels: vec![rep.to_uppercase()], ..titled("x") };
    let label = deposit(&mut archive, &path, draft.clone()).unwrap();
    assert_eq!(state(&archive, &label), State::Original);
    assert!(matches!(deposit(&mut archive, &path, draft), Err(ArchiveError::Taken { .. })));
    let (prefix, _) = rep.split_once("/20").unwrap();
    let ahead = DepositRequest { labels: vec![format!("{prefix}/9000/01.01.00.00")], ..titled("x") };
    assert!(matches!(deposit(&mut archive, &path, ahead), Err(ArchiveError::NotMinted { .. })));
    let needless = DepositRequest { original: true, ..titled("x") };
    assert!(matches!(deposit(&mut archive, &path, needless), Err(ArchiveError::OriginalAnyway)));
}

/// 1.3: looking up tries the spelling, then the identifier; two that were spelled apart are told
/// of.
#[test]
fn clause_1_3_labels_are_found_by_any_spelling() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let mut bring = |label: &str, alias: &[&str]| {
        let aliases = alias.iter().map(|alias| (*alias).to_owned()).collect();
        deposit(
            &mut archive,
            &path,
            DepositRequest { labels: vec![label.to_owned()], aliases, ..titled("x") },
        )
    };
    bring("sid.inpe.br/mtc-m18@80/2009/02.16.17.46", &["8JMKD3MGP8W/34PGRBS"]).unwrap();
    bring("sid.inpe.br/mtc-m19/2009/02.16.17.46", &[]).unwrap();
    assert!(
        bring("sid.inpe.br/mtc-m20/2009/02.16.17.46", &["8jmkd3mgp8w/34pgrbs"]).is_err(),
        "none leads to two"
    );
    bring("sid.inpe.br/mtc-m18/2009/02.16.17.46", &[]).unwrap();
    let holdings = archive.holdings();
    let found = |label: &str| holdings.find(label).map(|(holding, _)| holding.path);
    assert_eq!(
        found("SID.inpe.br/mtc-m18@80/2009/02.16.17.46").unwrap(),
        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46"
    );
    assert_eq!(
        found("sid.inpe.br/mtc-m18/2009/02.16.17.46").unwrap(),
        "sid.inpe.br/mtc-m18/2009/02.16.17.46"
    );
    assert_eq!(found("8jmkd3mgp8w/34pgrbs").unwrap(), "sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
    assert_eq!(
        found("sid.inpe.br/mtc-m19.80/2009/02.16.17.46.00").unwrap(),
        "sid.inpe.br/mtc-m19/2009/02.16.17.46"
    );
    let third = found("sid.inpe.br/mtc-m18.80/2009/02.16.17.46");
    assert!(matches!(third, Err(ArchiveError::Ambiguous { ref paths, .. }) if paths.len() == 2), "{third:?}");
}

/// 2.2: the metadata are an identified item of their own, in the same object.
#[test]
fn clause_2_2_metadata_have_a_label_of_their_own() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let label = deposit(&mut archive, &some_file(&ours), titled("x")).unwrap();
    let (holding, role) = archive.holdings().find(&label).unwrap();
    assert_eq!(role, LabelRole::Item);
    let (same, role) = archive.holdings().find(holding.item.metadata.primary()).unwrap();
    assert_eq!((same.path, role), (holding.path, LabelRole::Metadata));
}

/// 2.4: no circles.
#[test]
fn clause_2_4_links_lead_back_to_nobody() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let first = deposit(&mut archive, &path, titled("first")).unwrap();
    let edition = |of: &str| DepositRequest { next_edition_of: Some(of.to_owned()), ..titled("next") };
    let second = deposit(&mut archive, &path, edition(&first)).unwrap();
    let third = deposit(&mut archive, &path, edition(&second)).unwrap();
    for (item, of) in [(&first, &third), (&first, &first), (&second, &third)] {
        let changes = ItemChanges { next_edition_of: Some(Some(of.clone())), ..ItemChanges::default() };
        let cycle = update(&mut archive, item, changes);
        assert!(matches!(cycle, Err(ArchiveError::Cycle { .. })), "{cycle:?}");
        let changes = ItemChanges { translation_of: Some(Some(of.clone())), ..ItemChanges::default() };
        assert_eq!(
            update(&mut archive, item, changes).is_ok(),
            item != of,
            "links of another kind do not count"
        );
        update(&mut archive, item, ItemChanges { translation_of: Some(None), ..ItemChanges::default() })
            .unwrap();
    }
    // A link to what another Archive holds is kept in its canonical spelling.
    let foreign = DepositRequest {
        translation_of: Some("SID.inpe.br/mtc-m18@80/2009/02.16.17.46.00".to_owned()),
        ..titled("x")
    };
    let foreign = deposit(&mut archive, &path, foreign).unwrap();
    let link = archive.holdings().find(&foreign).unwrap().0.item.translation_of;
    assert_eq!(link.as_deref(), Some("sid.inpe.br/mtc-m18/2009/02.16.17.46"));
}

/// 2.1: a removed item leaves a tombstone, and its label is never reused.
#[test]
fn clause_2_1_a_removed_label_is_never_used_again() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let label = deposit(&mut archive, &path, titled("x")).unwrap();
    for purge in [false, true] {
        let removal = archive.prepare_removal(&label, "by law", "tester", purge).unwrap();
        archive.commit(vec![removal]).pop().unwrap().unwrap();
        let removed = archive.holdings().find(&label).unwrap().0.item.removed.unwrap();
        assert_eq!(
            (removed.reason.as_str(), removed.by.as_str(), removed.purged),
            ("by law", "tester", purge)
        );
        let bytes = ours.data().join("tree").join(&label).join("v1/content/doc/a.txt").exists();
        assert_eq!(bytes, !purge, "purging destroys the bytes");
    }
    let again = deposit(&mut archive, &path, DepositRequest { labels: vec![label.clone()], ..titled("x") });
    assert!(matches!(again, Err(ArchiveError::Taken { .. })), "{again:?}");
    let update = update(
        &mut archive,
        &label,
        ItemChanges { target: Some("a.txt".to_owned()), ..ItemChanges::default() },
    );
    assert!(matches!(update, Err(ArchiveError::Removed { .. })));
    let service = archive.holdings().settings().service.primary().to_owned();
    let removal = archive.prepare_removal(&service, "no", "tester", false);
    assert!(matches!(removal, Err(ArchiveError::IsService { .. })), "{removal:?}");
}

#[test]
fn a_label_that_would_lie_in_the_object_of_another_is_refused() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = some_file(&ours);
    let bring = |archive: &mut Archive, label: &str| {
        deposit(archive, &path, DepositRequest { labels: vec![label.to_owned()], ..titled("x") })
    };
    // An opaque label whose words could also be a domain: they are rare.
    let opaque =
        (1..=255).flat_map(|a| (0..=255).map(move |b| std::net::Ipv4Addr::new(a, b, 2, 1))).find_map(|ip| {
            let opaque = ibi_id::IbipPrefix::new(ip.into(), None)
                .label("2009-02-16T17:46:00Z".parse().unwrap())
                .unwrap();
            ibi_id::Label::parse(&format!("{opaque}/2009/02.16.17.46")).is_ok().then_some(opaque)
        });
    let opaque = opaque.expect("there is one");
    bring(&mut archive, &opaque).unwrap();
    let within = bring(&mut archive, &format!("{opaque}/2009/02.16.17.46"));
    assert!(matches!(within, Err(ArchiveError::Nested { .. })), "{within:?}");
}

/// Names in any bytes come out as they went in.
#[test]
fn names_of_any_bytes_come_out_as_they_went_in() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let folder = ours.path("names");
    fs::create_dir(&folder).unwrap();
    let names: Vec<Vec<u8>> = vec![
        b"with space.txt".to_vec(),
        "relat\u{f3}rio.txt".as_bytes().to_vec(),
        b"relat\xf3rio.txt".to_vec(),
        vec![b'x'; 255],
        vec![0xf3; 255],
        b"Twin".to_vec(),
        b"tWIN".to_vec(),
        b"100%".to_vec(),
        b"new\nline".to_vec(),
        b"a:b?c*.txt".to_vec(),
        b"nul".to_vec(),
        b"end.".to_vec(),
        b"-rf".to_vec(),
    ];
    for name in &names {
        fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let label = deposit(&mut archive, &folder, titled("names")).unwrap();
    let (holding, _) = archive.holdings().find(&label).unwrap();
    let mut out: Vec<Vec<u8>> = Vec::new();
    for file in archive.holdings().files(&holding.path, "", 100).unwrap() {
        let mut bytes = Vec::new();
        archive.holdings().open_file(&holding.path, &file).unwrap().copy_to(&mut bytes).unwrap();
        assert_eq!(
            ibi_archive::store::decode_logical_path(&file.name),
            bytes,
            "each file holds its own name"
        );
        out.push(bytes);
    }
    out.sort();
    let mut expected = names;
    expected.sort();
    assert_eq!(out, expected);
    // As a bag, too, and from there back again.
    let bag = ours.path("bag");
    let exported = archive.holdings().export(&holding, &bag, &|_| ()).unwrap();
    assert_eq!(exported.files, 13);
    let again = deposit(&mut archive, &bag, titled("again")).unwrap();
    let (other, _) = archive.holdings().find(&again).unwrap();
    let names = |path: &str| -> Vec<String> {
        archive.holdings().files(path, "", 100).unwrap().into_iter().map(|file| file.name).collect()
    };
    assert_eq!(names(&other.path), names(&holding.path));
}

#[test]
fn what_is_no_file_is_refused_and_nothing_is_left() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let folder = ours.path("odd");
    fs::create_dir_all(folder.join("empty")).unwrap();
    assert!(matches!(DepositSource::at(&folder), Err(ArchiveError::NoFiles { .. })));
    fs::write(folder.join("a"), "1").unwrap();
    assert_eq!(DepositSource::at(&folder).unwrap().empty_folders(), 1);
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
    assert!(matches!(
        DepositSource::at(&folder),
        Err(ArchiveError::NotAFile { what: "a symbolic link", .. })
    ));
    fs::remove_file(folder.join("link")).unwrap();
    let target = DepositRequest { target: Some("b".to_owned()), ..titled("x") };
    let missing = deposit(&mut archive, &folder, target);
    assert!(matches!(missing, Err(ArchiveError::Target { .. })), "{missing:?}");
    assert_eq!(fs::read_dir(ours.data().join("staging")).unwrap().count(), 0);
}

/// A damaged block is never given out as good.
#[test]
fn damage_is_found_and_never_given_out() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let label = deposit(&mut archive, &some_file(&ours), titled("x")).unwrap();
    let file = ours.data().join("tree").join(&label).join("v1/content/doc/a.txt");
    let tell = |_: &ibi_archive::audit::AuditFinding| ();
    let audit = |archive: &Archive| {
        let options =
            ibi_archive::audit::AuditOptions { rate: None, anew: true, tell: &tell, progress: &|_| () };
        let audit = archive.holdings().audit(&options).unwrap();
        audit.findings.iter().map(|finding| (finding.wrong.name(), finding.file.clone())).collect::<Vec<_>>()
    };
    assert_eq!(audit(&archive), []);
    fs::write(&file, "bytez").unwrap();
    assert_eq!(audit(&archive), [("changed", "v1/content/doc/a.txt".to_owned())]);
    let (holding, _) = archive.holdings().find(&label).unwrap();
    let export = archive.holdings().export(&holding, &ours.path("bag"), &|_| ());
    assert!(export.is_err() && !ours.path("bag").exists());
    fs::remove_file(&file).unwrap();
    assert_eq!(audit(&archive), [("missing", "v1/content/doc/a.txt".to_owned())]);
    fs::write(&file, "bytes").unwrap();
    fs::write(file.with_file_name("stray"), "?").unwrap();
    assert_eq!(audit(&archive), [("unexpected", "v1/content/doc/stray".to_owned())]);
    fs::remove_dir_all(ours.data().join("tree").join(&label)).unwrap();
    assert_eq!(audit(&archive), [("missing", String::new())]);
}

#[test]
fn an_interrupted_audit_goes_on_where_it_was() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let labels: Vec<String> = (0..3)
        .map(|number| deposit(&mut archive, &some_file(&ours), titled(&format!("{number}"))).unwrap())
        .collect();
    let half = format!(
        "{{\"started\":\"2026-01-01T00:00:00Z\",\"finished\":null,\"items\":2,\"files\":9,\"bytes\":99,\
         \"findings\":[],\"after\":\"{}\"}}",
        labels[0]
    );
    fs::create_dir_all(ours.data().join("service")).unwrap();
    fs::write(ours.data().join("service/audit.json"), half).unwrap();
    let options =
        ibi_archive::audit::AuditOptions { rate: None, anew: false, tell: &|_| (), progress: &|_| () };
    let audit = archive.holdings().audit(&options).unwrap();
    assert_eq!((audit.started.as_str(), audit.items), ("2026-01-01T00:00:00Z", 4), "two before, two now");
    let audit = archive.holdings().audit(&options).unwrap();
    assert_eq!(audit.items, 4, "the next one begins anew");
}

/// Two changes of one item that come together: the second is not based on what the first left,
/// though both are of a first version.
#[test]
fn a_change_that_was_prepared_before_a_purge_does_not_bring_the_item_back() {
    let ours = Ours::new();
    let mut archive = ours.init();
    let path = ours.files(&BTreeMap::from([("a".to_owned(), b"1".to_vec())]));
    let label = deposit(&mut archive, &path, titled("first")).unwrap();
    let purge = archive.prepare_removal(&label, "a reason", "tester", true).unwrap();
    let changes = ItemChanges { statements: vec!["title=second".parse().unwrap()], ..ItemChanges::default() };
    let update = archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    let results = archive.commit(vec![purge, update]);
    assert!(results[0].is_ok() && matches!(results[1], Err(ArchiveError::Changed { .. })), "{results:?}");
    assert_eq!(archive.holdings().find(&label).unwrap().0.state, State::Deleted);
}
