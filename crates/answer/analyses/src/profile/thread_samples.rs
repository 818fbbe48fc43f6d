//! Sampled code of host threads in spans of time, for analyses that do not use states.

use crate::view::View;
use std::cell::RefCell;

use sources::{Recording, Samples};
use symbols::Names;

use super::CodeFrame;
use super::code::Code;
use super::samples::{MachineSamples, Place};

/// Number of a sampled stack; `None` beyond the limit of distinct stacks, or without a stack.
pub(crate) type StackNumber = Option<u32>;

/// Samples of a host's threads.
#[derive(Debug)]
pub(crate) struct ThreadSamples<'s>(MachineSamples<'s>);

impl<'s> ThreadSamples<'s> {
    /// Samples of a recording; both slices have one entry, or none.
    pub(crate) fn new(recording: &'s [Recording], samples: &'s [Option<Samples>]) -> Self {
        Self(MachineSamples::new(View::on_own_clocks(recording), samples))
    }

    pub(crate) fn are_there(&self) -> bool {
        self.0.of_recording(0).is_some()
    }

    /// The stack of the next host-code sample in a span of a thread, if there is one; spans of a thread must be in
    /// the order of time.
    pub(crate) fn next(&mut self, thread: u32, from_ns: u64, to_ns: u64) -> Option<StackNumber> {
        loop {
            let at = self.0.next_of_thread((0, thread), from_ns, to_ns)?;
            if let Some(Place::Host(number)) = self.0.place(0, at) {
                return Some(number);
            }
        }
    }

    /// Innermost functions of all stacks.
    pub(crate) fn functions(self) -> StackFunctions {
        let (machines, stacks) = self.0.finish();
        let names = RefCell::new(Names::of_files_here());
        let code = Code {
            guest: None,
            guest_kernel: None,
            nested: None,
            host: machines.first().and_then(Option::as_ref),
            processes: None,
            names: &names,
            stacks: &stacks,
            kept_code: None,
        };
        let function = |number| {
            let number = u32::try_from(number).ok();
            code.of_host(Place::Host(number)).last().map(CodeFrame::function)
        };
        StackFunctions((0..stacks.len()).map(function).collect())
    }
}

/// Innermost functions by stack number.
#[derive(Debug)]
pub(crate) struct StackFunctions(Vec<Option<String>>);

impl StackFunctions {
    /// Innermost function of a stack; `None` if it is unknown.
    pub(crate) fn get(&self, number: StackNumber) -> Option<&str> {
        let at = usize::try_from(number?).ok()?;
        self.0.get(at)?.as_deref()
    }
}
