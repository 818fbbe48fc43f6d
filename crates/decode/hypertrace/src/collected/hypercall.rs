//! A hypercall record of the BPF program: exit, hypercall and entry combined.

use super::fields::Fields;

/// Bytes before the words.
pub const HEAD_BYTES: usize = 48;
/// Maximum argument registers.
pub const MAX_WORDS: usize = 13;

/// Instead of the time to the entry: no entry was seen, or it came too late to store.
const NO_ENTRY: u32 = u32::MAX;
/// Flag: the guest's address is known.
const RIP_KNOWN: u8 = 1;
/// Flag: it is the address after the instruction, whose length is the same for `vmcall` and
/// `vmmcall`.
const RIP_AFTER: u8 = 2;
const INSTRUCTION_BYTES: u64 = 3;

/// A hypercall of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hypercall {
    /// Time of the exit, on the host's monotonic clock.
    pub exit_mono_ns: u64,
    /// Time from the exit until KVM processed the hypercall, in nanoseconds.
    pub hypercall_after_ns: u32,
    /// Time from the exit to the entry, which is the guest's cost. `None` if no entry was seen, or
    /// if it came more than 4.3 seconds later.
    pub entry_after_ns: Option<u32>,
    /// Its number: rax, or w0 on Arm.
    pub number: u64,
    /// The instruction's address in the guest, if the kernel knew it.
    pub guest_rip: Option<u64>,
    /// The process that runs the VM.
    pub process: u32,
    /// The thread that runs the vCPU.
    pub thread: u32,
    /// The vCPU's id in its VM.
    pub vcpu: u16,
    /// The CPU of the exit.
    pub cpu: u16,
    /// Lost records of this thread before this one, modulo 65536.
    pub lost: u16,
    /// Its registers rbx, rcx, rdx, rsi, rdi, r8 to r15, or x1 to x13 on Arm, up to the collected
    /// number.
    pub words: Words,
}

/// Argument registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    count: u8,
    words: [u64; MAX_WORDS],
}

impl Words {
    /// Copies up to thirteen words; ignores the rest.
    #[must_use]
    pub fn new(words: &[u64]) -> Self {
        let count = u8::try_from(words.len().min(MAX_WORDS)).unwrap_or(0);
        let mut copy = Self { count, words: [0; MAX_WORDS] };
        copy.words.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        copy
    }

    /// All words in order.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        self.words.get(..usize::from(self.count)).unwrap_or(&self.words)
    }
}

impl Hypercall {
    /// Time at which KVM processed it, on the host's monotonic clock.
    #[must_use]
    pub fn mono_ns(&self) -> u64 {
        self.exit_mono_ns.saturating_add(self.hypercall_after_ns.into())
    }

    /// Parses a record of the BPF program; `None` if it is invalid.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let mut read = Self {
            exit_mono_ns: fields.u64()?,
            hypercall_after_ns: fields.u32()?,
            entry_after_ns: Some(fields.u32()?).filter(|&after| after != NO_ENTRY),
            number: fields.u64()?,
            guest_rip: Some(fields.u64()?),
            process: fields.u32()?,
            thread: fields.u32()?,
            vcpu: fields.u16()?,
            cpu: fields.u16()?,
            lost: fields.u16()?,
            words: Words { count: fields.u8()?, words: [0; MAX_WORDS] },
        };
        let flags = fields.u8()?;
        let length = if flags & RIP_AFTER == 0 { 0 } else { INSTRUCTION_BYTES };
        let known = |rip: &u64| flags & RIP_KNOWN != 0 && *rip >= length;
        read.guest_rip = read.guest_rip.filter(known).map(|rip| rip.wrapping_sub(length));
        let Words { count, words } = &mut read.words;
        if usize::from(*count) > MAX_WORDS {
            return None;
        }
        for word in words.iter_mut().take((*count).into()) {
            *word = fields.u64()?;
        }
        Some(read)
    }

    /// Encodes it as the BPF program does.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend(self.exit_mono_ns.to_le_bytes());
        bytes.extend(self.hypercall_after_ns.to_le_bytes());
        bytes.extend(self.entry_after_ns.unwrap_or(NO_ENTRY).to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.guest_rip.unwrap_or(0).to_le_bytes());
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.thread.to_le_bytes());
        bytes.extend(self.vcpu.to_le_bytes());
        bytes.extend(self.cpu.to_le_bytes());
        bytes.extend(self.lost.to_le_bytes());
        bytes.push(self.words.count);
        bytes.push(if self.guest_rip.is_some() { RIP_KNOWN } else { 0 });
        bytes.extend(self.words.as_slice().iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn an_address_after_the_instruction_becomes_the_instructions_own() {
        let hypercall = Hypercall { guest_rip: Some(0x1003), ..Hypercall::default() };
        let mut bytes = hypercall.to_bytes();
        assert_eq!(bytes.len(), HEAD_BYTES);
        assert_eq!(Hypercall::parse(&bytes), Some(hypercall));
        *bytes.last_mut().unwrap() = RIP_KNOWN | RIP_AFTER;
        assert_eq!(Hypercall::parse(&bytes).unwrap().guest_rip, Some(0x1000));
        *bytes.last_mut().unwrap() = RIP_AFTER;
        assert_eq!(Hypercall::parse(&bytes).unwrap().guest_rip, None);
    }

    #[test]
    fn more_words_than_there_are_registers_are_refused() {
        let words = Words::new(&[7; 20]);
        let hypercall = Hypercall { words, ..Hypercall::default() };
        assert_eq!(words.as_slice(), [7; MAX_WORDS]);
        let mut bytes = hypercall.to_bytes();
        assert_eq!(Hypercall::parse(&bytes), Some(hypercall));
        bytes[HEAD_BYTES - 2] = 14;
        bytes.extend([0; 64]);
        assert_eq!(Hypercall::parse(&bytes), None);
    }
}
