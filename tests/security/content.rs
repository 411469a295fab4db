//! Deposited documents are isolated from our pages, and contact no other host when they are read.

use crate::online::Folder;

/// Regression: a deposited page loaded pictures and styles from other hosts, which learned of each
/// reader. tests/clients.d/browser shows the same in Chromium.
#[test]
fn a_deposited_page_loads_nothing_from_other_hosts() {
    let folder = Folder::new();
    let page = b"<img src=http://evil.test/x><link rel=stylesheet href=http://evil.test/y>";
    let rep = folder.deposit(&[(b"index.html", page), (b"a.svg", b"<svg/>"), (b"a.xml", b"<a/>")], &[]);
    let server = folder.serve();
    for name in ["index.html", "a.svg", "a.xml"] {
        let file = server.get(&format!("/col/{rep}/doc/{name}"));
        let policy = file.header("content-security-policy").to_owned();
        let rules: Vec<Vec<&str>> = policy.split(';').map(|rule| rule.split_whitespace().collect()).collect();
        let of = |name: &str| rules.iter().find(|rule| rule[0] == name).map(|rule| rule[1..].to_vec());
        assert_eq!(of("default-src"), Some(vec!["'self'", "data:", "blob:"]), "{name}");
        assert_eq!(of("script-src"), Some(vec!["'none'"]), "{name}");
        assert_eq!(of("form-action"), Some(vec!["'none'"]), "{name}");
        // Directives that override the default contain no other host either.
        for rule in &rules {
            assert!(!rule.iter().any(|word| word.contains('*') || word.starts_with("http")), "{policy}");
        }
        assert!(of("sandbox").is_some_and(|allowed| !allowed.contains(&"allow-scripts")), "{policy}");
        assert_eq!(file.header("x-dns-prefetch-control"), "off", "{name}");
    }
}

/// Failures of disk and locks are 500 or 503 with a code, and without paths.
#[test]
fn failures_tell_a_code_and_no_path() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let begun = server.api(&token, "POST", "/drafts", b"{}");
    assert_eq!(begun.status, 201, "{}", begun.text());
    // The minter's state is missing.
    let minter = folder.data().join("minter");
    std::fs::rename(&minter, folder.place.path().join("minter.away")).unwrap();
    std::fs::write(&minter, "").unwrap();
    let place = folder.place.path().display().to_string();
    let failed = server.api(&token, "POST", "/labels", b"{}");
    assert_eq!(failed.problem(), 500, "{}", failed.text());
    assert_eq!(failed.json()["type"], "urn:ibi:problem:internal");
    assert!(!failed.text().contains(&place), "{}", failed.text());
    // The operator finds the details in the log.
    assert!(server.log().contains(&place), "{}", server.log());
}
