//! Compressed bodies, for which nobody asked (R8).

use std::sync::OnceLock;

use super::behaviour;
use crate::behaviour::{BehaviourEffect::*, HostileAct::*, HostileBehaviour};
use crate::wire::framed;

pub const COMPRESSION: &[HostileBehaviour] = &[
    behaviour(
        "gzip-bomb",
        Fails,
        "R8",
        "32 MiB of zeros by gzip, in 200 KiB",
        Keeps(|_| framed("200 OK", "Content-Encoding: gzip\r\n", &gzip_bomb())),
    ),
    behaviour(
        "deflate-bomb",
        Fails,
        "R8",
        "the same by deflate",
        Keeps(|_| {
            let bomb = [vec![0x78, 0x9c], deflated_zeros(), vec![0; 4]].concat();
            framed("200 OK", "Content-Encoding: deflate\r\n", &bomb)
        }),
    ),
    behaviour(
        "brotli-garbage",
        Fails,
        "R8",
        "bytes that are said to be of Brotli",
        Keeps(|_| framed("200 OK", "Content-Encoding: br\r\n", &[0xcf; 4096])),
    ),
    behaviour(
        "gzip-transfer",
        Fails,
        "R8",
        "a transfer encoding of gzip and chunks",
        Sends(|_| {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\n\x1f\x8b\x08\x00\r\n0\r\n\r\n";
            head.to_vec()
        }),
    ),
    behaviour(
        "encodings-on-encodings",
        Fails,
        "R8",
        "a hundred encodings, one over the other",
        Keeps(|_| {
            let encodings = format!("Content-Encoding: {}gzip\r\n", "gzip, ".repeat(99));
            framed("200 OK", &encodings, &deflated_zeros())
        }),
    ),
    behaviour(
        "encoding-that-is-none",
        Varies,
        "R8",
        "a plain false Original that is said to be gzip",
        Keeps(|asked| framed("200 OK", "Content-Encoding: gzip\r\n", asked.false_original().as_bytes())),
    ),
];

pub(super) fn gzip_bomb() -> Vec<u8> {
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    bomb.extend(deflated_zeros());
    // Whoever unpacks it is done for before the checksum.
    bomb.extend([0; 8]);
    bomb
}

/// A block of fixed codes (RFC 1951): a zero, then 130,000 times `258 bytes from one byte before`.
fn deflated_zeros() -> Vec<u8> {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(deflate_zeros).clone()
}

fn deflate_zeros() -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::with_capacity(1_700_000);
    // The last block, with fixed codes; codes are written from their highest bit on.
    bits.extend([1, 1, 0]);
    bits.extend([0, 0, 1, 1, 0, 0, 0, 0]);
    for _ in 0..130_000 {
        bits.extend([1, 1, 0, 0, 0, 1, 0, 1]);
        bits.extend([0; 5]);
    }
    bits.extend([0; 7]);
    bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | bit)).collect()
}
