//! Workloads that plant a cause of slowness, or none, for recordings whose cause is known.
//!
//! Each runs for a time and prints one line of JSON: how often it did its thing, and how long that took. Threads have no names
//! of their own, for a recording must not tell its cause.

mod exits;
mod interprocessor;
mod lock;
mod memory;
mod options;
mod output;
mod pace;
mod processor;

use std::io;

use serde_json::Value;

use self::options::PlantOptions;

/// Runs the workload that the first argument names, with `WORD=NUMBER` for each option.
///
/// # Errors
/// When there is no such workload or option, or the machine can't run it.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let kind = arguments.next().unwrap_or_default();
    let mut options = PlantOptions::read(arguments)?;
    let counted = start(&kind, &mut options)?;
    println!("{counted}");
    Ok(())
}

fn start(kind: &str, options: &mut PlantOptions) -> io::Result<Value> {
    match kind {
        "busy" => processor::busy(options),
        "sleeps" => processor::sleeps(options),
        "clock" => processor::clock(options),
        "lock" => lock::contended(options),
        "touch" => memory::touch(options),
        "unmap" => memory::unmap(options),
        "cpuid" | "hypercall" | "msr" | "mmio" | "port" => exits::storm(kind, options),
        "remote" => interprocessor::remote(options),
        "wake" => interprocessor::wake(options),
        "serial" => output::serial(options),
        "disk" => output::disk(options),
        "packets" => output::packets(options),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no workload is called {kind:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(words: &str) -> io::Result<Value> {
        let mut words = words.split(' ').map(str::to_owned);
        let kind = words.next().unwrap_or_default();
        start(&kind, &mut PlantOptions::read(words)?)
    }

    #[test]
    fn workloads_count_what_they_did() {
        for words in [
            "busy ms=20 duty=50 period-us=2000",
            "sleeps ms=20 us=500",
            "clock ms=20",
            "lock ms=20 threads=3 hold-us=100",
            "unmap ms=20 mib=1",
            "touch mib=1 ms=5",
        ] {
            let counted = counted(words).unwrap();
            assert!(counted["count"].as_u64().unwrap() > 0, "{words}: {counted}");
        }
    }

    #[test]
    fn contention_for_a_lock_is_counted() {
        let waited = counted("lock ms=100 threads=4 hold-us=500").unwrap();
        assert!(waited["waited_ns"].as_u64().unwrap() > 0, "{waited}");
    }

    #[test]
    fn unknown_workloads_and_options_are_refused() {
        assert!(counted("dance ms=1").is_err());
        assert!(counted("busy ms=1 rhythm=3").is_err());
        assert!(counted("busy duty=50").is_err(), "without a time it would never end");
    }
}
