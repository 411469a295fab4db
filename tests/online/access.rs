//! Access rules: who may open files, and what other clients get.

use super::{Folder, Server};

/// Occurs in the names of closed files, and nowhere else.
const CANARY: &str = "canary-name";

fn closed(folder: &Folder, access: &str) -> String {
    let [main, index] = ["canary-name.html", "sub-canary-name/index.html"].map(str::as_bytes);
    folder.deposit(
        &[(main, b"canary bytes"), (index, b"canary bytes")],
        &["--access", access, "--target", "canary-name.html"],
    )
}

fn url_request(server: &Server, folder: &Folder, ip: &str, rep: &str, more: &str) -> super::Reply {
    let who = format!("clientinformation.ipaddress={ip}&parsedibiurl.ibi={rep}");
    server.service(folder, &format!("servicesubject=urlRequest&{who}{more}"))
}

/// Clause 3.4: clients that may not open the files are led to the metadata, by the resolver and
/// directly.
#[test]
fn who_may_not_open_the_files_is_led_to_the_metadata() {
    let folder = Folder::new();
    for access in ["ip:192.0.2.0/24", "until:2199-01-01"] {
        let rep = closed(&folder, access);
        let shown = folder.archive("show", &[&rep]).json().pop().unwrap();
        let metadata = format!("/col/{}/", shown["metadata"]["rep"].as_str().unwrap());
        let server = folder.serve();
        for path in ["doc/canary-name.html", "v1/doc/canary-name.html", "doc/no-such-file"] {
            for accept in ["text/html", "application/json", "text/plain"] {
                let refused =
                    server.get_with(&format!("/col/{rep}/{path}"), &format!("Accept: {accept}\r\n"));
                assert_eq!(refused.status, 403, "{path}");
                assert!(refused.text().contains(&metadata), "{path}: {}", refused.text());
                assert!(!refused.text().contains("canary bytes"));
            }
        }
        assert_eq!(server.get(&metadata).status, 200);
        let outside = url_request(&server, &folder, "198.51.100.1", &rep, "");
        assert_eq!(outside.pair("contenttype"), "Metadata");
        assert_eq!(outside.pair("url"), format!("http://{}{metadata}", server.at));
        let inside = url_request(&server, &folder, "192.0.2.5", &rep, "");
        let expected = if access.starts_with("ip") { "Data" } else { "Metadata" };
        assert_eq!(inside.pair("contenttype"), expected, "{access}");
    }
}

/// Threat K6: the client's address is the socket's, unless a trusted proxy reports another.
#[test]
fn only_a_trusted_proxy_says_who_asks() {
    let folder = Folder::new();
    let rep = closed(&folder, "ip:192.0.2.0/24");
    let at = format!("/col/{rep}/doc/canary-name.html");
    let status =
        |server: &Server, says: &str| server.get_with(&at, &format!("X-Forwarded-For: {says}\r\n")).status;
    let alone = folder.serve();
    for says in ["192.0.2.7", "127.0.0.1, 192.0.2.7", "192.0.2.7, 127.0.0.1"] {
        assert_eq!(status(&alone, says), 403, "{says}");
    }
    assert_eq!(alone.get_with(&at, "Forwarded: for=192.0.2.7\r\nX-Real-IP: 192.0.2.7\r\n").status, 403);
    drop(alone);
    let behind = folder.serve_with(&["--trusted-proxy", "127.0.0.1"]);
    assert_eq!(status(&behind, "192.0.2.7"), 200);
    assert_eq!(status(&behind, "198.51.100.1, 192.0.2.7"), 200, "the last is the proxy's word");
    for says in ["192.0.2.7, 198.51.100.1", "192.0.2.7, nonsense", "nonsense", ""] {
        assert_eq!(status(&behind, says), 403, "{says}");
    }
    assert_eq!(
        behind.get_with(&at, "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-For: 198.51.100.1\r\n").status,
        403
    );
}

/// Threat W14: a closed list of files is closed in every format.
#[test]
fn the_names_of_closed_files_are_told_to_nobody() {
    let folder = Folder::new();
    let rep = closed(&folder, "ip:192.0.2.0/24");
    let run = folder.archive("update", &[&rep, "--dc", "title=Closed"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let metadata = run.json()[0]["metadata"]["rep"].as_str().unwrap().to_owned();
    let server = folder.serve();
    let mut told = Vec::new();
    let mut paths: Vec<String> =
        ["/", "/api/v1/items", "/api/v1/changes", "/metrics"].map(str::to_owned).to_vec();
    for label in [&rep, &metadata] {
        for rest in
            ["/", "", "/files", "/oai_dc", "/doc", "/doc/", "/v1/doc/", "/v2/doc", "/doc/x", "/doc/x/"]
        {
            paths.push(format!("/col/{label}{rest}"));
        }
        for rest in ["", "/statistics", "/relations"] {
            paths.push(format!("/api/v1/items/{label}{rest}"));
        }
        paths.push(format!("/{label}"));
    }
    for path in &paths {
        for accept in ["text/html", "application/json", "text/plain", "*/*"] {
            let answer = server.get_with(path, &format!("Accept: {accept}\r\n"));
            let headers = answer.lasting_headers();
            if answer.text().contains(CANARY) || headers.iter().any(|(_, value)| value.contains(CANARY)) {
                told.push(format!("{path} as {accept}"));
            }
        }
    }
    for verbs in ["", "GetFileList", "GetMetadata", "GetLastEdition"] {
        let more = format!("&parsedibiurl.verblist={verbs}");
        if url_request(&server, &folder, "198.51.100.1", &rep, &more).text().contains(CANARY) {
            told.push(format!("urlRequest {verbs}"));
        }
    }
    assert_eq!(told, [""; 0]);
    assert!(server.get(&format!("/col/{rep}/files")).status == 200, "the page that says so");
}

/// Threat W14: whether a closed item has a file of some name is not revealed either.
#[test]
fn a_closed_item_does_not_say_which_folders_it_has() {
    let folder = Folder::new();
    let rep = closed(&folder, "until:2199-01-01");
    let server = folder.serve();
    let status = |name: &str| server.get(&format!("/col/{rep}/doc/{name}")).status;
    assert_eq!(status("sub-canary-name/"), status("no-such-folder/"));
    assert_eq!(status("sub-canary-name/index.html"), status("no-such-folder/index.html"));
}
