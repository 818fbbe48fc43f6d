//! Feeds bytes to `surfaces::format`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::format::run(bytes));
