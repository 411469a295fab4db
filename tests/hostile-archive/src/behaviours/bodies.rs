//! Bodies that are no lists of pairs, or too much of one (clause 3.1; R5, R6, R9, R16).

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::question::ArchiveQuestion;
use crate::wire::{framed, good};

pub const BODIES: &[HostileBehaviour] = &[
    behaviour("huge-body", Fails, "3.1 R6", "64 MiB of pairs, with their length", Drives(|_, to| huge(to))),
    behaviour(
        "huge-padding",
        Fails,
        "3.1 R6",
        "a false Original, and 1 MiB of other pairs after it",
        Says(|asked| asked.false_original() + &"padding {some more}\r\n".repeat(50_000)),
    ),
    behaviour(
        "endless-body",
        Fails,
        "3.1 R6",
        "pairs without end, and without a length",
        Drives(|_, to| endless(to)),
    ),
    behaviour(
        "dripping-body",
        Fails,
        "3.1 R7",
        "a false Original, a byte every 50 ms",
        Drives(|asked, to| drip(&good(&asked.false_original()), to)),
    ),
    behaviour(
        "many-pieces",
        Varies,
        "3.1 R7",
        "a false Original with 3,000 other pairs, in pieces of 8 bytes",
        Drives(|asked, to| {
            let body = asked.false_original() + &"a b\r\n".repeat(3000);
            for piece in good(&body).chunks(8) {
                to.write_all(piece)?;
            }
            Ok(())
        }),
    ),
    behaviour(
        "truncated-body",
        Fails,
        "4.2 R16",
        "the first half of a false Original, with the length of all",
        Sends(|asked| half(&good(&asked.false_original()))),
    ),
    behaviour(
        "truncated-to-nothing",
        Fails,
        "4.2 R16",
        "a length of 500 and not one byte: not an empty answer",
        Sends(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n".to_vec()),
    ),
    behaviour(
        "cut-in-braces",
        Fails,
        "3.1 R16",
        "a well framed body that ends within braces",
        Says(|asked| asked.false_original() + "notice {and then"),
    ),
    behaviour(
        "nested-braces",
        Fails,
        "3.1 R6",
        "a false Original and braces 60,000 deep",
        Says(|asked| format!("{}a {}{}\r\n", asked.false_original(), "{".repeat(60_000), "}".repeat(60_000))),
    ),
    behaviour(
        "only-opening-braces",
        Fails,
        "3.1 R6",
        "250,000 braces that are never closed",
        Says(|_| "{".repeat(250_000)),
    ),
    behaviour(
        "closing-braces-first",
        Fails,
        "3.1 R6",
        "braces that close nothing, before a false Original",
        Says(|asked| format!("}}}}}} {}", asked.false_original())),
    ),
    behaviour(
        "nul-in-url",
        Fails,
        "4.2 R5",
        "a NUL in the URL of a false Original",
        Says(|asked| asked.claim("Original", &format!("http://{}/a\0b", asked.me.address))),
    ),
    behaviour(
        "control-bytes",
        Varies,
        "3.1 R5",
        "control bytes around and in the values of a false Original",
        Says(|asked| asked.false_original().replace("Original", "\u{1}Original\u{7f}")),
    ),
    behaviour(
        "bytes-not-ascii",
        Varies,
        "3.1 R9",
        "bytes of ISO 8859-1 and broken UTF-8 in a false Original",
        Keeps(|asked| {
            let mut body = b"title {S\xe3o Jos\xe9 \xff\xfe\xc3}\r\n".to_vec();
            body.extend(asked.false_original().bytes());
            framed("200 OK", "", &body)
        }),
    ),
    behaviour("noise", Fails, "3.1 R6", "4 KiB of noise", Keeps(|asked| framed("200 OK", "", &noise(asked)))),
    behaviour(
        "a-page",
        Fails,
        "3.1",
        "a page of HTML with a script, as pairs",
        Says(|_| "<!DOCTYPE html><html><script>alert(1)</script></html>".to_owned()),
    ),
    behaviour(
        "json",
        Fails,
        "3.1",
        "a JSON object with a URL",
        Says(|asked| format!("{{\"ibi\":\"{}\",\"url\":\"{}\"}}", asked.label, asked.own_url())),
    ),
    behaviour(
        "white-space",
        Nothing,
        "3.4",
        "10 KiB of white space: an empty answer",
        Says(|_| " \r\n\t".repeat(3000)),
    ),
    behaviour(
        "name-without-value",
        Fails,
        "3.1",
        "a false Original that ends in a name without a value",
        Says(|asked| asked.false_original() + "urlkey.second"),
    ),
    behaviour(
        "thousands-of-pairs",
        Fails,
        "3.1 R6",
        "a false Original among 20,000 pairs",
        Says(|asked| asked.false_original() + &"a {}\r\n".repeat(20_000)),
    ),
    behaviour(
        "long-name",
        Varies,
        "3.1 R6",
        "a false Original after a name of 100,000 bytes",
        Says(|asked| format!("{} x\r\n{}", "n".repeat(100_000), asked.false_original())),
    ),
    behaviour(
        "duplicated-pairs",
        Varies,
        "3.1",
        "every pair twice, first of another item at another host",
        Says(|asked| {
            let other = asked.claim("Original", "http://elsewhere.test/lie");
            other.replace(&asked.label, &asked.me.victim_label) + &asked.false_original()
        }),
    ),
];

fn huge(to: &mut TcpStream) -> io::Result<()> {
    write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 64 << 20)?;
    let part = b"a b\r\n".repeat(16 * 1024);
    for _ in 0..(64 << 20) / part.len() {
        to.write_all(&part)?;
    }
    Ok(())
}

/// Until whoever reads it has enough.
fn endless(to: &mut TcpStream) -> io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
    loop {
        to.write_all(&b"a b\r\n".repeat(1024))?;
    }
}

/// Byte by byte, for 15 s at most.
pub(super) fn drip(bytes: &[u8], to: &mut TcpStream) -> io::Result<()> {
    for byte in bytes.iter().take(300) {
        to.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

pub(super) fn half(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len() / 2].to_vec()
}

fn noise(asked: &ArchiveQuestion<'_>) -> Vec<u8> {
    let seed = (asked.number as u32).wrapping_mul(40_503);
    (1..4096_u32).map(|n| (n.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
