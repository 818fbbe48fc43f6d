//! C types by name: size and signedness, which decide how the kernel computes with a value.

use raw_bytes::LongSize;

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CType {
    width: Width,
    /// Whether values may be negative.
    pub(crate) signed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Bytes(u8),
    Long,
}

impl CType {
    /// The type with this size in bytes.
    pub(crate) const fn new(size: u8, signed: bool) -> Self {
        Self { width: Width::Bytes(size), signed }
    }

    /// `long`; unsigned, also an address.
    pub(crate) const fn long(signed: bool) -> Self {
        Self { width: Width::Long, signed }
    }

    /// Size in bytes; 8 for `long`.
    pub(crate) const fn size(self) -> u8 {
        self.size_in(LongSize::Eight)
    }

    /// Size in bytes on a machine with this `long`.
    pub(crate) const fn size_in(self, long: LongSize) -> u8 {
        match (self.width, long) {
            (Width::Bytes(size), _) => size,
            (Width::Long, LongSize::Four) => 4,
            (Width::Long, LongSize::Eight) => 8,
        }
    }
}

/// Kernel names of integer types, without `const` and `enum`.
const NAMED: &[(&str, CType)] = &[
    ("__s64", CType::new(8, true)),
    ("__u16", CType::new(2, false)),
    ("__u32", CType::new(4, false)),
    ("__u64", CType::new(8, false)),
    ("__u8", CType::new(1, false)),
    ("__s8", CType::new(1, true)),
    ("__s16", CType::new(2, true)),
    ("__s32", CType::new(4, true)),
    ("__be16", CType::new(2, false)),
    ("__be32", CType::new(4, false)),
    ("__be64", CType::new(8, false)),
    ("__le16", CType::new(2, false)),
    ("__le32", CType::new(4, false)),
    ("__le64", CType::new(8, false)),
    ("_Bool", CType::new(1, false)),
    ("blkcnt_t", CType::new(8, false)),
    ("bool", CType::new(1, false)),
    ("clockid_t", CType::new(4, true)),
    ("dev_t", CType::new(4, false)),
    ("dma_addr_t", CType::new(8, false)),
    ("gfn_t", CType::new(8, false)),
    ("gfp_t", CType::new(4, false)),
    ("gid_t", CType::new(4, false)),
    ("gpa_t", CType::new(8, false)),
    ("gva_t", CType::long(false)),
    ("hfn_t", CType::new(8, false)),
    ("hpa_t", CType::new(8, false)),
    ("ino_t", CType::long(false)),
    ("int16_t", CType::new(2, true)),
    ("int32_t", CType::new(4, true)),
    ("int64_t", CType::new(8, true)),
    ("int8_t", CType::new(1, true)),
    ("intptr_t", CType::long(true)),
    ("kernel_ulong_t", CType::long(false)),
    ("kvm_pfn_t", CType::new(8, false)),
    ("ktime_t", CType::new(8, true)),
    ("loff_t", CType::new(8, true)),
    ("mode_t", CType::new(2, false)),
    ("off_t", CType::long(true)),
    ("pgoff_t", CType::long(false)),
    ("phys_addr_t", CType::new(8, false)),
    ("pid_t", CType::new(4, true)),
    ("qid_t", CType::new(4, false)),
    ("resource_size_t", CType::new(8, false)),
    ("s16", CType::new(2, true)),
    ("s32", CType::new(4, true)),
    ("s64", CType::new(8, true)),
    ("s8", CType::new(1, true)),
    ("sector_t", CType::new(8, false)),
    ("size_t", CType::long(false)),
    ("ssize_t", CType::long(true)),
    ("time64_t", CType::new(8, true)),
    ("time_t", CType::long(true)),
    ("tid_t", CType::new(4, false)),
    ("u16", CType::new(2, false)),
    ("u32", CType::new(4, false)),
    ("u64", CType::new(8, false)),
    ("u8", CType::new(1, false)),
    ("uid_t", CType::new(4, false)),
    ("uint16_t", CType::new(2, false)),
    ("uint32_t", CType::new(4, false)),
    ("uint64_t", CType::new(8, false)),
    ("uint8_t", CType::new(1, false)),
    ("uintptr_t", CType::long(false)),
    ("umode_t", CType::new(2, false)),
    ("xid_t", CType::new(4, false)),
];

/// The integer type with this name; `None` if it is unknown.
///
/// Pointers are addresses. Plain `char` counts as signed; the format says so where it matters.
pub(crate) fn named(text: &str) -> Option<CType> {
    if text.contains('*') {
        return Some(CType::long(false));
    }
    let (mut longs, mut short, mut char, mut int, mut sign) = (0u8, false, false, false, None);
    for word in text.split_ascii_whitespace() {
        match word {
            "const" | "volatile" | "__force" | "static" => {}
            "enum" => return Some(CType::new(4, true)),
            "long" => longs = longs.saturating_add(1),
            "short" => short = true,
            "char" => char = true,
            "int" => int = true,
            "signed" => sign = Some(true),
            "unsigned" => sign = Some(false),
            name => return NAMED.iter().find(|known| known.0 == name).map(|known| known.1),
        }
    }
    let signed = sign.unwrap_or(true);
    match (longs, short, char) {
        (0, false, true) => Some(CType::new(1, signed)),
        (0, true, _) => Some(CType::new(2, signed)),
        (0, ..) => (int || sign.is_some()).then_some(CType::new(4, signed)),
        (1, ..) => Some(CType::long(signed)),
        _ => Some(CType::new(8, signed)),
    }
}

/// Whether a word can start a type name, so that `(word` starts a cast.
pub(crate) fn begins_type(word: &str) -> bool {
    let keywords = [
        "char", "const", "enum", "int", "long", "short", "signed", "static", "struct", "union",
        "unsigned", "void", "volatile", "__force",
    ];
    keywords.contains(&word) || NAMED.iter().any(|known| known.0 == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelled_types_have_their_size() {
        assert_eq!(named("unsigned long long"), Some(CType::new(8, false)));
        assert_eq!(named("long long int"), Some(CType::new(8, true)));
        assert_eq!(named("unsigned"), Some(CType::new(4, false)));
        assert_eq!(named("unsigned long").map(|ctype| ctype.size_in(LongSize::Four)), Some(4));
        assert_eq!(named("const char *"), Some(CType::long(false)));
        assert_eq!(named("u8"), Some(CType::new(1, false)));
        assert_eq!(named("struct foo"), None);
        assert_eq!(named(""), None);
    }
}
