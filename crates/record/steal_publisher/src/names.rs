//! The kernel's names of exits, each published when it is first needed.

use std::collections::HashSet;

use shmring::spans::SpanWriter;
use timeline::reasons::ReasonNames;

/// Names that were published.
#[derive(Debug)]
pub(crate) struct Names {
    of_kernel: ReasonNames,
    published: HashSet<(u8, u32)>,
}

impl Names {
    pub(crate) fn new(of_kernel: ReasonNames) -> Self {
        Self { of_kernel, published: HashSet::new() }
    }

    /// Publishes the name of a code, unless it was.
    pub(crate) fn publish(&mut self, isa: u8, code: u32, writer: &mut SpanWriter) {
        if self.published.insert((isa, code)) {
            let name = self.of_kernel.name(isa, code.into());
            writer.name(isa, code, &name);
        }
    }
}
