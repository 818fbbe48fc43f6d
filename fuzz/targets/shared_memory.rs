//! Feeds bytes to `surfaces::shared_memory`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::shared_memory::run(bytes));
