//! Memory and processor: large items, metadata and drafts, and many clients, cost no more than
//! their share.

#![expect(
    clippy::disallowed_methods,
    reason = "how long a hostile load keeps others waiting is what is asked"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::ibi;
use crate::online::client::{ask, connect};
use crate::online::server::Server;
use crate::online::{Folder, rep, until};

/// The most memory that a process had, in MiB.
pub(super) fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Asks `/livez` on and on while something is done; tells the longest that an answer took.
pub(super) fn slowest_livez<T>(server: &Server, work: impl FnOnce() -> T) -> (Duration, T) {
    let (at, stop) = (server.at.clone(), Arc::new(AtomicBool::new(false)));
    let slowest = Arc::new(Mutex::new(Duration::ZERO));
    let asking = {
        let (stop, slowest) = (Arc::clone(&stop), Arc::clone(&slowest));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert_eq!(ask(&at, "GET", "/livez", "", b"").text(), "alive\n");
                let mut slowest = slowest.lock().unwrap();
                *slowest = begun.elapsed().max(*slowest);
                thread::sleep(Duration::from_millis(10));
            }
        })
    };
    let done = work();
    stop.store(true, Ordering::Relaxed);
    asking.join().unwrap();
    let slowest = *slowest.lock().unwrap();
    (slowest, done)
}

/// Status and bytes of an answer that is read to its end and not kept.
fn taken(at: &str, path: &str, headers: &str) -> (u16, u64) {
    let mut stream = connect(at);
    let head = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{headers}\r\n");
    if stream.write_all(head.as_bytes()).is_err() {
        return (0, 0);
    }
    let (mut first, mut bytes, mut piece) = (Vec::new(), 0, vec![0; 1 << 16]);
    while let Ok(many @ 1..) = stream.read(&mut piece) {
        first.extend_from_slice(&piece[..many.min(64_usize.saturating_sub(first.len()))]);
        bytes += many as u64;
    }
    let text = String::from_utf8_lossy(&first).into_owned();
    (text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), bytes)
}

/// So many clients at a time, each asking for these one after the other; tells how often each
/// status came.
fn crowd(server: &Server, clients: usize, paths: &[String], headers: &'static str) -> Vec<(u16, usize)> {
    let all: Vec<_> = (0..clients)
        .map(|number| {
            let (at, paths) = (server.at.clone(), paths.to_vec());
            thread::spawn(move || {
                let paths = paths.iter().cycle().skip(number).take(paths.len());
                paths.map(|path| taken(&at, path, headers).0).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut counts = std::collections::BTreeMap::new();
    for status in all.into_iter().flat_map(|client| client.join().unwrap()) {
        *counts.entry(status).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// Makes a folder with so many small files.
fn many_files(folder: &Path, many: usize) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..many {
        fs::write(folder.join(format!("file-{number:06}.txt")), number.to_string()).unwrap();
    }
}

/// Statements of so many bytes in all, as `--metadata` takes them.
fn long_metadata(bytes: usize) -> String {
    let value = "lorem <ipsum> & \"dolor\" ".repeat(40);
    let line = format!("description@pt={value}\n");
    format!("title=Long\n{}", line.repeat(bytes / line.len()))
}

/// An item of many files, asked for in every way by many at a time: its object, its page, its list
/// of files, a file of an older version.
#[test]
fn many_readers_of_an_item_with_many_files_cost_no_more_than_their_share() {
    const FILES: usize = 12_000;
    let folder = Folder::new();
    let from = folder.place.path().join("many");
    many_files(&from, FILES);
    let run = folder.archive("deposit", &[from.to_str().unwrap(), "--dc", "title=Many"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let rep = rep(&run.json()[0]);
    fs::write(from.join("file-000000.txt"), "new").unwrap();
    let run = folder.archive("update", &[&rep, from.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let server = folder.serve();
    let own = folder.service.clone();
    // All of it can be had.
    let list = taken(&server.at, &format!("/col/{rep}/files"), "");
    assert!(list.0 == 200 && list.1 > 100 * FILES as u64, "{list:?}");
    let item = taken(&server.at, &format!("/api/v1/items/{rep}"), "");
    assert!(item.0 == 200 && item.1 > 100 * FILES as u64, "{item:?}");
    assert_eq!(server.get(&format!("/col/{rep}/v1/doc/file-000000.txt")).text(), "0");
    assert_eq!(server.get(&format!("/col/{rep}/doc/file-000000.txt")).text(), "new");
    let paths = [
        format!("/api/v1/items/{rep}/object"),
        format!("/col/{rep}/"),
        format!("/col/{rep}/files"),
        format!("/col/{rep}/v1/doc/file-000007.txt"),
        format!("/api/v1/items/{rep}/object/v1/content/doc/file-000000.txt"),
        format!("/api/v1/items/{rep}"),
    ];
    let (slowest, statuses) = slowest_livez(&server, || crowd(&server, 60, &paths, ""));
    let peak = peak_memory(server.child.id());
    assert!(peak < 400, "{peak} MiB; {statuses:?}");
    assert!(slowest < Duration::from_millis(1000), "{slowest:?}; {statuses:?}");
    // Who was asked to come again is a few; nothing else went wrong.
    assert!(statuses.iter().all(|(status, _)| [200, 503].contains(status)), "{statuses:?}");
    assert!(statuses.iter().any(|(status, times)| *status == 200 && *times >= 100), "{statuses:?}");
    assert_eq!(server.get(&format!("/{own}")).status, 302, "and it goes on");
    assert!(!server.log().contains("panicked"));
}

/// Items with metadata of some MiB: their pages, records and lists.
#[test]
fn long_metadata_cost_no_more_than_their_share() {
    let folder = Folder::new();
    let file = folder.place.path().join("metadata.txt");
    fs::write(&file, long_metadata(3 << 20)).unwrap();
    let mut reps = Vec::new();
    for _ in 0..6 {
        let item = folder.put(&[(b"a.txt", b"a")], &["--dc", file.to_str().unwrap()]);
        reps.push(rep(&item));
    }
    let server = folder.serve();
    let listed = server.get("/api/v1/items?limit=1000");
    assert!(listed.status == 200 && listed.body.len() < 12 << 20, "a page ends after a long one");
    assert_eq!(server.get("/").text().matches(">Long<").count(), 6, "titles are found");
    let mut paths: Vec<String> =
        reps.iter().flat_map(|rep| [format!("/col/{rep}/"), format!("/col/{rep}/doc/a.txt")]).collect();
    paths.push("/api/v1/items".to_owned());
    paths.push("/api/v1/changes".to_owned());
    paths.push(format!("/api/v1/items/{}/oai_dc", reps[0]));
    let question = format!(
        "/{}?servicesubject=urlRequest&clientinformation.ipaddress=127.0.0.1&parsedibiurl.ibi={}\
         &parsedibiurl.verblist=GetMetadata%20GetTranslation",
        folder.service, reps[0]
    );
    let answer = server.get(&question).text();
    assert!(answer.contains("url.metadata.translation(pt)"), "{answer}");
    paths.push(question);
    // Relations of metadata need their languages, and not the metadata.
    paths.extend(reps.iter().map(|rep| format!("/api/v1/items/{rep}/relations")));
    paths.extend(reps.iter().map(|rep| format!("/{rep}:+")));
    let removed = folder.archive("remove", &[&reps[5], "--reason", "by law", "--yes"]);
    assert_eq!(removed.status, 0, "{}", removed.stderr);
    paths.extend((0..6).map(|_| format!("/{}", reps[5])));
    let (slowest, statuses) = slowest_livez(&server, || crowd(&server, 30, &paths, ""));
    let peak = peak_memory(server.child.id());
    assert!(peak < 400, "{peak} MiB; {statuses:?}");
    assert!(slowest < Duration::from_millis(1000), "{slowest:?}; {statuses:?}");
    assert!(statuses.iter().all(|(status, _)| [200, 302, 410, 503].contains(status)), "{statuses:?}");
    let (status, bytes) = taken(&server.at, &format!("/col/{}/", reps[0]), "");
    assert!(status == 200 && bytes > 3 << 20, "{status} {bytes}");
}

fn begin(server: &Server, token: &str, body: &[u8]) -> String {
    let draft = server.api(token, "POST", "/drafts", body);
    assert_eq!(draft.status, 201, "{}", draft.text());
    draft.json()["id"].as_str().unwrap().to_owned()
}

/// A description of so many bytes.
fn long_description(bytes: usize) -> Vec<u8> {
    let value = "x".repeat(1000);
    let statement = format!("{{\"element\": \"description\", \"value\": \"{value}\"}}");
    let statements = vec![statement; bytes / 1000].join(",");
    format!("{{\"metadata\": [{statements}]}}").into_bytes()
}

/// Long descriptions that arrive at once take their share of the budget before they arrive, for
/// themselves and for what is parsed from them.
#[test]
fn long_descriptions_that_arrive_at_once_stay_within_the_budget() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let body = long_description(7 << 19);
    let (slowest, statuses) = slowest_livez(&server, || {
        thread::scope(|scope| {
            let send = || server.api(&token, "POST", "/drafts", &body).status;
            let sent: Vec<_> = (0..60).map(|_| scope.spawn(send)).collect();
            sent.into_iter().map(|sent| sent.join().unwrap()).collect::<Vec<u16>>()
        })
    });
    let peak = peak_memory(server.child.id());
    assert!(peak < 330, "{peak} MiB; {statuses:?}");
    assert!(slowest < Duration::from_millis(1500), "{slowest:?}");
    assert!(statuses.iter().all(|status| [201, 429, 503].contains(status)), "{statuses:?}");
    let made = statuses.iter().filter(|status| **status == 201).count();
    let kept = fs::read_dir(folder.data().join("service/drafts")).unwrap().count();
    assert!(made > 0, "{statuses:?}");
    assert_eq!(made, kept, "who is told to try again has begun no draft: {statuses:?}");
}

/// What is said in drafts lies on disk: many long ones cost no memory, and are listed page by page.
#[test]
fn drafts_with_long_descriptions_lie_on_disk_and_are_listed_page_by_page() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let body = long_description(3 << 20);
    let mut begun: Vec<String> = (0..40).map(|_| begin(&server, &token, &body)).collect();
    begun.sort();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.api(&token, "GET", &format!("/drafts?limit=3&after={after}"), b"");
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(page.body.len() < 12 << 20, "{}", page.body.len());
        let page = page.json();
        let drafts = page["drafts"].as_array().unwrap();
        found.extend(drafts.iter().map(|draft| draft["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, begun);
    assert_eq!(server.api(&token, "GET", "/drafts?limit=0", b"").problem(), 400);
    let peak = peak_memory(server.child.id());
    assert!(peak < 300, "{peak} MiB");
    // Also after a restart.
    drop(server);
    let server = folder.serve();
    assert_eq!(server.api(&token, "GET", &format!("/drafts/{}", begun[0]), b"").status, 200);
    let peak = peak_memory(server.child.id());
    assert!(peak < 200, "{peak} MiB");
}

/// An owner has so many drafts and bytes; operators see all drafts, also of tokens that were
/// revoked, and delete them.
#[test]
fn drafts_have_a_quota_and_operators_see_them_all() {
    let folder = Folder::new();
    let made = |role: &str, name: &str| {
        folder.archive("token create", &["--role", role, "--name", name]).json().remove(0)
    };
    let (one, two, operator) = (made("depositor", "one"), made("depositor", "two"), made("operator", "op"));
    let secret = |token: &serde_json::Value| token["token"].as_str().unwrap().to_owned();
    let (first, second, operator) = (secret(&one), secret(&two), secret(&operator));
    let server = folder.serve_with(&["--draft-count", "3", "--draft-size", "1"]);
    let drafts: Vec<String> = (0..3).map(|_| begin(&server, &first, b"")).collect();
    let more = server.api(&first, "POST", "/drafts", b"");
    assert_eq!(more.problem(), 422);
    assert!(more.text().contains("at most 3"), "{}", more.text());
    let others = begin(&server, &second, b"");
    // In bytes: of files, and of descriptions.
    let put = |token: &str, draft: &str, name: &str, bytes: usize| {
        server.api(token, "PUT", &format!("/drafts/{draft}/files/{name}"), &vec![b'x'; bytes]).status
    };
    assert_eq!(put(&first, &drafts[0], "a", 600 << 10), 200);
    assert_eq!(put(&first, &drafts[1], "b", 600 << 10), 422, "more than all together may have");
    assert_eq!(
        server
            .api(&first, "PATCH", &format!("/drafts/{}", drafts[1]), &long_description(500 << 10))
            .problem(),
        422
    );
    assert_eq!(put(&second, &others, "b", 600 << 10), 200, "each for itself");
    assert_eq!(server.api(&first, "DELETE", &format!("/drafts/{}/files/a", drafts[0]), b"").status, 204);
    assert_eq!(put(&first, &drafts[1], "b", 600 << 10), 200, "what is taken out counts no more");
    assert_eq!(put(&first, &drafts[1], "b", 100 << 10), 200, "nor what is replaced");
    assert_eq!(put(&first, &drafts[1], "c", 600 << 10), 200);
    let listed = |token: &str, query: &str| -> Vec<String> {
        let drafts = server.api(token, "GET", &format!("/drafts{query}"), b"").json();
        let drafts = drafts["drafts"].as_array().unwrap().clone();
        drafts.iter().map(|draft| draft["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((listed(&first, "").len(), listed(&second, "").len()), (3, 1));
    let data = folder.data().display().to_string();
    let revoked = ibi(&["archive", "token", "revoke", one["id"].as_str().unwrap(), "--data", &data]);
    assert_eq!(revoked.status, 0, "{}", revoked.stderr);
    assert_eq!(listed(&operator, "").len(), 4, "also those of a token that is none any more");
    assert_eq!(listed(&operator, &format!("?owner={}", one["id"].as_str().unwrap())).len(), 3);
    assert_eq!(listed(&second, &format!("?owner={}", one["id"].as_str().unwrap())), [others], "only its own");
    assert_eq!(server.api(&second, "DELETE", &format!("/drafts/{}", drafts[0]), b"").problem(), 404);
    assert_eq!(server.api(&operator, "DELETE", &format!("/drafts/{}", drafts[0]), b"").status, 204);
    assert_eq!(listed(&operator, "").len(), 3);
}

/// What nobody changes for long is thrown away; what is changed stays.
#[test]
fn drafts_that_nobody_changes_expire() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let [old, new] = [begin(&server, &token, b""), begin(&server, &token, b"")];
    assert_eq!(server.stop().0, Some(0));
    let place = folder.data().join("service/drafts").join(&old);
    let touched = std::process::Command::new("touch").args(["-d", "40 days ago"]).arg(&place).status();
    assert!(touched.unwrap().success());
    let server = folder.serve_with(&["--draft-days", "50"]);
    thread::sleep(Duration::from_secs(7));
    assert_eq!(server.api(&token, "GET", &format!("/drafts/{old}"), b"").status, 200, "not for so long");
    drop(server);
    let server = folder.serve();
    until("it has expired", || !place.exists());
    assert_eq!(server.api(&token, "GET", &format!("/drafts/{old}"), b"").problem(), 404);
    assert_eq!(server.api(&token, "GET", &format!("/drafts/{new}"), b"").status, 200);
}

/// An item with more aliases than anybody needs is refused at once.
#[test]
fn an_item_has_a_bounded_number_of_aliases() {
    let folder = Folder::new();
    let token = folder.token("operator");
    let server = folder.serve();
    let aliases = |count: usize| -> Vec<u8> {
        let label = |number: usize| {
            format!(
                "\"alias.test/x/2026/01.01.{:02}.{:02}.{:02}\"",
                number / 3600 % 24,
                number / 60 % 60,
                number % 60
            )
        };
        format!("{{\"aliases\": [{}]}}", (0..count).map(label).collect::<Vec<_>>().join(",")).into_bytes()
    };
    let many = begin(&server, &token, &aliases(80_000));
    let begun = Instant::now();
    let refused = server.api(&token, "POST", &format!("/drafts/{many}/publish"), b"");
    assert_eq!(refused.problem(), 422);
    assert!(refused.text().contains("at most 1000 aliases"), "{}", refused.text());
    let some = begin(&server, &token, &aliases(1000));
    let item = server.api(&token, "POST", &format!("/drafts/{some}/publish"), b"");
    assert_eq!(item.status, 201, "{}", item.text());
    let rep = rep(&item.json());
    let record = server.get(&format!("/api/v1/items/{rep}/oai_dc"));
    assert_eq!(record.text().matches("alias.test/x/").count(), 1000);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let more =
        server.api(&token, "PATCH", &format!("/items/{rep}"), br#"{"aliases": ["alias.test/y/2026/01.01"]}"#);
    assert_eq!(more.problem(), 422);
}

/// An inventory that would take more memory than there is, offered by another Archive: it is
/// refused before it is read whole, and taken by a server that has the memory.
#[test]
fn a_longer_inventory_than_the_memory_allows_is_not_taken() {
    let (giver, taker) = (Folder::new(), Folder::new());
    let from = giver.place.path().join("long");
    fs::create_dir_all(&from).unwrap();
    // Names as long as they may be: some 9 MB of inventory.
    for number in 0..12_000 {
        fs::write(from.join(format!("{number:0240}")), number.to_string()).unwrap();
    }
    let run = giver.archive("deposit", &[from.to_str().unwrap(), "--dc", "title=Long"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let rep = rep(&run.json()[0]);
    let token = taker.token("operator");
    let there = giver.serve();
    let ask_for = format!("{{\"from\": \"http://{}\"}}", there.at);
    let server = taker.serve_with(&["--memory", "32"]);
    let refused = server.api(&token, "POST", &format!("/items/{rep}/copy"), ask_for.as_bytes());
    assert!(refused.status >= 400, "{}", refused.text());
    assert!(refused.text().contains("more than 8388608 bytes"), "{}", refused.text());
    let peak = peak_memory(server.child.id());
    assert!(peak < 200, "{peak} MiB");
    assert!(there.child.id() > 0 && peak_memory(there.child.id()) < 300);
}
