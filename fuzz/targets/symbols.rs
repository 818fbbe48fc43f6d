//! Feeds bytes to `surfaces::symbols`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::symbols::run(bytes));
