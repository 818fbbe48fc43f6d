//! CPU times since boot: `/proc/stat` (`fs/proc/stat.c`), in ticks of 1/100 s on all current architectures of Linux.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use channel::wire::CpuUse;

/// CPU times, by CPU number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes(BTreeMap<u32, CpuUse>);

impl CpuTimes {
    pub(super) fn read(proc: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(proc.join("stat"))?;
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let times = Self::parse(&text, tick_ns);
        if times.0.is_empty() {
            return Err(io::Error::other("/proc/stat lists no CPU"));
        }
        Ok(times)
    }

    fn parse(text: &str, tick_ns: u64) -> Self {
        Self(text.lines().filter_map(|line| cpu(line, tick_ns)).collect())
    }

    /// The times since `before`, of the CPUs that exist now. A CPU that did not exist before counts as idle until now.
    pub(super) fn since(&self, before: &Self) -> BTreeMap<u32, CpuUse> {
        let difference = |(cpu, now): (&u32, &CpuUse)| {
            let before = before.0.get(cpu).copied().unwrap_or(*now);
            // The kernel's idle time may go back a tick on tickless CPUs (get_cpu_idle_time_us()).
            (*cpu, each(now, &before, u64::saturating_sub))
        };
        self.0.iter().map(difference).collect()
    }
}

/// Adds two CPUs' times.
pub(super) fn sum(a: &CpuUse, b: &CpuUse) -> CpuUse {
    each(a, b, u64::saturating_add)
}

fn each(a: &CpuUse, b: &CpuUse, combine: impl Fn(u64, u64) -> u64) -> CpuUse {
    CpuUse {
        user_ns: combine(a.user_ns, b.user_ns),
        system_ns: combine(a.system_ns, b.system_ns),
        irq_ns: combine(a.irq_ns, b.irq_ns),
        steal_ns: combine(a.steal_ns, b.steal_ns),
        idle_ns: combine(a.idle_ns, b.idle_ns),
        guest_ns: combine(a.guest_ns, b.guest_ns),
    }
}

/// `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; the first two include the last two.
fn cpu(line: &str, tick_ns: u64) -> Option<(u32, CpuUse)> {
    let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
    // The line without a number is the sum.
    let cpu = words.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
    let mut next = || {
        let ticks: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        ticks.saturating_mul(tick_ns)
    };
    let [user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice] =
        std::array::from_fn(|_| next());
    let used = CpuUse {
        user_ns: user.saturating_add(nice),
        system_ns: system,
        irq_ns: irq.saturating_add(softirq),
        steal_ns: steal,
        idle_ns: idle.saturating_add(iowait),
        guest_ns: guest.saturating_add(guest_nice),
    };
    Some((cpu, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_what_it_did_since_before() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 1 20 300 4 5 6 7 8 0\nintr 5\n";
        let now =
            "cpu  9 9 9 9\ncpu0 110 2 23 299 9 6 8 11 10 1\ncpu3 1 1 1 1 1 1 1 1 1 1\nctxt 1\n";
        let [before, now] = [before, now].map(|text| CpuTimes::parse(text, 10));
        let used = now.since(&before);
        let wanted = CpuUse {
            user_ns: 110,
            system_ns: 30,
            irq_ns: 30,
            steal_ns: 40,
            // Idle went back by one tick, iowait forward by five.
            idle_ns: 40,
            guest_ns: 30,
        };
        assert_eq!(used[&0], wanted);
        assert_eq!((used.len(), used[&3]), (2, CpuUse::default()));
        assert_eq!(sum(&wanted, &wanted).steal_ns, 80);
    }

    #[test]
    fn lines_of_older_kernels_and_odd_ones_are_read_as_far_as_they_go() {
        let times = CpuTimes::parse("cpu1 5 0 3 7\ncpux 1\ncpu\ncpu2\n", 1);
        assert_eq!(times.0.len(), 2);
        assert_eq!((times.0[&1].user_ns, times.0[&1].steal_ns), (5, 0));
    }
}
