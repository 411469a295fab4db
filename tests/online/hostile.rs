//! Malformed requests: each is refused, and the next client is served.

use super::{Folder, Reply, Server};

const END: &str = "Host: x\r\nConnection: close\r\n\r\n";

/// Whether it was refused: a 4xx first, or no response; and nothing after it.
fn refused(server: &Server, name: &str, request: &[u8]) -> Result<(), String> {
    let answer = server.raw(request);
    let status = Reply::read(&answer).map(|reply| reply.status);
    let text = String::from_utf8_lossy(&answer);
    let answers = text.matches("HTTP/1.").count();
    if text.to_ascii_lowercase().contains("\r\nx-injected") {
        return Err(format!("{name}: a header was injected: {text}"));
    }
    match status {
        None if answer.is_empty() => Ok(()),
        Some(400..=499) if answers == 1 => Ok(()),
        _ => Err(format!("{name}: {status:?}, {answers} answers")),
    }
}

/// Sends all of them, and fails if any was not refused.
fn corpus(requests: &[(&str, Vec<u8>)]) {
    let folder = Folder::new();
    let server = folder.serve();
    let mut wrong = Vec::new();
    for (name, request) in requests {
        wrong.extend(refused(&server, name, request).err());
        assert_eq!(server.get("/readyz").text(), "ready\n", "after {name}");
    }
    assert_eq!(wrong, [""; 0]);
    assert!(!server.log().contains("panicked"));
    assert_eq!(server.stop().0, Some(0));
}

/// A request for an existing resource, so that only its form can be refused.
fn live(headers: &str) -> Vec<u8> {
    format!("GET /livez HTTP/1.1\r\n{headers}\r\n").into_bytes()
}

/// Threat W3: ambiguous lengths.
#[test]
fn a_length_that_can_be_read_in_two_ways_is_refused() {
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let with = |headers: &str, body: &str| {
        format!("GET /livez HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}").into_bytes()
    };
    corpus(&[
        ("two lengths", with("Content-Length: 0\r\nContent-Length: 36\r\n", smuggled)),
        ("a list of lengths", with("Content-Length: 0, 36\r\n", smuggled)),
        ("a signed length", with("Content-Length: +0\r\n", smuggled)),
        ("a negative length", with("Content-Length: -1\r\n", smuggled)),
        ("a length in hex", with("Content-Length: 0x10\r\n", smuggled)),
        ("a length beyond all", with("Content-Length: 99999999999999999999999\r\n", smuggled)),
        ("unknown coding", with("Transfer-Encoding: xchunked\r\n", &format!("0\r\n\r\n{smuggled}"))),
        (
            "chunked is not last",
            with("Transfer-Encoding: chunked, identity\r\n", &format!("0\r\n\r\n{smuggled}")),
        ),
        ("two codings", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n")),
        (
            "chunks in HTTP/1.0",
            format!(
                "GET /livez HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
            )
            .into_bytes(),
        ),
    ]);
}

/// Threat W3: what RFC 9112 lets a server accept (§2.2, §6.3) has one interpretation: one response,
/// and with two lengths the connection is closed, so that nothing can be smuggled.
#[test]
fn what_others_may_read_in_another_way_gets_one_answer() {
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let head = "GET /livez HTTP/1.1\r\nHost: x\r\n";
    let folder = Folder::new();
    let server = folder.serve();
    for request in [
        format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"),
        format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{smuggled}"),
        "GET /livez HTTP/1.1\nHost: x\nConnection: close\n\n".to_owned(),
        "GET /livez HTTP/1.1\r\nHost: x\nX-Injected: y\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        let answer = String::from_utf8_lossy(&server.raw(request.as_bytes())).into_owned();
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("x-injected"), "{answer}");
    }
    corpus(&[(
        "a bare CR",
        b"GET /livez HTTP/1.1\r\nHost: x\rX-Injected: y\r\nConnection: close\r\n\r\n".to_vec(),
    )]);
}

/// Threat W3.
#[test]
fn a_host_is_named_once_and_is_one() {
    corpus(&[
        ("none", live("Connection: close\r\n")),
        ("two", live("Host: a\r\nHost: b\r\nConnection: close\r\n")),
        ("the same twice", live("Host: a\r\nHost: a\r\nConnection: close\r\n")),
        ("no host", live("Host: a b/<script>@c\r\nConnection: close\r\n")),
        ("a space before the colon", live("Host : x\r\nConnection: close\r\n")),
        ("folded", live("Host: x\r\n y\r\nConnection: close\r\n")),
    ]);
}

/// RFC 9112 §3.2.2: the absolute form is accepted, and its host is ignored.
#[test]
fn the_absolute_form_is_answered_as_any_other() {
    let folder = Folder::new();
    let rep = folder.deposit(&[(b"index.html", b"one")], &[]);
    let server = folder.serve();
    for path in [
        "/livez".to_owned(),
        format!("/col/{rep}"),
        format!("/col/{rep}/doc"),
        format!("/{rep}"),
        "/none".to_owned(),
    ] {
        let plain = server.get(&path);
        let absolute = server.raw(format!("GET http://evil.example{path} HTTP/1.1\r\n{END}").as_bytes());
        assert!(!String::from_utf8_lossy(&absolute).contains("evil"), "{path}");
        let absolute = Reply::read(&absolute).unwrap();
        assert_eq!(
            (absolute.status, absolute.header("location")),
            (plain.status, plain.header("location")),
            "{path}"
        );
        assert_eq!(
            server.get_with(&path, "X-Forwarded-Host: evil.example\r\n").header("location"),
            plain.header("location")
        );
    }
}

#[test]
fn what_is_no_request_at_all_is_refused() {
    corpus(&[
        ("HTTP/0.9", b"GET /livez\r\n\r\n".to_vec()),
        ("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("HTTP/3.0", format!("GET /livez HTTP/3.0\r\n{END}").into_bytes()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec()),
        ("a NUL in the path", format!("GET /\0 HTTP/1.1\r\n{END}").into_bytes()),
        ("a NUL in a header", live("Host: x\r\nX: a\0b\r\nConnection: close\r\n")),
        ("bytes in the path", [b"GET /\xff\xfe HTTP/1.1\r\n", END.as_bytes()].concat()),
        ("a space in the path", format!("GET /li vez HTTP/1.1\r\n{END}").into_bytes()),
        ("no path", format!("GET  HTTP/1.1\r\n{END}").into_bytes()),
        ("noise", super::bytes(5000)),
        ("CONNECT", format!("CONNECT evil:80 HTTP/1.1\r\n{END}").into_bytes()),
        ("a star", format!("OPTIONS * HTTP/1.1\r\n{END}").into_bytes()),
    ]);
}

#[test]
fn what_is_too_much_is_refused() {
    let many = "X: y\r\n".repeat(2000);
    let long = "a".repeat(100_000);
    corpus(&[
        ("a long header", live(&format!("X: {long}\r\n{}", &END[..END.len() - 2]))),
        ("many headers", live(&format!("{many}{}", &END[..END.len() - 2]))),
        ("a long path", format!("GET /{long} HTTP/1.1\r\n{END}").into_bytes()),
        ("a long query", format!("GET /api/v1/items?after={long} HTTP/1.1\r\n{END}").into_bytes()),
        ("a long method", format!("{long} / HTTP/1.1\r\n{END}").into_bytes()),
    ]);
}
