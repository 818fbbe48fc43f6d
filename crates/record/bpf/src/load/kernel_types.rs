//! The kernel's BTF, with KVM's module.
//!
//! A module's BTF continues the kernel's: its type ids and string offsets begin after the kernel's last ones. So
//! concatenated sections form one BTF.

use std::fs;
use std::path::Path;

use aya::{Btf, Endianness};

use crate::load::error::{LoadError, Result};

const FOLDER: &str = "/sys/kernel/btf";
/// The vendor module's BTF includes all types used here, also those of the common module. If KVM is built in, the
/// kernel's BTF has them.
const MODULES: [&str; 3] = ["kvm_amd", "kvm_intel", "kvm"];
/// Size of `struct btf_header`: magic, version, flags, its length; then offset and length of types and strings.
const HEADER_BYTES: usize = 24;

/// Reads the kernel's BTF, and KVM's if it is a module.
///
/// # Errors
/// When the kernel has no BTF.
pub fn kernel_types() -> Result<Btf> {
    let folder = Path::new(FOLDER);
    let kernel = fs::read(folder.join("vmlinux")).map_err(|_| LoadError::NoBtf)?;
    let module = MODULES.iter().find_map(|name| fs::read(folder.join(name)).ok());
    let all = module.and_then(|module| joined(&kernel, &module)).unwrap_or(kernel);
    Btf::parse(&all, Endianness::default()).map_err(|error| LoadError::Types(Box::new(error)))
}

/// Concatenates types and strings under one header, kernel first.
fn joined(kernel: &[u8], module: &[u8]) -> Option<Vec<u8>> {
    let (kernel, module) = (Sections::parse(kernel)?, Sections::parse(module)?);
    let types = [kernel.types, module.types].concat();
    let texts = [kernel.texts, module.texts].concat();
    let mut all = kernel.head.to_vec();
    let (types_bytes, texts_bytes) =
        (u32::try_from(types.len()).ok()?, u32::try_from(texts.len()).ok()?);
    all.extend((HEADER_BYTES as u32).to_ne_bytes());
    for number in [0, types_bytes, types_bytes, texts_bytes] {
        all.extend(number.to_ne_bytes());
    }
    all.extend(types);
    all.extend(texts);
    Some(all)
}

/// The sections of a BTF file.
struct Sections<'b> {
    /// Magic, version and flags.
    head: &'b [u8],
    types: &'b [u8],
    texts: &'b [u8],
}

impl<'b> Sections<'b> {
    fn parse(bytes: &'b [u8]) -> Option<Self> {
        let number = |at: usize| -> Option<usize> {
            let bytes = bytes.get(at..)?.first_chunk()?;
            usize::try_from(u32::from_ne_bytes(*bytes)).ok()
        };
        let header = number(4)?;
        let section = |at: usize| {
            let from = header.checked_add(number(at)?)?;
            bytes.get(from..from.checked_add(number(at + 4)?)?)
        };
        Some(Self { head: bytes.get(..4)?, types: section(8)?, texts: section(16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn btf(types: &[u8], texts: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let sizes = [types.len() as u32, texts.len() as u32];
        for number in [24, 0, sizes[0], sizes[0], sizes[1]] {
            bytes.extend(u32::to_ne_bytes(number));
        }
        [bytes, types.to_vec(), texts.to_vec()].concat()
    }

    #[test]
    fn sections_follow_each_other() {
        let all = joined(&btf(b"kernel-types", b"\0kernel\0"), &btf(b"module", b"kvm\0")).unwrap();
        assert_eq!(all, btf(b"kernel-typesmodule", b"\0kernel\0kvm\0"));
        assert!(joined(&btf(b"", b""), b"\x9f\xeb\x01\0").is_none());
        let mut wrong = btf(b"types", b"texts");
        wrong[12] = 0xff;
        assert!(joined(&wrong, &wrong).is_none());
    }

    #[test]
    fn this_kernel_describes_its_types() {
        match kernel_types() {
            Ok(_) => {}
            Err(error) => testkit::skip!("{error}"),
        }
    }
}
