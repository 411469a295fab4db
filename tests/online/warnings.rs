//! Doubtful input is accepted with a warning, and not refused.

use serde_json::json;

use super::{Folder, rep};

const NOBODYS: &str = "library.test/nothing/2009/02.16.17.46";

#[test]
fn a_command_warns_of_dates_and_links_on_standard_error() {
    let folder = Folder::new();
    let file = folder.folder(&[(b"a.txt", b"one")]).display().to_string();
    let doubtful =
        ["--dc", "title=A", "--dc", "date=banana", "--translation-of", NOBODYS, "--language", "pt"];
    for more in [&["--dry-run"][..], &[]] {
        let run = folder.archive("deposit", &[&[file.as_str()][..], &doubtful, more].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.stderr.contains("warning: `banana` is not a date"), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("warning: it is a translation of {NOBODYS}")), "{}", run.stderr);
    }
    let item = folder.put(&[(b"b.txt", b"two")], &["--dc", "title=B", "--dc", "date=2009-02"]);
    let run = folder.archive("update", &[&rep(&item), "--next-edition-of", NOBODYS]);
    assert!(run.stderr.contains(&format!("warning: it is the next edition of {NOBODYS}")), "{}", run.stderr);
    // Correct input causes no warning.
    let edition = ["--dc", "title=C", "--dc", "date=2009-02-16", "--next-edition-of", &rep(&item)];
    let run = folder.archive("deposit", &[&[file.as_str()][..], &edition].concat());
    assert!(run.status == 0 && !run.stderr.contains("warning"), "{}", run.stderr);
    // For a table, the warning names the line.
    let table = folder.place.path().join("table.csv");
    std::fs::write(&table, "file,dc.title,dc.date\nfolder/b.txt,A,2009\nfolder/b.txt,A,soon\n").unwrap();
    let run = folder.archive("deposit", &["--table", &table.display().to_string()]);
    assert_eq!(run.stderr.matches("warning: ").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("warning: line 3: `soon` is not a date"), "{}", run.stderr);
}

#[test]
fn the_api_answers_with_warnings() {
    let folder = Folder::new();
    let server = folder.serve();
    let token = folder.token("operator");
    let api = |method: &str, path: &str, body: serde_json::Value| {
        let reply = server.api(&token, method, path, body.to_string().as_bytes());
        assert!((200..300).contains(&reply.status), "{path}: {}", reply.text());
        reply.json()
    };
    let draft = api(
        "POST",
        "/drafts",
        json!({
            "metadata": [{ "element": "title", "value": "A" }, { "element": "date", "value": "banana" }],
            "next_edition_of": NOBODYS,
        }),
    );
    let made = api("POST", &format!("/drafts/{}/publish", draft["id"].as_str().unwrap()), json!({}));
    let warnings = made["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{made}");
    assert!(warnings[0].as_str().unwrap().contains("banana"));
    assert!(warnings[1].as_str().unwrap().contains(NOBODYS));
    let path = format!("/items/{}", rep(&made));
    assert_eq!(api("GET", &path, json!({}))["warnings"], json!(null), "who reads it changed nothing");
    let right = json!({ "metadata": [{ "element": "date", "value": "2009" }], "next_edition_of": null });
    assert_eq!(api("PATCH", &path, right)["warnings"], json!(null));
}
