//! Instructions within functions: where innermost frames were, and what is there.

use instructions::{CodeIsa, Instruction, MOST_BYTES, instruction_at};
use symbols::{KernelCode, Machine, Name, Names, Place};

/// Bytes of an instruction, at most.
const MOST_INSTRUCTION_BYTES: usize = 16;

/// An instruction that samples saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstructionAt {
    /// Bytes from the function's beginning; without a function they are from that of the file, or of all
    /// addresses.
    pub into: u64,
    /// The instruction; `None`: its code is not to be had here.
    pub text: Option<String>,
    /// Samples land on it whatever took the time: the one before it ran the guest, or lets interrupts in.
    pub is_after_guest: bool,
}

/// Code of kernels that was kept along with samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptCode<'r> {
    pub(super) guest: Option<&'r KernelCode>,
    pub(super) host: Option<&'r KernelCode>,
}

impl InstructionAt {
    fn new(into: u64, found: Option<Instruction>) -> Self {
        let is_after_guest = found.as_ref().is_some_and(|one| one.is_after_guest);
        Self { into, text: found.map(|one| one.text), is_after_guest }
    }

    /// That at an address of a kernel, `into` bytes from its function's beginning.
    pub(super) fn of_kernel(code: Option<&KernelCode>, address: u64, into: u64) -> Self {
        Self::new(into, code.and_then(|code| of_kernel(code, address, into)))
    }

    /// That at a place of a machine which is called so.
    pub(super) fn at(
        names: &mut Names,
        machine: &Machine<'_>,
        kernel: Option<&KernelCode>,
        (place, name): (Place, &Name),
    ) -> Self {
        if name.symbol.is_none() {
            return Self::new(name.offset, None);
        }
        match place {
            Place::Kernel(address) => Self::of_kernel(kernel, address, name.into),
            Place::File { .. } => Self::new(name.into, of_file(names, machine, place, name.into)),
            Place::User(_) => Self::new(name.offset, None),
        }
    }
}

/// Bytes that are needed of a function to read the instruction at an offset in it.
fn needed(into: u64) -> Option<usize> {
    let into = usize::try_from(into).ok().filter(|&into| into < MOST_BYTES)?;
    Some(into.saturating_add(MOST_INSTRUCTION_BYTES))
}

fn of_kernel(code: &KernelCode, address: u64, into: u64) -> Option<Instruction> {
    let isa = CodeIsa::of_elf(code.elf_machine())?;
    let begin = address.checked_sub(into)?;
    instruction_at(isa, code.from(begin, needed(into)?), begin, into)
}

fn of_file(
    names: &mut Names,
    machine: &Machine<'_>,
    place: Place,
    into: u64,
) -> Option<Instruction> {
    let code = names.code(machine, place, into, needed(into)?)?;
    instruction_at(CodeIsa::of_elf(code.elf_machine)?, code.bytes, code.begin, into)
}
