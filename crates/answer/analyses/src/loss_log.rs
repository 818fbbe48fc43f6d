//! A log of losses. Threads process losses lazily, at their next event, because a recording can have as many
//! threads and as many losses as lines.

use rustc_hash::FxHashMap;

/// Losses in the order of the recording.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    /// Start of each loss.
    from_ns: Vec<u64>,
    /// By CPU: indexes of its losses.
    by_cpu: FxHashMap<u16, Vec<usize>>,
}

impl LossLog {
    /// Adds a loss on a CPU that starts at `from_ns`.
    pub(crate) fn add(&mut self, cpu: u16, from_ns: u64) {
        self.by_cpu.entry(cpu).or_default().push(self.from_ns.len());
        self.from_ns.push(from_ns);
    }

    /// Number of losses.
    pub(crate) fn count(&self) -> usize {
        self.from_ns.len()
    }

    /// Start of the first loss with an index of at least `count`; with `cpu`, only losses of that CPU.
    pub(crate) fn first_after(&self, count: usize, cpu: Option<u16>) -> Option<u64> {
        let at = match cpu {
            None => count,
            Some(cpu) => {
                let of_cpu = self.by_cpu.get(&cpu)?;
                *of_cpu.get(of_cpu.partition_point(|&number| number < count))?
            }
        };
        self.from_ns.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_loss_that_a_thread_has_not_seen_is_found() {
        let mut losses = LossLog::default();
        for (cpu, from_ns) in [(0, 10), (1, 20), (0, 30), (2, 40)] {
            losses.add(cpu, from_ns);
        }
        let first = |count, cpu| losses.first_after(count, cpu);
        assert_eq!([first(0, None), first(3, None), first(4, None)], [Some(10), Some(40), None]);
        assert_eq!([first(0, Some(1)), first(1, Some(0))], [Some(20), Some(30)]);
        assert_eq!([first(3, Some(0)), first(0, Some(7))], [None, None]);
    }
}
