//! Feeds bytes to `surfaces::agent`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::agent::run(bytes));
