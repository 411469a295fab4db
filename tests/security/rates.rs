//! Quotas on expensive requests, per token and per address: 429 with `Retry-After`, and nobody else
//! is shut out.

use crate::online::Folder;
use crate::online::client::{Reply, ask};
use crate::online::server::Server;
use crate::resolver::Resolver;
use crate::resolver::scripted::Scripted;

fn mint(server: &Server, token: &str, count: usize) -> Reply {
    server.api(token, "POST", "/labels", format!("{{\"count\": {count}}}").as_bytes())
}

fn is_limited(reply: &Reply, quota: &str) {
    assert_eq!(reply.problem(), 429, "{}", reply.text());
    assert_eq!(reply.json()["type"], "urn:ibi:problem:too-many-requests");
    let seconds: u32 = reply.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert!(reply.header("ratelimit").contains(&format!("\"{quota}\";r=")), "{}", reply.header("ratelimit"));
}

/// Seen before: one token had 9.8 million labels in 8 s. A large batch is still possible.
#[test]
fn one_token_mints_a_large_batch_and_no_more() {
    let folder = Folder::new();
    let (token, other) = (folder.token("minter"), folder.token("minter"));
    let server = folder.serve();
    let mut minted = 0;
    let refused = loop {
        let reply = mint(&server, &token, 10_000);
        if reply.status != 201 {
            break reply;
        }
        minted += 10_000;
        assert!(minted <= 400_000, "no end");
    };
    assert!(minted >= 100_000, "{minted}");
    is_limited(&refused, "mint-token");
    assert_eq!(mint(&server, &other, 10_000).status, 201, "another token has its own quota");
}

#[test]
fn an_operator_sets_quotas_and_clients_see_them() {
    let folder = Folder::new();
    let token = folder.token("minter");
    let server = folder.serve_with(&["--quota", "mint-token=100/60"]);
    let first = mint(&server, &token, 60);
    assert_eq!(first.status, 201);
    let policy = "\"mint-token\";q=100;w=60, \"mint-address\";q=400000;w=60";
    assert_eq!(first.header("ratelimit-policy"), policy);
    assert!(first.header("ratelimit").starts_with("\"mint-token\";r=40;t="), "{}", first.header("ratelimit"));
    is_limited(&mint(&server, &token, 60), "mint-token");
    assert_eq!(mint(&server, &token, 40).status, 201, "what is refused costs nothing");
    is_limited(&mint(&server, &token, 101), "mint-token");
    assert!(server.get("/metrics").text().contains("ibi_rate_limited_total{policy=\"mint-token\"}"));
}

/// Drafts and uploads have quotas; whoever may not deposit uses up nobody's.
#[test]
fn deposits_have_quotas_of_their_own() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve_with(&["--quota", "deposit-token=3/600", "--quota", "upload-token=2/600"]);
    for _ in 0..10 {
        assert_eq!(server.api("ibi_unknown", "POST", "/drafts", b"{}").status, 401);
    }
    let begun = server.api(&token, "POST", "/drafts", b"{}");
    assert_eq!(begun.status, 201, "{}", begun.text());
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let file = |name: &str| server.api(&token, "PUT", &format!("/drafts/{id}/files/{name}"), b"one");
    assert_eq!((file("a").status, file("b").status), (200, 200));
    assert_eq!(file("c").problem(), 429);
    let mut last = 0;
    for _ in 0..4 {
        last = server.api(&token, "POST", "/drafts", b"{}").status;
    }
    assert_eq!(last, 429);
}

/// Lists have a quota of an address; what people and robots read has none.
#[test]
fn reading_items_has_no_quota() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"index.html", b"one")], &[]);
    let server = folder.serve_with(&[
        "--quota",
        "list-address=3/600",
        "--trusted-proxy",
        "127.0.0.1",
        "--quota",
        "exempt=198.51.100.0/24",
    ]);
    let list = |from: &str| server.get_with("/api/v1/items", &format!("X-Forwarded-For: {from}\r\n"));
    for _ in 0..3 {
        assert_eq!(list("192.0.2.1").status, 200);
    }
    is_limited_within(&list("192.0.2.1"), 600);
    assert_eq!(list("192.0.2.2").status, 200, "another address");
    assert_eq!((0..3).map(|n| list(&format!("2001:db8::{n}")).status).collect::<Vec<_>>(), [200; 3]);
    assert_eq!(list("2001:db8::99").status, 429, "a /64 is one client");
    for _ in 0..10 {
        assert_eq!(list("198.51.100.7").status, 200, "the operator's robot");
    }
    for _ in 0..50 {
        for path in
            [format!("/col/{rep}/doc/index.html"), format!("/col/{rep}/"), format!("/api/v1/items/{rep}")]
        {
            let read = server.get_with(&path, "X-Forwarded-For: 192.0.2.1\r\n");
            assert_eq!(read.status, 200, "{path}");
            assert_eq!(read.header("ratelimit"), "");
        }
    }
}

fn is_limited_within(reply: &Reply, seconds: u32) {
    assert_eq!(reply.problem(), 429);
    assert!(reply.header("retry-after").parse::<u32>().unwrap() <= seconds);
}

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
const IBI: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";

/// Each unknown label asks all Archives: that has a quota. Known ones have none, also for who has
/// used it up.
#[test]
fn a_resolver_limits_questions_in_vain() {
    let archive = Scripted::with(SERVICE, IBI, "/a");
    let resolver = Resolver::new();
    let server = resolver.serve_with(&["--allow-private", "--quota", "unknown-address=5/600"]);
    archive.come(&resolver);
    for _ in 0..20 {
        assert_eq!(server.get(&format!("/{IBI}")).status, 302, "found, it is not counted");
    }
    let unknown = |number: u32| {
        server.get_with(&format!("/a.test/b/2009/07.21.14.{number}"), "Accept: application/json\r\n")
    };
    for number in 10..15 {
        let reply = unknown(number);
        assert_eq!(reply.status, 404, "{}", reply.text());
        assert!(reply.header("ratelimit").starts_with("\"unknown-address\";r="));
    }
    let before = archive.asked("urlRequest").len();
    is_limited_within(&unknown(20), 600);
    let api = server.get("/api/v1/resolve?url=a.test/b/2009/07.21.14.21");
    is_limited_within(&api, 600);
    assert_eq!(archive.asked("urlRequest").len(), before, "no Archive was asked");
    assert_eq!(server.get(&format!("/{IBI}")).status, 302);
    let page = server.get_with("/a.test/b/2009/07.21.14.22", "Accept: text/html\r\nAccept-Language: pt\r\n");
    assert_eq!(page.status, 429);
    assert!(page.text().contains("Muitos pedidos"));
}

/// Hints of links come from anybody: each sender has a quota.
#[test]
fn hints_have_a_quota() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a", b"one")], &[]);
    let server = folder.serve_with(&["--quota", "hint-address=2/600"]);
    let hint = |number: u32| {
        let newer = format!("evil.test/x/2026/11.17.09.03.{number}");
        let hint = format!("{{\"kind\": \"edition\", \"older\": \"{rep}\", \"newer\": \"{newer}\"}}");
        ask(&server.at, "POST", "/api/v1/links", "", hint.as_bytes()).status
    };
    assert_eq!([hint(10), hint(11), hint(12)], [202, 202, 429]);
}

#[test]
fn quotas_that_make_no_sense_are_refused_at_start() {
    let folder = Folder::new();
    for wrong in ["mint-token=0/60", "mint-token=1", "nothing=1/60", "exempt=192.0.2.1/8", "mint-token"] {
        let run = folder.archive("serve", &["--quota", wrong]);
        assert_eq!(run.status, 2, "{wrong}: {}", run.stderr);
    }
}

/// docs/formats/quotas.md.
#[test]
fn the_frozen_file_of_quotas_is_read() {
    let folder = Folder::new();
    let token = folder.token("minter");
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/quotas-1");
    let server = folder.serve_with(&[
        "--quota-file",
        sample,
        "--quota",
        "list-address=3/600",
        "--trusted-proxy",
        "127.0.0.1",
    ]);
    let minted = mint(&server, &token, 5);
    assert_eq!(minted.header("ratelimit-policy"), "\"mint-token\";q=5;w=600", "the address has none");
    assert_eq!(mint(&server, &token, 1).problem(), 429);
    let list = |from: &str| server.get_with("/api/v1/items", &format!("X-Forwarded-For: {from}\r\n")).status;
    assert_eq!((0..4).map(|_| list("192.0.2.1")).collect::<Vec<_>>(), [200, 200, 200, 429]);
    assert!((0..9).all(|_| list("2001:db8:1:2::3") == 200 && list("198.51.100.9") == 200));
}
