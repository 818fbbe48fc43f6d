//! What host threads ran in spans of their time, by samples, for callers that do not split time by states.

use crate::view::View;
use std::cell::RefCell;

use sources::{Recording, Samples};
use symbols::Names;

use super::CodeFrame;
use super::code::Code;
use super::samples::{MachineSamples, Place};

/// A stack that was sampled, by its number; `None`: of more than are kept apart, or without one.
pub(crate) type StackNumber = Option<u32>;

/// Samples of the threads of a host.
#[derive(Debug)]
pub(crate) struct ThreadSamples<'s>(MachineSamples<'s>);

impl<'s> ThreadSamples<'s> {
    /// Those that were taken with a recording, if any were; both slices have one, or none.
    pub(crate) fn new(recording: &'s [Recording], samples: &'s [Option<Samples>]) -> Self {
        Self(MachineSamples::new(View::on_own_clocks(recording), samples))
    }

    pub(crate) fn are_there(&self) -> bool {
        self.0.of_recording(0).is_some()
    }

    /// The stack of the next sample of the host's code in a span of a thread's time, unless that has no more; spans of a
    /// thread must come in order.
    pub(crate) fn next(&mut self, thread: u32, from_ns: u64, to_ns: u64) -> Option<StackNumber> {
        loop {
            let at = self.0.next_of_thread((0, thread), from_ns, to_ns)?;
            if let Some(Place::Host(number)) = self.0.place(0, at) {
                return Some(number);
            }
        }
    }

    /// The innermost functions of all stacks.
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

/// By number, a stack's innermost function.
#[derive(Debug)]
pub(crate) struct StackFunctions(Vec<Option<String>>);

impl StackFunctions {
    /// That of a stack; of one that is not kept `None`.
    pub(crate) fn get(&self, number: StackNumber) -> Option<&str> {
        let at = usize::try_from(number?).ok()?;
        self.0.get(at)?.as_deref()
    }
}
