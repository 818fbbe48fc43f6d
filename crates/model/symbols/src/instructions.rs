//! Disassembles machine code of x86-64 and arm64.
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
//! Code is not trusted: bytes that are not an instruction have no text.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod arm64;
mod x86_64;

/// `e_machine` of ELF files with this code.
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// Maximum bytes of a function to decode before the wanted instruction.
pub const MAX_BYTES: usize = 1 << 20;

/// An architecture with a disassembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeIsa {
    /// x86-64.
    X86_64,
    /// arm64.
    Arm64,
}

impl CodeIsa {
    /// The architecture for `e_machine` of an ELF header; `None` for others.
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
    /// Offset from the start of the function in bytes.
    pub into: u64,
    /// In the kernel's syntax: AT&T on x86, Arm's own on arm64.
    pub text: String,
    /// The preceding instruction runs the guest, or enables the interrupts that ended the guest:
    /// samples land here independent of what took the time.
    pub is_after_guest: bool,
}

/// The instruction `into` bytes from the start of a function at the address `begin`, preceded by at
/// most `before` earlier ones. x86 instructions differ in length, so all earlier ones are decoded,
/// too. Empty if no instruction begins there, or if the code ends before it.
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
