//! A guest's kernel's code where samples saw it run, on its way to the host: pieces of memory, in order.

use crate::wire::fields::{Fields, Malformed, Payload};

/// The longest piece: whole pages that fit in a message.
pub const MAX_CODE_BYTES: usize = 28 << 10;

/// The kernel's code is wanted where the next recording's samples see it run. Agents that know nothing of it
/// leave this out, and send none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRequest {
    /// Pieces at most.
    pub pieces: u32,
    /// Bytes of all at most.
    pub bytes: u32,
}

/// A piece of the kernel's memory. One without bytes is none: it says that all were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePiece {
    /// Pieces that were sent before.
    pub before: u32,
    /// What an ELF file calls this processor: `e_machine`.
    pub elf_machine: u16,
    /// Where it is; no piece begins before the end of the one before.
    pub address: u64,
    /// What is there, at most [`MAX_CODE_BYTES`].
    pub bytes: Vec<u8>,
}

impl CodeRequest {
    pub(crate) fn write(self, to: &mut Payload) {
        to.u32(self.pieces).u32(self.bytes);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self { pieces: from.u32()?, bytes: from.u32()? })
    }
}

impl CodePiece {
    pub(crate) fn write(&self, to: &mut Payload) {
        to.u32(self.before).u16(self.elf_machine).u64(self.address).bytes(&self.bytes);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (before, elf_machine, address) = (from.u32()?, from.u16()?, from.u64()?);
        let bytes = from.rest();
        if bytes.len() > MAX_CODE_BYTES {
            return Err(Malformed);
        }
        Ok(Self { before, elf_machine, address, bytes: bytes.to_vec() })
    }
}
