//! Any bytes as a label, judged by the second reader of the tests.
#![no_main]

#[path = "../../crates/ibi-id/tests/all/judge.rs"]
mod judge;
#[path = "../../crates/ibi-id/tests/all/norm.rs"]
#[allow(dead_code)]
mod norm;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        judge::judge(text);
    }
});
