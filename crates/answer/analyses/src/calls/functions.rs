//! Functions of a recorded kernel: names by address, and sums.

use ftrace::eventfmt::Kallsyms;
use rustc_hash::FxHashMap;

/// Max functions: a kernel with all its modules has fewer.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Max addresses with a cached function: a kernel has some hundred thousand call sites.
const MAX_ADDRESSES: usize = 1 << 21;

/// Max distance from a symbol to the tracer's hook, which is at a function's first instructions. An address
/// farther away is not the start of that function.
const LONGEST_PROLOGUE: u64 = 64;

/// A function with the sums of all its calls.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Address of its symbol; without a symbol, the recorded address.
    pub address: u64,
    /// Name; `None` without a symbol.
    pub name: Option<String>,
    /// The module; `None` for the kernel image.
    pub module: Option<String>,
    /// Calls that returned; for the function tracer, all calls.
    pub count: u64,
    /// Time from call to return; recursive calls only count once.
    pub total_ns: u64,
    /// CPU time in the function itself.
    pub self_ns: u64,
    /// Off-CPU time while it was the innermost function.
    pub off_cpu_ns: u64,
    /// Time of the longest call.
    pub max_ns: u64,
    /// Traced direct callees of the calls in `count`.
    pub calls_made: u64,
    /// Calls without a return event, or interrupted by a loss.
    pub without_return: u64,
    /// Returns without a call event, or with a loss in between.
    pub without_call: u64,
    /// Events that the tracer wrote for it.
    pub events: u64,
    /// Callers and their counts, most frequent first. Only for the function tracer.
    pub callers: Vec<(u32, u64)>,
}

impl Function {
    /// Name with module: `svm_vcpu_run [kvm_amd]`; the address if there is no name.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.name, &self.module) {
            (Some(name), Some(module)) => format!("{name} [{module}]"),
            (Some(name), None) => name.clone(),
            (None, _) => format!("{:#x}", self.address),
        }
    }
}

/// Functions by index, and indexes by address.
pub(super) struct Functions<'k> {
    symbols: &'k Kallsyms,
    pub(super) all: Vec<Function>,
    /// By start address of a function.
    numbers: FxHashMap<u64, u32>,
    /// By any recorded code address.
    seen: FxHashMap<u64, Option<u32>>,
}

impl<'k> Functions<'k> {
    pub(super) fn new(symbols: &'k Kallsyms) -> Self {
        let (numbers, seen) = (FxHashMap::default(), FxHashMap::default());
        Self { symbols, all: Vec::new(), numbers, seen }
    }

    /// The function that starts at `address`.
    pub(super) fn beginning(&mut self, address: u64) -> Option<u32> {
        self.find(address, LONGEST_PROLOGUE)
    }

    /// The function that starts at `address`; sets its name if it has none.
    pub(super) fn named(&mut self, address: u64, name: Option<&str>) -> Option<u32> {
        let number = self.beginning(address)?;
        if let (Some(name), Some(function)) = (name, self.get_mut(number))
            && function.name.is_none()
        {
            function.name = Some(name.to_owned());
        }
        Some(number)
    }

    /// The function that contains `address`.
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
    /// Part inside the time of the call.
    pub inside_ns: u64,
    /// Part outside, in the time of the caller.
    pub outside_ns: u64,
}

impl Function {
    /// The tracer's share of `self_ns`, at most all of it; 0 if the cost was not measured.
    #[must_use]
    pub fn tracer_ns(&self, per_call: Option<PerCall>) -> u64 {
        let Some(per_call) = per_call else { return 0 };
        let inside_ns = per_call.inside_ns.saturating_mul(self.count);
        let outside_ns = per_call.outside_ns.saturating_mul(self.calls_made);
        inside_ns.saturating_add(outside_ns).min(self.self_ns)
    }
}
