//! Pages for people: items without a title, and both languages.

use super::Folder;

const NO_TITLE: [&str; 2] = ["--dc", "creator=Ana"];

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    text.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map_or("", |(found, _)| found)
}

#[test]
fn an_item_without_a_title_is_called_after_its_file_or_its_label() {
    let folder = Folder::new();
    let open = folder.deposit(&[(b"sub/a report.txt", b"one")], &NO_TITLE);
    let closed = folder.deposit(
        &[(b"secret-name.txt", b"two")],
        &[&NO_TITLE[..], &["--access", "until:2999-01-01"]].concat(),
    );
    let server = folder.serve();
    let home = server.get("/").text();
    for (item, name) in [(&open, "a report.txt"), (&closed, closed.as_str())] {
        assert!(home.contains(&format!("<a href=\"/col/{item}/\">{name}</a>")), "{home}");
        for page in ["", "files"] {
            let page = server.get(&format!("/col/{item}/{page}")).text();
            assert!(between(&page, "<title>", "</title>").ends_with(name), "{page}");
            assert!(between(&page, "<h1", "</h1>").contains(name), "{page}");
            assert!(item == &open || !page.contains("secret-name"), "{page}");
        }
    }
    assert!(!home.contains("secret-name"), "{home}");
    folder.archive("remove", &[&open, "--reason", "a mistake", "--yes"]);
    let tombstone = server.get(&format!("/col/{open}/")).text();
    assert!(between(&tombstone, "<title>", "</title>").ends_with(&open), "{tombstone}");
}

#[test]
fn a_page_in_portuguese_is_all_in_portuguese() {
    let folder = Folder::new();
    let item = folder
        .deposit(&[(b"a.txt", b"one")], &["--dc", "title=Um", "--dc", "creator=Ana", "--dc", "subject=Rios"]);
    let until =
        folder.deposit(&[(b"b.txt", b"two")], &["--dc", "title=Dois", "--access", "until:2999-01-31"]);
    let server = folder.serve();
    let get = |path: &str| server.get_with(path, "Accept: text/html\r\nAccept-Language: pt-BR\r\n").text();
    let page = get(&format!("/col/{item}/"));
    for text in [
        ">Acervo</a>",
        "<dd>aberto a todos</dd>",
        ">título</th>",
        ">autor</th>",
        ">assunto</th>",
        "<h2>Conteúdo</h2>",
        ">Arquivo</th>",
        " de 20",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    for text in ["public", ">title<", ">creator<"] {
        assert!(!page.contains(text), "{text}: {page}");
    }
    assert!(get(&format!("/col/{until}/")).contains("fechado até 31 de janeiro de 2999"));
    assert!(get("/").contains("O que este acervo contém"));
    let lost = get("/col/nowhere.test/a/2026/01.01.00.00/");
    assert!(lost.contains("<h1>Não encontrado</h1>") && !lost.contains("<p lang=\"en\">"), "{lost}");
    assert!(lost.contains("<p>nowhere.test/a/2026/01.01.00.00 não está neste acervo. "), "{lost}");
    folder.archive("remove", &[&item, "--reason", "um engano", "--yes"]);
    let tombstone = get(&format!("/col/{item}/"));
    assert!(tombstone.contains("<dd>operador</dd>"), "{tombstone}");
    assert!(get("/").contains("<small>Removido, "));
}

/// No scripts and cookies: the choice is in the links, so each page has its own address.
#[test]
fn a_chosen_language_stays_from_click_to_click() {
    let folder = Folder::new();
    let older = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=One"]);
    let item = folder.put(&[(b"a.txt", b"one")], &["--dc", "title=Two", "--next-edition-of", &older]);
    let (item, metadata) = (super::rep(&item), super::rep(&item["metadata"]));
    let server = folder.serve();
    // The browser prefers English; the reader chose Portuguese.
    let get = |path: &str| {
        let page = server.get_with(path, "Accept: text/html\r\nAccept-Language: en\r\n");
        let text = page.text();
        assert!(text.contains("<html lang=\"pt\">"), "{path}: {text}");
        text
    };
    let pages = [
        "/?lang=pt".to_owned(),
        format!("/col/{item}/?lang=pt"),
        format!("/col/{item}/files?lang=pt"),
        format!("/col/{metadata}/?lang=pt"),
        "/col/nothing?lang=pt".to_owned(),
    ];
    let mut clicked = 0;
    for page in pages {
        let text = get(&page);
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let is_page = |link: &&str| {
            *link == "/" || (link.starts_with("/?") || link.starts_with("/col/") && !link.contains("/doc/"))
        };
        for link in links.filter(is_page).filter(|link| !link.ends_with("oai_dc")) {
            assert!(link.contains("lang=pt"), "{page}: {link}");
            get(link);
            clicked += 1;
        }
        assert!(text.contains("lang=en\" hreflang=\"en\""), "{text}");
    }
    assert!(clicked >= 9, "{clicked}");
    // Without a choice, addresses do not contain the language.
    assert!(!server.get(&format!("/col/{item}/")).text().contains("/?lang="));
}
