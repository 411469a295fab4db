//! Malformed requests: refused, nobody is redirected to a foreign host, and the next client is
//! served.

use super::{Folder, Reply, Resolver, Server, location};

/// Sends raw bytes; the response must be one 4xx, or nothing.
fn refused(server: &Server, name: &str, request: &[u8]) -> Result<(), String> {
    let answer = server.raw(request);
    let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    let wrong = |what: &str| Err(format!("{name}: {what}: {}", text.chars().take(400).collect::<String>()));
    if text.contains("\r\nx-injected") {
        return wrong("a header was injected");
    }
    match Reply::read(&answer) {
        None if answer.is_empty() => Ok(()),
        Some(reply) if (400..500).contains(&reply.status) && reply.header("location").is_empty() => Ok(()),
        Some(_) => wrong("not refused"),
        None => wrong("no answer"),
    }
}

#[test]
fn what_is_malformed_is_refused() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let _archive = resolver.on_line(&folder);
    let long = "a".repeat(100_000);
    let targets: Vec<(&str, String)> = [
        ("half an escape", format!("/{rep}/%4")),
        ("no hex", format!("/{rep}/%zz")),
        ("bytes that are no text", format!("/{rep}%ff%fe")),
        ("an encoded NUL", format!("/{rep}/a%00.txt")),
        ("a NUL in the label", "/%00/%00".to_owned()),
        ("CRLF in the label", format!("/{rep}%0d%0aX-Injected:%20y")),
        ("CRLF in a file", format!("/{rep}/%0d%0aX-Injected:%20y")),
        ("a long path", format!("/{long}")),
        ("a long file", format!("/{rep}/{long}")),
        ("a long query", format!("/{rep}?{long}")),
        ("a long modifier", format!("/{rep}+({long})")),
        ("many modifiers", format!("/{rep}{}", "!".repeat(5000))),
        ("many verbs", format!("/{rep}?ibiurl.verblist={}", "GetMetadata+".repeat(500))),
        ("out of the item", format!("/{rep}/../../etc/passwd")),
        ("out of the item, encoded", format!("/{rep}/%2e%2e/%2e%2e/etc/passwd")),
        ("out of the item, twice", format!("/{rep}/..%2f..%2fetc%2fpasswd")),
        ("a host for a path", "//evil.test/".to_owned()),
        ("a host and a label", format!("//evil.test/{rep}")),
        ("three slashes", format!("///evil.test/{rep}")),
        ("a backslash", format!("/\\evil.test/{rep}")),
        ("a scheme", "/http://evil.test/".to_owned()),
        ("a scheme in a prefix", "/goto/http://evil.test/".to_owned()),
        ("a script", "/javascript:alert(1)".to_owned()),
        ("markup", "/<script>alert(1)</script>".to_owned()),
        ("encoded twice", format!("/{}", rep.replace('/', "%252F"))),
        ("prefixes without end", format!("/{}{rep}", "rep/".repeat(1000))),
        ("a bad value of ours", format!("/{rep}?ibiurl.requireditemstatus=%0d%0a")),
        ("a wrong verb", format!("/{rep}?ibiurl.verblist=%00")),
    ]
    .into();
    let mut wrong: Vec<String> = Vec::new();
    for (name, target) in &targets {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        wrong.extend(refused(&server, name, request.as_bytes()).err());
    }
    let head = "Host: x\r\nConnection: close\r\n\r\n";
    let raw: Vec<(&str, Vec<u8>)> = vec![
        ("a raw NUL", format!("GET /{rep}\0 HTTP/1.1\r\n{head}").into_bytes()),
        ("raw bytes", [b"GET /\xff\xfe HTTP/1.1\r\n", head.as_bytes()].concat()),
        ("a space", format!("GET /{rep} x HTTP/1.1\r\n{head}").into_bytes()),
        ("no host", format!("GET /{rep} HTTP/1.1\r\n\r\n").into_bytes()),
        ("two hosts", format!("GET /{rep} HTTP/1.1\r\nHost: a\r\n{head}").into_bytes()),
        (
            "two lengths",
            format!("GET /{rep} HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 9\r\n{head}").into_bytes(),
        ),
        ("a star", format!("OPTIONS * HTTP/1.1\r\n{head}").into_bytes()),
        ("CONNECT", format!("CONNECT evil.test:80 HTTP/1.1\r\n{head}").into_bytes()),
        ("noise", (0..5000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()),
    ];
    let methods = ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "BREW"];
    let methods = methods.map(|method| (method, format!("{method} /{rep} HTTP/1.1\r\n{head}").into_bytes()));
    for (name, request) in raw.into_iter().chain(methods) {
        wrong.extend(refused(&server, name, &request).err());
    }
    assert_eq!(wrong, [""; 0]);
    // The server keeps running.
    location(&server.get(&format!("/{rep}")));
    let (status, log) = server.stop();
    assert_eq!(status, Some(0));
    assert!(!log.contains("panicked"), "{log}");
}

/// Valid but odd requests lead to the Archive and nowhere else.
#[test]
fn nobody_is_sent_to_a_host_that_a_client_names() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"a.txt", b"one")], &[]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    let here = format!("http://{}/col/{rep}/doc/a.txt", archive.at);
    for (query, after) in [
        ("?x=%0d%0aX-Injected:%20y", "?x=%0d%0aX-Injected:%20y"),
        ("?@evil.test/", "?@evil.test/"),
        ("?//evil.test/&url=http://evil.test", "?//evil.test/&url=http://evil.test"),
        (
            "?url=http://evil.test/&location=http://evil.test/",
            "?url=http://evil.test/&location=http://evil.test/",
        ),
        ("?ibiurl.location=http://evil.test/", ""),
    ] {
        let reply = server.get_with(
            &format!("/{rep}{query}"),
            "X-Forwarded-Host: evil.test\r\nForwarded: host=evil.test\r\n",
        );
        assert_eq!(location(&reply), format!("{here}{after}"));
        assert_eq!(reply.header("x-injected"), "");
    }
    let absolute =
        format!("GET http://evil.test/{rep} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
    assert_eq!(location(&Reply::read(&server.raw(absolute.as_bytes())).unwrap()), here);
    for ibi in [
        "//evil.test/",
        "%2F%2Fevil.test",
        "\\\\evil.test",
        "http://evil.test/",
        "%09//evil.test",
        "/%09/evil.test",
    ] {
        let reply = server.get(&format!("/?ibi={ibi}"));
        let to = reply.header("location");
        assert!(to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\"), "{ibi}: {to}");
    }
}
