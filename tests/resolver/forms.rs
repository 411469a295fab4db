//! Persistent URLs as the standard writes them (its chapter 6; clause 4.1), from the resolver to
//! the bytes.

use serde_json::Value;

use super::{Folder, Reply, Resolver, Server, follow, location};

/// The standard's own examples.
fn vectors() -> Value {
    serde_json::from_str(include_str!("../../crates/ibi-protocol/tests/vectors/persistent-urls.json"))
        .unwrap()
}

/// Deposits one file, named by its content, as the Original of labels from elsewhere.
fn put(folder: &Folder, content: &str, arguments: &[&str]) -> Value {
    let name = format!("{content}.txt");
    let files: [(&[u8], &[u8]); 2] = [(name.as_bytes(), content.as_bytes()), (b"reference.bib", b"@book")];
    folder.put(&files, &[&["--target", &name, "--original"], arguments].concat())
}

/// The result of a persistent URL, for a reader of Portuguese.
fn get(resolver: &Server, url: &str) -> Reply {
    resolver.get_with(url, "Accept: text/plain\r\nAccept-Language: pt-BR,en;q=0.5\r\n")
}

/// The expected result of every example: the content of a file, words of a page, or a status.
const EXAMPLES: [(&str, &str); 20] = [
    ("/8JMKD3MGP8W/35MME4E", "work"),
    ("/iconet.com.br/banon/2009/09.09.22.01", "iconet"),
    ("/8JMKD3MGP8W/35MME4E:", ">A work</a></h1>"),
    ("/8JMKD3MGP8W/35MME4E:(oai_dc)", "<dc:title>A work</dc:title>"),
    ("/8JMKD3MGP8W/35MME4E+", "obra"),
    ("/8JMKD3MGP8W/35MME4E+(pt)", "obra"),
    ("/8JMKD3MGP8W/35MMLL8!", "second"),
    ("/8JMKD3MGP8W/35MMLL8!:(oai_dc)", "<dc:title>Second</dc:title>"),
    (
        "/8JMKD3MGP8W/35MMLL8?ibiurl.verblist=GetLastEdition+GetMetadata(oai_dc)",
        "<dc:title>Second</dc:title>",
    ),
    ("/LK47B6W/362SFKH?ibiurl.verblist=GetFileList", "reference.bib"),
    ("/LK47B6W/362SFKH/reference.bib", "@book"),
    ("/LK47B6W/362SFKH+?ibiurl.requireditemstatus=Original&ibiurl.verblist=GetMetadata", ">Files</a></h1>"),
    ("/sid.inpe.br/mtc-m18@80/2009/02.16.17.46??", ">Both forms</a></h1>"),
    ("/8JMKD3MGP8W/34PGRBS??", ">Both forms</a></h1>"),
    ("/8JMKD3MGP8W/35MME4E+:+", ">Uma obra</a></h1>"),
    ("/8JMKD3MGP8W/35MME4E+(pt)/reference.bib", "@book"),
    ("/rep/8JMKD3MGP8W/35MME4E", "work"),
    (
        "/ibi/sid.inpe.br/mtc-m18@80/2009/07.21.13.23:(BibINPE)",
        "404 /sid.inpe.br/mtc-m18@80/2009/07.21.13.23:(oai_dc)",
    ),
    ("/goto/dpi.inpe.br/banon/1998/08.02.08.56+(pt-BR)", "urlib em português"),
    ("/upn:9HFNHE:LK47B6W/362SFKH", "files"),
];

/// Two Archives and a resolver; every example of the standard, under the standard's own labels,
/// down to the bytes.
#[test]
fn every_example_of_the_norm_leads_to_the_bytes() {
    let [a, b] = [Folder::new(), Folder::new()];
    let work = ["--label", "sid.inpe.br/mtc-m18@80/2009/07.21.13.23", "--label", "8JMKD3MGP8W/35MME4E"];
    put(&a, "work", &[&work[..], &["--language", "en", "--dc", "title=A work"]].concat());
    let obra = ["--label", "sid.inpe.br/mtc-m18/2010/01.01.10.00", "--translation-of", "8JMKD3MGP8W/35MME4E"];
    put(&a, "obra", &[&obra[..], &["--language", "pt", "--dc", "title=Uma obra"]].concat());
    put(&b, "iconet", &["--label", "iconet.com.br/banon/2009/09.09.22.01"]);
    put(&b, "first", &["--label", "8JMKD3MGP8W/35MMLL8"]);
    let second = ["--label", "sid.inpe.br/mtc-m18/2012/07.12.18.08", "--dc", "title=Second"];
    put(&b, "second", &[&second[..], &["--next-edition-of", "8JMKD3MGP8W/35MMLL8"]].concat());
    put(&b, "files", &["--label", "LK47B6W/362SFKH", "--dc", "title=Files"]);
    let both = ["--label", "sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "--label", "8JMKD3MGP8W/34PGRBS"];
    put(&b, "both", &[&both[..], &["--dc", "title=Both forms"]].concat());
    put(&a, "urlib", &["--label", "dpi.inpe.br/banon/1998/08.02.08.56"]);
    let em_portugues = ["--label", "dpi.inpe.br/banon/1998/08.02.08.57", "--language", "pt-BR"];
    let of = ["--translation-of", "dpi.inpe.br/banon/1998/08.02.08.56"];
    put(&a, "urlib em português", &[&em_portugues[..], &of].concat());

    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];
    let vectors = vectors();
    let examples = vectors["parse"].as_array().unwrap();
    assert_eq!(examples.len(), EXAMPLES.len());
    for example in examples {
        let url = example["url"].as_str().unwrap();
        let expected = EXAMPLES.iter().find(|(of, _)| *of == url).unwrap().1;
        let reply = get(&server, url);
        if let Some(named) = expected.strip_prefix("404 ") {
            assert_eq!(reply.status, 404, "{url}");
            assert!(reply.text().contains(named), "{url}: {}", reply.text());
            continue;
        }
        assert!(archives.iter().any(|archive| location(&reply).contains(&archive.at)), "{url}");
        let found = follow(&reply).text();
        let is_it = if expected.ends_with('>') || expected == "reference.bib" {
            found.contains(expected)
        } else {
            found == expected
        };
        assert!(is_it, "{url} should lead to `{expected}`: {found}");
    }
    for modifier in vectors["not_modifiers"].as_array().unwrap() {
        let url = format!("/8JMKD3MGP8W/35MME4E{}", modifier.as_str().unwrap());
        let reply = get(&server, &url);
        assert_eq!(reply.status, 400, "{url}");
        assert!(reply.text().contains(" do caminho)"), "it says where: {}", reply.text());
    }
}

/// Clause 4.1: the 14 compositions, over editions and translations.
#[test]
fn the_fourteen_modifiers_lead_to_what_they_spell() {
    let [a, b] = [Folder::new(), Folder::new()];
    let put = |content: &str, language: &str, links: &[&str]| {
        let title = format!("title={content}");
        let said = ["--dc", &title, "--dc", "subject@pt=identificadores", "--language", language];
        b.deposit(&[(b"file.txt", content.as_bytes())], &[&said[..], links].concat())
    };
    let first = put("first", "en", &[]);
    let primeira = put("primeira", "pt", &["--translation-of", &first]);
    let second = put("second", "en", &["--next-edition-of", &first]);
    put("segunda", "pt", &["--translation-of", &second, "--next-edition-of", &primeira]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let _archives = [resolver.on_line(&a), resolver.on_line(&b)];
    let expected = [
        (":", "<title>Metadata of first</title>"),
        (":+", "<title>Metadados de first</title>"),
        ("!", "second"),
        ("!+", "segunda"),
        ("!:", "<title>Metadata of second</title>"),
        ("!+:", "<title>Metadata of segunda</title>"),
        ("!:+", "<title>Metadados de second</title>"),
        ("!+:+", "<title>Metadados de segunda</title>"),
        ("+", "primeira"),
        ("+!", "segunda"),
        ("+:", "<title>Metadata of primeira</title>"),
        ("+!:", "<title>Metadata of segunda</title>"),
        ("+:+", "<title>Metadados de primeira</title>"),
        ("+!:+", "<title>Metadados de segunda</title>"),
    ];
    let modifiers: Vec<String> = serde_json::from_value(vectors()["modifiers"].clone()).unwrap();
    assert_eq!(modifiers, expected.map(|(modifier, _)| modifier));
    let encoded = |modifier: &str| modifier.replace('!', "%21").replace('+', "%2B").replace(':', "%3a");
    let verbs = |modifier: &str| {
        let verb = |c| match c {
            '!' => "GetLastEdition",
            '+' => "GetTranslation",
            _ => "GetMetadata",
        };
        modifier.chars().map(verb).collect::<Vec<_>>().join("+")
    };
    for (modifier, content) in expected {
        let urls = [
            format!("/{first}{modifier}"),
            format!("/{first}{}", encoded(modifier)),
            format!("/{first}?ibiurl.verblist={}", verbs(modifier)),
        ];
        for url in urls {
            let found = follow(&get(&server, &url)).text();
            let is_page = content.ends_with('>');
            assert!(found == content || is_page && found.contains(content), "{url}: {found}");
        }
    }
    let named = format!("/{first}!+(pt):(oai_dc)+(pt)");
    assert!(follow(&get(&server, &named)).text().contains("segunda"), "parameters: {named}");
}

/// Clause 4.1: existing links; one item, printed in one way.
#[test]
fn the_spellings_of_the_field_lead_where_the_plain_one_does() {
    let folder = Folder::new();
    let files: [(&[u8], &[u8]); 2] = [(b"a.txt", b"one"), (b"b c/d.txt", b"two")];
    let rep = folder.deposit(&files, &["--target", "a.txt", "--dc", "title=T", "--dc", "title@pt=T"]);
    let legacy = "83LX3pFwXQZeBBx/hwiTk";
    folder.put(&[(b"old.txt", b"old")], &["--label", legacy, "--original"]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    let plain = location(&get(&server, &format!("/{rep}"))).to_owned();
    for before in ["rep/", "ibi/", "rep-/", "ibi-/", "goto/", "goto-/", "ibi:", "upn:9HFNHE:", "upn:a-b:/"] {
        for (label, to) in [(rep.as_str(), b"one"), (legacy, b"old")] {
            let reply = get(&server, &format!("/{before}{label}"));
            assert_eq!(follow(&reply).body, to, "{before}{label}");
            assert!(!location(&reply).contains(before), "{before}");
        }
        assert_eq!(location(&get(&server, &format!("/{before}{rep}"))), plain);
    }
    let upper = rep.replace("online.test", "ONLINE.Test");
    assert_eq!(location(&get(&server, &format!("/{upper}"))), plain, "1.3: the same label");
    // A file, decoded once.
    assert_eq!(follow(&get(&server, &format!("/{rep}/b%20c/d.txt"))).body, b"two");
    assert_eq!(get(&server, &format!("/{rep}/b%2520c/d.txt")).status, 404);
    // Pairs of the item, unchanged and in order; unknown ones of ours are dropped.
    let passed = get(&server, &format!("/{rep}?b=%41&a=1&ibiurl.x=2&c&&d=%0d%0a"));
    assert_eq!(location(&passed), format!("{plain}?b=%41&a=1&c&&d=%0d%0a"));
    let page = get(&server, &format!("/{rep}:+(pt)?a=1"));
    assert!(location(&page).ends_with("/?lang=pt&a=1"), "{}", location(&page));
    for query in [
        "ibiurl.verblist=GetLost",
        "ibiurl.requireditemstatus=Copy",
        "ibiurl.verblist=GetMetadata+GetLastEdition",
    ] {
        assert_eq!(get(&server, &format!("/{rep}?{query}")).status, 400, "{query}");
    }
    // HEAD is a response without its body.
    let head = super::ask(&resolver.at, "HEAD", &format!("/{rep}"), "", b"");
    assert_eq!((head.status, head.header("location"), head.body.len()), (302, plain.as_str(), 0));
    assert!(plain.contains(&archive.at));
}
