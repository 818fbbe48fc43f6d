//! Common options of labs for measurements.

use lab::{Description, UpOptions};

/// Virtual time per counted instruction: 10^9 instructions per second, similar to a real processor.
const INSTRUCTION_NS: u32 = 1;
/// Memory that a guest shares with its host, if it does.
pub(crate) const SHARED_MIB: u32 = 16;

/// Makes a lab's time count instructions. Its first machine then has one CPU: with more, the instructions of one would
/// advance the time of the others (and with QEMU before 8.1, a CPU that waits for another one can starve it).
pub(crate) fn count_instructions(description: &mut Description) {
    description.cpus = 1;
    description.instruction_ns = Some(INSTRUCTION_NS);
}

/// Options of bringing a lab up for a measurement.
#[must_use]
pub fn up_options(counts_instructions: bool, offline: bool) -> UpOptions {
    // The emulator sometimes delivers interrupts twice (docs/lab.md), more often if many are due at once: guests from a
    // snapshot then hang about every other time.
    UpOptions { offline, snapshot: !counts_instructions }
}
