//! Well-formed but malicious requests have no effect.

use super::Folder;

/// No headers can be injected by a path, a name or a query.
#[test]
fn no_header_is_injected() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a\"; x=y.txt", b"one")], &["--alias", "8JMKD3MGP8W/34PGRBS"]);
    let server = folder.serve();
    for line in [
        "%0d%0aX-Injected:%20yes",
        "%0aX-Injected:yes",
        "%0dX-Injected:yes",
        "%E5%98%8A%E5%98%8DX-Injected:yes",
        "%250d%250aX-Injected:yes",
    ] {
        for path in [
            format!("/{line}"),
            format!("/{rep}{line}"),
            format!("/col/{rep}{line}"),
            format!("/col/{rep}?{line}"),
            format!("/col/{rep}/doc/{line}"),
            format!("/col/{rep}/doc/{line}/"),
            format!("/col/8JMKD3MGP8W/34PGRBS/{line}"),
            format!("/col/8JMKD3MGP8W/34PGRBS/doc/{line}?{line}"),
            format!("/api/v1/items/{line}"),
            format!("/{}?servicesubject={line}", folder.service),
            format!(
                "/{}?servicesubject=urlRequest&clientinformation.ipaddress=1.2.3.4&parsedibiurl.ibi={rep}&parsedibiurl.filepath=/{line}",
                folder.service
            ),
        ] {
            let answer = server.get(&path);
            assert!(answer.status < 500, "{path}: {}", answer.status);
            let injected = answer.lasting_headers().iter().any(|(name, _)| name == "x-injected");
            assert!(!injected, "{path}");
            let location = answer.header("location");
            assert!(location.is_empty() || location.starts_with("/col/"), "{path} leads to {location}");
        }
    }
}

/// RFC 9110 §14.2: no response is larger than the file.
#[test]
fn a_list_of_ranges_does_not_multiply_a_file() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"0123456789")], &[]);
    let server = folder.serve();
    for range in
        ["0-9,".repeat(2000) + "0-9", "0-,".repeat(3000) + "0-", "0-0,2-2,4-4".to_owned(), ",".repeat(5000)]
    {
        let answer = server.get_with(&format!("/col/{rep}/doc/a.txt"), &format!("Range: bytes={range}\r\n"));
        assert_eq!((answer.status, &answer.body[..]), (200, &b"0123456789"[..]));
    }
}

#[test]
fn methods_that_an_address_does_not_know_are_refused_with_those_it_knows() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let token = folder.token("operator");
    let server = folder.serve();
    let draft = server.api(&token, "POST", "/drafts", b"").json();
    let draft = format!("/api/v1/drafts/{}", draft["id"].as_str().unwrap());
    for (path, allowed) in [
        ("/", "GET,HEAD"),
        ("/livez", "GET,HEAD"),
        (&*format!("/col/{rep}/doc/a.txt"), "GET,HEAD"),
        (&*format!("/{rep}"), "GET,HEAD"),
        ("/api/v1/labels", "POST"),
        ("/api/v1/items", "GET,HEAD"),
        (&*format!("/api/v1/items/{rep}"), "GET,HEAD,PATCH,DELETE"),
        (&*draft, "GET,HEAD,PATCH,DELETE"),
        (&*format!("{draft}/files/x"), "PUT,DELETE"),
        (&*format!("{draft}/publish"), "POST"),
    ] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "BREW", "get", "PROPFIND"] {
            if allowed.split(',').any(|known| known == method) {
                continue;
            }
            let answer = super::ask(&server.at, method, path, "", b"");
            assert_eq!(answer.status, 405, "{method} {path}");
            let mut told: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
            let mut known: Vec<&str> = allowed.split(',').collect();
            told.sort_unstable();
            known.sort_unstable();
            assert_eq!(told, known, "{method} {path}");
        }
    }
}
