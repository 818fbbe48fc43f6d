//! Feeds bytes to `surfaces::sections`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::sections::run(bytes));
