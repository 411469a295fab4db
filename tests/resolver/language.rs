//! A chosen language is kept: in links, through the form, and in the API.

use super::Resolver;

#[test]
fn a_chosen_language_stays_from_click_to_click() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    let get = |path: &str| server.get_with(path, "Accept: text/html\r\nAccept-Language: en\r\n");
    let home = get("/?ibiurl.lang=pt").text();
    for text in [
        "<html lang=\"pt\">",
        "<input type=\"hidden\" name=\"ibiurl.lang\" value=\"pt\">",
        "<a href=\"/?ibiurl.lang=pt\">",
        "Nenhum acervo foi cadastrado ainda.",
    ] {
        assert!(home.contains(text), "{text}: {home}");
    }
    let sent = get("/?ibi=library.test%2Fa%2F2009%2F02.16.17.46&ibiurl.lang=pt");
    assert_eq!(sent.header("location"), "/library.test/a/2009/02.16.17.46?ibiurl.lang=pt");
    let page = get(sent.header("location")).text();
    assert!(
        page.contains("<h1>Não encontrado</h1>") && page.contains("<a href=\"/?ibiurl.lang=pt\">"),
        "{page}"
    );
    // The text beside the identifier stays unchanged; without a choice, nothing is added.
    let sent = get("/?ibi=library.test%2Fa%2F2009%2F02.16.17.46%3Fexplain&ibiurl.lang=pt");
    assert_eq!(sent.header("location"), "/library.test/a/2009/02.16.17.46?explain");
    assert!(!get("/").text().contains("name=\"ibiurl.lang\""));
    // As documented in the OpenAPI document.
    let told = server.api("", "GET", "/resolve?url=library.test/a/2009/02.16.17.46&lang=pt", b"").json();
    assert_eq!(told["outcome"]["title"], "Não encontrado");
}
