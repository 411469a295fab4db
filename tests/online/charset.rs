//! UTF-8 texts declare their charset, however they were deposited.

use std::fs;

use serde_json::json;

use super::{Folder, rep};
use crate::binary::ibi;
use crate::holders::Holder;

const UTF_8: &str = "text/plain; charset=utf-8";
const ACCENTS: &str = "Olá, ação\n";
const LATIN_1: &[u8] = b"Ol\xe1\n";

fn kind(holder: &Holder, item: &str, file: &str) -> String {
    let reply = holder.server.get(&format!("/col/{item}/doc/{file}"));
    assert_eq!(reply.status, 200, "{file}");
    reply.header("content-type").to_owned()
}

#[test]
fn a_deposited_text_tells_its_charset_and_a_copy_tells_the_same() {
    let (here, there) = (Holder::new(), Holder::new());
    let item = here.folder.deposit(
        &[
            (b"utf8.txt", ACCENTS.as_bytes()),
            (b"latin1.txt", LATIN_1),
            (b"page.html", b"<p>"),
            (b"a.bin", b"a"),
        ],
        &["--dc", "title=Texts"],
    );
    there.does("copy", &[&item, "--from", &here.url()]);
    for holder in [&here, &there] {
        assert_eq!(kind(holder, &item, "utf8.txt"), UTF_8);
        assert_eq!(kind(holder, &item, "latin1.txt"), "text/plain", "nobody guesses");
        assert_eq!(kind(holder, &item, "page.html"), "text/html; charset=utf-8");
        assert_eq!(kind(holder, &item, "a.bin"), "application/octet-stream");
    }
    // Metadata name formats without the charset; a rebuilt index has the same.
    let record = here.server.get(&format!("/api/v1/items/{item}/oai_dc")).text();
    assert!(record.contains("<dc:format>text/plain</dc:format>") && !record.contains("charset"), "{record}");
    here.does("rebuild", &[]);
    assert_eq!(kind(&here, &item, "utf8.txt"), UTF_8);
    // A metadata-only version keeps the charset; the older one has it, too.
    here.does("update", &[&item, "--dc", "title=Other"]);
    assert_eq!(kind(&here, &item, "utf8.txt"), UTF_8);
    assert_eq!(here.server.get(&format!("/col/{item}/v1/doc/utf8.txt")).header("content-type"), UTF_8);
}

#[test]
fn tables_bags_and_drafts_tell_the_charset_too() {
    let holder = Holder::new();
    let place = holder.folder.place.path();
    // A table.
    fs::write(place.join("a.txt"), ACCENTS).unwrap();
    fs::write(place.join("table.csv"), "file,dc.title\na.txt,A\n").unwrap();
    let table = place.join("table.csv").display().to_string();
    let run = holder.run("deposit", &["--table", &table]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let item = rep(&run.json()[0]);
    assert_eq!(kind(&holder, &item, "a.txt"), UTF_8);
    // A bag of it, deposited in another Archive.
    let bag = place.join("bag").display().to_string();
    holder.does("export", &[&item, "--out", &bag]);
    let other = Folder::new();
    let data = other.data().display().to_string();
    let run = ibi(&["archive", "deposit", &bag, "--data", &data, "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(run.json()[0]["files"][0]["type"], UTF_8);

    // A draft, and one that updates the item and keeps its files.
    let token = holder.folder.token("operator");
    let api = |method: &str, path: &str, body: &[u8]| {
        let reply = holder.server.api(&token, method, path, body);
        assert!((200..300).contains(&reply.status), "{path}: {}", reply.text());
        reply.json()
    };
    let begin = |body: serde_json::Value| {
        let draft = api("POST", "/drafts", body.to_string().as_bytes());
        format!("/drafts/{}", draft["id"].as_str().unwrap())
    };
    let draft = begin(json!({}));
    api("PUT", &format!("{draft}/files/utf8.txt"), ACCENTS.as_bytes());
    api("PUT", &format!("{draft}/files/latin1.txt"), LATIN_1);
    let item = rep(&api("POST", &format!("{draft}/publish"), b""));
    let draft = begin(json!({ "item": item, "metadata": [{ "element": "title", "value": "Drafted" }] }));
    api("POST", &format!("{draft}/publish"), b"");
    assert_eq!(kind(&holder, &item, "utf8.txt"), UTF_8);
    assert_eq!(kind(&holder, &item, "latin1.txt"), "text/plain");
}
