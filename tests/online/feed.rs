//! Following an Archive: lists with cursors, and the feed of changes.

use serde_json::Value;

use super::{Folder, Server, rep};

fn page(server: &Server, path: &str) -> Value {
    server.api("", "GET", path, b"").json()
}

/// All changes after a number, page by page.
fn follow(server: &Server, mut after: u64, limit: u64) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let page = page(server, &format!("/changes?after={after}&limit={limit}"));
        let changes = page["changes"].as_array().unwrap();
        assert!(changes.len() as u64 <= limit);
        all.extend(changes.iter().cloned());
        after = page["next"].as_u64().unwrap();
        if changes.is_empty() {
            assert_eq!(page["next"], page["last"]);
            return all;
        }
    }
}

fn seen(changes: &[Value]) -> Vec<(&str, &str, u64)> {
    let version = |change: &Value| change["version"].as_u64().unwrap();
    changes
        .iter()
        .map(|change| {
            (change["item"]["rep"].as_str().unwrap(), change["state"].as_str().unwrap(), version(change))
        })
        .collect()
}

#[test]
fn a_cursor_stays_good_while_items_come() {
    let folder = Folder::new();
    let before: Vec<String> = (0..7).map(|_| folder.deposit(&[(b"a.txt", b"one")], &[])).collect();
    let server = folder.serve();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = page(&server, &format!("/items?limit=2&after={after}"));
        found.extend(page["items"].as_array().unwrap().iter().map(rep));
        let Some(next) = page["next"].as_str() else { break };
        after = next.replace('/', "%2F");
        if found.len() < 8 {
            folder.deposit(&[(b"a.txt", b"one")], &[]);
        }
    }
    let mut once = found.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), found.len(), "nothing twice: {found:?}");
    assert!(before.iter().all(|rep| found.contains(rep)), "nothing missing: {found:?}");
    assert_eq!(page(&server, "/items?limit=1000")["next"], Value::Null);
}

/// From any number, the feed leads to the current state: deposits, updates and removals, in commit
/// order.
#[test]
fn the_feed_follows_everything_that_changes_in_order() {
    let folder = Folder::new();
    let token = folder.token("operator");
    let server = folder.serve();
    let started = page(&server, "/changes")["last"].as_u64().unwrap();
    let [a, b, c] = ["8JMKD3MGP8W/34PGRBS", "LK47B6W/362SFKH", "8JMKD3MGP7W/3EPGUE5"]
        .map(|alias| folder.deposit(&[(b"a.txt", b"one")], &["--alias", alias]));
    let changes = follow(&server, started, 1);
    assert_eq!(seen(&changes), [(&*a, "Original", 1), (&*b, "Original", 1), (&*c, "Original", 1)]);
    assert_eq!(changes[0]["aliases"][0], "8JMKD3MGP8W/34PGRBS");
    assert!(changes[0]["metadata"]["rep"].is_string() && changes[0]["removed"].is_null());
    let middle = changes[2]["change"].as_u64().unwrap();
    assert_eq!(folder.archive("update", &[&b, "--dc", "title=New"]).status, 0);
    let removal = br#"{"reason": "by law"}"#;
    assert_eq!(server.api(&token, "DELETE", &format!("/items/{a}"), removal).status, 200);
    let title = br#"{"metadata": [{"element": "title", "value": "Again"}]}"#;
    assert_eq!(server.api(&token, "PATCH", &format!("/items/{c}"), title).status, 200);
    let later = follow(&server, middle, 2);
    assert_eq!(
        seen(&later),
        [(&*b, "Original", 2), (&*a, "Deleted", later[1]["version"].as_u64().unwrap()), (&*c, "Original", 2)]
    );
    assert_eq!(later[1]["removed"]["reason"], "by law");
    // From the start, each item occurs once, with its last change, and numbers increase.
    let all = follow(&server, 0, 2);
    assert_eq!(seen(&all)[1..], seen(&later));
    let numbers: Vec<u64> = all.iter().map(|change| change["change"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(page(&server, "/changes")["last"].as_u64(), numbers.last().copied());
    // The same after a restart.
    drop(server);
    assert_eq!(follow(&folder.serve(), 0, 1000), all);
}

/// A follower misses nothing while many deposit at once.
#[test]
fn the_feed_misses_nothing_while_many_deposit_at_once() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let deposit = || {
        let draft = server.api(&token, "POST", "/drafts", b"").json();
        let draft = format!("/drafts/{}", draft["id"].as_str().unwrap());
        assert_eq!(server.api(&token, "PUT", &format!("{draft}/files/a.txt"), b"one").status, 200);
        rep(&server.api(&token, "POST", &format!("{draft}/publish"), b"").json())
    };
    let start = page(&server, "/changes")["last"].as_u64().unwrap();
    let (mut made, followed) = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..6).map(|_| deposit()).collect::<Vec<_>>())).collect();
        let (mut followed, mut after) = (Vec::new(), start);
        super::until("all changes", || {
            let page = page(&server, &format!("/changes?after={after}&limit=3"));
            after = page["next"].as_u64().unwrap();
            followed.extend(page["changes"].as_array().unwrap().iter().map(|change| rep(&change["item"])));
            followed.len() >= 24
        });
        let made: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (made, followed)
    });
    let mut sorted = followed.clone();
    sorted.sort();
    made.sort();
    assert_eq!(sorted, made);
}
