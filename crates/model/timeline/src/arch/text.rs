//! Exits in a printed trace: reasons have names, but no codes.
//!
//! `sources::text` numbers the names in order of appearance, and the event's print fmt prints them.
//! All other events of a text have the fields of the architecture on which they were recorded.

use sources::{TEXT_REASON, TEXT_REASON_WAITS};

use super::{Arch, Isa, IsaCodes, Rule};
use crate::thread_event::Kind;

pub(super) const ARCH: Arch = Arch {
    rules: &[
        Rule::new("kvm:kvm_exit", Kind::Exit).value(TEXT_REASON),
        Rule::new("kvm:kvm_nested_vmexit_inject", Kind::NestedInject).value(TEXT_REASON),
    ],
    details: &[],
    accesses: &[],
    injections: &[],
    isas: &[IsaCodes {
        waits: |number| number & TEXT_REASON_WAITS != 0,
        ..IsaCodes::new(Isa::Text, "unknown")
    }],
};
