//! What the fuzz targets do with bytes, one module per untrusted surface.
//!
//! Each module has a `run` that takes any bytes. It must not panic, must end soon and must take
//! little memory; beyond that it asserts what holds for every input, such as that two ways to read
//! a page agree. The fuzz targets call it with mutated bytes, ordinary tests with kept ones.

#![forbid(unsafe_code)]

pub mod agent;
pub mod collected;
mod exporting;
pub mod format;
pub mod hypertrace;
pub mod page;
pub mod print_fmt;
mod printing;
pub mod recording;
pub mod sections;
pub mod seeds;
pub mod shared_memory;
pub mod spans;
pub mod symbols;
pub mod timeline;
pub mod trace_cmd;
pub mod trace_dat;

use std::time::{Duration, Instant};

/// A surface: takes any bytes.
pub type Run = fn(&[u8]);

/// All surfaces by name: that of their fuzz target and of the folders of their seeds and crashes.
pub const ALL: [(&str, Run); 14] = [
    ("page", page::run),
    ("trace_dat", trace_dat::run),
    ("recording", recording::run),
    ("timeline", timeline::run),
    ("sections", sections::run),
    ("format", format::run),
    ("print_fmt", print_fmt::run),
    ("symbols", symbols::run),
    ("shared_memory", shared_memory::run),
    ("spans", spans::run),
    ("trace_cmd", trace_cmd::run),
    ("agent", agent::run),
    ("hypertrace", hypertrace::run),
    ("collected", collected::run),
];

/// How long `work` takes; what takes longer than `limit` is done twice and the shorter time is reported,
/// because a busy machine stops a process for seconds.
pub fn time(limit: Duration, mut work: impl FnMut()) -> Duration {
    let mut once = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let took = once();
    if took < limit { took } else { took.min(once()) }
}
