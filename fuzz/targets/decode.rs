//! Digits of the two opaque forms, and texts of instants: the first byte says which, the others
//! choose digits, so that nearly every input gets as far as the arithmetic.
#![no_main]

#[path = "../../crates/ibi-id/tests/all/judge.rs"]
mod judge;
#[path = "../../crates/ibi-id/tests/all/norm.rs"]
#[allow(dead_code)]
mod norm;

use ibi_id::Instant;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, digits)) = data.split_first() else { return };
    let spell = |alphabet: &[u8]| -> String {
        digits.iter().map(|&c| char::from(alphabet[usize::from(c) % alphabet.len()])).collect()
    };
    match kind % 3 {
        0 => judge::judge(&spell(b"23456789ABCDEFGHJKLMNPQRSTU/WX")),
        1 => judge::judge(&spell(b"23456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUV/Z")),
        _ => {
            let text = spell(b"0123456789-:.+TZ");
            if let Ok(at) = text.parse::<Instant>() {
                assert_eq!(at.to_string().parse(), Ok(at));
                assert_eq!(at.unix().to_string().parse(), Ok(at));
            }
        }
    }
});
