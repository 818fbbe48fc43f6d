//! Machine code to instructions as text: of x86-64 and arm64.
//!
//! ```
//! use symbols::instructions::{CodeIsa, instructions_to};
//!
//! // push %rbp; mov %rsp,%rbp; ret
//! let function = [0x55, 0x48, 0x89, 0xe5, 0xc3];
//! let found = instructions_to(CodeIsa::X86_64, &function, 0x1000, 1, 5);
//! let texts: Vec<&str> = found.iter().map(|instruction| instruction.text.as_str()).collect();
//! assert_eq!(texts, ["push %rbp", "mov %rsp,%rbp"]);
//! ```
//!
//! Code is not trusted: what is no instruction has no text.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod arm64;
mod x86_64;

/// `e_machine` of ELF files with such code.
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// Bytes of a function that are gone through to the instruction wanted, at most.
pub const MAX_BYTES: usize = 1 << 20;

/// An architecture whose instructions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeIsa {
    /// x86 with 64 bits.
    X86_64,
    /// arm64.
    Arm64,
}

impl CodeIsa {
    /// That of an ELF file, by its header's `e_machine`; `None`: another.
    #[must_use]
    pub const fn of_elf(machine: u16) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Arm64),
            _ => None,
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the function's beginning.
    pub into: u64,
    /// As the kernel's people write it: AT&T's syntax on x86, Arm's own on arm64.
    pub text: String,
    /// The one before it ran the guest, or lets interrupts in that ended the guest: samples land here
    /// whatever took the time.
    pub is_after_guest: bool,
}

/// The instruction `into` bytes from the beginning of a function whose code begins at the address `begin`, after at most
/// `before` of those that stand before it. Instructions of x86 differ in length, so all before it are read, too: empty
/// where none begins there, or the code does not reach so far.
#[must_use]
pub fn instructions_to(
    isa: CodeIsa,
    code: &[u8],
    begin: u64,
    into: u64,
    before: usize,
) -> Vec<Instruction> {
    let into = usize::try_from(into).ok().filter(|&into| into < code.len().min(MAX_BYTES));
    let found = into.and_then(|into| match isa {
        CodeIsa::X86_64 => x86_64::instructions_to(code, begin, into, before),
        CodeIsa::Arm64 => arm64::instructions_to(code, into, before),
    });
    found.unwrap_or_default()
}
