//! Feeds bytes to `surfaces::trace_cmd`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::trace_cmd::run(bytes));
