//! What an audit between holders finds besides damage.

use super::Holder;

/// Clause 2.1, threats S7 and S8: one Original in the world, and versions that are the same wherever they are.
#[test]
fn two_originals_and_versions_that_differ_are_an_alarm() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    here.does("update", &[&rep, "--dc", "title=Two"]);
    let audit = || here.run("audit", &[&rep, "--with", &there.url()]);
    let behind = audit();
    assert_eq!(behind.status, 0, "a copy that is behind is in order: {}", behind.stderr);
    let holder = behind.json()[0]["holders"][0].clone();
    assert_eq!((&holder["state"], &holder["equal"]), (&"Copy".into(), &false.into()));
    there.does("update", &[&rep, "--original"]);
    let alarmed = |run: &crate::binary::Run| {
        assert_eq!(run.status, 1, "{}", run.stderr);
        let alarms = run.json()[0]["alarms"].clone();
        alarms.as_array().unwrap().iter().map(|alarm| alarm.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let two = alarmed(&audit());
    assert_eq!(two.len(), 1, "{two:?}");
    let expected = format!("this Archive and {} say that they have the Original of {rep}", there.url());
    assert!(two[0].starts_with(&expected), "{two:?}");
    // Another second version there, and a third one here: neither number nor state tells.
    there.does("update", &[&rep, "--dc", "title=Zwei"]);
    here.does("update", &[&rep, "--dc", "title=Three"]);
    let both = alarmed(&audit());
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].contains(&format!("has another version 2 of {rep} than was ever here")), "{both:?}");
    assert_eq!(here.shown(&rep)["version"], 3, "nothing is overwritten");
}
