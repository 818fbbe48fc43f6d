//! Feeds bytes to `surfaces::ctf`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| surfaces::ctf::run(bytes));
