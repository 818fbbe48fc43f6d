//! Instructions of arm64.

use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::ARMv8;

use crate::Instruction;

/// Bytes of each.
const BYTES: usize = 4;

/// ERET, which runs a guest (C6.2 of the Arm architecture reference manual).
const ERET: [u8; BYTES] = 0xd69f_03e0_u32.to_le_bytes();

pub(crate) fn instruction_at(code: &[u8], _begin: u64, into: usize) -> Option<Instruction> {
    let word = code.get(into..)?.first_chunk::<BYTES>().filter(|_| into.is_multiple_of(BYTES))?;
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let decoded = decoder.decode(&mut U8Reader::new(word)).ok()?;
    let before = into.checked_sub(BYTES).and_then(|at| code.get(at..into));
    Some(Instruction { text: decoded.to_string(), is_after_guest: before == Some(&ERET) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_instructions() {
        // stp x29, x30, [sp, #-16]!; eret; nop (encodings of the manual's C6.2)
        let code: Vec<u8> = [0xa9bf_7bfd_u32, 0xd69f_03e0, 0xd503_201f]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        let at = |into| instruction_at(&code, 0, into);
        assert!(at(0).unwrap().text.starts_with("stp x29, x30"), "{:?}", at(0));
        assert!(at(8).unwrap().is_after_guest && at(2).is_none() && at(12).is_none());
    }
}
