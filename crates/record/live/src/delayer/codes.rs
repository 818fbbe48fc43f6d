//! Maps exit reasons to this host's codes, by the kernel's own names.

use std::collections::BTreeMap;

use crate::{host_isa, reason_names};

use crate::delayer::error::Result;

/// Limit of exit codes on VMX (basic reasons) and on SVM, below its two codes at the end of the range: AMD64 manual 2,
/// appendix C; Intel's manual 3, appendix C.
const X86_CODES: u64 = 0x404;
/// On arm64: number of `ARM_EXCEPTION_*` in the kernel's `asm/kvm_asm.h`; a trap also has an exception class.
const ARM_EXITS: u64 = 8;
const ARM_TRAP: u64 = 2;
const ARM_CLASSES: u64 = 64;

/// Codes by the names of their reasons.
#[derive(Debug)]
pub struct CodeTable(BTreeMap<String, Vec<u64>>);

/// This host has no such exit reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchReason {
    /// The requested reason.
    pub reason: String,
    /// Names with the same beginning or end; all names if there are none.
    pub known: Vec<String>,
}

impl CodeTable {
    /// The exit reasons of this host.
    ///
    /// # Errors
    /// When the kernel's event format can't be read.
    pub fn of_host() -> Result<Self> {
        let mut names = reason_names()?;
        let isa = if cfg!(target_arch = "x86_64") { host_isa() as u8 } else { 0 };
        let mut table: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for code in candidates() {
            let name = names.name(isa, code);
            // A code without a symbol is its own name.
            if !name.starts_with("0x") && !name.contains(':') {
                table.entry(name).or_default().push(code);
            }
        }
        Ok(Self(table))
    }

    /// The codes of a reason, case-insensitive.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn codes(&self, reason: &str) -> std::result::Result<&[u64], NoSuchReason> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(reason));
        found.map(|(_, codes)| codes.as_slice()).ok_or_else(|| {
            let lower = reason.to_ascii_lowercase();
            let is_alike = |name: &&String| name.to_ascii_lowercase().contains(&lower);
            let alike: Vec<String> = self.0.keys().filter(is_alike).cloned().collect();
            let known = if alike.is_empty() { self.0.keys().cloned().collect() } else { alike };
            NoSuchReason { reason: reason.to_owned(), known }
        })
    }
}

fn candidates() -> Vec<u64> {
    if cfg!(target_arch = "aarch64") {
        let exits = (0..ARM_EXITS).filter(|exit| *exit != ARM_TRAP).map(|exit| exit << 32);
        exits.chain((0..ARM_CLASSES).map(|class| ARM_TRAP << 32 | class)).collect()
    } else {
        (0..X86_CODES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_whatever_their_case_and_others_are_named() {
        let table = CodeTable(BTreeMap::from([
            ("cpuid".to_owned(), vec![0x72]),
            ("io".to_owned(), vec![0x7b]),
        ]));
        assert_eq!(table.codes("CPUID"), Ok(&[0x72][..]));
        let none = table.codes("cpu").unwrap_err();
        assert_eq!(none.known, ["cpuid"]);
        assert_eq!(table.codes("ept").unwrap_err().known, ["cpuid", "io"]);
    }
}
