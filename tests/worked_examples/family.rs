//! An Archive service, queried about a family of editions and translations (003 §7).

use serde_json::{Map, Value, json};

use super::replay::normal;
use super::{WorkedWorld, archives, each, texts};
use crate::online::Folder;
use crate::online::client::Reply;
use crate::online::server::Server;

/// An Archive with items of all forms: editions and translations, and a record without a language.
pub(super) struct FamilyArchive {
    folder: Folder,
    server: Server,
    /// The first edition, in English.
    pub(super) first: String,
    /// The second one.
    pub(super) second: String,
}

impl FamilyArchive {
    pub(super) fn new() -> Self {
        let folder = Folder::new();
        let put = |content: &str, language: &str, links: &[&str]| {
            let title = format!("title={content}");
            let said = ["--dc", &title, "--dc", "subject@en=identifiers", "--language", language];
            folder.deposit(&[(b"file.txt", content.as_bytes())], &[&said[..], links].concat())
        };
        let first = put("first", "en", &[]);
        let primeira = put("primeira", "pt-BR", &["--translation-of", &first]);
        let second = put("second", "en", &["--next-edition-of", &first]);
        put("segunda", "pt-BR", &["--translation-of", &second, "--next-edition-of", &primeira]);
        let both = ["--label", "sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "--label", "8JMKD3MGP7W/3EPGUE5"];
        for labels in
            [&both[..], &["--label", "dpi.inpe.br/banon/1998/08.02.08.56"], &["--label", "LK47B6W/362SFKH"]]
        {
            folder.put(&[(b"a.txt", b"a")], &[labels, &["--original"]].concat());
        }
        let server = folder.serve();
        Self { folder, server, first, second }
    }

    pub(super) fn ask(&self, ibi: &str, more: &str) -> Reply {
        self.ask_raw(&format!(
            "servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={ibi}{more}"
        ))
    }

    pub(super) fn ask_raw(&self, query: &str) -> Reply {
        self.server.service(&self.folder, query)
    }
}

/// Example 7.1: which service a query asks for, seen by its answer.
pub(super) fn subjects(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    each(&texts(input), |query| {
        let reply = archive.server.service(&archive.folder, query);
        let text = reply.text();
        let subject = match text.as_str() {
            "confirmation yes" => "inclusionConfirmationRequest",
            "notice {acknowledgment received}" => "acknowledgment",
            _ if reply.status == 200 && text.starts_with("archiveaddress ") => "urlRequest",
            _ => "none",
        };
        subject.into()
    })
}

/// Table 6.9: which pairs of a request have to be there (`obr.`) and which may (`fac.`).
pub(super) fn demanded(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    let query = input.as_str().unwrap();
    assert_eq!(archive.server.service(&archive.folder, query).status, 200);
    let pairs: Vec<&str> = query.split('&').collect();
    let kind = |leave: &str| {
        let rest: Vec<&str> = pairs.iter().copied().filter(|pair| *pair != leave).collect();
        let reply = archive.server.service(&archive.folder, &rest.join("&"));
        let answered = reply.status == 200 && reply.text().starts_with("archiveaddress ");
        Value::from(if answered { "fac." } else { "obr." })
    };
    pairs.iter().map(|pair| (pair.split_once('=').unwrap().0.to_owned(), kind(pair))).collect()
}

/// Table 7.4: the forms in which an item is named.
pub(super) fn forms(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    each(&texts(input), |ibi| archive.ask(ibi, "").pair("ibi").into())
}

/// Table 7.5 and Example 7.5: where each relation of the first edition leads.
pub(super) fn relations(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    each(&texts(input), |relation| {
        let verbs = relation
            .replacen('.', "", 1)
            .replace('.', "%20")
            .replace("lastedition", "GetLastEdition")
            .replace("translation", "GetTranslation")
            .replace("metadata", "GetMetadata");
        let answer = archive.ask(&archive.first, &format!("&parsedibiurl.verblist={verbs}"));
        if answer.status != 200 {
            return "refused".into();
        }
        let url = answer.pair(&format!("url{relation}"));
        let Some((_, path)) = url.split_once(&archive.server.at) else { return "nowhere".into() };
        let found = archive.server.get(path).text();
        let between = |before: &str, after: &str| {
            let rest = found.split_once(before).map(|(_, rest)| rest.split(after).next().unwrap());
            rest.unwrap_or_default().to_owned()
        };
        let oai = between("<dc:title>", "</dc:title>");
        match (oai.as_str(), between("<title>", "</title>")) {
            ("", title) if title.is_empty() => found.into(),
            ("", title) => title.into(),
            (title, _) => format!("oai_dc of {title}").into(),
        }
    })
}

/// Table A.1: languages and countries that can be asked for.
pub(super) fn languages(world: &WorkedWorld, input: &Value) -> Value {
    let archive = world.family.get_or_init(FamilyArchive::new);
    let unknown = |list: &str, before: &str, after: &str| {
        let is_known = |code: &str| {
            let verb = format!("&parsedibiurl.verblist=GetTranslation({before}{code}{after})");
            archive.ask(&archive.first, &verb).status == 200
        };
        input[list].as_str().unwrap().split(' ').filter(|code| is_known(code)).collect::<Vec<_>>().join(" ")
    };
    json!({
        "languages": unknown("languages", "", ""),
        "countries": unknown("countries", "pt-", ""),
        "none of either": unknown("neither", "", ""),
    })
}

/// Table 7.3: what each pair says, and what moves the two timestamps. An Archive of its own: items
/// of it are changed.
pub(super) fn values(input: &Value) -> Value {
    let folder = Folder::new();
    let software = input["platformsoftware"].as_str().unwrap();
    let first = folder.deposit(&[(b"a.txt", b"one")], &["--dc", "title=One", "--language", "en"]);
    folder.deposit(&[(b"a.txt", b"two")], &["--next-edition-of", &first]);
    let gone = folder.deposit(&[(b"a.txt", b"three")], &[]);
    assert_eq!(folder.archive("remove", &[&gone, "--reason", "a test", "--yes"]).status, 0);
    archives::set_platform_software(&folder, software);
    let server = folder.serve();
    let ask = |ibi: &str, verbs: &str| {
        let query = format!(
            "servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={ibi}\
             &parsedibiurl.verblist={verbs}"
        );
        server.service(&folder, &query)
    };
    let mut said = Map::new();
    for (ibi, verbs) in [(&first, ""), (&first, "GetMetadata"), (&first, "GetLastEdition"), (&gone, "")] {
        for (name, value) in ask(ibi, verbs).pairs() {
            let removed = if ibi == &gone { " of a removed item" } else { "" };
            said.insert(format!("{name}{removed}"), domain(&name, &value, &server.at));
        }
    }
    let clocks =
        || [ask(&first, "").pair("timestamp"), ask(&first, "GetMetadata").pair("timestamp.metadata")];
    let moved = |command: &[&str]| {
        // A timestamp has whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let before = clocks();
        assert_eq!(folder.archive("update", command).status, 0);
        let after = clocks();
        let names = ["timestamp", "timestamp.metadata"].iter().zip(before.iter().zip(&after));
        names
            .filter(|(_, (before, after))| before != after)
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let metadata = moved(&[&first, "--dc", "title=Other"]);
    let files = folder.folder(&[(b"a.txt", b"another")]).display().to_string();
    json!({ "values": said, "moved by metadata": metadata, "moved by files": moved(&[&first, &files]) })
}

/// The domain of a value, in the words of the table.
fn domain(name: &str, value: &str, at: &str) -> Value {
    let forms = normal("ibi", value).as_object().map_or(0, Map::len);
    let shape: String = value.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let domain = match name.split('.').next().unwrap() {
        "archiveaddress" if value == at => "hostport",
        "ibi" if forms > 0 => "formas-de-ibi",
        "timestamp" if shape == "0000-00-00T00:00:00Z" => "ISO 8601",
        "urlkey" if normal(name, value) == "a key" => "chave",
        _ => value,
    };
    domain.into()
}
