//! Counts of the bytes sent for a CPU.

/// Counts of the bytes sent for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of pages that left the kernel's buffer, including those lost on the way: the next head shows the host that
    /// they are missing.
    pub bytes: u64,
    /// Bytes of these that the stream did not accept.
    pub lost_bytes: u64,
}
