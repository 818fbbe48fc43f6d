//! The bodies of the fuzz targets, one module per untrusted surface.
//!
//! Each module has a `run` that accepts any bytes. It must not panic, must end soon and must use
//! little memory. It also asserts invariants that hold for every input, such as that two ways to
//! read a page agree. Fuzz targets call it with mutated bytes, ordinary tests with committed
//! inputs.

#![forbid(unsafe_code)]

pub mod agent;
pub mod collected;
pub mod ctf;
mod exporting;
pub mod format;
pub mod hypertrace;
mod irqs;
pub mod names;
pub mod page;
pub mod perf_data;
pub mod print_fmt;
mod printing;
pub mod recording;
pub mod sections;
pub mod seeds;
pub mod shared_memory;
pub mod spans;
pub mod symbols;
pub mod text;
pub mod timeline;
pub mod trace_cmd;
pub mod trace_dat;

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A surface: accepts any bytes.
pub type Run = fn(&[u8]);

/// All surfaces by name, which is also the name of the fuzz target and of the folders of seeds and
/// crashes.
pub const ALL: &[(&str, Run)] = &[
    ("page", page::run),
    ("trace_dat", trace_dat::run),
    ("recording", recording::run),
    ("timeline", timeline::run),
    ("sections", sections::run),
    ("format", format::run),
    ("print_fmt", print_fmt::run),
    ("symbols", symbols::run),
    ("names", names::run),
    ("shared_memory", shared_memory::run),
    ("spans", spans::run),
    ("trace_cmd", trace_cmd::run),
    ("agent", agent::run),
    ("hypertrace", hypertrace::run),
    ("collected", collected::run),
    ("text", text::run),
    ("perf_data", perf_data::run),
    ("ctf", ctf::run),
];

/// Measures how long `work` takes. Work that exceeds `limit` runs twice, and the shorter time
/// counts. A busy machine stops a process for seconds, and tests in parallel share the process's
/// CPU time: the lower of wall time and CPU time counts.
pub fn time(limit: Duration, mut work: impl FnMut()) -> Duration {
    let mut once = || {
        let (start, cpu_before) = (Instant::now(), process_cpu_time());
        work();
        start.elapsed().min(process_cpu_time().saturating_sub(cpu_before))
    };
    let took = once();
    if took < limit { took } else { took.min(once()) }
}

/// CPU time of this process.
fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds.saturating_add(Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0)))
}
