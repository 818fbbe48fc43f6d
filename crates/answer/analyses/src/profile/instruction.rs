//! Instructions of innermost frames.

use std::cmp::Ordering;

use symbols::instructions::{CodeIsa, Instruction, MAX_BYTES, instructions_to};
use symbols::{KernelCode, Machine, Name, Names, Place};

use super::CodeFrame;

/// Max bytes of an instruction.
const MAX_INSTRUCTION_BYTES: usize = 16;

/// A sampled instruction.
#[derive(Clone, Debug, Default)]
pub struct InstructionAt {
    /// Offset from the start of the function; without a function, from the start of the file or the address space.
    pub into: u64,
    /// The disassembled instruction; `None` if its code is unavailable.
    pub text: Option<String>,
    /// Samples accumulate here for other reasons: the previous instruction ran the guest or enabled interrupts.
    pub is_after_guest: bool,
    /// The frame with some preceding instructions, if requested.
    pub before: Vec<CodeFrame>,
}

impl InstructionAt {
    /// Identity of the instruction, without the preceding ones.
    fn key(&self) -> (u64, Option<&str>, bool) {
        (self.into, self.text.as_deref(), self.is_after_guest)
    }
}

impl PartialEq for InstructionAt {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for InstructionAt {}

impl PartialOrd for InstructionAt {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InstructionAt {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Kernel code that was stored with samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptCode<'r> {
    pub(super) guest: Option<&'r KernelCode>,
    pub(super) host: Option<&'r KernelCode>,
    /// Number of preceding instructions to include.
    pub(super) before: usize,
}

impl<'r> KeptCode<'r> {
    pub(super) fn of_guest(self) -> Listing<'r> {
        Listing { kernel: self.guest, before: self.before }
    }

    pub(super) fn of_host(self) -> Listing<'r> {
        Listing { kernel: self.host, before: self.before }
    }

    /// A listing without code.
    pub(super) fn of_none(self) -> Listing<'r> {
        Listing { kernel: None, before: self.before }
    }
}

/// Source of one machine's instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing<'r> {
    kernel: Option<&'r KernelCode>,
    before: usize,
}

impl Listing<'_> {
    /// Adds the instruction to a kernel frame; `into` is the offset in its function.
    pub(super) fn of_kernel(self, frame: CodeFrame, address: u64, into: u64) -> CodeFrame {
        let found = self.kernel.map(|code| of_kernel(code, address, into, self.before));
        with_instruction(frame, into, found.unwrap_or_default())
    }

    /// Adds the offset to a frame without a function.
    pub(super) fn of_no_function(frame: CodeFrame, into: u64) -> CodeFrame {
        with_instruction(frame, into, Vec::new())
    }

    /// Adds the instruction to a frame at a named place.
    pub(super) fn at(
        self,
        frame: CodeFrame,
        (names, machine): (&mut Names, &Machine<'_>),
        (place, name): (Place, &Name),
    ) -> CodeFrame {
        if name.symbol.is_none() {
            return Self::of_no_function(frame, name.offset);
        }
        match place {
            Place::Kernel(address) => self.of_kernel(frame, address, name.into),
            Place::File { .. } => {
                let found = of_file(names, machine, place, name.into, self.before);
                with_instruction(frame, name.into, found.unwrap_or_default())
            }
            Place::User(_) => Self::of_no_function(frame, name.offset),
        }
    }
}

/// Sets the frame's instruction, which is the last one in `found`; empty if the code is unavailable.
fn with_instruction(frame: CodeFrame, into: u64, mut found: Vec<Instruction>) -> CodeFrame {
    let instruction = found.pop();
    let at = |instruction: Instruction, before| {
        let Instruction { into, text, is_after_guest } = instruction;
        InstructionAt { into, text: Some(text), is_after_guest, before }
    };
    let frame_at = |instruction| CodeFrame {
        instruction: Some(Box::new(at(instruction, Vec::new()))),
        ..frame.clone()
    };
    let before: Vec<CodeFrame> = found.into_iter().map(frame_at).collect();
    let unread = InstructionAt { into, ..InstructionAt::default() };
    let instruction_at = instruction.map_or(unread, |instruction| at(instruction, before));
    CodeFrame { instruction: Some(Box::new(instruction_at)), ..frame }
}

/// Number of bytes of a function needed to decode the instruction at an offset.
fn needed(into: u64) -> Option<usize> {
    let into = usize::try_from(into).ok().filter(|&into| into < MAX_BYTES)?;
    Some(into.saturating_add(MAX_INSTRUCTION_BYTES))
}

fn of_kernel(code: &KernelCode, address: u64, into: u64, before: usize) -> Vec<Instruction> {
    let begin = address.checked_sub(into).zip(needed(into));
    let found = CodeIsa::of_elf(code.elf_machine()).zip(begin).map(|(isa, (begin, max))| {
        instructions_to(isa, code.from(begin, max), begin, into, before)
    });
    found.unwrap_or_default()
}

fn of_file(
    names: &mut Names,
    machine: &Machine<'_>,
    place: Place,
    into: u64,
    before: usize,
) -> Option<Vec<Instruction>> {
    let code = names.code(machine, place, into, needed(into)?)?;
    let isa = CodeIsa::of_elf(code.elf_machine)?;
    Some(instructions_to(isa, code.bytes, code.begin, into, before))
}
