//! Persistent URLs at the Archive's own address (clauses 2, 4.1, 4.2).

use super::client::Reply;
use super::{Folder, Server};

/// Items e (en), p (pt) and f (fr), all translations of one another; e has a next edition e2 (en)
/// with a translation p2 (pt).
struct Family {
    folder: Folder,
    labels: [String; 5],
}

impl Family {
    fn new() -> Self {
        let folder = Folder::new();
        let put = |name: &str, language: &str, links: &[&str]| {
            let file = format!("{name}.txt");
            let all = [&["--language", language, "--dc", "title=x"][..], links].concat();
            folder.deposit(&[(file.as_bytes(), name.as_bytes())], &all)
        };
        let e = put("e", "en", &["--alias", "LK47B6W/362SFKH"]);
        let p = put("p", "pt", &["--translation-of", &e]);
        let f = put("f", "fr", &["--translation-of", &e]);
        let e2 = put("e2", "en", &["--next-edition-of", &e]);
        let p2 = put("p2", "pt", &["--translation-of", &e2]);
        Self { folder, labels: [e, p, f, e2, p2] }
    }
}

fn get(server: &Server, path: &str, languages: &str) -> Reply {
    let lines: String = languages.split('|').map(|line| format!("Accept-Language: {line}\r\n")).collect();
    server.get_with(path, if languages.is_empty() { "" } else { &lines })
}

/// The result of a path: the bytes of a file, or the label of metadata.
fn opens(server: &Server, path: &str, languages: &str) -> String {
    let reply = get(server, path, languages);
    assert_eq!(reply.status, 302, "{path}: {}", reply.text());
    let to = reply.header("location").to_owned();
    assert!(to.starts_with("/col/"), "{to}");
    if to.contains("/doc/") { server.get(&to).text() } else { to }
}

/// 4.1: all 14 compositions; 4.2 step 6: all lines of `Accept-Language`, each `+` by itself, from
/// left to right.
#[test]
fn clause_2_every_modifier_at_the_archives_own_address() {
    let Family { folder, labels: [e, p, f, e2, p2] } = Family::new();
    let metadata = |label: &str| {
        let shown = folder.archive("show", &[label]).json().pop().unwrap();
        format!("/col/{}/", shown["metadata"]["rep"].as_str().unwrap())
    };
    let server = folder.serve();
    let [me, mp, me2, mp2] = [&e, &p, &e2, &p2].map(|label| metadata(label));
    for (modifiers, languages, expected) in [
        ("", "", "e"),
        ("!", "", "e2"),
        ("+", "pt", "p"),
        ("+", "de, fr;q=0.5, pt;q=0.1", "f"),
        ("+", "de|fr;q=0.5", "f"),
        ("+", "pt;q=0.1|fr;q=0.5", "f"),
        ("+", "de", "e"),
        ("+(pt)", "fr", "p"),
        ("!+", "pt", "p2"),
        ("+!", "pt", "p"),
        ("+(en)!", "", "e2"),
        ("!+(pt)", "", "p2"),
        (":", "", &me),
        ("+:", "pt", &mp),
        ("!:", "", &me2),
        ("!+:", "pt", &mp2),
        (":+", "", &me),
        ("!:+", "", &me2),
        ("!+:+", "pt", &mp2),
        ("+!:", "en", &me2),
        ("+:+", "pt", &mp),
        ("+!:+", "en", &me2),
        (":(oai_dc)", "", &format!("{me}oai_dc")),
        ("!:(oai_dc)", "", &format!("{me2}oai_dc")),
        ("?ibiurl.verblist=GetLastEdition", "", "e2"),
        ("!?ibiurl.verblist=GetMetadata", "", &me2),
        ("??", "", &me),
        ("?ibiurl.verblist=GetFileList", "", &format!("/col/{e}/files")),
        ("/e.txt", "", "e"),
        ("!/e2.txt", "", "e2"),
        ("%21", "", "e2"),
        ("%2B%28pt%29", "", "p"),
        ("?ibiurl.requireditemstatus=Original", "", "e"),
    ] {
        assert_eq!(
            opens(&server, &format!("/{e}{modifiers}"), languages),
            expected,
            "{modifiers} {languages}"
        );
    }
    for before in ["rep/", "rep-/", "ibi/", "ibi-/", "goto/", "goto-/", "ibi:", "upn:x-y:", "upn:x:/"] {
        assert_eq!(opens(&server, &format!("/{before}{e}!"), ""), "e2", "{before}");
    }
    assert_eq!(opens(&server, "/LK47B6W/362SFKH!", ""), "e2", "by an alias");
    // The Archive service is an item like others, except for service requests (clause 3.6).
    let service = metadata(&folder.service);
    for path in ["", "??", ":", "?ibiurl.verblist=GetMetadata"] {
        assert_eq!(opens(&server, &format!("/{}{path}", folder.service), ""), service, "{path}");
    }
    assert_eq!(server.service(&folder, "x=y").status, 400);
    // The item's own pairs are passed on unchanged.
    let passed = server.get(&format!("/{e}?a=1%2B2&ibiurl.x=y&b"));
    assert_eq!(passed.header("location"), format!("/col/{e}/doc/e.txt?a=1%2B2&b"));
    // 4.2 step 6: a removed translation gives way to the next best.
    let gone = folder.archive("remove", &[&f, "--reason", "x", "--yes"]);
    assert_eq!(gone.status, 0, "{}", gone.stderr);
    assert_eq!(opens(&server, &format!("/{e}+"), "fr, pt;q=0.5"), "p");
    assert_eq!(opens(&server, &format!("/{e}+"), "fr"), "e");
    assert_eq!(server.get(&format!("/{e}+(fr)")).status, 410);
    assert_eq!(server.get(&format!("/{f}")).status, 410);
}

/// 4.3, without a resolver.
#[test]
fn clause_4_3_what_is_not_here_is_404_and_names_what_there_is() {
    let Family { folder, labels: [e, ..] } = Family::new();
    let server = folder.serve();
    for (path, status, says) in [
        (format!("/{e}:(BibINPE)"), 404, "oai_dc"),
        (format!("/{e}+(de)"), 404, "en"),
        (format!("/{e}/no-such-file"), 404, "lists"),
        ("/unknown.test/x/2020/01.01.01.01!".to_owned(), 404, "not in this Archive"),
        (format!("/{e}!!"), 400, "does not go together"),
        (format!("/{e}+(xx)"), 400, "xx"),
        (format!("/{e}?ibiurl.verblist=GetNothing"), 400, "GetNothing"),
        (format!("/{e}?ibiurl.requireditemstatus=Copy"), 400, "Original"),
        ("/nothing.ico".to_owned(), 404, "nothing at this address"),
    ] {
        let reply = server.get_with(&path, "Accept: application/json\r\n");
        assert_eq!(reply.problem(), status, "{path}");
        assert!(reply.text().contains(says), "{path}: {}", reply.text());
    }
}

/// Clause 2: requests for items that it does not hold go unchanged to its resolver.
#[test]
fn clause_2_what_is_not_held_is_sent_to_the_resolver() {
    let Family { folder, labels: [e, _, _, e2, _] } = Family::new();
    let key = folder.place.path().join("key");
    std::fs::write(&key, "8675309867-5309867530").unwrap();
    let online =
        ["--resolver", "http://r.test:1", "--key-file", &key.display().to_string()].map(str::to_owned);
    let online: Vec<&str> = online.iter().map(String::as_str).collect();
    let server = folder.serve_with(&online);
    for path in [
        "/unknown.test/x/2020/01.01.01.01!:(oai_dc)?a=1%20&ibiurl.verblist=GetFileList".to_owned(),
        "/rep/unknown.test/x/2020/01.01.01.01".to_owned(),
        format!("/{e}+(de)"),
        format!("/{e}:(BibINPE)"),
    ] {
        let reply = server.get(&path);
        let to = (reply.status, reply.header("location").to_owned());
        assert_eq!(to, (302, format!("http://r.test:1{path}")));
    }
    assert_eq!(opens(&server, &format!("/{e}!"), ""), "e2", "the Original knows its last edition");
    // A Copy's claim that there is no next edition is not enough (4.2 step 4), and it is not the
    // Original.
    let other = Folder::new();
    let from = format!("http://{}", server.at);
    for label in [&e, &e2] {
        assert_eq!(other.archive("copy", &[label, "--from", &from]).status, 0);
    }
    let copies = other.serve_with(&online);
    for path in [format!("/{e}!"), format!("/{e}?ibiurl.requireditemstatus=Original")] {
        assert_eq!(copies.get(&path).header("location"), format!("http://r.test:1{path}"));
    }
    assert_eq!(opens(&copies, &format!("/{e}"), ""), "e");
    drop(copies);
    let alone = other.serve();
    assert_eq!(opens(&alone, &format!("/{e}!"), ""), "e2", "without a resolver, what is known here");
    assert_eq!(alone.get(&format!("/{e}?ibiurl.requireditemstatus=Original")).status, 404);
}
