//! What labs for measurements have in common.

use lab::{Description, UpOptions};

/// What an instruction takes where they are counted: 10^9 a second, as many as real processors do.
const INSTRUCTION_NS: u32 = 1;
/// Memory that a guest shares with its host, where it does.
pub(crate) const SHARED_MIB: u32 = 16;

/// Lets a lab's time be the number of instructions that it executes. Its first machine has one
/// processor then: with more, those of one would pass as another one's time (and QEMU before 8.1 lets one
/// that waits for another starve that).
pub(crate) fn count_instructions(description: &mut Description) {
    description.cpus = 1;
    description.instruction_ns = Some(INSTRUCTION_NS);
}

/// How a lab is brought up for a measurement.
#[must_use]
pub fn up_options(counts_instructions: bool, offline: bool) -> UpOptions {
    // The emulator delivers interrupts twice now and then (docs/lab.md), more often the more of them
    // come while its time is due: guests that were loaded then hang about every other time.
    UpOptions { offline, snapshot: !counts_instructions }
}
