//! The location index (clause 4.4): a warm resolution asks nobody, and says what asking would say.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{Resolver, ask, location};
use crate::binary::ibi;
use crate::online::client::Reply;
use crate::online::server::Server;
use crate::online::{Folder, until};

/// Without this header, the index is brought up to date first.
const AS_IT_IS: &str = "Cache-Control: max-age=60\r\n";
const PERSON: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0\r\n";
const MODIFIERS: [&str; 15] =
    ["", ":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+"];

/// A resolver with two Archives that trust each other, with editions, translations, a copy, a
/// removed item and a closed one.
struct IndexedStage {
    resolver: Resolver,
    answers: Server,
    folders: [Folder; 2],
    servers: [Server; 2],
    items: Vec<String>,
}

impl IndexedStage {
    fn new() -> Self {
        let resolver = Resolver::new();
        let answers = resolver.serve();
        let folders = [Folder::new(), Folder::new()];
        let servers = [resolver.on_line(&folders[0]), resolver.on_line(&folders[1])];
        for (here, there) in [(0, 1), (1, 0)] {
            let data = folders[here].data().display().to_string();
            let run = ibi(&["archive", "links", "trust", &folders[there].service, "--data", &data]);
            assert_eq!(run.status, 0, "{}", run.stderr);
        }
        let [a, b] = &folders;
        let plain = a.deposit(&[(b"a b.txt", b"1"), (b"sub/c.txt", b"2")], &["--target", "a b.txt"]);
        let first = a.deposit(&[(b"1.txt", b"1")], &["--language", "en"]);
        let second = b.deposit(&[(b"2.txt", b"2")], &["--language", "en", "--next-edition-of", &first]);
        let translated = b.deposit(&[(b"3.txt", b"3")], &["--language", "pt", "--translation-of", &first]);
        let removed = a.deposit(&[(b"4.txt", b"4")], &[]);
        let run = a.archive("remove", &[&removed, "--reason", "by law", "--yes"]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let closed = a.deposit(&[(b"5.txt", b"5")], &["--access", "ip:192.0.2.1"]);
        let made = a.archive("deposit", &["--url", "http://maps.test/wms?x=1"]);
        let url = made.json().pop().unwrap()["rep"].as_str().unwrap().to_owned();
        let run = b.archive("copy", &[&plain, "--from", &format!("http://{}", servers[0].at)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let items = vec![plain, first, second, translated, removed, closed, url];
        until("the links are accepted", || {
            let reply = ask(&resolver.at, "GET", &format!("/{}!", items[1]), "", b"");
            reply.header("location").ends_with("2.txt")
        });
        Self { resolver, answers, folders, servers, items }
    }

    fn get(&self, url: &str, headers: &str) -> Reply {
        ask(&self.resolver.at, "GET", &format!("/{url}"), headers, b"")
    }

    fn explained(&self, url: &str) -> Value {
        let sign = if url.contains('?') { '&' } else { '?' };
        self.get(&format!("{url}{sign}ibiurl.explain=yes"), "Accept: application/json\r\n").json()
    }
}

/// Whether every Archive's answer of every round came from the index.
fn is_from_index(explained: &Value) -> bool {
    let rounds = explained["rounds"].as_array().unwrap().iter();
    let mut answers = rounds.flat_map(|round| round["archives"].as_array().unwrap());
    answers.all(|answer| answer["index_age"].as_u64().is_some_and(|age| age <= 3000))
}

/// What a client gets, without what differs from time to time.
fn outcome(explained: &Value) -> (u64, String) {
    (explained["status"].as_u64().unwrap(), explained["location"].as_str().unwrap_or_default().to_owned())
}

/// The command asks all Archives; the server asks none, and both come to the same result.
#[test]
fn clause_4_4_the_index_answers_what_asking_would_answer() {
    let stage = IndexedStage::new();
    let [plain, first, .., closed, url] = &stage.items[..] else { unreachable!() };
    let mut from_index = 0;
    let mut questions: Vec<String> =
        stage.items.iter().flat_map(|item| MODIFIERS.map(|modifiers| format!("{item}{modifiers}"))).collect();
    questions.extend([
        format!("{plain}/a%20b.txt"),
        format!("{plain}/sub/c.txt"),
        format!("{plain}?ibiurl.verblist=GetFileList"),
        format!("{plain}?x=1&y=2"),
        format!("{first}+(pt)"),
        format!("{first}+(fr)"),
        format!("{url}/below/it?x=2"),
        "localhost/nobody/2001/02.03.04.05".to_owned(),
    ]);
    for question in &questions {
        let indexed = stage.explained(question);
        let sign = if question.contains('?') { '&' } else { '?' };
        let asked = stage.resolver.run(
            "resolve",
            &[&format!("{question}{sign}ibiurl.explain=yes"), "--allow-private", "--explain", "--json"],
        );
        let asked = asked.json().pop().unwrap();
        let asked = if asked["explanation"].is_object() { &asked["explanation"] } else { &asked };
        assert_eq!(outcome(&indexed), outcome(asked), "{question}: {indexed:#} {asked:#}");
        from_index += usize::from(is_from_index(&indexed));
        if !question.starts_with(closed.as_str()) {
            assert!(is_from_index(&indexed) || indexed["status"] == 404, "{question}: {indexed:#}");
        }
    }
    assert!(from_index * 10 > questions.len() * 8, "{from_index} of {}", questions.len());
    // A closed item is asked of its Archive alone.
    let indexed = stage.explained(closed);
    let answers = indexed["rounds"][0]["archives"].as_array().unwrap();
    let asked: Vec<&Value> = answers.iter().filter(|answer| answer["index_age"].is_null()).collect();
    assert_eq!((asked.len(), asked[0]["archive"].as_str()), (1, Some(stage.folders[0].service.as_str())));
    // Nor is anything that a reader's address opens, or a closed name, in the feed's index.
    let kept = fs::read(stage.resolver.data().join("locations/data.mdb")).unwrap();
    let kept = String::from_utf8_lossy(&kept).into_owned();
    assert!(kept.contains("a%20b.txt") && !kept.contains("5.txt") && !kept.contains("192.0.2.1"));
}

/// 4.4: whoever requires the Original asks all Archives.
#[test]
fn clause_4_4_the_original_is_always_asked_afresh() {
    let stage = IndexedStage::new();
    let explained = stage.explained(&format!("{}?ibiurl.requireditemstatus=Original", stage.items[0]));
    assert_eq!(explained["status"], 302);
    let answers = explained["rounds"][0]["archives"].as_array().unwrap();
    assert!(answers.iter().all(|answer| answer["index_age"].is_null()), "{explained:#}");
}

#[test]
fn redirects_that_asked_nobody_are_counted_once_robots_apart() {
    let stage = IndexedStage::new();
    let item = &stage.items[0];
    let total = |who: &str| {
        let statistics = stage.servers[0].api("", "GET", &format!("/items/{item}/statistics"), b"").json();
        statistics["totals"]["resolutions"][who].as_u64().unwrap()
    };
    let before = (total("people"), total("robots"));
    for headers in [PERSON, PERSON, PERSON, ""] {
        location(&stage.get(item, &format!("{AS_IT_IS}{headers}")));
    }
    until("both are reported", || (total("people"), total("robots")) == (before.0 + 3, before.1 + 1));
    sleep(Duration::from_secs(1));
    assert_eq!((total("people"), total("robots")), (before.0 + 3, before.1 + 1), "once");
}

#[test]
fn the_index_survives_a_kill_and_comes_back_when_it_is_deleted() {
    let IndexedStage { resolver, mut answers, folders: _folders, servers: _servers, items } =
        IndexedStage::new();
    for delete in [false, true] {
        answers.signal("-KILL");
        answers.end();
        if delete {
            fs::remove_dir_all(resolver.data().join("locations")).unwrap();
        }
        answers = resolver.serve();
        // Also before the index is filled again, by asking.
        location(&ask(&resolver.at, "GET", &format!("/{}", items[0]), AS_IT_IS, b""));
        if !delete {
            until("it answers from the index again", || {
                let url = format!("/{}?ibiurl.explain=yes", items[0]);
                let explained = ask(&resolver.at, "GET", &url, "Accept: application/json\r\n", b"").json();
                is_from_index(&explained)
            });
        }
    }
}

/// Never a redirect older than the bound, and never a false 404.
#[test]
fn clause_4_3_an_archive_that_is_gone_is_no_longer_answered_for() {
    let IndexedStage { resolver, answers, folders, servers, items } = IndexedStage::new();
    let [mut a, _b] = servers;
    a.signal("-KILL");
    a.end();
    sleep(Duration::from_millis(3500));
    let only_there = ask(&resolver.at, "GET", &format!("/{}", items[1]), AS_IT_IS, b"");
    assert_eq!(only_there.status, 503, "{}", only_there.text());
    let unknown = ask(&resolver.at, "GET", "/localhost/nobody/2001/02.03.04.05", AS_IT_IS, b"");
    assert_eq!(unknown.status, 503, "{}", unknown.text());
    let copied = ask(&resolver.at, "GET", &format!("/{}", items[0]), AS_IT_IS, b"");
    assert!(location(&copied).contains(&_b.at), "the copy");
    // It comes back at another address, and is followed there at once.
    let a = resolver.on_line(&folders[0]);
    until("it is found at its new address", || {
        let reply = ask(&resolver.at, "GET", &format!("/{}", items[1]), AS_IT_IS, b"");
        reply.status == 302 && reply.header("location").contains(&a.at)
    });
    drop(answers);
}

/// A label that was minted just now is found, although the index may not have it yet.
#[test]
fn what_was_deposited_just_now_is_found() {
    let stage = IndexedStage::new();
    for number in 0..10 {
        let item = stage.folders[1].deposit(&[(b"new.txt", number.to_string().as_bytes())], &[]);
        location(&stage.get(&item, AS_IT_IS));
    }
}

/// Unknown labels cost the Archives nothing while the index is complete, and so have no quota; the
/// default is 1200 in a minute.
#[test]
fn an_unknown_label_costs_nothing_while_all_feeds_are_current() {
    let stage = IndexedStage::new();
    for number in 0..1300 {
        let url = format!("localhost/nobody/2001/02.03.{:02}.{:02}", number / 60 % 24, number % 60);
        let reply = stage.get(&url, AS_IT_IS);
        assert_eq!((reply.status, reply.header("ratelimit")), (404, ""), "{number}: {}", reply.text());
    }
}

/// The feed and the reports are for resolvers alone.
#[test]
fn nobody_else_reads_the_feed() {
    let stage = IndexedStage::new();
    let operator = stage.folders[0].token("operator");
    for token in ["", "follow-0000", &operator] {
        assert_eq!(stage.servers[0].api(token, "GET", "/locations", b"").status, 401);
        let report = br#"{"index": "x", "sequence": 1, "counts": []}"#;
        assert_eq!(stage.servers[0].api(token, "POST", "/usage", report).status, 401);
    }
}

/// 2.4: an Archive that is offline does not turn an older edition into the last one, also where
/// copies from before the link do not know of it.
#[test]
fn clause_2_4_a_newer_edition_that_is_offline_is_503_and_not_the_older_one() {
    let IndexedStage { resolver, answers: _answers, folders: [a, b], servers: [online, _other], .. } =
        IndexedStage::new();
    let first = a.deposit(&[(b"x1.txt", b"1")], &["--language", "en"]);
    let second = a.deposit(&[(b"x2.txt", b"2")], &["--language", "en", "--next-edition-of", &first]);
    for item in [&first, &second] {
        let run = b.archive("copy", &[item, "--from", &format!("http://{}", online.at)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }
    let third = a.deposit(&[(b"x3.txt", b"3")], &["--language", "en", "--next-edition-of", &second]);
    a.deposit(&[(b"x4.txt", b"4")], &["--language", "pt", "--translation-of", &first]);
    let lead = |url: &str, headers: &str| ask(&resolver.at, "GET", &format!("/{url}"), headers, b"");
    assert!(location(&lead(&format!("{first}!"), "")).ends_with("x3.txt"));
    online.stop();
    until("it is offline", || resolver.standing(&a.service).0 == "offline");
    for url in [format!("{first}!"), format!("{second}!"), third.clone()] {
        assert_eq!(lead(&url, "").status, 503, "{url}");
    }
    let portuguese = lead(&format!("{first}+"), "Accept-Language: pt\r\n");
    assert_eq!(portuguese.status, 503, "{}", portuguese.text());
    assert!(location(&lead(&first, "")).ends_with("x1.txt"), "the copy of the item itself");
}
