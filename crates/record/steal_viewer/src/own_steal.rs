//! Steal according to this machine's own kernel: `/proc/stat`.

use std::collections::BTreeMap;
use std::fs;

/// Ticks of `/proc/stat` per second: `USER_HZ`, which is 100 on all architectures with KVM.
const USER_HZ: u64 = 100;
/// Index of the steal time after the CPU's name.
const STEAL: usize = 7;

/// Nanoseconds of steal since boot, by CPU.
pub(crate) fn stolen_ns() -> BTreeMap<u32, u64> {
    parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse(text: &str) -> BTreeMap<u32, u64> {
    let cpu = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let cpu = words.next()?.parse().ok()?;
        let ticks: u64 = words.nth(STEAL)?.parse().ok()?;
        Some((cpu, ticks.saturating_mul(1_000_000_000 / USER_HZ)))
    };
    text.lines().filter_map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_is_steal() {
        let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 20 30 40 50 60 70 80 90 100\n\
                    cpu12 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(parse(text), BTreeMap::from([(0, 800_000_000), (12, 80_000_000)]));
        assert!(parse("cpu0 1 2 3\ncpux 1\n").is_empty());
    }
}
