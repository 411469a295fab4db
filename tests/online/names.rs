//! Paths of files: names of any bytes, links between items, older versions.

use super::Folder;
use super::client::Reply;

/// Resolves a link as a browser does (RFC 3986 §5.2).
fn resolve(base: &str, link: &str) -> String {
    let mut path: Vec<&str> = base.split('/').collect();
    path.pop();
    for step in link.split('/') {
        if step == ".." {
            path.pop();
        } else {
            path.push(step);
        }
    }
    path.join("/")
}

fn links(page: &Reply) -> Vec<String> {
    let text = page.text();
    text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Old links are in ISO 8859-1, new ones in UTF-8: each name is its bytes.
#[test]
fn names_are_bytes_in_whatever_encoding() {
    let folder = Folder::new();
    let names: &[(&[u8], &str, &[u8])] = &[
        ("Relatório.txt".as_bytes(), "Relat%C3%B3rio.txt", b"in UTF-8"),
        (b"Relat\xf3rio.txt", "Relat%F3rio.txt", b"in ISO 8859-1"),
        (b"with space+plus.txt", "with%20space+plus.txt", b"a space and a plus"),
        (b"100%25.txt", "100%2525.txt", b"decoded once"),
        (b"sub/a;b=c'd.txt", "sub/a;b=c'd.txt", b"what else stands in a path"),
        (b"quote\"<b>.txt", "quote%22%3Cb%3E.txt", b"what would end a header or begin a tag"),
        (b"new\nline\tx.txt", "new%0Aline%09x.txt", b"what would end a line"),
    ];
    let files: Vec<(&[u8], &[u8])> = names.iter().map(|(name, _, bytes)| (*name, *bytes)).collect();
    let rep = folder.deposit(&files, &[]);
    let server = folder.serve();
    let doc = format!("/col/{rep}/doc/");
    let mut listed = links(&server.get(&format!("/col/{rep}/files")));
    listed.retain(|link| link.starts_with(&doc));
    assert_eq!(listed.len(), names.len());
    for (_, url, content) in names {
        for url in [url.to_string(), url.to_lowercase().replace("relat", "Relat")] {
            let file = server.get(&format!("{doc}{url}"));
            assert_eq!((file.status, &file.body[..]), (200, *content), "{url}");
        }
        assert!(listed.iter().any(|link| server.get(&link.replace("&#39;", "'")).body == *content), "{url}");
    }
    for missing in ["Relatorio.txt", "relat%C3%B3rio.txt", "with+space+plus.txt", "100%25.txt", "sub%2525"] {
        assert_eq!(server.get(&format!("{doc}{missing}")).status, 404, "{missing}");
    }
}

/// RFC 6266: the name under which a browser saves a file. `filename*=UTF-8''` is followed by UTF-8.
#[test]
fn a_file_is_saved_under_its_own_name() {
    let folder = Folder::new();
    let names: &[(&[u8], &str)] = &[
        ("Relatório é.bin".as_bytes(), "Relat%C3%B3rio%20%C3%A9.bin"),
        (b"Relat\xf3rio.bin", "Relat%F3rio.bin"),
        (b"sub/quote\".bin", "sub/quote%22.bin"),
    ];
    let files: Vec<(&[u8], &[u8])> = names.iter().map(|(name, _)| (*name, &b"x"[..])).collect();
    let rep = folder.deposit(&files, &[]);
    let server = folder.serve();
    let mut saved = Vec::new();
    for (_, url) in names {
        let file = server.get(&format!("/col/{rep}/doc/{url}"));
        let how = file.header("content-disposition").to_owned();
        let name = how.split("filename*=UTF-8''").nth(1).unwrap().to_owned();
        let mut raw = Vec::new();
        let mut rest = name.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            let hex = (first == b'%').then(|| std::str::from_utf8(&after[..2]).unwrap());
            raw.push(hex.map_or(first, |hex| u8::from_str_radix(hex, 16).unwrap()));
            rest = if hex.is_some() { &after[2..] } else { after };
        }
        saved.push(String::from_utf8(raw).map_err(|_| how));
    }
    assert_eq!(saved, ["Relatório é.bin", "Relatório.bin", "quote\".bin"].map(|name| Ok(name.to_owned())));
}

/// Clause 2.3: a link that worked in the author's folders works here, by whichever label the item
/// was reached.
#[test]
fn a_relative_link_leads_from_one_item_to_another() {
    let folder = Folder::new();
    let second = folder.deposit(&[(b"b/two.txt", b"the second")], &["--alias", "8JMKD3MGP8W/34PGRBS"]);
    let page = format!(
        "<a href=\"../../../../../{second}/doc/b/two.txt\">there</a> <a href=\"c/three.txt\">here</a>"
    );
    let first = folder.deposit(
        &[(b"one.html", page.as_bytes()), (b"c/three.txt", b"the third")],
        &["--alias", "LK47B6W/362SFKH"],
    );
    let server = folder.serve();
    let at = format!("/col/{first}/doc/one.html");
    let found: Vec<Vec<u8>> =
        links(&server.get(&at)).iter().map(|link| server.get(&resolve(&at, link)).body).collect();
    assert_eq!(found, [b"the second".to_vec(), b"the third".to_vec()]);
    let moved = server.get("/col/LK47B6W/362SFKH/doc/one.html?x=y");
    assert_eq!((moved.status, moved.header("location")), (308, format!("{at}?x=y").as_str()));
    let bare = server.get("/8JMKD3MGP8W/34PGRBS");
    assert_eq!(
        (bare.status, bare.header("location")),
        (302, format!("/col/{second}/doc/b/two.txt").as_str())
    );
}

#[test]
fn older_versions_stay_where_they_were() {
    let folder = Folder::new();
    let rep = folder
        .deposit(&[(b"a.txt", b"first"), (b"gone.txt", b"only then"), (b"sub/index.html", b"old")], &[]);
    let server = folder.serve();
    let newer = folder.folder(&[(b"a.txt", b"second"), (b"sub/index.html", b"new")]).display().to_string();
    assert_eq!(folder.archive("update", &[&rep, &newer]).status, 0);
    let at = |path: &str| {
        let file = server.get(&format!("/col/{rep}/{path}"));
        (file.status, file.text())
    };
    assert_eq!(at("doc/a.txt"), (200, "second".to_owned()));
    assert_eq!(at("v1/doc/a.txt"), (200, "first".to_owned()));
    assert_eq!(at("v2/doc/a.txt"), (200, "second".to_owned()));
    assert_eq!(at("v1/doc/gone.txt"), (200, "only then".to_owned()));
    for none in
        ["doc/gone.txt", "v2/doc/gone.txt", "v3/doc/a.txt", "v0/doc/a.txt", "v-1/doc/a.txt", "v1/a.txt"]
    {
        assert_eq!(at(none).0, 404, "{none}");
    }
    let index = server.get(&format!("/col/{rep}/v1/doc/sub/"));
    assert_eq!(
        server.get(index.header("location")).text(),
        "old",
        "a folder of a version is of that version"
    );
}

/// Clause 2.3: a link between items leads from a page of an older version to the same place, though
/// that lies one folder deeper.
#[test]
fn links_between_items_work_from_older_versions() {
    let folder = Folder::new();
    let other = folder.deposit(&[(b"b.txt", b"linked")], &[]);
    let rep = folder.deposit(&[(b"a.html", b"<a>")], &[]);
    let server = folder.serve();
    for page in ["doc/a.html", "v1/doc/a.html"] {
        let to = resolve(&format!("/col/{rep}/{page}"), &format!("../../../../../{other}/doc/b.txt"));
        let mut reply = server.get(&to);
        if reply.status == 307 {
            reply = server.get(reply.header("location"));
        }
        assert_eq!((reply.status, reply.text().as_str()), (200, "linked"), "{to}");
    }
    assert_eq!(server.get("/col/x/unknown.test/y/2020/01.01.01.01/doc/b.txt").status, 404);
}
