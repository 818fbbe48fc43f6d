//! Disassembles x86-64.

use std::collections::VecDeque;

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Mnemonic};

use crate::instructions::Instruction;

/// Instructions that run a guest, or that enable the interrupt which ended it (KVM on AMD uses
/// STGI; on Intel it calls the interrupt handler and uses STI).
const BEFORE: [Mnemonic; 5] =
    [Mnemonic::Vmrun, Mnemonic::Vmresume, Mnemonic::Vmlaunch, Mnemonic::Stgi, Mnemonic::Sti];

pub(crate) fn instructions_to(
    code: &[u8],
    begin: u64,
    into: usize,
    before: usize,
) -> Option<Vec<Instruction>> {
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    // One more than requested, to set `is_after_guest` of the first one.
    let mut last = VecDeque::new();
    loop {
        let at = decoder.position();
        if at > into || !decoder.can_decode() {
            return None;
        }
        let decoded = Some(decoder.decode()).filter(|instruction| !instruction.is_invalid())?;
        last.push_back((at, decoded));
        if last.len().saturating_sub(2) > before {
            last.pop_front();
        }
        if at == into {
            break;
        }
    }
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    let mut is_after_guest = false;
    let skipped = last.len().saturating_sub(1).saturating_sub(before);
    let mut found = Vec::new();
    for (number, (at, decoded)) in last.iter().enumerate() {
        if number >= skipped {
            let mut text = String::new();
            formatter.format(decoded, &mut text);
            found.push(Instruction { into: *at as u64, text, is_after_guest });
        }
        is_after_guest = BEFORE.contains(&decoded.mnemonic());
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// vmload; vmrun; vmsave; stgi; nop, as in KVM's svm_vcpu_enter (opcodes of the AMD64 manual, volume 3).
    const ENTER: [u8; 13] =
        [0x0f, 0x01, 0xda, 0x0f, 0x01, 0xd8, 0x0f, 0x01, 0xdb, 0x0f, 0x01, 0xdc, 0x90];

    #[test]
    fn what_follows_the_guest_is_marked() {
        let at = |into| instructions_to(&ENTER, 0, into, 0).unwrap().pop().unwrap();
        assert!(at(3).text.starts_with("vmrun") && !at(3).is_after_guest);
        assert!(at(6).text.starts_with("vmsave") && at(6).is_after_guest);
        assert!(!at(9).is_after_guest && at(12).is_after_guest);
    }

    #[test]
    fn between_instructions_there_is_none() {
        assert_eq!(instructions_to(&ENTER, 0, 1, 3), None);
        assert_eq!(instructions_to(&ENTER[..7], 0, 6, 3), None);
        assert_eq!(instructions_to(&[0x06, 0x90], 0, 1, 3), None);
    }

    #[test]
    fn those_before_are_as_they_are_alone() {
        for into in [0, 3, 6, 9, 12] {
            for before in 0..6 {
                let found = instructions_to(&ENTER, 0, into, before).unwrap();
                assert_eq!(found.len(), 1 + before.min(into / 3));
                for instruction in &found {
                    let at = usize::try_from(instruction.into).unwrap();
                    let alone = instructions_to(&ENTER, 0, at, 0).unwrap();
                    assert_eq!(alone, std::slice::from_ref(instruction));
                }
                assert_eq!(found.last().unwrap().into, into as u64);
            }
        }
    }
}
