//! Feeds bytes to `surfaces::trace_dat`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::trace_dat::run(bytes));
