//! Items that keep their existing labels and dates (clause 2.2, 003 Example 7.8).

use std::fs;

use serde_json::json;

use super::UTILITIES;
use crate::online::Folder;

const METADATA: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.13.23.47";

#[test]
fn metadata_keep_their_label_and_items_their_dates() {
    let folder = Folder::new();
    let dates = ["--created", "1998-08-02T08:56:00Z", "--updated", "2014-04-04T14:39:54-03:00"];
    let made = ["--metadata-created", "2009-07-21T13:23:47Z"];
    let label = [&["--label", UTILITIES, "--metadata-label", METADATA][..], &made].concat();
    let item = folder.put(&[(b"a", b"one")], &[&label[..], &dates].concat());
    assert_eq!((&item["state"], &item["created"]), (&json!("Copy"), &json!("1998-08-02T08:56:00Z")));
    assert_eq!(item["updated"], "2014-04-04T17:39:54Z");
    assert_eq!(item["metadata"]["rep"], METADATA, "{item}");
    assert_eq!(item["metadata_created"], "2009-07-21T13:23:47Z");
    let metadata = folder.archive("show", &[METADATA]).json().remove(0);
    assert_eq!(metadata["contenttype"], "Metadata");
    assert_eq!(metadata["describes"], UTILITIES, "{metadata}");
    // The tree records when the version was made here.
    let inventory = folder.data().join("tree").join(UTILITIES).join("inventory.json");
    let inventory: serde_json::Value = serde_json::from_slice(&fs::read(inventory).unwrap()).unwrap();
    assert!(inventory["versions"]["v1"]["created"].as_str().unwrap() > "2026");
    // A rebuilt index is the same; an update has the current time.
    assert_eq!(folder.archive("rebuild", &[]).status, 0);
    assert_eq!(folder.archive("show", &[UTILITIES]).json().remove(0)["updated"], "2014-04-04T17:39:54Z");
    let updated = folder.archive("update", &[UTILITIES, "--original", "--dc", "title=x"]).json().remove(0);
    assert_eq!(updated["created"], "1998-08-02T08:56:00Z");
    assert_eq!(updated["metadata_created"], "2009-07-21T13:23:47Z");
    assert!(updated["updated"].as_str().unwrap() > "2026");
    assert_eq!(folder.archive("audit", &[]).status, 0);
}

/// Clause 1.3: a label leads to one item, also a metadata label.
#[test]
fn a_metadata_label_is_never_used_twice() {
    let folder = Folder::new();
    folder.put(&[(b"a", b"one")], &["--label", UTILITIES, "--metadata-label", METADATA]);
    let from = folder.folder(&[(b"a", b"two")]).display().to_string();
    let ahead = format!("{}/2999/01.01.00.00", folder.service.rsplitn(3, '/').nth(2).unwrap());
    for (arguments, says) in [
        (&["--metadata-label", METADATA][..], "is never reassigned"),
        (&["--metadata-label", "sid.inpe.br/mtc-m18/2009/07.21.13.23.47"], "is never reassigned"),
        (&["--metadata-label", UTILITIES], "is never reassigned"),
        (&["--label", METADATA], "is never reassigned"),
        (
            &["--label", "a.br/b/2001/01.01.00.00", "--metadata-label", "a.br/b/2001/01.01.00.00"],
            "never reassigned",
        ),
        (&["--metadata-label", &ahead], "but was not minted"),
        (&["--metadata-label", "x"], "is not a valid label"),
        (&["--label", "a.br/b/2001/01.01.00.00", "--created", "2999-01-01T00:00:00Z"], "in the future"),
        (&["--label", "a.br/b/2001/01.01.00.00", "--created", "yesterday"], "RFC 3339"),
    ] {
        let run = folder.archive("deposit", &[&[from.as_str()], arguments].concat());
        assert!(run.status != 0 && run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
        let dry = folder.archive("deposit", &[&[from.as_str(), "--dry-run"], arguments].concat());
        assert!(dry.status != 0 && dry.stderr.contains(says), "{arguments:?}: {}", dry.stderr);
    }
    // New items may have metadata with a label of their own.
    let item = folder.put(&[(b"a", b"two")], &["--metadata-label", "8JMKD3MGP8W/34PGRBS"]);
    assert_eq!(item["metadata"]["ibip"], "8JMKD3MGP8W/34PGRBS");
}

#[test]
fn tables_the_api_and_bags_bring_them_too() {
    let folder = Folder::new();
    let server = folder.serve();
    let place = folder.place.path();
    fs::write(place.join("a.txt"), "one").unwrap();
    let table = format!(
        "file,label,metadata-label,created,updated,metadata-created\n\
         a.txt,{UTILITIES},{METADATA},1998-08-02T08:56:00Z,2014-04-04T17:39:54Z,2009-07-21T13:23:47Z\n"
    );
    fs::write(place.join("t.csv"), table).unwrap();
    let run = folder.archive("deposit", &["--table", &place.join("t.csv").display().to_string()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let item = run.json().remove(0);
    assert_eq!(
        (&item["metadata"]["rep"], &item["updated"]),
        (&json!(METADATA), &json!("2014-04-04T17:39:54Z"))
    );
    let token = folder.token("operator");
    let body = json!({
        "labels": ["a.br/b/2001/01.01.00.00"],
        "metadata_labels": ["a.br/b/2001/01.01.00.01"],
        "created": "2001-01-01T00:00:00Z",
        "updated": "2002-01-01T00:00:00Z",
        "metadata_created": "2001-06-01T00:00:00Z",
    });
    let begun = server.api(&token, "POST", "/drafts", body.to_string().as_bytes());
    assert_eq!(begun.status, 201, "{}", begun.text());
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let published = server.api(&token, "POST", &format!("/drafts/{id}/publish"), b"");
    assert_eq!(published.status, 201, "{}", published.text());
    let item = published.json();
    assert_eq!(item["metadata"]["rep"], "a.br/b/2001/01.01.00.01", "{item}");
    assert_eq!(
        (&item["created"], &item["updated"]),
        (&json!("2001-01-01T00:00:00Z"), &json!("2002-01-01T00:00:00Z"))
    );
    assert_eq!(item["metadata_created"], "2001-06-01T00:00:00Z");
    // A bag of ours that is deposited elsewhere under its label is the same item.
    let bag = place.join("bag").display().to_string();
    assert_eq!(folder.archive("export", &[UTILITIES, "--out", &bag]).status, 0);
    let other = Folder::new();
    let run = other.archive("deposit", &[&bag, "--label", UTILITIES]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let item = run.json().remove(0);
    assert_eq!(
        (&item["metadata"]["rep"], &item["created"]),
        (&json!(METADATA), &json!("1998-08-02T08:56:00Z"))
    );
    assert_eq!(item["metadata_created"], "2009-07-21T13:23:47Z");
}

/// An item with dates from elsewhere is copied like any other; a recent import counts as a recent
/// change.
#[test]
fn items_with_dates_from_elsewhere_are_copied_also_by_date() {
    let folder = Folder::new();
    let dates = ["--created", "1998-08-02T08:56:00Z", "--updated", "2014-04-04T14:39:54-03:00"];
    folder.put(
        &[(b"a", b"one")],
        &[&["--label", UTILITIES, "--metadata-label", METADATA][..], &dates].concat(),
    );
    let server = folder.serve();
    let other = Folder::new();
    let run = other.archive("copy", &["--since", "2020-01-01", "--from", &format!("http://{}", server.at)]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let [here, there] = [&folder, &other].map(|folder| folder.archive("show", &[UTILITIES]).json().remove(0));
    for name in ["created", "updated", "metadata", "files", "state"] {
        assert_eq!(here[name], there[name], "{name}");
    }
    assert_eq!(other.archive("audit", &[UTILITIES, "--with", &format!("http://{}", server.at)]).status, 0);
}
