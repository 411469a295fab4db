//! Lengths, chunks and further answers that do not fit the body (R8, R16, W3).

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::behaviour;
use super::bodies::half;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::ArchiveQuestion;
use crate::wire::good;

pub const FRAMING: &[HostileBehaviour] = &[
    behaviour(
        "length-too-long",
        Fails,
        "4.2 R7 R16",
        "a length of a byte more than it sends, and the connection stays open",
        Drives(|asked, to| {
            let body = asked.false_original();
            write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len() + 1)?;
            wait()
        }),
    ),
    behaviour(
        "length-too-short",
        Varies,
        "R8 W3",
        "a length of half the body: the rest looks like the beginning of the next answer",
        Keeps(|asked| {
            let body = asked.false_original();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len() / 2).into_bytes()
        }),
    ),
    behaviour(
        "lengths-that-differ",
        Fails,
        "R8 W3",
        "two lengths, of nothing and of the body",
        Keeps(|asked| with_headers(asked, "Content-Length: 0\r\n")),
    ),
    behaviour(
        "length-negative",
        Fails,
        "R8",
        "a length below zero",
        Sends(|asked| headed(asked, "Content-Length: -1\r\n")),
    ),
    behaviour(
        "length-overflow",
        Fails,
        "R6 R8",
        "a length of 2^64 + 5",
        Sends(|asked| headed(asked, "Content-Length: 18446744073709551621\r\n")),
    ),
    behaviour(
        "length-enormous",
        Fails,
        "R6 R16",
        "a length of 2^62 for a small body",
        Sends(|asked| headed(asked, "Content-Length: 4611686018427387904\r\n")),
    ),
    behaviour(
        "length-no-number",
        Fails,
        "R8",
        "a length of 0x10 and a plus",
        Sends(|asked| headed(asked, "Content-Length: +0x10\r\n")),
    ),
    behaviour(
        "length-and-chunks",
        Varies,
        "R8 W3",
        "both a length and chunks, of different answers",
        Keeps(|asked| {
            let body = chunked(&[&asked.claim("Copy", &asked.own_url())]);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
            [head.as_bytes(), &body].concat()
        }),
    ),
    behaviour(
        "endless-chunks",
        Fails,
        "R6",
        "chunks without end",
        Drives(|_, to| {
            to.write_all(CHUNKED)?;
            loop {
                to.write_all(&b"5\r\na b\r\n\r\n".repeat(500))?;
            }
        }),
    ),
    behaviour(
        "truncated-chunks",
        Fails,
        "R16",
        "a false Original in chunks without the last one",
        Sends(|asked| {
            let body = chunked(&[&asked.false_original()]);
            [CHUNKED, &body[..body.len() - 5]].concat()
        }),
    ),
    behaviour(
        "truncated-chunk",
        Fails,
        "R16",
        "a chunk that is half there",
        Sends(|asked| [CHUNKED, &half(&chunked(&[&asked.false_original()]))].concat()),
    ),
    behaviour(
        "chunk-size-that-is-none",
        Fails,
        "R8",
        "a chunk of the size `zz`",
        Sends(|asked| [CHUNKED, b"zz\r\n", asked.false_original().as_bytes(), b"\r\n0\r\n\r\n"].concat()),
    ),
    behaviour(
        "chunk-size-overflow",
        Fails,
        "R6 R8",
        "a chunk of 2^80 bytes",
        Sends(|asked| [CHUNKED, b"100000000000000000000\r\n", asked.false_original().as_bytes()].concat()),
    ),
    behaviour(
        "chunk-extensions",
        Fails,
        "R8",
        "an extension of 1 MiB after the size of a chunk",
        Drives(|asked, to| {
            to.write_all(CHUNKED)?;
            let body = asked.false_original();
            write!(to, "{:x};a={}\r\n{body}\r\n0\r\n\r\n", body.len(), "b".repeat(1 << 20))
        }),
    ),
    behaviour(
        "trailers",
        Varies,
        "R8",
        "a false Original in chunks, and trailers with another length and location",
        Keeps(|asked| {
            let body = chunked(&[&asked.false_original()]);
            let trailers = b"Content-Length: 0\r\nLocation: http://elsewhere.test/\r\n\r\n";
            [CHUNKED, &body[..body.len() - 2], trailers].concat()
        }),
    ),
    behaviour(
        "trailers-without-end",
        Fails,
        "R8",
        "a false Original in chunks, and trailers that do not end",
        Drives(|asked, to| {
            let body = chunked(&[&asked.false_original()]);
            to.write_all(&[CHUNKED, &body[..body.len() - 2]].concat())?;
            loop {
                to.write_all(&b"X-More: and more\r\n".repeat(100))?;
            }
        }),
    ),
    behaviour(
        "bytes-one-a-chunk",
        Varies,
        "R7",
        "a false Original with every byte in a chunk of its own",
        Keeps(|asked| {
            let body = asked.false_original();
            let bytes: Vec<&str> = (0..body.len()).map(|at| body.get(at..=at).unwrap_or("?")).collect();
            [CHUNKED, &chunked(&bytes)].concat()
        }),
    ),
    behaviour(
        "second-answer",
        Varies,
        "R8 W3",
        "holds nothing, and sends a false Original behind it for whatever is asked next",
        Keeps(|asked| [good(""), good(&asked.false_original())].concat()),
    ),
    behaviour(
        "second-answer-later",
        Varies,
        "R8 W3",
        "the same, 20 ms later, when the connection may be in use again",
        Drives(|asked, to| {
            to.write_all(&good(""))?;
            std::thread::sleep(Duration::from_millis(20));
            to.write_all(&good(&asked.false_original()))?;
            wait()
        }),
    ),
    behaviour(
        "answer-before-the-question",
        Varies,
        "R8 W3",
        "sends an empty answer as soon as it is connected: it may come before the question or after",
        Greets(|_, to| {
            to.write_all(&good(""))?;
            wait()
        }),
    ),
];

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Holds a connection for longer than any resolution takes.
pub(super) fn wait() -> io::Result<()> {
    std::thread::sleep(Duration::from_secs(12));
    Ok(())
}

fn chunked(parts: &[&str]) -> Vec<u8> {
    let chunks = parts.iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len()));
    (chunks.collect::<String>() + "0\r\n\r\n").into_bytes()
}

/// A false Original with these header lines and no others.
fn headed(asked: &ArchiveQuestion<'_>, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n{}", asked.false_original()).into_bytes()
}

/// A false Original with its length and these header lines.
pub(super) fn with_headers(asked: &ArchiveQuestion<'_>, headers: &str) -> Vec<u8> {
    crate::wire::framed("200 OK", headers, asked.false_original().as_bytes())
}

/// Sends a part over and over, until nobody reads any more.
pub(super) fn forever(part: &[u8], to: &mut TcpStream) -> io::Result<()> {
    loop {
        to.write_all(part)?;
    }
}
