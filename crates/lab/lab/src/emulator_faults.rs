//! Takes two faults out of the copy of QEMU's x86 emulator that the lab has unpacked for itself. Both let
//! machines die that run guests; how they were found is in docs/lab.md, "When a machine hangs".

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{LabError, Result};

/// A byte of machine code; `None`: whatever stands there, as offsets differ from version to version.
type Byte = Option<u8>;

/// A piece of QEMU's machine code whose first instruction does harm.
struct Fault {
    code: &'static [Byte],
    /// An instruction of the same length that does nothing.
    nothing: &'static [u8],
}

const fn is(byte: u8) -> Byte {
    Some(byte)
}

/// `andl $~HF2_IGNNE_MASK, hflags2(%rax)` in `cpu_clear_ignne`: whichever processor restores the state of its
/// FPU does this to the first processor, which changes the same word meanwhile, and may lose that change
/// (that it runs a guest, or does so no more). The flag is one of DOS's time: no kernel of 64 bits has it
/// set.
const RACE: Fault = Fault {
    code: &[is(0x81), is(0xa0), None, None, None, None, is(0x7f), is(0xff), is(0xff), is(0xff)],
    nothing: &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
};

/// `cs->exception_index = vector` in `helper_vmrun`, before it delivers the interrupt itself: it is delivered
/// a second time where the processor's loop is left before the next exit.
const TWICE: Fault = Fault {
    code: &[
        is(0x89),
        is(0xb3),
        None,
        None,
        is(0xff),
        is(0xff), // mov %esi, exception_index
        is(0xc7),
        is(0x83),
        None,
        None,
        is(0),
        is(0),
        is(0),
        is(0),
        is(0),
        is(0), // exception_is_int = 0
        is(0x48),
        is(0xc7),
        is(0x83),
        None,
        None,
        is(0),
        is(0), // exception_next_eip = -1
        is(0xff),
        is(0xff),
        is(0xff),
        is(0xff),
    ],
    nothing: &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
};

/// Leaves the faults out of a QEMU, where exactly one place has the code of each. Its code may differ on another
/// system: then it stays as it is. How many were not found.
pub(crate) fn leave_out(qemu: &Path) -> Result<usize> {
    let code = fs::read(qemu).map_err(LabError::io("cannot read", qemu))?;
    let file = File::options().write(true).open(qemu);
    let file = file.map_err(LabError::io("cannot write", qemu))?;
    let mut left_in = 0;
    for fault in [&RACE, &TWICE] {
        let Some(at) = only_place(&code, fault.code) else {
            left_in += 1;
            continue;
        };
        let write = file.write_all_at(fault.nothing, at as u64);
        write.map_err(LabError::io("cannot write", qemu))?;
    }
    Ok(left_in)
}

/// Where `wanted` is, if that is in one place alone.
fn only_place(code: &[u8], wanted: &[Byte]) -> Option<usize> {
    let is_there = |bytes: &[u8]| {
        bytes.iter().zip(wanted).all(|(byte, wanted)| wanted.is_none_or(|wanted| wanted == *byte))
    };
    let mut places = code.windows(wanted.len()).enumerate().filter(|(_, bytes)| is_there(bytes));
    let (at, _) = places.next()?;
    places.next().is_none().then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As QEMU 10.0.2 of Debian has them.
    const RACE_CODE: [u8; 10] = [0x81, 0xa0, 0x74, 0x2c, 0, 0, 0x7f, 0xff, 0xff, 0xff];
    const TWICE_CODE: [u8; 27] = [
        0x89, 0xb3, 0x10, 0xd7, 0xff, 0xff, 0xc7, 0x83, 0xe4, 0x33, 0, 0, 0, 0, 0, 0, 0x48, 0xc7,
        0x83, 0xe8, 0x33, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ];

    fn left_out(code: &[u8]) -> (usize, Vec<u8>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), code).unwrap();
        (leave_out(file.path()).unwrap(), fs::read(file.path()).unwrap())
    }

    #[test]
    fn instructions_that_do_harm_do_nothing_and_all_others_stay() {
        let code = [&[0x90; 7][..], &RACE_CODE, &[0xc3; 5], &TWICE_CODE, &[0xc3]].concat();
        let (count, patched_code) = left_out(&code);
        assert_eq!(count, 0);
        let harmless = [
            &[0x90; 7][..],
            RACE.nothing,
            &[0xc3; 5],
            TWICE.nothing,
            &TWICE_CODE[TWICE.nothing.len()..],
            &[0xc3],
        ]
        .concat();
        assert_eq!(patched_code, harmless);
        // And once is enough.
        assert_eq!(left_out(&patched_code), (2, patched_code.clone()));
    }

    #[test]
    fn what_is_not_certain_stays() {
        let twice = [RACE_CODE, RACE_CODE].concat();
        assert_eq!(left_out(&twice), (2, twice.clone()));
        assert_eq!(left_out(&[0x81]), (2, vec![0x81]));
        assert_eq!(left_out(&[]), (2, vec![]));
    }
}
