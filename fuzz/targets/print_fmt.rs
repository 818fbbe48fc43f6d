//! Feeds bytes to `surfaces::print_fmt`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::print_fmt::run(bytes));
