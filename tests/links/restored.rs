//! Links after an Archive was restored from a backup (clause 2.4, *Nothing is lost*).

use super::{Federation, settled};
use crate::binary::ibi;
use crate::online::until;

/// The decision was made after the backup: the Archive of the newer item returns it, with its
/// receipt.
#[test]
fn a_decision_that_a_backup_lacks_comes_back() {
    let mut federation = Federation::new(2);
    let first = federation.archives[0].deposit("first", &["--language", "en"]);
    let second = federation.archives[1].deposit("second", &["--language", "en", "--next-edition-of", &first]);
    settled(&federation.archives[0], &second, "proposed");
    let data = federation.archives[0].folder.data();
    let copy = federation.archives[0].folder.place.path().join("backup");
    let (data_text, copy_text) = (data.display().to_string(), copy.display().to_string());
    let backup = ibi(&["backup", "--data", &data_text, "--out", &copy_text]);
    assert_eq!(backup.status, 0, "{}", backup.stderr);
    federation.archives[0].does("links accept", &[&second]);
    settled(&federation.archives[1], &second, "accepted");
    // The folder is lost, and restored from the earlier backup.
    federation.archives[0].server.signal("-KILL");
    federation.archives[0].server.end();
    std::fs::rename(&data, data.with_extension("lost")).unwrap();
    let restored = ibi(&["restore", "--from", &copy_text, "--data", &data_text]);
    assert_eq!(restored.status, 0, "{}", restored.stderr);
    let recovered = ibi(&["minter", "recover", "--data", &data_text]);
    assert_eq!(recovered.status, 0, "{}", recovered.stderr);
    let again = federation.resolver.on_line(&federation.archives[0].folder);
    federation.archives[0].server = again;
    // Before it is confirmed, it takes back what it decided. Seen before: readers of `!` were led
    // to the older edition for as long as nobody confirmed.
    let last = || federation.leads(&format!("{first}!"));
    until("readers are led along it", || last() == format!("col/{second}/doc/a.txt"));
    let confirmed = ibi(&["archive", "confirm", "--data", &data_text]);
    assert_eq!(confirmed.status, 0, "{}", confirmed.stderr);
    // After `confirm` it asks the Archives that it knows to report again.
    settled(&federation.archives[0], &second, "accepted");
    until("readers are led along it again", || {
        federation.leads(&format!("{first}!")) == format!("col/{second}/doc/a.txt")
    });
}
