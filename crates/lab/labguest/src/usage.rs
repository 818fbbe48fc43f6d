//! Reads what this machine's threads, interrupts and guests have used so far.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use labguest::wire::{ThreadUsage, Usage};

/// KVM's folder of counters for each guest.
const KVM: &str = "/sys/kernel/debug/kvm";
/// KVM's counters of exits and interrupts.
const COUNTERS: [&str; 8] = [
    "exits",
    "halt_exits",
    "io_exits",
    "irq_exits",
    "irq_injections",
    "mmio_exits",
    "pf_fixed",
    "signal_exits",
];

/// Prints the usage as JSON.
pub(crate) fn run() -> io::Result<()> {
    println!("{}", serde_json::to_string(&now()?)?);
    Ok(())
}

/// The current usage.
pub(crate) fn now() -> io::Result<Usage> {
    Ok(Usage {
        at_ns: sys::clock_ns(sys::ClockId::Boottime),
        threads: threads()?,
        interrupts: interrupts(&fs::read_to_string("/proc/interrupts")?),
        kvm: kvm(),
    })
}

fn threads() -> io::Result<Vec<ThreadUsage>> {
    let mut threads = Vec::new();
    for process in numbered(Path::new("/proc"))? {
        let path = Path::new("/proc").join(process.to_string());
        let name = text(&path.join("comm"));
        // A process that has ended meanwhile has no threads.
        for tid in numbered(&path.join("task")).unwrap_or_default() {
            threads.extend(thread(&path.join("task").join(tid.to_string()), tid, &name));
        }
    }
    Ok(threads)
}

fn thread(path: &Path, tid: u32, process: &str) -> Option<ThreadUsage> {
    let schedstat = text(&path.join("schedstat"));
    let cpu_ns = schedstat.split_whitespace().next()?.parse().ok()?;
    let status = text(&path.join("status"));
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let sleeps = sleeps.and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    let thread = text(&path.join("comm"));
    Some(ThreadUsage { tid, process: process.to_owned(), thread, cpu_ns, sleeps })
}

/// Entries of a folder that are numbers.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(folder)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

/// Sums over CPUs, by the last word of each line: the device, or the type of interrupt.
pub(crate) fn interrupts(table: &str) -> BTreeMap<String, u64> {
    let mut lines = table.lines();
    let processors = lines.next().map_or(0, |head| head.split_whitespace().count());
    let mut sums = BTreeMap::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let counts = words.clone().take(processors);
        let count: u64 = counts.filter_map(|word| word.parse::<u64>().ok()).sum();
        let is_number = first.trim_end_matches(':').parse::<u32>().is_ok();
        let name = if is_number { words.last() } else { Some(first.trim_end_matches(':')) };
        *sums.entry(name.unwrap_or(first).to_owned()).or_insert(0) += count;
    }
    sums
}

/// Sum of all guests; empty without KVM.
fn kvm() -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for guest in fs::read_dir(KVM).into_iter().flatten().flatten() {
        for counter in COUNTERS.iter().filter(|_| guest.path().is_dir()) {
            let value: u64 = text(&guest.path().join(counter)).parse().unwrap_or(0);
            *sums.entry((*counter).to_owned()).or_insert(0) += value;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_summed_by_device() {
        let table = "           CPU0       CPU1\n \
             26:          1          2   PCI-MSI 49152-edge      virtio1-config\n \
             27:         30          4   PCI-MSI 49153-edge      virtio1-virtqueues\n \
             LOC:        715        763   Local timer interrupts\n";
        let sums = interrupts(table);
        assert_eq!(sums.get("virtio1-virtqueues"), Some(&34));
        assert_eq!(sums.get("virtio1-config"), Some(&3));
        assert_eq!(sums.get("LOC"), Some(&1478));
    }

    #[test]
    fn this_very_thread_is_among_the_threads() {
        let tid = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let is_this_thread = |thread: &ThreadUsage| thread.tid == tid && thread.cpu_ns > 0;
        // The kernel updates a thread's time at switches and ticks only.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !now().unwrap().threads.iter().any(is_this_thread) {
            assert!(std::time::Instant::now() < deadline, "thread {tid} used no time");
        }
    }
}
