//! Disassembles arm64.

use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::ARMv8;

use crate::instructions::Instruction;

/// Bytes per instruction.
const BYTES: usize = 4;

/// ERET, which runs a guest (C6.2 of the Arm architecture reference manual).
const ERET: [u8; BYTES] = 0xd69f_03e0_u32.to_le_bytes();

pub(crate) fn instructions_to(code: &[u8], into: usize, before: usize) -> Option<Vec<Instruction>> {
    let (all, _) = code.as_chunks::<BYTES>();
    let at = Some(into / BYTES).filter(|_| into.is_multiple_of(BYTES))?;
    let wanted = instruction(all, at)?;
    // Data words can be between instructions.
    let those = (at.saturating_sub(before)..at).filter_map(|at| instruction(all, at));
    Some(those.chain([wanted]).collect())
}

fn instruction(all: &[[u8; BYTES]], at: usize) -> Option<Instruction> {
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let decoded = decoder.decode(&mut U8Reader::new(all.get(at)?)).ok()?;
    let before = at.checked_sub(1).and_then(|at| all.get(at));
    let into = at.checked_mul(BYTES)? as u64;
    Some(Instruction { into, text: decoded.to_string(), is_after_guest: before == Some(&ERET) })
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
        let at = |into| instructions_to(&code, into, 0)?.pop();
        assert!(at(0).unwrap().text.starts_with("stp x29, x30"), "{:?}", at(0));
        assert!(at(8).unwrap().is_after_guest && at(2).is_none() && at(12).is_none());
        let all = instructions_to(&code, 8, 9).unwrap();
        assert_eq!(all.iter().map(|instruction| instruction.into).collect::<Vec<_>>(), [0, 4, 8]);
        assert_eq!((all.first().cloned(), all.last().cloned()), (at(0), at(8)));
    }
}
