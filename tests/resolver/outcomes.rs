//! Responses to clients: every row of clause 4.3, as a page in both languages, as JSON and as plain
//! text.

use serde_json::Value;

use super::{Folder, Resolver, Scripted, Server, follow, location, until};
use crate::online::rep;

const PAGE: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

/// Checks an outcome in all formats, with its titles in both languages; returns the JSON and the
/// plain text.
pub(super) fn told(server: &Server, url: &str, status: u16, titles: [&str; 2]) -> (Value, String) {
    for (language, tongue, title) in [("en-GB", "en", titles[0]), ("pt-BR,en;q=0.5", "pt", titles[1])] {
        let language = format!("Accept-Language: {language}\r\n");
        let page = server.get_with(url, &format!("{PAGE}{language}"));
        let text = page.text();
        assert_eq!(
            (page.status, page.header("content-type")),
            (status, "text/html; charset=utf-8"),
            "{text}"
        );
        assert!(text.contains(&format!("<html lang=\"{tongue}\">")), "{text}");
        assert!(text.contains(&format!("<h1>{title}</h1>")), "{text}");
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
        let plain = server.get_with(url, &format!("Accept: text/plain\r\n{language}"));
        assert_eq!((plain.status, plain.header("content-type")), (status, "text/plain; charset=utf-8"));
        assert!(plain.text().starts_with(&format!("{title}: ")), "{}", plain.text());
    }
    let json = server.get_with(url, "Accept: application/json\r\n");
    assert_eq!(json.problem(), status, "{url}");
    assert_eq!(json.json()["title"], titles[0]);
    let retry = if status == 503 { "5" } else { "" };
    assert_eq!((json.header("location"), json.header("retry-after")), ("", retry), "{url}");
    assert_eq!((json.header("cache-control"), json.header("vary")), ("no-store", "Accept, Accept-Language"));
    let plain = server.get_with(url, "Accept: text/plain\r\n").text();
    (json.json(), plain)
}

const NOT_FOUND: [&str; 2] = ["Not found", "Não encontrado"];
pub(super) const INCOMPLETE: [&str; 2] = ["Temporarily not found", "Temporariamente não encontrado"];

#[test]
fn found_removed_not_found_and_not_understood() {
    let [a, b] = [Folder::new(), Folder::new()];
    let item = a.deposit(&[(b"a.txt", b"one")], &["--language", "en"]);
    let removed = a.deposit(&[(b"a.txt", b"two")], &[]);
    assert_eq!(a.archive("remove", &[&removed, "--reason", "by law", "--yes"]).status, 0);
    let elsewhere = a.deposit(&[(b"a.txt", b"three")], &[]);
    assert_eq!(a.archive("remove", &[&elsewhere, "--reason", "moved", "--yes"]).status, 0);
    b.put(&[(b"a.txt", b"three")], &["--label", &elsewhere, "--original"]);
    let copy = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    for folder in [&a, &b] {
        folder.put(&[(b"a.txt", b"copy")], &["--label", copy]);
    }
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];

    // found: 302, whatever format the client prefers.
    for accept in [PAGE, "Accept: application/json\r\n", "Accept: text/plain\r\n", ""] {
        let found = server.get_with(&format!("/{item}"), accept);
        assert_eq!(location(&found), format!("http://{}/col/{item}/doc/a.txt", archives[0].at));
    }
    assert_eq!(follow(&server.get(&format!("/{item}"))).body, b"one");

    // removed: 410, with the tombstone.
    let (json, text) = told(&server, &format!("/{removed}"), 410, ["Removed", "Removido"]);
    assert_eq!(json["type"], "urn:ibi:problem:removed");
    assert_eq!(json["removed"][0]["archive"], a.service);
    assert!(text.contains(json["removed"][0]["at"].as_str().unwrap()) && text.contains(&a.service), "{text}");
    for modifiers in ["!", ":", "+(pt)", "/a.txt"] {
        assert_eq!(server.get(&format!("/{removed}{modifiers}")).status, 410, "{modifiers}");
    }
    // D13: live beats removed.
    assert_eq!(follow(&server.get(&format!("/{elsewhere}"))).body, b"three");

    // Every Archive answered, and none has it.
    let (json, _) = told(&server, "/8JMKD3MGP8W/34PGRBS", 404, NOT_FOUND);
    assert_eq!((&json["type"], &json["item"]), (&"urn:ibi:problem:not-found".into(), &Value::Null));

    // The item is known, but not that part of it: lists what exists.
    let (json, text) = told(&server, &format!("/{item}+(fr)"), 404, NOT_FOUND);
    assert_eq!(json["offered"], serde_json::json!([format!("/{item}+(en)")]));
    assert!(text.contains(&format!("  /{item}+(en)\n")), "{text}");
    let (json, _) = told(&server, &format!("/{item}:(BibINPE)"), 404, NOT_FOUND);
    assert!(json["offered"].as_array().unwrap().contains(&format!("/{item}:(oai_dc)").into()), "{json}");
    let page = server.get_with(&format!("/{item}+(fr)"), PAGE).text();
    assert!(page.contains(&format!("<a href=\"/{item}+(en)\">")), "{page}");
    let (json, _) = told(&server, &format!("/{item}/none.txt"), 404, NOT_FOUND);
    assert_eq!(json["detail"], "The item is known, but it has no such file.");
    assert_eq!(json["offered"], serde_json::json!([format!("/{item}")]));

    // The Original is required, and there are only copies.
    let original = format!("/{copy}?ibiurl.requireditemstatus=Original");
    let (json, text) = told(&server, &original, 404, NOT_FOUND);
    let mut copies: Vec<String> = serde_json::from_value(json["copies"].clone()).unwrap();
    copies.sort();
    let mut expected =
        archives.each_ref().map(|archive| format!("http://{}/col/{copy}/doc/a.txt", archive.at));
    expected.sort();
    assert_eq!(copies, expected);
    assert!(expected.iter().all(|copy| text.contains(copy)), "{text}");
    location(&server.get(&format!("/{copy}")));

    // Not an IBI, or incompatible modifiers: names the rule and the position.
    let bad = ["Not a valid identifier", "Não é um identificador válido"];
    let (json, _) = told(&server, "/no/label", 400, bad);
    assert!(json["detail"].as_str().unwrap().contains("not a valid IBI"), "{json}");
    let (json, _) = told(&server, &format!("/{item}!!"), 400, bad);
    let place = format!("(at byte {} of the path)", item.len() + 2);
    let detail = json["detail"].as_str().unwrap();
    assert!(
        detail.contains("`!!` does not go together") && detail.contains(" of the path)"),
        "{detail}, {place}"
    );
}

/// Never a false 404: 503 as long as some Archive did not answer, until the operator retires it.
#[test]
fn an_archive_that_is_silent_is_waited_for_until_it_is_retired() {
    let [a, b] = [Folder::new(), Folder::new()];
    let item = a.deposit(&[(b"a.txt", b"one")], &[]);
    let here = b.deposit(&[(b"a.txt", b"two")], &[]);
    let copy = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    b.put(&[(b"a.txt", b"copy")], &["--label", copy]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let mut silent = resolver.on_line(&a);
    let _archive = resolver.on_line(&b);
    // Registered, but never online: what it has is unknown.
    let new = "sid.inpe.br/mtc-m19/2013/09.04.12.27.57";
    resolver.register(new);
    until("the new one is seen", || server.get("/8JMKD3MGP8W/34PGRBS").status == 503);
    assert_eq!(
        server.get_with("/8JMKD3MGP8W/34PGRBS", "Accept: application/json\r\n").json()["silent"][0],
        new
    );
    assert_eq!(resolver.run("retire", &["--service", new]).status, 0);
    until("it is retired", || server.get("/8JMKD3MGP8W/34PGRBS").status == 404);

    location(&server.get(&format!("/{item}")));
    silent.signal("-KILL");
    silent.end();
    for url in [format!("/{item}"), "/8JMKD3MGP8W/34PGRBS".to_owned(), format!("/{here}+(fr)")] {
        let (json, text) = told(&server, &url, 503, INCOMPLETE);
        assert_eq!(json["type"], "urn:ibi:problem:incomplete");
        assert_eq!(json["silent"], serde_json::json!([a.service]), "{url}");
        assert!(text.contains(&a.service), "{text}");
    }
    assert_eq!(follow(&server.get(&format!("/{here}"))).body, b"two", "others are found as ever");
    let original = format!("/{copy}?ibiurl.requireditemstatus=Original");
    let (json, _) = told(&server, &original, 503, INCOMPLETE);
    assert!(json["copies"][0].as_str().unwrap().contains(copy), "the original may be there: {json}");

    let retired = resolver.json("retire", &["--service", &a.service]).pop().unwrap();
    assert_eq!(retired["standing"], "retired");
    until("it is gone for good", || server.get(&format!("/{item}")).status == 404);
    assert_eq!(server.get(&original).status, 404);
    assert_eq!(told(&server, &format!("/{item}"), 404, NOT_FOUND).0["silent"], Value::Null);
}

/// Clause 4.2 step 5: a query is never repeated, and there are at most 32 rounds.
#[test]
fn a_circle_and_an_endless_chain_are_named() {
    let label = |number: usize| format!("sid.inpe.br/mtc-m18/2009/02.16.17.{number:02}");
    let next = move |question: &super::scripted::Question, _: &str| {
        let asked = question.value("parsedibiurl.ibi").to_owned();
        let number: usize = asked.rsplit('.').next().unwrap().parse().unwrap();
        // From 50 on they form a cycle of three.
        let next = if number == 52 { 50 } else { number + 1 };
        format!("ibi {{rep {asked}}}\r\nibi.nextedition {{rep {}}}\r\n", label(next))
    };
    let archive = Scripted::new("sid.inpe.br/mtc-m18@80/2008/03.17.15.17", next);
    let resolver = Resolver::new();
    let server = resolver.serve();
    archive.come(&resolver);
    let (json, text) = told(
        &server,
        &format!("/{}!", label(50)),
        508,
        [
            "Resolution loop",
            "Ciclo na \
        resolução",
        ],
    );
    assert_eq!(json["type"], "urn:ibi:problem:cycle");
    let chain = [50, 51, 52, 50].map(|number| format!("{}!", label(number)));
    assert_eq!(json["chain"], serde_json::json!(chain));
    assert!(chain.iter().all(|question| text.contains(question)), "{text}");
    let before = archive.asked("urlRequest").len();
    let reply = server.get_with(&format!("/{}!", label(10)), "Accept: application/json\r\n");
    assert_eq!(reply.problem(), 508);
    assert_eq!(archive.asked("urlRequest").len() - before, 32, "rounds");
    assert_eq!(reply.json()["chain"].as_array().unwrap().len(), 33, "the last one was not asked");
}

/// Clause 3.4: a client that may not open an item is sent to its metadata.
#[test]
fn a_client_outside_of_the_range_is_sent_to_the_metadata() {
    let folder = Folder::new();
    let item = folder.put(&[(b"a.txt", b"one")], &["--access", "ip:192.0.2.0/24", "--dc", "title=Closed"]);
    let resolver = Resolver::new();
    let server = resolver.serve_with(&["--allow-private", "--trusted-proxy", "127.0.0.1"]);
    let archive = resolver.on_line(&folder);
    let path = format!("/{}", rep(&item));
    let outside = server.get(&path);
    assert_eq!(location(&outside), format!("http://{}/col/{}/", archive.at, rep(&item["metadata"])));
    assert!(follow(&outside).text().contains("Closed"));
    let inside = server.get_with(&path, "X-Forwarded-For: 192.0.2.7\r\n");
    assert!(location(&inside).ends_with("/doc/a.txt"));
}
