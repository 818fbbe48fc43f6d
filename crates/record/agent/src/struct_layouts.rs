//! Member offsets of kernel structures, from BTF.
//!
//! Mirrors `include/uapi/linux/btf.h`. A module has its own file, whose strings continue those of `vmlinux`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use raw_bytes::{ByteOrder, Cursor, slice};

/// The kernel's BTF files.
const FOLDER: &str = "/sys/kernel/btf";
/// Max size of a file: the kernel's own has about 5 MB.
const MAX_BYTES: u64 = 64 << 20;
const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const ORDER: ByteOrder =
    if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

/// Offsets of members, and sizes of structures, in bytes.
#[derive(Debug, Default)]
pub(crate) struct StructLayouts {
    members: HashMap<(String, String), u32>,
    sizes: HashMap<String, u32>,
}

impl StructLayouts {
    /// The structures `wanted` of this kernel and some of its modules; missing ones are left out.
    pub(crate) fn of_this_kernel(modules: &[&str], wanted: &[&str]) -> Self {
        let mut types = Self::default();
        let read = |name: &str| {
            let path = Path::new(FOLDER).join(name);
            let size = fs::metadata(&path).ok()?.len();
            if size <= MAX_BYTES { fs::read(path).ok() } else { None }
        };
        let Some(kernel) = read("vmlinux") else { return types };
        let base = types.add(&kernel, &[], wanted);
        for module in modules {
            if let (Some(names), Some(bytes)) = (base, read(module)) {
                types.add(&bytes, names, wanted);
            }
        }
        types
    }

    #[cfg(test)]
    pub(crate) fn made(members: &[(&str, u32)], structure: &str, size: u32) -> Self {
        let member = |&(name, at): &(&str, u32)| ((structure.to_owned(), name.to_owned()), at);
        let sizes = [(structure.to_owned(), size)].into();
        Self { members: members.iter().map(member).collect(), sizes }
    }

    /// The offset of a member in its structure, in bytes.
    pub(crate) fn member(&self, structure: &str, name: &str) -> Option<u32> {
        self.members.get(&(structure.to_owned(), name.to_owned())).copied()
    }

    /// The size of a structure, in bytes.
    pub(crate) fn size(&self, structure: &str) -> Option<u32> {
        self.sizes.get(structure).copied()
    }

    /// Adds the structures of a file; `base` has the strings that precede its own. Returns its strings.
    fn add<'b>(&mut self, file: &'b [u8], base: &[u8], wanted: &[&str]) -> Option<&'b [u8]> {
        let (types, own_names) = sections(file)?;
        let name = |offset: u32| name_at(base, own_names, offset);
        let mut at = Cursor::new(types, ORDER, 0);
        while let (Ok(name_at), Ok(info), Ok(size)) = (at.u32(), at.u32(), at.u32()) {
            let (kind, count) = (info >> 24 & 0x1f, info & 0xffff);
            let structure =
                name(name_at).filter(|structure| kind == STRUCT && wanted.contains(structure));
            let Some(structure) = structure else {
                at.take(bytes_after(kind, count)?.into()).ok()?;
                continue;
            };
            // With bitfields, the upper byte of a member's offset is its size.
            let mask = if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
            for _ in 0..count {
                let (member, _, bit) = (at.u32().ok()?, at.u32().ok()?, at.u32().ok()? & mask);
                if let Some(member) = name(member).filter(|_| bit % 8 == 0) {
                    self.members.insert((structure.to_owned(), member.to_owned()), bit / 8);
                }
            }
            self.sizes.insert(structure.to_owned(), size);
        }
        Some(own_names)
    }
}

/// The types and the strings of a file: `struct btf_header`.
fn sections(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut header = Cursor::new(file, ORDER, 0);
    let (magic, _version_and_flags, header_bytes) =
        (header.u16().ok()?, header.u16().ok()?, header.u32().ok()?);
    let mut section = || {
        let (offset, bytes) = (header.u32().ok()?, header.u32().ok()?);
        let from = u64::from(header_bytes) + u64::from(offset);
        Some(slice::range(file, from, bytes.into())).filter(|found| found.len() == bytes as usize)
    };
    (magic == MAGIC).then(|| section().zip(section())).flatten()
}

/// A name in the kernel's strings or, after those, a module's; `None` for the empty name.
fn name_at<'b>(base: &'b [u8], own_names: &'b [u8], offset: u32) -> Option<&'b str> {
    let offset = usize::try_from(offset).ok()?;
    let bytes = match offset.checked_sub(base.len()) {
        None => base.get(offset..)?,
        Some(offset) => own_names.get(offset..)?,
    };
    std::str::from_utf8(slice::until_nul(bytes)).ok().filter(|name| !name.is_empty())
}

/// Size of a type after its common header: `BTF_KIND_*`. `None` for an unknown kind, after which nothing can be parsed.
const fn bytes_after(kind: u32, count: u32) -> Option<u32> {
    Some(match kind {
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, 64-bit enumerations.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumerations, parameters.
        6 | 13 => 8 * count,
        // Pointers, forward declarations, typedefs, qualifiers, functions, floats, type tags.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[u8] = b"\0queue\0name\0flag\0";

    fn file(types: &[u32], names: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_ne_bytes().to_vec();
        file.extend([1, 0]);
        let bytes = (types.len() * 4) as u32;
        for word in [24, 0, bytes, bytes, names.len() as u32].iter().chain(types) {
            file.extend(word.to_ne_bytes());
        }
        file.extend(names);
        file
    }

    #[test]
    fn members_have_their_places_and_modules_continue_names() {
        let wanted = ["queue", "own"];
        // An integer, and a structure with a member at byte 24 and a bitfield.
        let kernel = file(
            &[1, 1 << 24, 4, 0, 1, 1 << 31 | 4 << 24 | 2, 48, 7, 1, 192, 12, 1, 1 << 24 | 3],
            NAMES,
        );
        let mut types = StructLayouts::default();
        let base = types.add(&kernel, &[], &wanted).unwrap();
        assert_eq!((types.member("queue", "name"), types.size("queue")), (Some(24), Some(48)));
        assert_eq!(types.member("queue", "flag"), None);
        let first = base.len() as u32;
        let module = file(&[first + 1, 4 << 24 | 1, 16, 7, 1, 64], b"\0own\0");
        types.add(&module, base, &wanted).unwrap();
        assert_eq!((types.member("own", "name"), types.size("own")), (Some(8), Some(16)));
    }

    #[test]
    fn damaged_files_say_nothing() {
        let bytes = file(&[1, 4 << 24 | 1, 48, 7, 1, 192], NAMES);
        for len in 0..bytes.len() {
            let mut types = StructLayouts::default();
            assert_eq!(types.add(&bytes[..len], &[], &["queue"]), None, "{len}");
        }
        let mut types = StructLayouts::default();
        assert_eq!(types.add(&file(&[1, 31 << 24, 0], NAMES), &[], &["queue"]), None);
        assert_eq!(types.add(&file(&[1, 4 << 24 | 0xffff, 48], NAMES), &[], &["queue"]), None);
    }

    #[test]
    fn this_kernel_says_where_members_are() {
        if !Path::new(FOLDER).join("vmlinux").exists() {
            return testkit::skip!("this kernel shows no types");
        }
        let types = StructLayouts::of_this_kernel(&[], &["list_head", "task_struct"]);
        let word = size_of::<usize>() as u32;
        assert_eq!(types.member("list_head", "prev"), Some(word));
        assert_eq!(types.size("list_head"), Some(2 * word));
        assert!(types.member("task_struct", "comm").is_some_and(|at| at > 100));
    }
}
