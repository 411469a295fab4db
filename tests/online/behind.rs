//! Copies that are known to be behind (clause 2.1).

use super::{Folder, Server};

fn told(server: &Server, path: &str) -> (String, String) {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    (reply.header("ibi-copy-behind").to_owned(), reply.header("link").to_owned())
}

#[test]
fn clause_2_1_a_copy_that_is_known_to_be_behind_says_so() {
    let (from, to) = (Folder::new(), Folder::new());
    let label = from.deposit(&[(b"a.txt", b"first")], &[]);
    let original = from.serve();
    let url = format!("http://{}", original.at);
    assert_eq!(to.archive("copy", &[&label, "--from", &url]).status, 0);
    let copy = to.serve();
    let metadata = to.archive("show", &[&label]).json()[0]["metadata"]["rep"].as_str().unwrap().to_owned();
    let pages = [
        format!("/col/{label}/"),
        format!("/col/{label}/doc/a.txt"),
        format!("/col/{metadata}/"),
        format!("/col/{metadata}/oai_dc"),
    ];
    let nothing = (String::new(), String::new());
    let quiet = |server: &Server| pages.iter().all(|page| told(server, page) == nothing);
    assert!(quiet(&copy));
    let newer = from.folder(&[(b"a.txt", b"second")]).display().to_string();
    assert_eq!(from.archive("update", &[&label, &newer]).status, 0);
    assert!(quiet(&copy), "nobody has told it yet");
    // Found by an audit: the copy is not changed.
    let audit = to.archive("audit", &[&label, "--with", &url]);
    assert!(audit.status <= 1, "{}", audit.stderr);
    let loud = |server: &Server| {
        for page in &pages {
            let link = format!("<{url}/col/{label}/>; rel=\"latest-version\"");
            assert_eq!(told(server, page), ("version=1, latest=2".to_owned(), link), "{page}");
        }
        let page = server.get(&format!("/col/{label}/")).text();
        assert!(page.contains(&format!("<a href=\"{url}/col/{label}/\" rel=\"latest-version\">")), "{page}");
    };
    loud(&copy);
    drop(copy);
    let copy = to.serve();
    loud(&copy);
    let shown = to.archive("show", &[&label]).json().pop().unwrap();
    assert_eq!((&shown["behind"]["latest"], &shown["behind"]["holder"]), (&2.into(), &url.clone().into()));
    let over_api = copy.api("", "GET", &format!("/items/{label}"), b"").json();
    assert_eq!(over_api["behind"], shown["behind"]);
    // The Original is never behind.
    assert!(quiet(&original));
    let refreshed = to.archive("refresh", &[&label]);
    assert_eq!(refreshed.status, 0, "{}", refreshed.stderr);
    assert!(quiet(&copy));
    assert_eq!(copy.get(&format!("/col/{label}/doc/a.txt")).text(), "second");
    assert_eq!(to.archive("show", &[&label]).json()[0].get("behind"), None);
}

/// Found by a refresh that cannot fetch the new version.
#[test]
fn clause_2_1_a_copy_that_cannot_be_refreshed_says_that_it_is_behind() {
    let (from, to) = (Folder::new(), Folder::new());
    let label = from.deposit(&[(b"a.txt", b"first")], &[]);
    let original = from.serve();
    let url = format!("http://{}", original.at);
    assert_eq!(to.archive("copy", &[&label, "--from", &url]).status, 0);
    let newer = from.folder(&[(b"a.txt", b"second")]).display().to_string();
    assert_eq!(from.archive("update", &[&label, &newer]).status, 0);
    let bytes = from.data().join("tree").join(&label).join("v2/content/doc/a.txt");
    std::fs::write(&bytes, b"broken").unwrap();
    assert_ne!(to.archive("refresh", &[&label]).status, 0);
    let copy = to.serve();
    let page = format!("/col/{label}/");
    assert_eq!(told(&copy, &page).0, "version=1, latest=2");
    std::fs::write(&bytes, b"second").unwrap();
    assert_eq!(to.archive("refresh", &[&label]).status, 0);
    assert_eq!(told(&copy, &page).0, "");
}
