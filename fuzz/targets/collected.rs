//! Feeds bytes to `surfaces::collected`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::collected::run(bytes));
