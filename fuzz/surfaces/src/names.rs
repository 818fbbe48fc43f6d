//! Names of code in user space: symbol tables of files, mappings of processes, mangled names; and
//! copies of kernel code.

use std::cell::Cell;
use std::path::Path;

use perfdata::{Body, BuildId, Comm, Mapping, Task, misc};
use raw_bytes::slice;
use symbols::instructions::{CodeIsa, instructions_to};
use symbols::{
    DebugFiles, ElfFunctions, Kallsyms, KernelCode, Machine, Names, Place, ProcessLog, demangle,
};
use sys::FileMap;

/// Bytes per step of a story.
const STEP: usize = 6;

/// Maximum names to demangle per input.
const NAMES: usize = 64;

/// Bytes of a file to read for its build id: ELF header, program headers, notes.
const MAX_READ: usize = 32 << 10;

/// Words of a file to look up as addresses, and bytes to read at each.
const WORDS: usize = 64;
const MAX_CODE: usize = 256;

/// Reads `bytes` in each of these ways.
pub fn run(bytes: &[u8]) {
    elf(bytes);
    notes(bytes);
    kernel_code(bytes);
    story(bytes);
    for text in bytes.split(|byte| matches!(byte, 0 | b'\n')).take(NAMES) {
        let text = String::from_utf8_lossy(text);
        let name = demangle(&text);
        assert!(name == text || (!name.is_empty() && name.len() <= 4096));
    }
}

/// The functions of a file: the function of an address starts at or before it.
fn elf(file: &[u8]) {
    let Ok(functions) = ElfFunctions::parse(file) else { return };
    assert!(functions.len() <= file.len() && functions.segments.len() <= file.len());
    let begins =
        functions.segments.iter().flat_map(|segment| [segment.address, segment.file_offset]);
    for begin in begins.chain([0, 1, u64::MAX]) {
        for address in [begin, begin.wrapping_add(0x40), begin.wrapping_sub(1)] {
            if let Some(found) = functions.at(file, address) {
                assert!(found.offset <= address);
                let start = functions.at(file, address - found.offset);
                assert!(start.is_some_and(|start| start.offset <= found.offset));
            }
            let _ = functions.address_of(address);
            let _ = functions.address_of_mapped(address, (begin, 0x1000));
        }
    }
}

/// The build id in a file's notes, with bounded reads.
fn notes(file: &[u8]) {
    let read = Cell::new(0);
    let found = sampler::elf_build_id(|into, at| {
        let some = slice::range(file, at, into.len() as u64);
        into.get_mut(..some.len()).unwrap_or_default().copy_from_slice(some);
        read.set(read.get() + some.len());
        Ok(some.len())
    });
    assert!(read.get() < MAX_READ);
    let is_there = |id: BuildId| file.windows(id.bytes().len()).any(|some| some == id.bytes());
    assert!(found.is_none_or(|id| !id.bytes().is_empty() && is_there(id)));
}

/// A file with a guest's kernel code, as in a session: code found at an address is in the file.
fn kernel_code(file: &[u8]) {
    let Ok(map) = FileMap::spooled(file, Path::new("code")) else { return };
    let Ok(code) = KernelCode::parse(map) else { return };
    let words = file.as_chunks::<8>().0.iter().take(WORDS).map(|word| u64::from_le_bytes(*word));
    for address in words.chain([0, u64::MAX]) {
        let found = code.from(address, MAX_CODE);
        assert!(found.len() <= MAX_CODE);
        if let Some(isa) = CodeIsa::of_elf(code.elf_machine()) {
            let read = instructions_to(isa, found, address, 4, 2);
            assert!(read.len() <= 3 && read.iter().all(|instruction| !instruction.text.is_empty()));
            assert!(read.last().is_none_or(|instruction| instruction.into == 4));
        }
    }
}

/// Processes map files, fork and exec, in any order and with overlaps; then all of them are looked
/// up.
fn story(bytes: &[u8]) {
    let mut log = ProcessLog::default();
    for step in bytes.chunks_exact(STEP) {
        let [what, pid, time, at, len, file] = step else { continue };
        let (pid, time_ns) = (u32::from(pid % 8), u64::from(*time));
        match what % 4 {
            0 => {
                let parent = u32::from(at % 8);
                let task =
                    Task { pid, parent_pid: parent, tid: pid, parent_tid: parent, time: time_ns };
                log.body(time_ns, u16::from(*len) << 8, &Body::Fork(task));
            }
            1 => {
                let comm = Comm { pid, tid: pid, name: b"x", exec: true };
                log.body(time_ns, misc::COMM_EXEC, &Body::Comm(comm));
            }
            _ => {
                let high = if *at > 250 { u64::MAX - 0x100 } else { 0 };
                let mapping = Mapping {
                    pid,
                    tid: pid,
                    addr: u64::from(*at).wrapping_mul(16).wrapping_add(high),
                    len: u64::from(*len) * 16,
                    file_offset: u64::from(*file) << 56,
                    build_id: (file % 2 == 0).then(|| BuildId::new(&[*file; 20])),
                    protection: None,
                    path: &step[5..],
                };
                log.body(time_ns, 0, &Body::Mapping(mapping));
            }
        }
    }
    let kernel = Kallsyms::default();
    let machine = Machine::elsewhere(&kernel, log.finish());
    let mut names = Names::new(DebugFiles::of_folders(Vec::new()));
    for pid in 0..9 {
        for address in [0, 16, 100, 4095, u64::MAX - 0x100, u64::MAX] {
            for time_ns in [0, 100, u64::MAX] {
                let place = machine.user_place(pid, time_ns, address);
                let name = names.name(&machine, place);
                let is_file = matches!(place, Place::File { .. });
                assert!(name.symbol.is_none() && is_file == name.module.is_some());
            }
        }
    }
}
