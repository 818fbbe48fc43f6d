//! Feeds bytes to `surfaces::spans`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::spans::run(bytes));
