//! Persistent URLs, from the resolver to the bytes (000 to 002 §3, 003 §6.1).

use serde_json::{Value, json};

use super::replay::TestResolver;
use super::{WorkedWorld, each, labels, texts};
use crate::online::client::{Reply, ask};
use crate::online::server::Server;
use crate::online::{Folder, until};

/// A resolver with two Archives that hold the items of the examples, under the labels of the
/// examples.
pub(super) struct UrlWorld {
    resolver: TestResolver,
    _servers: Vec<Server>,
    _folders: [Folder; 2],
}

/// Items by name: labels, language, and what each is tied to. A name is the content of the item's
/// only file and its title.
const ITEMS: [(&str, &[&str], &str, &[&str]); 12] = [
    ("report", &["sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "8JMKD3MGP8W/34PGRBS"], "", &[]),
    ("draft", &["sid.inpe.br/md-m09@80/2008/04.14.11.53"], "", &[]),
    ("standard", &["sid.inpe.br/mtc-m18@80/2009/07.21.13.23", "8JMKD3MGP8W/35MME4E"], "en", &[]),
    (
        "norma",
        &["sid.inpe.br/mtc-m18@80/2009/08.25.19.43"],
        "pt",
        &["--translation-of", "8JMKD3MGP8W/35MME4E"],
    ),
    ("edition of 2002", &["sid.inpe.br/mtc-m18@80/2009/07.21.14.43", "8JMKD3MGP8W/35MMLL8"], "", &[]),
    (
        "edition of 2012",
        &["sid.inpe.br/mtc-m18/2012/07.12.18.08", "8JMKD3MGP8W/3C9EP6P"],
        "",
        &["--next-edition-of", "8JMKD3MGP8W/35MMLL8"],
    ),
    ("draft standard", &["iconet.com.br/banon/2009/09.09.22.01", "LK47B6W/362SFKH"], "", &[]),
    ("first", &["sid.inpe.br/mtc-m18/2010/01.01.10.00"], "en", &[]),
    (
        "primeira",
        &["sid.inpe.br/mtc-m18/2010/01.01.10.01"],
        "pt",
        &["--translation-of", "sid.inpe.br/mtc-m18/2010/01.01.10.00"],
    ),
    (
        "second",
        &["sid.inpe.br/mtc-m18/2010/01.01.10.02"],
        "en",
        &["--next-edition-of", "sid.inpe.br/mtc-m18/2010/01.01.10.00"],
    ),
    (
        "segunda",
        &["sid.inpe.br/mtc-m18/2010/01.01.10.03"],
        "pt",
        &[
            "--translation-of",
            "sid.inpe.br/mtc-m18/2010/01.01.10.02",
            "--next-edition-of",
            "sid.inpe.br/mtc-m18/2010/01.01.10.01",
        ],
    ),
    ("software", &["dpi.inpe.br/banon/1998/08.02.08.56"], "", &[]),
];

impl UrlWorld {
    fn new() -> Self {
        let folders = [Folder::new(), Folder::new()];
        for (name, labels, language, links) in ITEMS {
            let title = format!("title={name}");
            let mut arguments = vec!["--target", "item.txt", "--original", "--dc", &title];
            arguments.extend(["--dc", "subject@pt=identificadores"]);
            arguments.extend(labels.iter().flat_map(|label| ["--label", label]));
            if !language.is_empty() {
                arguments.extend(["--language", language]);
            }
            arguments.extend_from_slice(links);
            // Items that are tied to one another are in one Archive; the others are spread.
            let folder =
                &folders[usize::from(links.is_empty() && language.is_empty() && name.contains("draft"))];
            folder.put(&[(b"item.txt", name.as_bytes()), (b"reference.bib", b"@book")], &arguments);
        }
        let resolver = TestResolver::new();
        let servers = folders.iter().map(|folder| {
            let key = folder.place.path().join("key");
            std::fs::write(&key, "1234567890").unwrap();
            resolver.register(&folder.service, &[]);
            let [url, key] = [format!("http://{}", resolver.server.at), key.display().to_string()];
            folder.serve_with(&["--resolver", &url, "--key-file", &key])
        });
        let servers: Vec<Server> = servers.collect();
        until("both are online", || {
            let listed = resolver.server.get("/api/v1/archives").json();
            let all = listed["archives"].as_array().unwrap();
            all.len() == 2 && all.iter().all(|archive| archive["standing"] == "online")
        });
        Self { resolver, _servers: servers, _folders: folders }
    }

    /// What a URL leads to, in words: the name of an item and what of it, or the status.
    fn lead(&self, url: &str, languages: &str) -> String {
        let reply = self.resolver.get(url, "192.0.2.1", languages);
        if reply.status != 302 {
            return reply.status.to_string();
        }
        let (at, path) = reply.header("location").strip_prefix("http://").unwrap().split_once('/').unwrap();
        let found = ask(at, "GET", &format!("/{path}"), "", b"");
        assert_eq!(found.status, 200, "{at}/{path}");
        in_words(&found, path)
    }
}

fn in_words(found: &Reply, path: &str) -> String {
    let text = found.text();
    let between = |before: &str, after: &str| {
        let rest = text.split_once(before).map(|(_, rest)| rest.split(after).next().unwrap());
        rest.unwrap_or_default().to_owned()
    };
    if path.ends_with("/files") {
        let all = ["item.txt", "reference.bib"].iter().all(|name| text.contains(name));
        return if all { "list of files".to_owned() } else { "a page".to_owned() };
    }
    if text.contains("<dc:title>") {
        return format!("oai_dc of {}", between("<dc:title>", "</dc:title>"));
    }
    match between("<title>", "</title>") {
        title if title.is_empty() => text,
        title => title,
    }
}

/// A label of the examples: built, read, and its persistent URLs followed.
pub(super) fn label(world: &WorkedWorld, input: &Value) -> Value {
    let mut built = labels::built(input);
    let world = world.urls.get_or_init(UrlWorld::new);
    let links = input["links"].as_array().map_or(&[][..], Vec::as_slice);
    let led: Vec<String> = links.iter().map(|link| world.lead(link.as_str().unwrap(), "en")).collect();
    built["links"] = led.into();
    built
}

/// What persistent URLs lead to, for a client that reads these languages.
pub(super) fn led(world: &WorkedWorld, input: &Value) -> Value {
    let world = world.urls.get_or_init(UrlWorld::new);
    let languages = input["languages"].as_str().unwrap_or("en");
    each(&texts(&input["urls"]), |url| world.lead(url, languages).into())
}

/// Whether the resolver reads URLs, or says that they are none.
pub(super) fn read(world: &WorkedWorld, input: &Value) -> Value {
    let world = world.urls.get_or_init(UrlWorld::new);
    each(&texts(input), |url| {
        let reply = world.resolver.get(url, "192.0.2.1", "en");
        json!(if reply.status == 400 { "refused" } else { "read" })
    })
}
