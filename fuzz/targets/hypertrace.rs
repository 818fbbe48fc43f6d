//! Feeds bytes to `surfaces::hypertrace`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::hypertrace::run(bytes));
