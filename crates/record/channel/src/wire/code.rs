//! Kernel code of a guest around its samples, sent to the host in pieces of memory in ascending order.

use crate::wire::fields::{Fields, Malformed, Payload};

/// Max size of a piece: whole pages that fit in a message.
pub const MAX_CODE_BYTES: usize = 28 << 10;

/// Requests the kernel code around the samples of the next recording. Agents without this feature ignore the request,
/// and send none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRequest {
    /// Max number of pieces.
    pub pieces: u32,
    /// Max bytes of all pieces.
    pub bytes: u32,
}

/// A piece of the kernel's memory. An empty piece marks the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePiece {
    /// Number of pieces sent before.
    pub before: u32,
    /// The processor's `e_machine` in ELF.
    pub elf_machine: u16,
    /// Its address; pieces are in ascending order and do not overlap.
    pub address: u64,
    /// Its content, at most [`MAX_CODE_BYTES`].
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
