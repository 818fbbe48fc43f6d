//! Counters of this machine and its VMs, by name: what is measured of a planted cause is the difference of two readings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::usage;

/// Where KVM has its counters, as sums over VMs.
const KVM: &str = "/sys/kernel/debug/kvm";
/// The group of processes whose CPU time may be limited.
const GROUP: &str = "/sys/fs/cgroup/vm/cpu.stat";
/// Words of what a group says of its limit.
const GROUP_WORDS: [&str; 4] = ["usage_usec", "nr_periods", "nr_throttled", "throttled_usec"];

/// Prints them as one JSON object.
pub(crate) fn run() -> io::Result<()> {
    let mut counters = BTreeMap::new();
    counters.insert("monotonic_ns".to_owned(), sys::clock_ns(sys::ClockId::Monotonic));
    counters.insert("unix_ns".to_owned(), sys::clock_ns(sys::ClockId::Realtime));
    counters.extend(tsc_ns().map(|ns| ("tsc_ns".to_owned(), ns)));
    kvm(&mut counters);
    threads(&mut counters)?;
    interrupts(&mut counters)?;
    group(&fs::read_to_string(GROUP).unwrap_or_default(), &mut counters);
    println!("{}", serde_json::to_string(&counters)?);
    Ok(())
}

/// The time stamp counter in nanoseconds, as recordings on it are read: by the kernel's multiplier, from tick 0 on.
fn tsc_ns() -> Option<u64> {
    let (mult, shift, _) = sys::tsc_conversion()?;
    u64::try_from((u128::from(sys::tsc()?) * u128::from(mult)) >> shift).ok()
}

/// All of KVM's counters that are numbers; none where this machine hosts no VM.
fn kvm(counters: &mut BTreeMap<String, u64>) {
    for file in fs::read_dir(KVM).into_iter().flatten().flatten() {
        let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
        let text = is_file.then(|| fs::read_to_string(file.path()).ok()).flatten();
        let Some(value) = text.and_then(|text| text.trim().parse().ok()) else { continue };
        counters.insert(format!("kvm.{}", file.file_name().to_string_lossy()), value);
    }
}

/// The part that a thread has in a VM; none for all others.
fn role(process: &str, thread: &str, is_first: bool) -> Option<String> {
    if process.starts_with("vhost-") {
        return Some("vhost".to_owned());
    }
    if process.starts_with("hyperscope") && !process.starts_with("hyperscope-") {
        return Some("recorder".to_owned());
    }
    let vcpu = thread.strip_prefix("CPU ").and_then(|rest| rest.strip_suffix("/KVM"));
    let vcpu = vcpu.or_else(|| thread.strip_prefix("vcpu"));
    if let Some(number) = vcpu.filter(|number| number.parse::<u32>().is_ok()) {
        return Some(format!("vcpu{number}"));
    }
    (process.starts_with("qemu-system") && is_first).then(|| "vmm".to_owned())
}

/// CPU time, time in the run queue and the number of times it ran, for threads of VMs.
fn threads(counters: &mut BTreeMap<String, u64>) -> io::Result<()> {
    for process in usage::numbered(Path::new("/proc"))? {
        let path = Path::new("/proc").join(process.to_string());
        let process_name = usage::text(&path.join("comm"));
        for tid in usage::numbered(&path.join("task")).unwrap_or_default() {
            let thread = path.join("task").join(tid.to_string());
            let name = usage::text(&thread.join("comm"));
            let Some(role) = role(&process_name, &name, tid == process) else { continue };
            let times = usage::text(&thread.join("schedstat"));
            let times = times.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
            for (word, value) in ["cpu_ns", "run_delay_ns", "runs"].into_iter().zip(times) {
                *counters.entry(format!("{role}.{word}")).or_insert(0) += value;
            }
        }
    }
    Ok(())
}

/// Interrupts and soft interrupts, by kind, and the latter by processor, too.
fn interrupts(counters: &mut BTreeMap<String, u64>) -> io::Result<()> {
    for (name, count) in usage::interrupts(&fs::read_to_string("/proc/interrupts")?) {
        counters.insert(format!("irq.{name}"), count);
    }
    soft_interrupts(&fs::read_to_string("/proc/softirqs")?, counters);
    Ok(())
}

fn soft_interrupts(table: &str, counters: &mut BTreeMap<String, u64>) {
    for line in table.lines().skip(1) {
        let Some((name, counts)) = line.split_once(':') else { continue };
        for (cpu, count) in counts.split_whitespace().enumerate() {
            let count: u64 = count.parse().unwrap_or(0);
            counters.insert(format!("softirq.{}.cpu{cpu}", name.trim()), count);
        }
    }
}

fn group(stat: &str, counters: &mut BTreeMap<String, u64>) {
    for line in stat.lines() {
        let Some((word, value)) = line.split_once(' ') else { continue };
        if let (true, Ok(value)) = (GROUP_WORDS.contains(&word), value.trim().parse()) {
            counters.insert(format!("group.{word}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_the_part_that_their_names_say() {
        let role = |process, thread, first| role(process, thread, first).unwrap_or_default();
        assert_eq!(role("qemu-system-x86", "CPU 1/KVM", false), "vcpu1");
        assert_eq!(role("hyperscope-labg", "vcpu0", false), "vcpu0");
        assert_eq!(role("qemu-system-x86", "qemu-system-x86", true), "vmm");
        assert_eq!(role("qemu-system-x86", "IO mon_iothread", false), "");
        assert_eq!(role("vhost-97", "vhost-97", true), "vhost");
        assert_eq!(role("hyperscope", "hyperscope", true), "recorder");
        assert_eq!(role("sh", "sh", true), "");
    }

    #[test]
    fn soft_interrupts_are_counted_by_processor() {
        let mut counters = BTreeMap::new();
        let table = "          CPU0       CPU1\n   NET_RX:     12   7\n    TIMER:  3   4\n";
        soft_interrupts(table, &mut counters);
        assert_eq!(counters.get("softirq.NET_RX.cpu1"), Some(&7));
        assert_eq!(counters.get("softirq.TIMER.cpu0"), Some(&3));
    }

    #[test]
    fn a_group_says_how_often_it_was_stopped() {
        let mut counters = BTreeMap::new();
        group("usage_usec 12\nuser_usec 5\nnr_throttled 3\n", &mut counters);
        assert_eq!(counters.get("group.nr_throttled"), Some(&3));
        assert_eq!(counters.get("group.user_usec"), None);
    }
}
