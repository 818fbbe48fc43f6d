//! Feeds bytes to `surfaces::page`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::page::run(bytes));
