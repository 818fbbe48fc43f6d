//! The compared ways to record a guest.

use serde::{Serialize, Serializer};

/// A way to record a guest, or a step towards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Nothing is recorded: the base of comparisons.
    None,
    /// Events go to an unread kernel buffer: the cost of tracing without a channel.
    KernelBuffer,
    /// `hyperscope-agent` over memory shared with the host.
    Shm,
    /// `hyperscope-agent` over virtio-serial.
    VirtioSerial,
    /// `hyperscope-agent` over vsock.
    Vsock,
    /// `cat trace_pipe_raw` to a virtio-serial port for each CPU.
    Cat,
    /// `trace-cmd agent` over vsock.
    TraceCmd,
}

impl Variant {
    /// Variants that a user can select, in the order of reports.
    pub const ALL: [Self; 6] =
        [Self::KernelBuffer, Self::Shm, Self::VirtioSerial, Self::Vsock, Self::Cat, Self::TraceCmd];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::KernelBuffer => "kernel-buffer",
            Self::Shm => "shm",
            Self::VirtioSerial => "virtio-serial",
            Self::Vsock => "vsock",
            Self::Cat => "cat-virtio-serial",
            Self::TraceCmd => "trace-cmd-vsock",
        }
    }

    /// Whether recorded data leaves the guest.
    #[must_use]
    pub const fn is_channel(self) -> bool {
        !matches!(self, Self::None | Self::KernelBuffer)
    }

    /// The channel's address for `hyperscope-agent` and for `hyperscope record`.
    pub(crate) const fn addresses(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Shm => Some(("shm", "shm:/run/lab/l2/memory")),
            Self::VirtioSerial => Some(("virtio-serial", "virtio-serial:/run/lab/l2")),
            Self::Vsock => Some(("vsock", "vsock:3")),
            _ => None,
        }
    }

    /// Name of the programs that move pages inside the guest.
    pub(crate) const fn agent(self) -> Option<&'static str> {
        match self {
            Self::None | Self::KernelBuffer => None,
            // The kernel limits a name to 15 characters.
            Self::Shm | Self::VirtioSerial | Self::Vsock => Some("hyperscope-agen"),
            Self::Cat => Some("cat"),
            Self::TraceCmd => Some("trace-cmd"),
        }
    }
}

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
