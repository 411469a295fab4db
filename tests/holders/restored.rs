//! An Archive that is restored from a backup in the middle of a hand-over.

use serde_json::json;

use super::{Holder, Promising, byte_equal};
use crate::binary::ibi;
use crate::online::server::Server;
use crate::online::{Folder, until};

/// Clause 2.1: a restored giver automatically resumes what it had granted, and is a Copy
/// throughout.
#[test]
fn a_restored_giver_goes_on_with_what_it_had_granted() {
    let (mut giver, taker) = (Holder::new(), Folder::new());
    let rep = giver.folder.deposit(&[(b"a", b"one")], &[]);
    let promising = Promising::of(&taker.service);
    let to = promising.url();
    let begun = json!({ "to": to, "token": taker.token("holder") }).to_string();
    let operator = giver.folder.token("operator");
    let path = format!("/items/{rep}/transfer");
    assert_eq!(giver.server.api(&operator, "POST", &path, begun.as_bytes()).status, 202);
    until("it is granted", || giver.state(&rep) == "Copy");
    let folder = giver.folder.place.path();
    let [data, backup, restored] =
        ["data", "backup", "restored"].map(|name| folder.join(name).display().to_string());
    for _ in 0..2 {
        assert_eq!(ibi(&["backup", "--data", &data, "--out", &backup]).status, 0);
    }
    giver.server.signal("-KILL");
    giver.server.end();
    assert_eq!(ibi(&["restore", "--from", &backup, "--data", &restored]).status, 0);
    promising.go();
    let at = to.strip_prefix("http://").unwrap();
    let taking = Server::run(&["archive", "serve", "--listen", at], &taker.data(), &[]);
    giver.server = Server::start(restored.as_ref(), &[]);
    taker.trusts_giver(&giver.url(), None);
    let state = |server: &Server| {
        let item = server.get(&format!("/api/v1/items/{rep}"));
        if item.status == 200 { item.json()["state"].as_str().unwrap().to_owned() } else { String::new() }
    };
    until("the taker has it", || state(&taking) == "Original");
    assert_eq!(state(&giver.server), "Copy");
    let notes = folder.join("restored/service/handovers");
    until("it is over", || std::fs::read_dir(&notes).unwrap().count() == 0);
    assert!(byte_equal(&folder.join("restored/tree").join(&rep), &taker.data().join("tree").join(&rep)));
    // A backup has no note of a completed hand-over.
    assert_eq!(ibi(&["backup", "--data", &restored, "--out", &backup]).status, 0);
    assert!(!folder.join("backup/service/handovers").exists());
}
