//! Patches two bugs in the lab's own copy of QEMU's x86 emulator. Both crash machines that run guests; docs/lab.md,
//! "When a machine hangs", tells how they were found.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{LabError, Result};

/// A byte of machine code; `None`: any byte, since offsets differ between versions.
type Byte = Option<u8>;

/// A sequence of QEMU's machine code whose first instruction is wrong.
struct Fault {
    code: &'static [Byte],
    /// A NOP of the same length.
    nothing: &'static [u8],
}

const fn is(byte: u8) -> Byte {
    Some(byte)
}

/// `andl $~HF2_IGNNE_MASK, hflags2(%rax)` in `cpu_clear_ignne`: any CPU that restores its FPU state does this to the
/// first CPU. The first CPU may change the same word meanwhile, and lose that change (that it has entered or left a
/// guest). The flag exists for DOS: no 64-bit kernel sets it.
const RACE: Fault = Fault {
    code: &[is(0x81), is(0xa0), None, None, None, None, is(0x7f), is(0xff), is(0xff), is(0xff)],
    nothing: &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
};

/// `cs->exception_index = vector` in `helper_vmrun`, before it delivers the interrupt itself: the interrupt is
/// delivered a second time if the CPU loop is left before the next exit.
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

/// Patches the bugs in a QEMU, if exactly one place has the code of each. Other builds may have other code, which stays
/// unchanged. Returns the number of bugs not found.
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

/// Position of `wanted`, if there is exactly one.
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

    /// Code of Debian's QEMU 10.0.2.
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
        // A second run changes nothing.
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
