//! Feeds bytes to `surfaces::timeline`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::timeline::run(bytes));
