//! `struct perf_event_attr`: the event to count, and the fields of its samples.

use raw_bytes::{ByteOrder, Cursor, Truncated};

/// `perf_event_attr::type`.
pub mod event_type {
    /// Generic hardware counters.
    pub const HARDWARE: u32 = 0;
    /// Software events of the kernel: clocks, faults, switches.
    pub const SOFTWARE: u32 = 1;
    /// A tracepoint; `config` is its id.
    pub const TRACEPOINT: u32 = 2;
    /// Caches; `config` has the cache, the operation and the result.
    pub const HW_CACHE: u32 = 3;
    /// Raw event numbers from the processor's manual.
    pub const RAW: u32 = 4;
    /// A breakpoint.
    pub const BREAKPOINT: u32 = 5;
}

/// Bits of `perf_event_attr::sample_type`.
pub mod sample_type {
    /// Address of the instruction.
    pub const IP: u64 = 1;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time.
    pub const TIME: u64 = 1 << 2;
    /// Address that was accessed.
    pub const ADDR: u64 = 1 << 3;
    /// Counts.
    pub const READ: u64 = 1 << 4;
    /// Call chain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The event's id; for an inherited event, that of its parent.
    pub const ID: u64 = 1 << 6;
    /// CPU.
    pub const CPU: u64 = 1 << 7;
    /// Event count since the previous sample.
    pub const PERIOD: u64 = 1 << 8;
    /// The event's own id.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Raw data of the event: a tracepoint's record.
    pub const RAW: u64 = 1 << 10;
    /// The branch stack.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// Registers of user space.
    pub const REGS_USER: u64 = 1 << 12;
    /// The top of the user stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Cost of a memory access.
    pub const WEIGHT: u64 = 1 << 14;
    /// Source of the accessed data.
    pub const DATA_SRC: u64 = 1 << 15;
    /// The event's id, as the first field of samples and the last of other records.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Abort reason of a transaction.
    pub const TRANSACTION: u64 = 1 << 17;
    /// Registers at the interrupt.
    pub const REGS_INTR: u64 = 1 << 18;
    /// Physical address that was accessed.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// Part of a hardware trace.
    pub const AUX: u64 = 1 << 20;
    /// Control group.
    pub const CGROUP: u64 = 1 << 21;
    /// Size of the page that was accessed.
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    /// Size of the instruction's page.
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    /// Cost of a memory access, in parts.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// All known bits: a sample cannot be parsed beyond the field of an unknown bit.
    pub(crate) const KNOWN: u64 = (1 << 25) - 1;
}

/// Bits of `perf_event_attr::read_format`.
pub mod read_format {
    /// Time for which the event was enabled.
    pub const TOTAL_TIME_ENABLED: u64 = 1;
    /// Time for which it counted.
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    /// The event's id.
    pub const ID: u64 = 1 << 2;
    /// Counts of all events of its group.
    pub const GROUP: u64 = 1 << 3;
    /// Lost samples.
    pub const LOST: u64 = 1 << 4;
}

/// Bits of `perf_event_attr::branch_sample_type` that change the layout of a sample.
pub(crate) mod branch {
    /// The branch stack starts with an index.
    pub(crate) const HW_INDEX: u64 = 1 << 17;
    /// The branch stack ends with counters.
    pub(crate) const COUNTERS: u64 = 1 << 19;
}

/// Bit numbers of [`Flags`], counted from 0.
pub mod flag {
    /// The event starts disabled.
    pub const DISABLED: u32 = 0;
    /// Mappings of code are recorded.
    pub const MMAP: u32 = 8;
    /// Names of threads are recorded.
    pub const COMM: u32 = 9;
    /// `sample_period` is a frequency in Hz.
    pub const FREQ: u32 = 10;
    /// Beginnings and ends of threads are recorded.
    pub const TASK: u32 = 13;
    /// `wakeup` counts bytes.
    pub const WATERMARK: u32 = 14;
    /// Records other than samples end in a [`crate::SampleId`].
    pub const SAMPLE_ID_ALL: u32 = 18;
    /// Mappings are recorded with device and inode.
    pub const MMAP2: u32 = 23;
    /// Thread names that come from exec are marked.
    pub const COMM_EXEC: u32 = 24;
    /// Times are those of the clock `clock_id`.
    pub const USE_CLOCK_ID: u32 = 25;
    /// Symbols that are registered at run time are recorded.
    pub const KSYMBOL: u32 = 29;
    /// Mappings have build ids if the files have them.
    pub const BUILD_ID: u32 = 34;
}

/// The bit-field of an attribute; the first bit is the lowest, independent of the byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u64);

impl Flags {
    /// On big-endian machines, the first bit of a bit-field is the highest.
    fn new(word: u64, order: ByteOrder) -> Self {
        match order {
            ByteOrder::Little => Self(word),
            ByteOrder::Big => Self(word.reverse_bits()),
        }
    }

    /// Flags with the given bits of [`flag`] set.
    #[must_use]
    pub fn with_bits(bits: &[u32]) -> Self {
        Self(bits.iter().fold(0, |word, &bit| word | 1_u64.wrapping_shl(bit)))
    }

    const fn bit(self, at: u32) -> bool {
        self.0.wrapping_shr(at) & 1 == 1
    }

    /// User space is excluded.
    #[must_use]
    pub const fn exclude_user(self) -> bool {
        self.bit(4)
    }

    /// The kernel is excluded.
    #[must_use]
    pub const fn exclude_kernel(self) -> bool {
        self.bit(5)
    }

    /// `sample_period` is a frequency in Hz.
    #[must_use]
    pub const fn freq(self) -> bool {
        self.bit(10)
    }

    /// Records other than samples end in a [`crate::SampleId`].
    #[must_use]
    pub const fn sample_id_all(self) -> bool {
        self.bit(18)
    }

    /// The host is excluded.
    #[must_use]
    pub const fn exclude_host(self) -> bool {
        self.bit(19)
    }

    /// Guests are excluded.
    #[must_use]
    pub const fn exclude_guest(self) -> bool {
        self.bit(20)
    }

    /// Times are those of the clock `clock_id`; otherwise those of the scheduler's clock.
    #[must_use]
    pub const fn use_clock_id(self) -> bool {
        self.bit(25)
    }

    /// Mappings have build ids if the files have them.
    #[must_use]
    pub const fn build_id(self) -> bool {
        self.bit(34)
    }
}

/// An event's attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The kind of event: [`event_type`], or the number of a PMU.
    pub kind: u32,
    /// The event of that kind.
    pub config: u64,
    /// Events per sample; a frequency in Hz if [`Flags::freq`] is set.
    pub sample_period: u64,
    /// The fields of a sample: bits of [`sample_type`].
    pub sample_type: u64,
    /// The format of counts: bits of [`read_format`].
    pub read_format: u64,
    /// The flags.
    pub flags: Flags,
    /// The number of samples after which the reader is woken, or of bytes ([`flag::WATERMARK`]).
    pub wakeup: u32,
    /// Format of the branch stack.
    pub branch_sample_type: u64,
    /// User-space registers in a sample, a bit each.
    pub sample_regs_user: u64,
    /// Registers at the interrupt in a sample, a bit each.
    pub sample_regs_intr: u64,
    /// The clock if [`Flags::use_clock_id`] is set (`CLOCK_…` of the kernel).
    pub clock_id: i32,
}

/// Size of the first version of the structure (`PERF_ATTR_SIZE_VER0`), and of the version that is
/// written here and has all fields in use (`PERF_ATTR_SIZE_VER5`: Linux 4.1).
const MIN_BYTES: usize = 64;
const WRITTEN_BYTES: usize = 112;

impl Attr {
    /// Attributes for records without an event.
    pub(crate) const fn none() -> Self {
        Self {
            kind: event_type::SOFTWARE,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: Flags(0),
            wakeup: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_regs_intr: 0,
            clock_id: 0,
        }
    }

    /// Parses an attribute that fills `bytes`; fields that an older perf did not have are 0.
    ///
    /// # Errors
    /// If the fields of the first version are incomplete.
    pub(crate) fn parse(bytes: &[u8], order: ByteOrder, offset: u64) -> Result<Self, Truncated> {
        Cursor::new(bytes, order, offset).take(MIN_BYTES as u64)?;
        let u32_at = |at| order.u32_at(bytes, at).unwrap_or(0);
        let u64_at = |at| order.u64_at(bytes, at).unwrap_or(0);
        Ok(Self {
            kind: u32_at(0),
            config: u64_at(8),
            sample_period: u64_at(16),
            sample_type: u64_at(24),
            read_format: u64_at(32),
            flags: Flags::new(u64_at(40), order),
            wakeup: u32_at(48),
            branch_sample_type: u64_at(72),
            sample_regs_user: u64_at(80),
            clock_id: u32_at(92).cast_signed(),
            sample_regs_intr: u64_at(96),
        })
    }

    /// The structure in this machine's byte order, for the kernel.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WRITTEN_BYTES] {
        let mut bytes = [0; WRITTEN_BYTES];
        let mut put = |at: usize, field: &[u8]| {
            let place = bytes.iter_mut().skip(at);
            place.zip(field).for_each(|(byte, &value)| *byte = value);
        };
        let native =
            if cfg!(target_endian = "big") { self.flags.0.reverse_bits() } else { self.flags.0 };
        put(0, &self.kind.to_ne_bytes());
        put(4, &u32::try_from(WRITTEN_BYTES).unwrap_or(0).to_ne_bytes());
        put(8, &self.config.to_ne_bytes());
        put(16, &self.sample_period.to_ne_bytes());
        put(24, &self.sample_type.to_ne_bytes());
        put(32, &self.read_format.to_ne_bytes());
        put(40, &native.to_ne_bytes());
        put(48, &self.wakeup.to_ne_bytes());
        put(72, &self.branch_sample_type.to_ne_bytes());
        put(80, &self.sample_regs_user.to_ne_bytes());
        put(92, &self.clock_id.to_ne_bytes());
        put(96, &self.sample_regs_intr.to_ne_bytes());
        bytes
    }

    /// Size of the attribute at the start of `bytes`, according to its size field.
    pub(crate) fn size(bytes: &[u8], order: ByteOrder) -> u64 {
        // The first version of perf wrote 0 there.
        match order.u32_at(bytes, 4) {
            None | Some(0) => MIN_BYTES as u64,
            Some(size) => size.into(),
        }
    }

    /// Whether samples have all fields of `bits` of [`sample_type`].
    #[must_use]
    pub const fn samples(&self, bits: u64) -> bool {
        self.sample_type & bits == bits
    }

    /// Whether it is a tracepoint.
    #[must_use]
    pub const fn is_tracepoint(&self) -> bool {
        self.kind == event_type::TRACEPOINT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_big_endian_files_begin_at_the_top() {
        let little = Flags::new((1 << 18) | (1 << 20), ByteOrder::Little);
        let big = Flags::new((1 << (63 - 18)) | (1 << (63 - 20)), ByteOrder::Big);
        assert_eq!(little, big);
        assert!(big.sample_id_all() && big.exclude_guest() && !big.exclude_host());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let attr = Attr {
            kind: event_type::SOFTWARE,
            config: 1,
            sample_period: 2,
            sample_type: sample_type::IP,
            read_format: read_format::LOST,
            flags: Flags::with_bits(&[flag::FREQ, flag::USE_CLOCK_ID, flag::BUILD_ID]),
            wakeup: 3,
            branch_sample_type: 4,
            sample_regs_user: 5,
            sample_regs_intr: 6,
            clock_id: -7,
        };
        let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
        assert_eq!(Attr::parse(&attr.to_bytes(), order, 0).unwrap(), attr);
        assert!(attr.flags.freq() && attr.flags.use_clock_id() && attr.flags.build_id());
    }

    #[test]
    fn fields_that_an_older_perf_had_not_are_zero() {
        let mut bytes = [0; 64];
        bytes[24] = 5;
        let attr = Attr::parse(&bytes, ByteOrder::Little, 0).unwrap();
        assert!(attr.samples(sample_type::IP | sample_type::TIME));
        assert!(!attr.samples(sample_type::IP | sample_type::TID));
        assert_eq!((attr.clock_id, attr.sample_regs_intr), (0, 0));
        assert!(Attr::parse(&bytes[..63], ByteOrder::Little, 0).is_err());
    }
}
