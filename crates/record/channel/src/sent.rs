//! What was sent of one CPU.

/// What was sent of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of pages that left the kernel's buffer. Those that were lost on the way are among
    /// them: the host sees by the next head that they are missing.
    pub bytes: u64,
    /// Bytes of those that the stream took no more.
    pub lost_bytes: u64,
}
