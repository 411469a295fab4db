//! What a resolver is answered: each of the 14 modifiers from each kind of item (clauses 2.4 and
//! 3.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ibi_archive::dublin_core::DublinCore;
use ibi_archive::service::AckKeys;
use ibi_archive::service::address::ServiceAddress;
use ibi_archive::service::answer::{ServiceAnswerContext, answer_request};
use ibi_archive::{Archive, Holdings};
use ibi_protocol::{FilePath, Pairs, Relation, UrlRequest, Verbs, answer as wire};

use crate::ours::{Ours, deposit, titled};

/// Names of what is deposited, by all their labels; those of metadata end in `:`.
type Names = BTreeMap<String, String>;

/// An Archive with a chain of editions, a group of translations, and the same where what they lead
/// to was removed.
struct World {
    archive: Archive,
    names: Names,
    _ours: Ours,
}

impl World {
    fn new() -> Self {
        let ours = Ours::new();
        let archive = ours.init();
        let mut world = Self { archive, names: Names::new(), _ours: ours };
        world.add("first", Some("en"), None, None);
        world.add("second", Some("en"), None, Some("first"));
        world.add("third", Some("en"), None, Some("second"));
        world.add("terceira", Some("pt"), Some("third"), None);
        world.add("terceira-br", Some("pt-BR"), Some("terceira"), None);
        world.add("plain", None, None, None);
        world.add("old", Some("en"), None, None);
        world.add("gone", Some("en"), None, Some("old"));
        world.add("weg", Some("de"), Some("old"), None);
        for name in ["gone", "weg"] {
            let label = world.label(name);
            let removal = world.archive.prepare_removal(&label, "a test", "tester", false).unwrap();
            world.archive.commit(vec![removal]).pop().unwrap().unwrap();
        }
        world
    }

    fn add(&mut self, name: &str, language: Option<&str>, translates: Option<&str>, follows: Option<&str>) {
        let files = [(format!("{name}.txt"), name.as_bytes().to_vec())];
        let folder = self._ours.files(&files.into_iter().collect());
        let mut draft = titled(name);
        draft.metadata = DublinCore::parse(&format!("title={name}\ntitle@pt={name} em português")).unwrap();
        draft.language = language.map(|language| language.parse().unwrap());
        draft.translation_of = translates.map(|name| self.label(name));
        draft.next_edition_of = follows.map(|name| self.label(name));
        let label = deposit(&mut self.archive, &folder, draft).unwrap();
        let (holding, _) = self.archive.holdings().find(&label).unwrap();
        self.names.insert(label, name.to_owned());
        self.names.insert(holding.item.metadata.primary().to_owned(), format!("{name}:"));
    }

    fn label(&self, name: &str) -> String {
        self.names.iter().find(|(_, known)| *known == name).unwrap().0.clone()
    }

    fn ask(&self, label: &str, verbs: Verbs, file: Option<&str>) -> Pairs {
        let file = file.and_then(|file| FilePath::from_url(file).unwrap());
        let client = vec![[192, 0, 2, 1].into()];
        let request = UrlRequest { client, ibi: label.to_owned(), file, verbs, wants_all: false };
        ask(self.archive.holdings(), &request)
    }

    /// An answer in short: what each relation leads to, in brackets if there is no URL.
    fn short(&self, pairs: &Pairs) -> String {
        let mut text = String::new();
        for (name, value) in pairs.iter() {
            let Some(relation) = name.strip_prefix("ibi") else { continue };
            if matches!(relation, "" | ".archiveservice" | ".platformsoftware" | ".alias") {
                continue;
            }
            let words = value.words().unwrap();
            let led = &self.names[words[1]];
            let url = pairs.get(&format!("url{relation}"));
            let has_all = ["contenttype", "state", "timestamp"]
                .map(|property| pairs.get(&format!("{property}{relation}")));
            assert!(has_all.iter().all(|value| value.is_some() == url.is_some()), "{pairs}");
            let shown = if url.is_some() { led.clone() } else { format!("[{led}]") };
            write!(text, " {}={shown}", relation.trim_start_matches('.')).unwrap();
        }
        text.trim_start().to_owned()
    }
}

fn ask(holdings: &Holdings, request: &UrlRequest) -> Pairs {
    let address = ServiceAddress { archive: "archive.test".to_owned(), secure: false };
    let keys = AckKeys::new([1; 32]);
    answer_request(
        holdings,
        request,
        &ServiceAnswerContext { address: &address, keys: &keys, now: 1_800_000_000 },
    )
    .unwrap()
}

/// Clause 2.4, from the first of a chain, the last of it with translations, one without language,
/// one whose next edition and translation were removed, and the metadata of one.
const TABLE: &str = include_str!("asked.txt");

#[test]
fn each_modifier_from_each_kind_of_item_leads_where_2_4_says() {
    let world = World::new();
    let mut found = String::new();
    for start in ["first", "third", "terceira", "plain", "old", "first:"] {
        writeln!(found, "{start}").unwrap();
        for modifiers in Relation::ALL_COMPOSITIONS.iter().chain(&[
            "+(pt)",
            "+(pt-BR)",
            "+(en)",
            "+(fr)",
            ":(oai_dc)",
            ":(other)",
        ]) {
            let verbs = Verbs::from(Relation::from_modifiers(modifiers).unwrap());
            let pairs = world.ask(&world.label(start), verbs.clone(), None);
            // What is answered is filtered already.
            assert_eq!(wire::filter(pairs.clone(), &verbs).to_string(), pairs.to_string());
            assert_eq!(
                pairs.get("urlkey").is_some(),
                pairs.iter().any(|(name, _)| name.starts_with("url") && name != "urlkey")
            );
            writeln!(found, "  {modifiers:<8} {}", world.short(&pairs)).unwrap();
        }
    }
    let found: String = found.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(found, TABLE, "\n{found}");
}

/// Clause 3.4: of an unknown item nothing is said, whatever the verbs; also of one that another
/// item names.
#[test]
fn an_unknown_item_is_an_empty_answer() {
    let mut world = World::new();
    let elsewhere = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    let label = world.label("plain");
    let changes =
        ibi_archive::ItemChanges { next_edition_of: Some(Some(elsewhere.to_owned())), ..Default::default() };
    let change = world.archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    world.archive.commit(vec![change]).pop().unwrap().unwrap();
    for modifiers in Relation::ALL_COMPOSITIONS.iter().chain(&[""]) {
        let verbs = Verbs::from(Relation::from_modifiers(modifiers).unwrap());
        assert!(world.ask(elsewhere, verbs, None).is_empty(), "{modifiers}");
    }
}

/// Clause 3.4: a removed item answers exactly its six pairs, whatever the verbs.
#[test]
fn a_removed_item_answers_its_tombstone() {
    let world = World::new();
    for modifiers in Relation::ALL_COMPOSITIONS.iter().chain(&[""]) {
        let verbs = Verbs::from(Relation::from_modifiers(modifiers).unwrap());
        let pairs = world.ask(&world.label("gone"), verbs, Some("/gone.txt"));
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name).collect();
        let exactly =
            ["archiveaddress", "ibi", "ibi.archiveservice", "ibi.platformsoftware", "state", "timestamp"];
        assert_eq!(names, exactly, "{modifiers}");
        assert_eq!(pairs.get("state"), Some("Deleted"));
    }
}

/// Clause 3.4: with a file path, the URL of that file; GetFileList wins over it; a file that is not
/// there has no URL.
#[test]
fn a_file_path_and_the_file_list() {
    let world = World::new();
    let label = world.label("first");
    let url = |verbs: &str, file: Option<&str>| {
        let pairs = world.ask(&label, Verbs::parse(verbs).unwrap(), file);
        let relation = Verbs::parse(verbs).unwrap().relation;
        pairs.get(&format!("url{relation}")).map(|url| url.replace(&label, "REP"))
    };
    let base = "http://archive.test/col/REP";
    assert_eq!(url("", None).unwrap(), format!("{base}/doc/first.txt"));
    assert_eq!(url("", Some("/first.txt")).unwrap(), format!("{base}/doc/first.txt"));
    assert_eq!(url("", Some("first.txt")).unwrap(), format!("{base}/doc/first.txt"), "D20");
    assert_eq!(url("", Some("/none.txt")), None);
    assert_eq!(url("GetFileList", Some("/none.txt")).unwrap(), format!("{base}/files"));
    assert_eq!(url("GetMetadata", Some("/first.txt")), None, "metadata have no files");
}

/// Clause 1.3 and 3.4: asked for by an alias, that alias is said.
#[test]
fn an_alias_is_named_in_the_answer() {
    let mut world = World::new();
    let label = world.label("plain");
    let alias = "sid.inpe.br/mtc-m18/2009/02.16.17.46";
    let changes = ibi_archive::ItemChanges { aliases: vec![alias.to_owned()], ..Default::default() };
    let change = world.archive.prepare_update(&label, None, changes, "tester", &|_| ()).unwrap().unwrap();
    world.archive.commit(vec![change]).pop().unwrap().unwrap();
    let pairs = world.ask(alias, Verbs::default(), None);
    assert_eq!(pairs.get("ibi.alias"), Some(alias));
    assert_eq!(pairs.get("ibi"), Some(format!("rep {label}").as_str()));
    assert_eq!(world.ask(&label, Verbs::default(), None).get("ibi.alias"), None);
}
