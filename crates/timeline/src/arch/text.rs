//! Exits of a text that a trace was printed to: reasons have names and no codes.
//!
//! `sources::text` numbers the names as they come, and prints them by the event's own print fmt. All other
//! events of a text have the fields of the architecture that they were recorded on.

use super::{Arch, Isa, IsaCodes, Rule};
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm:kvm_exit", Kind::Exit).value("text_reason"),
        Rule::new("kvm:kvm_nested_vmexit_inject", Kind::NestedInject).value("text_reason"),
    ],
    details: &[],
    accesses: &[],
    injections: &[],
    isas: &[IsaCodes {
        waits: |number| number & WAITS != 0,
        ..IsaCodes::new(Isa::Text, "unknown")
    }],
};

/// Set in the number of a reason for which the guest waits.
const WAITS: u64 = 1 << 32;
