//! The kernel's names of exit reasons, each published before its first use.

use std::collections::HashSet;

use shmring::spans::SpanWriter;
use timeline::reasons::ReasonNames;

/// Codes whose names were published.
#[derive(Debug)]
pub(crate) struct Names {
    of_kernel: ReasonNames,
    published: HashSet<(u8, u32)>,
}

impl Names {
    pub(crate) fn new(of_kernel: ReasonNames) -> Self {
        Self { of_kernel, published: HashSet::new() }
    }

    /// Publishes the name of a code, unless it was published before.
    pub(crate) fn publish(&mut self, isa: u8, code: u32, writer: &mut SpanWriter) {
        if self.published.insert((isa, code)) {
            let name = self.of_kernel.name(isa, code.into());
            writer.name(isa, code, &name);
        }
    }
}
