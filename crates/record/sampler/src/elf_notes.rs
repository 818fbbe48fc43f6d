//! The build id in an ELF file's notes, found by a few small reads: the files are untrusted, any user may have mapped
//! them.

use std::io;

use perfdata::BuildId;
use raw_bytes::ByteOrder;

/// Max program headers to read; programs have about a dozen.
const MAX_PARTS: u16 = 128;
/// Max bytes to search in a file's notes.
const MAX_NOTE_BYTES: u64 = 16 << 10;

/// Size of the larger of both ELF headers.
const HEAD_BYTES: u64 = 64;
/// `PT_NOTE`.
const NOTE: u32 = 4;
/// Reads the build id of an ELF file. `read` fills a buffer from an offset, as far as the file goes.
pub fn elf_build_id(read: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> Option<BuildId> {
    let head = bytes(&read, 0, HEAD_BYTES);
    let shape = Shape::parse(&head)?;
    let (at, count) = shape.parts(&head)?;
    let part_bytes = shape.part_bytes();
    let parts = bytes(&read, at, part_bytes.saturating_mul(count.min(MAX_PARTS).into()));
    let mut room = MAX_NOTE_BYTES;
    for part in parts.chunks_exact(usize::try_from(part_bytes).ok()?) {
        let Some(notes) = shape.notes(part) else { continue };
        let text = bytes(&read, notes.at, notes.len.min(room));
        if let Some(found) = BuildId::in_notes(&text, shape.order, notes.step) {
            return Some(found);
        }
        room = room.saturating_sub(notes.len);
    }
    None
}

/// Up to `len` bytes of a file.
fn bytes(read: &impl Fn(&mut [u8], u64) -> io::Result<usize>, at: u64, len: u64) -> Vec<u8> {
    // All callers bound `len`.
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read(rest, at.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(some) => filled = filled.saturating_add(some),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.truncate(filled);
    bytes
}

/// Word size and byte order of a file.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_64: bool,
    order: ByteOrder,
}

/// A segment with notes.
#[derive(Clone, Copy, Debug)]
struct Notes {
    at: u64,
    len: u64,
    /// Alignment of notes, in bytes.
    step: u64,
}

impl Shape {
    fn parse(head: &[u8]) -> Option<Self> {
        let rest = head.strip_prefix(b"\x7fELF")?;
        let is_64 = match rest.first()? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let order = match rest.get(1)? {
            1 => ByteOrder::Little,
            2 => ByteOrder::Big,
            _ => return None,
        };
        Some(Self { is_64, order })
    }

    /// A number of the file's word size.
    fn wide(self, bytes: &[u8], (narrow, wide): (usize, usize)) -> Option<u64> {
        if self.is_64 {
            self.order.u64_at(bytes, wide)
        } else {
            self.order.u32_at(bytes, narrow).map(u64::from)
        }
    }

    /// Offset and number of the program headers.
    fn parts(self, head: &[u8]) -> Option<(u64, u16)> {
        let (size, count) = if self.is_64 { (54, 56) } else { (42, 44) };
        let is_known = self
            .order
            .u16_at(head, size)
            .map(u64::from)
            .is_some_and(|bytes| bytes == self.part_bytes());
        is_known.then_some(())?;
        Some((self.wide(head, (28, 32))?, self.order.u16_at(head, count)?))
    }

    /// Size of a program header.
    const fn part_bytes(self) -> u64 {
        if self.is_64 { 56 } else { 32 }
    }

    /// The notes of a segment, if it has any.
    fn notes(self, part: &[u8]) -> Option<Notes> {
        (self.order.u32_at(part, 0)? == NOTE).then_some(())?;
        let step = if self.wide(part, (28, 48))? == 8 { 8 } else { 4 };
        Some(Notes { at: self.wide(part, (4, 8))?, len: self.wide(part, (16, 32))?, step })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;
    use std::process::Command;

    use proptest::prelude::*;

    use raw_bytes::slice;

    use super::*;

    const ID: [u8; 20] = *b"build id of twenty b";
    const OWNER: &[u8] = b"GNU\0";

    fn put(file: &mut Vec<u8>, order: ByteOrder, number: u64, len: usize) {
        let bytes = number.to_le_bytes();
        let bytes = bytes.iter().copied().take(len);
        match order {
            ByteOrder::Little => file.extend(bytes),
            ByteOrder::Big => file.extend(bytes.rev()),
        }
    }

    fn note(order: ByteOrder, step: usize, owner: &[u8], kind: u64, text: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        [owner.len() as u64, text.len() as u64, kind]
            .into_iter()
            .for_each(|value| put(&mut note, order, value, 4));
        for part in [owner, text] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(step), 0);
        }
        note
    }

    /// A file with three segments; the last one has a build id between other notes.
    fn made(shape: Shape, step: usize) -> Vec<u8> {
        let Shape { is_64, order } = shape;
        let wide = if is_64 { 8 } else { 4 };
        let (head, part) = if is_64 { (64, 56) } else { (52, 32) };
        let notes = [
            note(order, step, OWNER, 5, b"property"),
            note(order, step, b"Go\0\0", 3, b"not one"),
            note(order, step, OWNER, 3, &ID),
            note(order, step, OWNER, 1, b"0123"),
        ]
        .concat();
        let mut file = b"\x7fELF".to_vec();
        file.extend([if is_64 { 2 } else { 1 }, if order == ByteOrder::Little { 1 } else { 2 }]);
        file.resize(if is_64 { 32 } else { 28 }, 0);
        put(&mut file, order, head, wide);
        file.resize(if is_64 { 54 } else { 42 }, 0);
        [part, 3].into_iter().for_each(|value| put(&mut file, order, value, 2));
        file.resize(head as usize, 0);
        for kind in [1, 6, 4] {
            let at = file.len();
            put(&mut file, order, kind, 4);
            file.resize(at + if is_64 { 8 } else { 4 }, 0);
            put(&mut file, order, head + 3 * part, wide);
            file.resize(at + if is_64 { 32 } else { 16 }, 0);
            put(&mut file, order, notes.len() as u64, wide);
            file.resize(at + if is_64 { 48 } else { 28 }, 0);
            put(&mut file, order, step as u64, wide);
            file.resize(at + part as usize, 0);
        }
        file.extend(notes);
        file
    }

    fn shapes() -> impl Iterator<Item = Shape> {
        let orders = [ByteOrder::Little, ByteOrder::Big];
        orders.into_iter().flat_map(|order| [false, true].map(|is_64| Shape { is_64, order }))
    }

    /// The build id, and the number of bytes read for it.
    fn found(file: &[u8]) -> (Option<BuildId>, u64) {
        let read = Cell::new(0);
        let id = elf_build_id(|into, at| {
            let some = slice::range(file, at, into.len() as u64);
            into[..some.len()].copy_from_slice(some);
            read.set(read.get() + some.len() as u64);
            Ok(some.len())
        });
        (id, read.get())
    }

    #[test]
    fn files_of_all_widths_and_orders_have_theirs() {
        for shape in shapes() {
            for step in [4, 8] {
                let file = made(shape, step);
                assert_eq!(found(&file).0, Some(BuildId::new(&ID)), "{shape:?} {step}");
                // A truncated build id is not found.
                let id = file.windows(20).position(|bytes| bytes == ID).unwrap();
                assert_eq!(found(&file[..id + 19]).0, None);
            }
        }
    }

    #[test]
    fn a_build_id_that_is_none_and_notes_without_end_are_passed_over() {
        for shape in shapes() {
            let mut file = made(shape, 4);
            let id = file.windows(20).position(|bytes| bytes == ID).unwrap();
            let mut len = Vec::new();
            put(&mut len, shape.order, 21, 4);
            // Its length precedes its type and owner.
            file[id - 12..id - 8].copy_from_slice(&len);
            assert_eq!(found(&file).0, None);
            file.truncate(id - 16);
            file.resize(1 << 20, 0);
            let (head, part, wide) = if shape.is_64 { (64, 56, 8) } else { (52, 32, 4) };
            let mut long = Vec::new();
            put(&mut long, shape.order, 1 << 19, wide);
            let at = head + 2 * part + (if shape.is_64 { 32 } else { 16 });
            file[at..at + wide].copy_from_slice(&long);
            let (id, read) = found(&file);
            assert!(id.is_none() && read < 20 << 10, "{read}");
        }
    }

    fn programs() -> Vec<PathBuf> {
        let folders = ["/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
        let files = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok());
        let files = files.flat_map(|files| files.flatten().map(|file| file.path()).take(400));
        // No archives either, whose members readelf lists.
        let is_elf = |path: &PathBuf| {
            let mut head = [0; 4];
            let file = path.is_file().then(|| File::open(path).ok()).flatten();
            file.is_some_and(|file| file.read_exact_at(&mut head, 0).is_ok()) && &head == b"\x7fELF"
        };
        let mut files: Vec<_> = files.filter(is_elf).collect();
        files.push(std::env::current_exe().unwrap());
        files
    }

    #[test]
    fn build_ids_are_those_that_readelf_shows() {
        let files = programs();
        let Ok(out) = Command::new("readelf").env("LC_ALL", "C").arg("-n").args(&files).output()
        else {
            testkit::skip!("readelf is not installed");
            return;
        };
        let shown = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut of_file = shown.split("\nFile: ");
        of_file.next();
        let mut with_one = 0;
        for shown in of_file {
            let path = shown.lines().next().unwrap();
            // Go's linker puts its build id only into a section, which the kernel does not read either.
            if shown.lines().any(|line| line.trim_start().starts_with("Go ")) {
                continue;
            }
            let hex = shown.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
            let file = File::open(path).unwrap();
            let found = elf_build_id(|into, at| file.read_at(into, at));
            assert_eq!(found.map(|id| id.to_string()).as_deref(), hex, "{path}");
            with_one += usize::from(hex.is_some());
        }
        assert!(with_one > 0, "{} files", files.len());
    }

    proptest! {
        #[test]
        fn damaged_files_end_it_soon(
            is_64: bool,
            little: bool,
            damage in prop::collection::vec((0_usize..400, any::<u8>()), 1..12),
            len in 0_usize..400,
        ) {
            let order = if little { ByteOrder::Little } else { ByteOrder::Big };
            let mut file = made(Shape { is_64, order }, 4);
            for (at, byte) in damage {
                let at = at % file.len();
                file[at] = byte;
            }
            let (_, read) = found(&file);
            let max = HEAD_BYTES + u64::from(MAX_PARTS) * (56 + 56) + MAX_NOTE_BYTES;
            prop_assert!(read <= max, "{read}");
            file.truncate(len);
            prop_assert!(found(&file).1 <= max);
        }
    }
}
