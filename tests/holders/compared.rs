//! What an audit between holders finds besides damage.

use super::Holder;
use crate::binary::{Run, ibi};
use crate::online::server::Server;

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
    let alarmed = |run: &Run| {
        assert_eq!(run.status, 1, "{}", run.stderr);
        let alarms = run.json()[0]["alarms"].clone();
        alarms.as_array().unwrap().iter().map(|alarm| alarm.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let two = alarmed(&audit());
    assert_eq!(two.len(), 1, "{two:?}");
    let expected = format!("this Archive and {} say that they have the Original of {rep}", there.url());
    assert!(two[0].starts_with(&expected), "{two:?}");
    // One Archive is one, by whatever address, and this one is not another.
    let [other, itself] = [&there, &here].map(|holder| holder.url().replace("127.0.0.1", "localhost"));
    let once = here.run("audit", &[&rep, "--with", &there.url(), "--with", &other, "--with", &itself]);
    assert_eq!((alarmed(&once), once.json()[0]["holders"].as_array().unwrap().len()), (two, 1));
    // Another second version there, and a third one here: neither number nor state tells.
    there.does("update", &[&rep, "--dc", "title=Zwei"]);
    here.does("update", &[&rep, "--dc", "title=Three"]);
    let both = alarmed(&audit());
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].contains(&format!("has another version 2 of {rep} than was ever here")), "{both:?}");
    assert_eq!(here.shown(&rep)["version"], 3, "nothing is overwritten");
    // Their operators have found out who has it: the one of the earlier epoch yields, and the other one cannot.
    let there_too = there.run("refresh", &[&rep, "--from", &here.url(), "--overwrite"]);
    assert_eq!((there_too.status, &there_too.json()[0]["found"]), (1, &"conflict".into()));
    let yields = here.run("refresh", &[&rep, "--from", &there.url(), "--overwrite"]);
    assert_eq!((yields.status, &yields.json()[0]["found"]), (0, &"conflict".into()), "{}", yields.stderr);
    let shown = here.shown(&rep);
    assert_eq!((&shown["state"], &shown["version"]), (&"Copy".into(), &2.into()));
    let last = shown["history"].as_array().unwrap().last().unwrap()["note"].clone();
    assert!(last.as_str().unwrap().contains("another Original"), "it is not overwritten in silence: {last}");
    assert_eq!(audit().status, 0);
}

/// Clause 2.1: what was deposited after a backup, and lives on at a Copy only, is told of and can be brought home.
#[test]
fn an_original_that_lacks_versions_of_its_copy_says_so_and_gets_them() {
    let (mut here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    let place = here.folder.place.path().to_owned();
    let [data, backup, restored] =
        ["data", "backup", "restored"].map(|name| place.join(name).display().to_string());
    assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    here.does("update", &[&rep, "--dc", "title=Two"]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    here.server.signal("-KILL");
    here.server.end();
    assert_eq!(ibi(&["restore", "--from", &backup, "--data", &restored]).status, 0);
    let archive = |command: &str, arguments: &[&str]| {
        ibi(&[&["archive", command, "--data", &restored, "--json"], arguments].concat())
    };
    assert_eq!(ibi(&["archive", "confirm", "--data", &restored]).status, 0);
    here.server = Server::start(restored.as_ref(), &[]);
    let found = |run: &Run| (run.status, run.json()[0]["found"].as_str().unwrap().to_owned());
    let beyond = there.run("refresh", &[&rep, "--from", &here.url()]);
    assert_eq!(found(&beyond), (1, "beyond".to_owned()), "{}", beyond.stderr);
    let lacking = archive("copy", &[&rep, "--from", &there.url()]);
    assert_eq!(found(&lacking), (1, "lacking".to_owned()), "{}", lacking.stderr);
    let brought = archive("refresh", &[&rep, "--from", &there.url(), "--overwrite"]);
    assert_eq!(found(&brought), (0, "lacking".to_owned()), "{}", brought.stderr);
    let shown = archive("show", &[&rep]).json().remove(0);
    assert_eq!((&shown["state"], &shown["version"]), (&"Original".into(), &2.into()));
    assert_eq!(found(&there.run("refresh", &[&rep, "--from", &here.url()])), (0, "equal".to_owned()));
    assert_eq!(archive("audit", &[]).status, 0);
    assert!(archive("rebuild", &[]).stdout.contains("adopted\":[]"));
}
