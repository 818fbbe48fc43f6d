//! Causes of wake-ups: threads and interrupts.

/// Cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Another thread of the same machine.
    Thread(u32),
    /// An interrupt on a CPU of the same machine.
    Interrupt {
        cpu: u16,
        kind: InterruptKind,
        /// Start of the handler, as far as events show it.
        since_ns: u64,
    },
}

/// Source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum InterruptKind {
    /// A timer expired.
    Timer,
    /// A disk request completed; the disk's `dev_t`.
    Disk(u32),
    /// A device's interrupt, by its number.
    Irq(u32),
    /// An interrupt of the architecture: its index in [`X86_VECTORS`](sources::X86_VECTORS).
    Vector(u8),
    /// A soft interrupt, by its number.
    Softirq(u8),
    /// No event identifies it.
    Unknown,
}
