//! Feeds bytes to `surfaces::perf_data`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::perf_data::run(bytes));
