//! Feeds bytes to `surfaces::text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::text::run(bytes));
