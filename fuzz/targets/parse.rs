//! Any bytes as a label.
#![no_main]

mod judge;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        judge::judge(text);
    }
});
