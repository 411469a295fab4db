//! Threat W1: a path is looked up in the item's list of files, decoded once, and reaches nothing
//! else.

use super::{Folder, Reply, Server};

/// Encodings of `..`, `/` and what may come between them.
const UP: &[&str] = &[
    "..",
    "%2e%2e",
    "%2E%2e",
    ".%2e",
    "%2e.",
    "%252e%252e",
    "%25252e%25252e",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "%u002e%u002e",
    "..%00",
    "..%0d%0a",
    "%2e%2e%09",
    "..;",
    "...",
    "....",
    "%uff0e%uff0e",
    "%ef%bc%8e%ef%bc%8e",
];
const SLASH: &[&str] =
    &["/", "//", "%2f", "%2F", "%252f", "%5c", "%255c", "/./", "/%2e/", "%c0%af", "%e2%88%95"];

/// Paths that climb out of a folder to files outside.
fn climbs() -> Vec<String> {
    let mut climbs = Vec::new();
    for goal in ["etc/passwd", "service/tokens.json", "archive/settings.json", "doc/inside.txt"] {
        for up in UP {
            for slash in SLASH {
                for times in [1, 3, 9] {
                    climbs.push(format!(
                        "{}{}",
                        format!("{up}{slash}").repeat(times),
                        goal.replace('/', slash)
                    ));
                }
            }
        }
    }
    climbs.extend(
        [
            "/etc/passwd",
            "%2fetc%2fpasswd",
            "file:///etc/passwd",
            "C:%5cboot.ini",
            "%00",
            "inside.txt%00.pdf",
            "inside.txt/",
            ".",
            "%2e",
        ]
        .map(str::to_owned),
    );
    climbs
}

/// The contents of files outside, which must never be served.
fn outside(folder: &Folder) -> Vec<String> {
    let tokens = std::fs::read_to_string(folder.data().join("service/tokens.json")).unwrap();
    vec!["root:x:0:0".to_owned(), tokens.chars().take(20).collect()]
}

fn check(outside: &[String], what: &str, answer: &Reply) {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(outside.iter().all(|secret| !text.contains(secret)), "{what} got out: {text}");
}

/// Sends all of them: each gets a response.
fn all(server: &Server, requests: &[(String, String)], mut each: impl FnMut(&str, Reply)) {
    for (what, request) in requests {
        let answer = Reply::read(&server.raw(request.as_bytes()));
        assert!(answer.is_some(), "{what}");
        each(what, answer.unwrap());
    }
}

#[test]
fn no_encoding_leads_out_of_an_item() {
    let folder = Folder::new();
    let _ = folder.token("operator");
    let rep = folder.deposit(&[(b"inside.txt", b"inside"), (b"sub/inside.txt", b"inside")], &[]);
    let server = folder.serve();
    let outside = outside(&folder);
    let mut requests = Vec::new();
    for climb in climbs() {
        for prefix in ["doc/", "doc/sub/", "v1/doc/", ""] {
            let path = format!("/col/{rep}/{prefix}{climb}");
            requests
                .push((path.clone(), format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
        }
    }
    all(&server, &requests, |what, answer| {
        check(&outside, what, &answer);
        // They resolve at most to the same item.
        let led = answer.status == 307 && answer.header("location").starts_with(&format!("/col/{rep}/"));
        assert!((400..500).contains(&answer.status) || led, "{what}: {}", answer.status);
    });
    assert_eq!(server.get(&format!("/col/{rep}/doc/inside.txt")).body, b"inside");
}

#[test]
fn no_name_of_an_upload_leads_out_of_its_draft() {
    let folder = Folder::new();
    let token = folder.token("depositor");
    let server = folder.serve();
    let draft = server.api(&token, "POST", "/drafts", b"").json();
    let id = draft["id"].as_str().unwrap().to_owned();
    let before = tree(&folder);
    let mut requests = Vec::new();
    for climb in climbs() {
        let path = format!("/api/v1/drafts/{id}/files/{climb}");
        let head = format!(
            "Host: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 6\r\nConnection: close\r\n\r\n"
        );
        requests.push((path.clone(), format!("PUT {path} HTTP/1.1\r\n{head}canary")));
    }
    let mut taken = 0;
    all(&server, &requests, |what, answer| {
        assert!(answer.status == 200 || (400..500).contains(&answer.status), "{what}: {}", answer.status);
        taken += usize::from(answer.status == 200);
    });
    let draft = server.api(&token, "GET", &format!("/drafts/{id}"), b"").json();
    for file in draft["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        assert!(
            path.split(['/', '\\']).all(|name| name != ".." && name != "." && !name.is_empty()),
            "{path}"
        );
        assert!(!path.chars().any(char::is_control), "{path}");
    }
    assert!(taken > 0, "names that only look odd are names");
    let inside = format!("service/drafts/{id}/");
    let new: Vec<String> = tree(&folder).into_iter().filter(|path| !before.contains(path)).collect();
    assert!(new.iter().all(|path| path.starts_with(&inside)), "{new:?}");
    // As ids of drafts, they resolve to nothing either.
    for climb in climbs() {
        let answer = server.api(&token, "DELETE", &format!("/drafts/{climb}"), b"");
        assert!((400..500).contains(&answer.status), "{climb}: {}", answer.status);
    }
    assert_eq!(server.api(&token, "GET", &format!("/drafts/{id}"), b"").status, 200);
}

#[test]
fn no_file_path_of_a_url_request_leads_out_of_an_item() {
    let folder = Folder::new();
    let _ = folder.token("operator");
    let rep = folder.deposit(&[(b"inside.txt", b"inside")], &[]);
    let server = folder.serve();
    let outside = outside(&folder);
    for climb in climbs() {
        for path in [format!("/{climb}"), climb.replace('%', "%25")] {
            let query = format!(
                "servicesubject=urlRequest&clientinformation.ipaddress=192.0.2.1&parsedibiurl.ibi={rep}&parsedibiurl.filepath={path}"
            );
            let answer = server.service(&folder, &query);
            check(&outside, &path, &answer);
            assert!(matches!(answer.status, 200 | 400), "{path}: {}", answer.status);
            assert_eq!(answer.pair("url"), "", "{path}");
        }
    }
}

/// Every file below the data folder.
fn tree(folder: &Folder) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![folder.place.path().to_owned()]);
    while let Some(within) = left.pop() {
        for entry in std::fs::read_dir(within).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let path = path.strip_prefix(folder.data()).unwrap_or(&path);
                found.push(path.display().to_string());
            }
        }
    }
    found
}
