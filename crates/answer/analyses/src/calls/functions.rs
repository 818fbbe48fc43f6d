//! The functions of a recorded kernel, by address: what they are called, and how often.

use ftrace::eventfmt::Kallsyms;
use rustc_hash::FxHashMap;

/// Functions that are kept apart: a kernel with all its modules has fewer.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Addresses whose functions are remembered: a kernel has some hundred thousand places that call.
const MAX_ADDRESSES: usize = 1 << 21;

/// The tracer's hook is at a function's first instructions. What is further from a symbol than this
/// is not the beginning of that function.
const LONGEST_PROLOGUE: u64 = 64;

/// A function, and all of its calls.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its address, as symbols have it; else the one recorded.
    pub address: u64,
    /// Its name; `None` where no symbol is known.
    pub name: Option<String>,
    /// The module that it is in; `None` in the kernel itself.
    pub module: Option<String>,
    /// Calls that returned; of the function tracer: calls.
    pub count: u64,
    /// From call to return; of calls within calls of itself only the outer one's.
    pub total_ns: u64,
    /// In the function itself, on a CPU.
    pub self_ns: u64,
    /// Off the CPU while it was the innermost function.
    pub off_cpu_ns: u64,
    /// The longest call.
    pub max_ns: u64,
    /// Traced calls that it made itself, of those that are in `count`.
    pub calls_made: u64,
    /// Calls whose return is not in the recording, or after a loss.
    pub without_return: u64,
    /// Returns whose call is not in the recording, or before a loss.
    pub without_call: u64,
    /// Events that the tracer wrote for it.
    pub events: u64,
    /// Callers and their counts, most frequent first. Only for the function tracer.
    pub callers: Vec<(u32, u64)>,
}

impl Function {
    /// Its name, and its module if it is in one: `svm_vcpu_run [kvm_amd]`; an address has no other.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.name, &self.module) {
            (Some(name), Some(module)) => format!("{name} [{module}]"),
            (Some(name), None) => name.clone(),
            (None, _) => format!("{:#x}", self.address),
        }
    }
}

/// Functions by number, and numbers by address.
pub(super) struct Functions<'k> {
    symbols: &'k Kallsyms,
    pub(super) all: Vec<Function>,
    /// By the address of a function.
    numbers: FxHashMap<u64, u32>,
    /// By any address in code that was recorded.
    seen: FxHashMap<u64, Option<u32>>,
}

impl<'k> Functions<'k> {
    pub(super) fn new(symbols: &'k Kallsyms) -> Self {
        let (numbers, seen) = (FxHashMap::default(), FxHashMap::default());
        Self { symbols, all: Vec::new(), numbers, seen }
    }

    /// The function that begins at `address`.
    pub(super) fn beginning(&mut self, address: u64) -> Option<u32> {
        self.find(address, LONGEST_PROLOGUE)
    }

    /// The function at an address, whose name is known, or not yet.
    pub(super) fn named(&mut self, address: u64, name: Option<&str>) -> Option<u32> {
        let number = self.beginning(address)?;
        if let (Some(name), Some(function)) = (name, self.get_mut(number))
            && function.name.is_none()
        {
            function.name = Some(name.to_owned());
        }
        Some(number)
    }

    /// The function that `address` is somewhere in.
    pub(super) fn around(&mut self, address: u64) -> Option<u32> {
        self.find(address, u64::MAX)
    }

    fn find(&mut self, address: u64, furthest: u64) -> Option<u32> {
        if let Some(&known) = self.seen.get(&address) {
            return known;
        }
        let symbol = self.symbols.lookup(address).filter(|symbol| symbol.offset <= furthest);
        let begin = address.wrapping_sub(symbol.map_or(0, |symbol| symbol.offset));
        let number = self.numbers.get(&begin).copied().or_else(|| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.add(Function {
                address: begin,
                name: symbol.map(|symbol| text(symbol.name)),
                module: symbol.and_then(|symbol| symbol.module).map(text),
                ..Function::default()
            })
        });
        if self.seen.len() < MAX_ADDRESSES {
            self.seen.insert(address, number);
        }
        number
    }

    fn add(&mut self, function: Function) -> Option<u32> {
        let number = u32::try_from(self.all.len()).ok()?;
        if self.all.len() >= MAX_FUNCTIONS {
            return None;
        }
        self.numbers.insert(function.address, number);
        self.all.push(function);
        Some(number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Function> {
        self.all.get_mut(number as usize)
    }
}

/// The measured cost of the tracer per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerCall {
    /// The part of it within the time of the call.
    pub inside_ns: u64,
    /// Of it before and after that, in the time of the caller.
    pub outside_ns: u64,
}

impl Function {
    /// What of its own time is the tracer's, if each call costs so much; no more than there is, and
    /// nothing where nobody measured it.
    #[must_use]
    pub fn tracer_ns(&self, per_call: Option<PerCall>) -> u64 {
        let Some(per_call) = per_call else { return 0 };
        let inside_ns = per_call.inside_ns.saturating_mul(self.count);
        let outside_ns = per_call.outside_ns.saturating_mul(self.calls_made);
        inside_ns.saturating_add(outside_ns).min(self.self_ns)
    }
}
