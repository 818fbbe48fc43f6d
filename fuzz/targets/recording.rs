//! Feeds bytes to `surfaces::recording`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::recording::run(bytes));
