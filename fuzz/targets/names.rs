//! Feeds bytes to `surfaces::names`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::names::run(bytes));
