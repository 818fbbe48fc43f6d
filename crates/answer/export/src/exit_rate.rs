//! Exits per second of a vCPU, over time.

/// The interval over which exits are counted.
const STEP_NS: u64 = 10_000_000;
const STEPS_A_SECOND: u64 = 1_000_000_000 / STEP_NS;

/// Counts the exits of one vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExitRate {
    last_exit_ns: Option<u64>,
    step: u64,
    exits: u64,
}

impl ExitRate {
    /// Counts an exit; repeated calls for the same exit count once. `emit` gets each time from
    /// which a rate applies.
    pub(crate) fn exit(&mut self, start_ns: u64, emit: impl FnMut(u64, u64)) {
        // A vCPU's exits come in order; an exit out of order comes from a damaged page.
        if self.last_exit_ns.is_some_and(|last_ns| start_ns <= last_ns) {
            return;
        }
        let step = start_ns / STEP_NS;
        if step != self.step {
            self.flush(Some(step), emit);
            self.step = step;
        }
        self.last_exit_ns = Some(start_ns);
        self.exits += 1;
    }

    /// Emits the rate of the finished step, and a rate of 0 after it unless `next` follows
    /// directly.
    pub(crate) fn flush(&mut self, next: Option<u64>, mut emit: impl FnMut(u64, u64)) {
        if self.exits > 0 {
            emit(self.step * STEP_NS, self.exits * STEPS_A_SECOND);
            if next != Some(self.step + 1) {
                emit((self.step + 1).saturating_mul(STEP_NS), 0);
            }
        }
        self.exits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exit_counts_once() {
        let (mut rate, mut rates) = (ExitRate::default(), Vec::new());
        for exit_ns in [1, 1, 5_000_000, 10_000_000, 55_000_000, 55_000_000] {
            rate.exit(exit_ns, |at_ns, exits| rates.push((at_ns, exits)));
        }
        rate.flush(None, |at_ns, exits| rates.push((at_ns, exits)));
        let expected =
            [(0, 200), (10_000_000, 100), (20_000_000, 0), (50_000_000, 100), (60_000_000, 0)];
        assert_eq!(rates, expected);
    }
}
