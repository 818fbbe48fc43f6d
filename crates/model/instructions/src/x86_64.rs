//! Instructions of x86-64.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Mnemonic};

use crate::Instruction;

/// What runs a guest, and what lets in the interrupt that ended it (KVM on AMD does with STGI, on Intel
/// it calls the interrupt's handler and uses STI).
const BEFORE: [Mnemonic; 5] =
    [Mnemonic::Vmrun, Mnemonic::Vmresume, Mnemonic::Vmlaunch, Mnemonic::Stgi, Mnemonic::Sti];

pub(crate) fn instruction_at(code: &[u8], begin: u64, into: usize) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    let mut before = None;
    while decoder.can_decode() && decoder.position() < into {
        before = Some(decoder.decode()).filter(|one| !one.is_invalid());
        before?;
    }
    if decoder.position() != into || !decoder.can_decode() {
        return None;
    }
    let instruction = Some(decoder.decode()).filter(|one| !one.is_invalid())?;
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    let is_after_guest = before.is_some_and(|one| BEFORE.contains(&one.mnemonic()));
    Some(Instruction { text, is_after_guest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// vmload; vmrun; vmsave; stgi; nop, as in KVM's svm_vcpu_enter (opcodes of the AMD64 manual, volume 3).
    const ENTER: [u8; 13] =
        [0x0f, 0x01, 0xda, 0x0f, 0x01, 0xd8, 0x0f, 0x01, 0xdb, 0x0f, 0x01, 0xdc, 0x90];

    #[test]
    fn what_follows_the_guest_is_marked() {
        let at = |into| instruction_at(&ENTER, 0, into).unwrap();
        assert!(at(3).text.starts_with("vmrun") && !at(3).is_after_guest);
        assert!(at(6).text.starts_with("vmsave") && at(6).is_after_guest);
        assert!(!at(9).is_after_guest && at(12).is_after_guest);
    }

    #[test]
    fn between_instructions_there_is_none() {
        assert_eq!(instruction_at(&ENTER, 0, 1), None);
        assert_eq!(instruction_at(&ENTER[..7], 0, 6), None);
        assert_eq!(instruction_at(&[0x06, 0x90], 0, 1), None);
    }
}
