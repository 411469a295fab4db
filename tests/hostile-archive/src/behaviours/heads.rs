//! Status lines, header lines and redirects (4.2 step 2; R8).

use super::behaviour;
use super::bodies::drip;
use super::framing::{forever, wait, with_headers};
use crate::behaviour::{BehaviourEffect, BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::ArchiveQuestion;
use crate::wire::{framed, good};
use std::io::Write as _;

const fn status(
    name: &'static str,
    effect: BehaviourEffect,
    does: &'static str,
    send: fn(&ArchiveQuestion<'_>) -> Vec<u8>,
) -> HostileBehaviour {
    behaviour(name, effect, "3.4 R8", does, Keeps(send))
}

/// A false Original under another status.
fn under(asked: &ArchiveQuestion<'_>, status: &str, headers: &str) -> Vec<u8> {
    framed(status, headers, asked.false_original().as_bytes())
}

pub const HEADS: &[HostileBehaviour] = &[
    status("redirect-to-itself", Fails, "301 to itself, without end", |asked| {
        under(asked, "301 Moved Permanently", &format!("Location: http://{}/\r\n", asked.me.address))
    }),
    status("redirect-to-another", Fails, "302 to another Archive's service", |asked| {
        let victim = format!("http://{}/{}", asked.me.victim, asked.me.victim_service);
        under(
            asked,
            "302 Found",
            &format!("Location: {victim}?servicesubject=inclusionConfirmationRequest\r\n"),
        )
    }),
    status("redirect-to-the-resolver", Fails, "307 to the resolver", |asked| {
        let resolver = format!("http://{}/{}", asked.me.resolver, asked.label);
        under(asked, "307 Temporary Redirect", &format!("Location: {resolver}\r\n"))
    }),
    status("redirect-to-a-file", Fails, "308 to a file of the resolver's machine", |asked| {
        under(asked, "308 Permanent Redirect", "Location: file:///etc/passwd\r\n")
    }),
    status("status-204", Fails, "204: no content is not an empty answer", |_| {
        b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()
    }),
    status("status-206", Fails, "206 with a part", |asked| under(asked, "206 Partial Content", "")),
    status("status-304", Fails, "304: not changed since never", |_| {
        b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()
    }),
    status("status-400", Fails, "400 with a false Original", |asked| under(asked, "400 Bad Request", "")),
    status("status-404", Fails, "404 instead of an empty answer", |_| framed("404 Not Found", "", b"")),
    status("status-500", Fails, "500 with a false Original", |asked| {
        under(asked, "500 Internal Server Error", "")
    }),
    status("status-503", Fails, "503, come again in 10^20 s", |_| {
        framed("503 Service Unavailable", "Retry-After: 100000000000000000000\r\n", b"")
    }),
    status("status-999", Fails, "999 with a false Original", |asked| under(asked, "999 Fine", "")),
    status("status-that-is-none", Fails, "a status of letters", |asked| under(asked, "abc OK", "")),
    status("switching-protocols", Fails, "101 and then a false Original", |asked| {
        let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: lie\r\nConnection: upgrade\r\n\r\n";
        [&head[..], &good(&asked.false_original())].concat()
    }),
    status("some-interim-answers", Varies, "three interim answers and a false Original", |asked| {
        let head = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(3);
        [head, good(&asked.false_original())].concat()
    }),
    behaviour(
        "interim-answers-without-end",
        Fails,
        "R8",
        "100 Continue without end",
        Drives(|_, to| forever(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), to)),
    ),
    behaviour(
        "early-hints-without-end",
        Fails,
        "R8",
        "103 with links without end",
        Drives(|_, to| {
            let hint = b"HTTP/1.1 103 Early Hints\r\nLink: <http://elsewhere.test/>\r\n\r\n";
            forever(&hint.repeat(500), to)
        }),
    ),
    behaviour(
        "huge-header",
        Fails,
        "R8",
        "a header line of 1 MiB",
        Drives(|asked, to| to.write_all(&with_headers(asked, &format!("X: {}\r\n", "y".repeat(1 << 20))))),
    ),
    behaviour(
        "thousands-of-headers",
        Fails,
        "R8",
        "10,000 header lines",
        Sends(|asked| with_headers(asked, &(0..10_000).map(|n| format!("X{n}: y\r\n")).collect::<String>())),
    ),
    behaviour(
        "head-without-end",
        Fails,
        "R8",
        "header lines without end",
        Drives(|_, to| {
            to.write_all(b"HTTP/1.1 200 OK\r\n")?;
            forever(&b"X-More: and more\r\n".repeat(100), to)
        }),
    ),
    behaviour(
        "dripping-head",
        Fails,
        "R7",
        "a byte of the head every 50 ms",
        Drives(|asked, to| drip(&with_headers(asked, &"X-More: and more\r\n".repeat(20)), to)),
    ),
    behaviour(
        "head-cut-off",
        Fails,
        "R16",
        "half a status line, and the end",
        Sends(|_| b"HTTP/1.1 20".to_vec()),
    ),
    behaviour(
        "half-a-head-and-silence",
        Fails,
        "R7",
        "half a status line, and nothing more",
        Drives(|_, to| {
            to.write_all(b"HTTP/1.1 200 O")?;
            wait()
        }),
    ),
    status("header-without-colon", Fails, "a header line without a colon", |asked| {
        with_headers(asked, "X-No-Colon\r\n")
    }),
    status("header-with-control-bytes", Fails, "a NUL in the name of a header", |asked| {
        with_headers(asked, "X-\0Injected: y\r\n")
    }),
    status("header-folded", Varies, "a folded header line with another length", |asked| {
        with_headers(asked, "X-Folded: a\r\n Content-Length: 0\r\n")
    }),
    status("space-before-colon", Varies, "a space after the name of a second length", |asked| {
        with_headers(asked, "Content-Length : 0\r\n")
    }),
    status("line-feeds-only", Varies, "lines that end in LF alone", |asked| {
        let body = asked.false_original();
        format!("HTTP/1.1 200 OK\nContent-Length: {}\n\n{body}", body.len()).into_bytes()
    }),
    status("type-html", Varies, "a false Original as a page", |asked| {
        let body = asked.false_original();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        (head + &body).into_bytes()
    }),
    status("type-utf-16", Varies, "says UTF-16 and sends ASCII", |asked| {
        let body = asked.false_original();
        let kind = "Content-Type: text/plain; charset=utf-16";
        format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }),
    status("location-and-refresh", Varies, "200 with Location, Refresh and cookies elsewhere", |asked| {
        let there = "http://elsewhere.test/";
        let headers =
            format!("Location: {there}\r\nRefresh: 0;url={there}\r\nSet-Cookie: a=b; Domain=test\r\n");
        with_headers(asked, &headers)
    }),
    behaviour(
        "http-0.9",
        Fails,
        "R8",
        "a false Original without a head, and the end",
        Sends(|asked| asked.false_original().into_bytes()),
    ),
    behaviour(
        "http-9.9",
        Fails,
        "R8",
        "a version that is none",
        Sends(|asked| {
            let answer = String::from_utf8_lossy(&good(&asked.false_original())).into_owned();
            answer.replacen("HTTP/1.1", "HTTP/9.9", 1).into_bytes()
        }),
    ),
    behaviour(
        "http-2",
        Fails,
        "R8",
        "settings of HTTP/2",
        Greets(|_, to| {
            to.write_all(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")?;
            wait()
        }),
    ),
    behaviour(
        "tls",
        Fails,
        "R8",
        "an alert of TLS",
        Greets(|_, to| to.write_all(b"\x15\x03\x03\x00\x02\x02\x28")),
    ),
    behaviour(
        "ssh",
        Fails,
        "R8",
        "the greeting of another service",
        Greets(|_, to| {
            to.write_all(b"SSH-2.0-OpenSSH_9.9\r\n")?;
            wait()
        }),
    ),
];
