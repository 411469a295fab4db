//! Identifiers of other schemes, and the resolver's own (D35, D39); Archives that are registered in
//! either form (3.2).

use super::scripted::{KEY, Scripted, tell};
use super::{PUBLIC, Resolver, SERVICE, location};

/// D35: identifiers of other schemes go to the proxy that the operator sets, or are named in a 404.
#[test]
fn identifiers_of_other_schemes_go_to_their_proxy() {
    let resolver = Resolver::new();
    let proxies = ["--proxy", "doi=https://doi.org/", "--proxy", "ark=https://n2t.net/"];
    let server = resolver.serve_with(&proxies);
    let to = |path: &str| location(&server.get(path)).to_owned();
    assert_eq!(to("/doi/10.1087/20110107"), "https://doi.org/10.1087/20110107");
    assert_eq!(to("/doi/10.1087/20110107?a=1"), "https://doi.org/10.1087/20110107?a=1");
    assert_eq!(to("/ark:/12148/btv1"), "https://n2t.net/ark:/12148/btv1");
    let titles = ["Another identifier scheme", "Outro esquema de identificadores"];
    let (json, _) = super::outcomes::told(&server, "/hdl/2027/x", 404, titles);
    assert_eq!(json["type"], "urn:ibi:problem:foreign-scheme");
    assert!(json["detail"].as_str().unwrap().ends_with("hdl: 2027/x"), "{json}");
    // `ibi/` is ours.
    assert_eq!(server.get("/ibi/LK47B6W/362SFKH").status, 404);
    let wrong = resolver.run("serve", &["--proxy", "urn=https://a.br/"]);
    assert!(wrong.status == 2 && wrong.stderr.contains("doi=https://doi.org/"), "{}", wrong.stderr);
}

/// D39: the address of the resolver's service, without a subject, describes itself.
#[test]
fn the_service_says_what_it_is() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    let path = format!("/{SERVICE}");
    for (language, title) in
        [("en", "Resolver of persistent identifiers"), ("pt", "Resolvedor de identificadores persistentes")]
    {
        let page = server.get_with(&path, &format!("Accept: text/html\r\nAccept-Language: {language}\r\n"));
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        let text = page.text();
        assert!(text.contains(&format!("<h1>{title}</h1>")) && text.contains(SERVICE), "{text}");
    }
    let json = server.get_with(&path.to_lowercase(), "Accept: application/json\r\n").json();
    assert_eq!((&json["service"], &json["kind"]), (&SERVICE.into(), &"resolver".into()));
    assert_eq!(json["public_url"], PUBLIC);
    assert!(server.get_with(&path, "Accept: text/plain\r\n").text().contains(SERVICE));
    let modified = [":", "!", "+", "+(pt)", "!:", "??", "?ibiurl.requireditemstatus=Original"];
    let modified = modified.map(|modifier| format!("{path}{modifier}"));
    let linked = [format!("/rep{path}"), format!("/ibi:{SERVICE}"), format!("{path}?a=b")];
    for link in linked.into_iter().chain(modified) {
        assert_eq!(server.get_with(&link, "Accept: application/json\r\n").json(), json, "{link}");
    }
    assert_eq!(server.get(&format!("{path}/a.txt")).status, 404, "it has no files");
    assert_eq!(server.get(&format!("{path}?servicesubject=nonsense")).status, 400, "messages are messages");
}

/// Clause 3.2: an Archive is registered and named in either form; its answers may contain both.
#[test]
fn an_archive_may_be_registered_by_its_ibip() {
    const IBIP: &str = "8JMKD3MGP8W/34PGRBS";
    const ITEM: &str = "sid.inpe.br/mtc-m18/2009/07.21.14.43";
    let archive = Scripted::new("sid.inpe.br/mtc-m18@80/2008/03.17.15.17", |question, at| {
        if question.value("parsedibiurl.ibi") != ITEM {
            return String::new();
        }
        // A second pair of that name is ignored: the first has both forms.
        super::scripted::item(ITEM, at, "/a")
    })
    .also_known_as(IBIP);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let register = resolver.run("register", &["--service", IBIP, "--key", KEY]);
    assert_eq!(register.status, 0, "{}", register.stderr);
    // In any spelling (1.3).
    let told = tell(&resolver, "inclusionRequest", &archive.at, &IBIP.to_lowercase(), KEY);
    assert!(told.text().contains("successful"), "{}", told.text());
    assert!(location(&server.get(&format!("/{ITEM}"))).ends_with("/a"));
    let listed = resolver.json("archives", &[]).pop().unwrap();
    let said = ["ip", "protocol", "platform", "email"].map(|name| listed[name].as_str().unwrap().to_owned());
    assert_eq!(
        said,
        ["127.0.0.1", "HTTP", "script", "ana@library.test"],
        "3.3: what it says of itself is kept"
    );
    let line = resolver.run("archives", &[]).stdout;
    assert!(line.contains("127.0.0.1\tHTTP\tscript\tana@library.test"), "{line}");
    // Only the operator sees it.
    let public = server.api("", "GET", "/archives", b"").json();
    assert_eq!(public["archives"][0]["email"], serde_json::Value::Null, "{public}");
    let own = server.api(&resolver.token(), "GET", "/archives", b"").json();
    assert_eq!(own["archives"][0]["email"], "ana@library.test");
    assert!(resolver.run("export", &[]).stdout.contains("platform   script\n"));
}
