//! Findings of an audit between holders, other than damage.

use std::fs;

use super::{Holder, byte_equal};
use crate::binary::{Run, ibi};
use crate::online::filter;
use crate::online::server::Server;

/// Clause 2.1, threats S7 and S8: one Original worldwide, and equal versions at all holders.
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
    let refused = there.run("update", &[&rep, "--original"]);
    assert_eq!(refused.status, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("claims the Original"), "{}", refused.stderr);
    there.does("update", &[&rep, "--original", "--yes"]);
    let alarmed = |run: &Run| {
        assert_eq!(run.status, 1, "{}", run.stderr);
        let alarms = run.json()[0]["alarms"].clone();
        alarms.as_array().unwrap().iter().map(|alarm| alarm.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let two = alarmed(&audit());
    assert_eq!(two.len(), 1, "{two:?}");
    let expected = format!("this Archive and {} claim the Original of {rep}", there.url());
    assert!(two[0].starts_with(&expected), "{two:?}");
    // An Archive is identified across addresses, and this one is not another.
    let [other, itself] = [&there, &here].map(|holder| holder.url().replace("127.0.0.1", "localhost"));
    let once = here.run("audit", &[&rep, "--with", &there.url(), "--with", &other, "--with", &itself]);
    assert_eq!((alarmed(&once), once.json()[0]["holders"].as_array().unwrap().len()), (two, 1));
    // A different second version there, and a third one here: neither number nor state shows it.
    there.does("update", &[&rep, "--dc", "title=Zwei"]);
    here.does("update", &[&rep, "--dc", "title=Three"]);
    let both = alarmed(&audit());
    assert_eq!(both.len(), 2, "{both:?}");
    let expected = format!("version 2 of {rep} at {} differs from every local version", there.url());
    assert!(both[0].contains(&expected), "{both:?}");
    assert_eq!(here.shown(&rep)["version"], 3, "nothing is overwritten");
    // The operators have settled who has it: the one of the earlier epoch yields, and the other
    // cannot.
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

/// Clause 2.2: of two Originals, the one of the earlier epoch does not yield before the other has
/// the versions that exist only here.
#[test]
fn no_version_is_lost_when_one_of_two_originals_yields() {
    let (here, there, third) = (Holder::new(), Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    for (giver, taker) in [(&here, &third), (&third, &here)] {
        giver.does("transfer", &[&rep, "--to", &taker.url(), "--token-file", &taker.takes_from(giver)]);
    }
    there.does("update", &[&rep, "--original", "--yes"]);
    there.does("update", &[&rep, "--dc", "title=Two"]);
    assert_eq!((&here.shown(&rep)["epoch"], &there.shown(&rep)["epoch"]), (&3.into(), &2.into()));
    let refresh = |at: &Holder, from: &Holder| {
        let run = at.run("refresh", &[&rep, "--from", &from.url(), "--overwrite"]);
        (run.status, run.json()[0]["found"].as_str().unwrap().to_owned())
    };
    let is = |at: &Holder| {
        let shown = at.shown(&rep);
        (shown["state"].as_str().unwrap().to_owned(), shown["version"].as_u64().unwrap())
    };
    assert_eq!(refresh(&there, &here), (1, "conflict".to_owned()), "it would be lost");
    assert_eq!(is(&there), ("Original".to_owned(), 2));
    assert_eq!(refresh(&here, &there), (0, "conflict".to_owned()));
    assert_eq!(is(&here), ("Original".to_owned(), 2), "it has it, too, and stays what it is");
    assert_eq!(refresh(&there, &here), (0, "conflict".to_owned()));
    assert_eq!(is(&there), ("Copy".to_owned(), 2));
    assert_eq!(here.run("audit", &[&rep, "--with", &there.url()]).status, 0);
}

/// Threat S5: another Archive's inventory may differ from its disk; every byte is read there, too.
#[test]
fn damage_at_another_holder_is_an_alarm() {
    let (here, there) = (Holder::new(), Holder::new());
    let large = vec![7; 3 << 20];
    let rep = here.folder.deposit(&[(b"a", b"one"), (b"large", &large)], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    let audit = || here.run("audit", &[&rep, "--with", &there.url()]);
    let whole = audit();
    let holder = whole.json()[0]["holders"][0].clone();
    assert_eq!((whole.status, &holder["equal"]), (0, &true.into()), "{}", whole.stderr);
    assert!(holder.get("damaged").is_none() && holder.get("unread").is_none(), "{holder}");
    // In its last block; a small file; one that is missing.
    let content = there.tree(&rep).join("v1/content");
    let mut flipped = large;
    *flipped.last_mut().unwrap() ^= 1;
    for (file, damage) in [("doc/large", Some(&flipped[..])), ("doc/a", Some(b"0ne")), ("item.json", None)] {
        let (path, good) = (content.join(file), fs::read(content.join(file)).unwrap());
        match damage {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let run = audit();
        let report = run.json()[0].clone();
        assert_eq!((run.status, &report["holders"][0]["equal"]), (1, &true.into()), "{file}: {report}");
        let name = format!("v1/content/{file}");
        assert_eq!(report["holders"][0]["damaged"], serde_json::json!([name]), "{report}");
        let alarm = report["alarms"][0].as_str().unwrap();
        assert!(alarm.starts_with(&format!("{name} of {rep} is damaged or missing at")), "{alarm}");
        assert!(run.stderr.contains("0 findings here"), "{}", run.stderr);
        fs::write(&path, good).unwrap();
    }
    let inventory = there.tree(&rep).join("inventory.json");
    fs::write(&inventory, b"{}").unwrap();
    let lost = audit();
    assert_eq!(lost.status, 1, "{}{}", lost.stdout, lost.stderr);
    assert!(lost.stderr.contains("ALARM: the object of"), "{}", lost.stderr);
}

/// Clause 2.1: a deposit after a backup, which exists only in a Copy, is reported and can be
/// fetched back.
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

/// Threat S5: the journal reveals an inventory that was changed together with its files and
/// digests; all of it is repaired at once, and `rebuild` trusts nothing else.
#[test]
fn what_was_changed_with_its_inventories_is_put_right_as_a_whole() {
    let (here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    there.does("copy", &[&rep, "--from", &here.url()]);
    let tree = here.tree(&rep);
    let good = fs::read_to_string(tree.join("inventory.json")).unwrap();
    let digest = |bytes: &[u8]| filter("sha512sum", bytes)[..128].to_owned();
    let forged = good.replace(&digest(b"one"), &digest(b"0ne"));
    assert_ne!(good, forged);
    let forge = |folders: &[&str]| {
        for folder in folders {
            let folder = tree.join(folder);
            fs::write(folder.join("inventory.json"), &forged).unwrap();
            let sidecar = format!("{} inventory.json\n", digest(forged.as_bytes()));
            fs::write(folder.join("inventory.json.sha512"), sidecar).unwrap();
        }
    };
    // Of the version only: the object's own inventory shows it.
    forge(&["v1"]);
    let found = here.run("audit", &[&rep]);
    assert_eq!(found.status, 1, "{}", found.stdout);
    assert!(found.stdout.contains("v1/inventory.json"), "{}", found.stdout);
    here.does("rebuild", &[]);
    assert_eq!(fs::read_to_string(tree.join("inventory.json")).unwrap(), good, "who is right stays");
    assert_eq!(here.state(&rep), "Original");
    // All of it.
    fs::write(tree.join("v1/content/doc/a"), "0ne").unwrap();
    forge(&[".", "v1"]);
    let repaired = here.run("audit", &[&rep, "--with", &there.url(), "--repair"]);
    assert_eq!(repaired.status, 0, "{}{}", repaired.stdout, repaired.stderr);
    let audit = here.run("audit", &[&rep]);
    assert_eq!(audit.status, 0, "{}", audit.stdout);
    assert!(byte_equal(&tree, &there.tree(&rep)));
    here.does("rebuild", &[]);
    assert_eq!((here.state(&rep).as_str(), here.run("audit", &[]).status), ("Original", 0));
}

/// An acknowledged deposit whose object was lost, with a rebuilt index, is restored in its former
/// state.
#[test]
fn an_object_that_is_lost_before_a_rebuild_comes_back_as_the_original() {
    let (mut here, there) = (Holder::new(), Holder::new());
    let rep = here.folder.deposit(&[(b"a", b"one")], &[]);
    for update in [false, true] {
        if update {
            here.does("update", &[&rep, "--dc", "title=Two"]);
            there.does("refresh", &[]);
        } else {
            there.does("copy", &[&rep, "--from", &here.url()]);
        }
        fs::remove_dir_all(here.tree(&rep)).unwrap();
        let compared = there.run("audit", &[&rep, "--with", &here.url()]);
        assert!(compared.status == 1 && compared.stderr.contains("ALARM"), "{}", compared.stderr);
        let lost = here.run("audit", &[&rep, "--with", &there.url(), "--repair"]);
        assert!(lost.stderr.contains(&format!("`ibi archive copy {rep} --from ARCHIVE`")), "{}", lost.stderr);
        let rebuilt = here.run("rebuild", &[]);
        assert_eq!(rebuilt.json()[0]["missing"], serde_json::json!([rep]), "{}", rebuilt.stderr);
        here.does("copy", &[&rep, "--from", &there.url()]);
        assert_eq!(here.state(&rep), "Original");
        assert!(byte_equal(&here.tree(&rep), &there.tree(&rep)));
    }
    // Whether there is another Original is unknown while its source is down.
    here.server.signal("-KILL");
    here.server.end();
    let unsure = there.run("update", &[&rep, "--original"]);
    assert!(unsure.status == 4 && unsure.stderr.contains("--yes"), "{}", unsure.stderr);
}
