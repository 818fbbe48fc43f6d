//! Sums the calls of each thread from a recording's events.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use super::events::{CALL, CALLTIME, ENTRY, EXIT, OVERRUN, RETTIME, SWITCH, wanted};
use super::functions::Functions;
use super::stack::{Frame, Measured, Returned, SleepTime, Stack};
use super::thread::Thread;
use super::tree::{CallNodeKind, CallTree};
use super::{CallSink, CallTracer, Called, Function, ThreadCalls, TracerCost};

/// Max threads: more than a kernel has ids for.
const MAX_THREADS: usize = 1 << 22;

/// A thread, with the CPU if it is an idle thread.
type ThreadKey = (u32, u16);

const fn key(thread: u32, cpu: u16) -> ThreadKey {
    (thread, if thread == 0 { cpu } else { 0 })
}

/// Saturates, because times are not verified.
fn add(sum_ns: &mut u64, ns: u64) {
    *sum_ns = sum_ns.saturating_add(ns);
}

/// Totals of a recording; see [`super::RecordedCalls`].
pub(super) struct CallTotals {
    pub tracer: Option<CallTracer>,
    pub switches: bool,
    pub functions: Vec<Function>,
    pub tree: CallTree,
    pub threads: Vec<ThreadCalls>,
    pub cost: TracerCost,
    pub interrupted: u64,
}

/// Gathers the calls of one recording.
pub(super) struct CallFollower<'k, S> {
    pub(super) functions: Functions<'k>,
    tree: CallTree,
    pub(super) threads: Vec<Thread>,
    cost: TracerCost,
    pub(super) tracer: Option<CallTracer>,
    switches: bool,
    interrupted: u64,
    numbers: FxHashMap<ThreadKey, u32>,
    /// The latest end of losses, by CPU and over all CPUs. Losses arrive at their start, so none starts after the
    /// next event.
    lost_to_ns: FxHashMap<u16, u64>,
    all_lost_to_ns: u64,
    nanoseconds: bool,
    sleep: SleepTime,
    callers: FxHashMap<(u32, u32), u64>,
    sink: S,
}

impl<'k, S: CallSink> CallFollower<'k, S> {
    pub(super) fn new(
        functions: Functions<'k>,
        tree: CallTree,
        nanoseconds: bool,
        sink: S,
    ) -> Self {
        Self {
            functions,
            tree,
            threads: Vec::new(),
            cost: TracerCost::default(),
            tracer: None,
            switches: false,
            interrupted: 0,
            numbers: FxHashMap::default(),
            lost_to_ns: FxHashMap::default(),
            all_lost_to_ns: 0,
            nanoseconds,
            sleep: SleepTime::default(),
            callers: FxHashMap::default(),
            sink,
        }
    }

    /// Index of the thread, after handling losses that may affect it.
    pub(super) fn thread(&mut self, thread: u32, cpu: u16, stamp_ns: u64) -> Option<usize> {
        let key = key(thread, cpu);
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                if self.threads.len() >= MAX_THREADS {
                    return None;
                }
                let number = u32::try_from(self.threads.len()).ok()?;
                let root = self.tree.root(CallNodeKind::Thread(number));
                self.threads.push(Thread::new(thread, cpu, stamp_ns, root));
                self.numbers.insert(key, number);
                number
            }
        };
        let at = number as usize;
        let thread_state = self.threads.get(at)?;
        let lost_to_ns = |cpu| self.lost_to_ns.get(&cpu).copied().unwrap_or(0);
        let lost_to_ns = match thread_state.last_cpu() {
            Some(last) => lost_to_ns(last).max(lost_to_ns(cpu)),
            None => self.all_lost_to_ns,
        };
        if lost_to_ns > thread_state.last_ns() {
            self.lose(at);
        }
        self.threads.get_mut(at)?.seen(cpu, stamp_ns);
        Some(at)
    }

    /// Events of a CPU are missing until `to_ns`.
    pub(super) fn lost(&mut self, cpu: u16, to_ns: u64) {
        let of_cpu = self.lost_to_ns.entry(cpu).or_default();
        *of_cpu = to_ns.max(*of_cpu);
        self.all_lost_to_ns = self.all_lost_to_ns.max(to_ns);
    }

    /// Ends all calls of a thread that a loss may affect.
    fn lose(&mut self, at: usize) {
        let Some(thread) = self.threads.get_mut(at) else { return };
        thread.forget_cpu();
        for frame in thread.stack.cut(i64::MIN) {
            self.interrupted += 1;
            if let Some(function) = self.functions.get_mut(frame.function) {
                function.without_return += 1;
            }
        }
    }

    /// Ends calls of a thread that returned without an event.
    fn end(&mut self, at: usize, which: impl FnOnce(&mut Stack) -> Vec<Frame>) {
        let Some(thread) = self.threads.get_mut(at) else { return };
        for frame in which(&mut thread.stack) {
            if let Some(function) = self.functions.get_mut(frame.function) {
                function.without_return += 1;
            }
        }
    }

    fn entry(&mut self, event: &TraceEvent) {
        let (Some(address), Some(depth)) = (event.value(0), event.value(1)) else { return };
        let depth = depth.cast_signed();
        let Some(at) = self.thread(event.thread, event.cpu, event.stamp_ns) else { return };
        let Some(number) = self.functions.beginning(address) else { return };
        self.enter(at, number, depth, event.stamp_ns);
    }

    pub(super) fn enter(&mut self, at: usize, number: u32, depth: i64, stamp_ns: u64) {
        self.end(at, |stack| stack.begin(depth, stamp_ns));
        let Some(thread) = self.threads.get_mut(at) else { return };
        let parent = match thread.stack.caller_of(depth) {
            Some(caller) => caller.node,
            None if depth > 0 => self.tree.child(thread.root, CallNodeKind::Unseen),
            None => thread.root,
        };
        let node = self.tree.child(parent, CallNodeKind::Function(number));
        if let Some(function) = self.functions.get_mut(number) {
            function.events += 1;
        }
        if thread.stack.is_full() {
            self.lose(at);
            return;
        }
        thread.stack.push(node, number, depth, stamp_ns);
    }

    fn exit(&mut self, event: &TraceEvent) {
        let (Some(address), Some(depth)) = (event.value(0), event.value(1)) else { return };
        let depth = depth.cast_signed();
        let Some(at) = self.thread(event.thread, event.cpu, event.stamp_ns) else { return };
        let Some(number) = self.functions.beginning(address) else { return };
        let measured = event.value(CALLTIME).zip(event.value(RETTIME)).filter(|_| self.nanoseconds);
        let measured = measured.map(|(call_ns, return_ns)| Measured { call_ns, return_ns });
        let Some(thread) = self.threads.get_mut(at) else { return };
        if let Some(overrun) = event.value(OVERRUN) {
            thread.overrun(overrun);
        }
        self.leave(at, number, depth, event.stamp_ns, measured);
    }

    pub(super) fn leave(
        &mut self,
        at: usize,
        number: u32,
        depth: i64,
        stamp_ns: u64,
        measured: Option<Measured>,
    ) {
        self.end(at, |stack| stack.cut(depth.saturating_add(1)));
        self.end(at, |stack| stack.uncover(number, depth));
        let Some(thread) = self.threads.get_mut(at) else { return };
        let returned = thread.stack.leave(number, depth, stamp_ns, measured, &mut self.sleep);
        match returned {
            Some(returned) => self.returned(at, depth, stamp_ns, &returned),
            None => {
                self.end(at, |stack| stack.cut(depth));
                if let Some(function) = self.functions.get_mut(number) {
                    function.events += 1;
                    function.without_call += 1;
                }
            }
        }
    }

    fn returned(&mut self, at: usize, depth: i64, stamp_ns: u64, ended_call: &Returned) {
        if let Some(function) = self.functions.get_mut(ended_call.function) {
            function.events += 1;
            function.count += 1;
            add(&mut function.self_ns, ended_call.self_ns);
            add(&mut function.off_cpu_ns, ended_call.own_off_cpu_ns);
            function.max_ns = function.max_ns.max(ended_call.total_ns);
            function.calls_made += ended_call.calls_made;
            if ended_call.outermost {
                add(&mut function.total_ns, ended_call.total_ns);
            }
            if let Some(thread) = self.threads.get(at) {
                let (thread, idle_cpu) = (thread.calls.thread, thread.calls.idle_cpu);
                let (number, from_ns, to_ns) =
                    (ended_call.function, ended_call.from_ns, ended_call.to_ns);
                let call = Called { thread, idle_cpu, function: number, depth, from_ns, to_ns };
                self.sink.call(&call, function);
            }
        }
        if let Some(node) = self.tree.node_mut(ended_call.node) {
            node.count += 1;
            add(&mut node.total_ns, ended_call.total_ns);
            add(&mut node.self_ns, ended_call.self_ns);
            add(&mut node.off_cpu_ns, ended_call.own_off_cpu_ns);
        }
        if let Some(thread) = self.threads.get_mut(at) {
            thread.returned(stamp_ns, ended_call);
        }
        if ended_call.calls_made == 0 && ended_call.own_off_cpu_ns == 0 {
            self.cost.leaves.add(ended_call.total_ns);
        }
        if let Some(since_ns) = ended_call.since_last_ns {
            self.cost.between.add(since_ns);
        }
    }

    fn call(&mut self, event: &TraceEvent) {
        let Some(address) = event.value(0) else { return };
        let Some(at) = self.thread(event.thread, event.cpu, event.stamp_ns) else { return };
        let Some(number) = self.functions.beginning(address) else { return };
        let caller = event.value(1).and_then(|address| self.functions.around(address));
        self.called(at, number, caller);
    }

    /// A call by the function tracer.
    pub(super) fn called(&mut self, at: usize, number: u32, caller: Option<u32>) {
        let Some(thread) = self.threads.get_mut(at) else { return };
        thread.calls.count += 1;
        let mut node = thread.root;
        if let Some(caller) = caller {
            node = self.tree.child(node, CallNodeKind::Function(caller));
            *self.callers.entry((number, caller)).or_default() += 1;
        }
        node = self.tree.child(node, CallNodeKind::Function(number));
        if let Some(node) = self.tree.node_mut(node) {
            node.count += 1;
        }
        if let Some(function) = self.functions.get_mut(number) {
            function.count += 1;
            function.events += 1;
        }
    }

    fn switch(&mut self, event: &TraceEvent) {
        let (prev, next) = (event.thread_value(0), event.thread_value(1));
        self.switched(event.cpu, event.stamp_ns, prev, next);
    }

    pub(super) fn switched(
        &mut self,
        cpu: u16,
        stamp_ns: u64,
        prev: Option<u32>,
        next: Option<u32>,
    ) {
        self.switches = true;
        if let Some(at) = prev.and_then(|prev| self.thread(prev, cpu, stamp_ns))
            && let Some(thread) = self.threads.get_mut(at)
        {
            thread.switched_out(stamp_ns);
        }
        if let Some(at) = next.and_then(|next| self.thread(next, cpu, stamp_ns))
            && let Some(thread) = self.threads.get_mut(at)
        {
            thread.switched_in(stamp_ns);
        }
    }

    pub(super) fn totals(self) -> CallTotals {
        CallTotals {
            tracer: self.tracer,
            switches: self.switches,
            functions: self.functions.all,
            tree: self.tree,
            threads: self.threads.into_iter().map(Thread::calls).collect(),
            cost: self.cost,
            interrupted: self.interrupted,
        }
    }

    /// Ends the open calls at the end of the recording, and adds callers to functions.
    pub(super) fn finish(&mut self) {
        for at in 0..self.threads.len() {
            self.end(at, |stack| stack.cut(i64::MIN));
        }
        for ((number, caller), count) in self.callers.drain() {
            if let Some(function) = self.functions.get_mut(number) {
                function.callers.push((caller, count));
            }
        }
        for function in &mut self.functions.all {
            function.callers.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        }
    }
}

impl<S: CallSink> WantsTraceEvents for CallFollower<'_, S> {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        wanted(format)
    }
}

impl<S: CallSink> TraceEventSink for CallFollower<'_, S> {
    fn event(&mut self, event: &TraceEvent) {
        match event.tag {
            ENTRY | EXIT => {
                self.tracer = Some(CallTracer::Graph);
                if event.tag == ENTRY { self.entry(event) } else { self.exit(event) }
            }
            CALL => {
                self.tracer.get_or_insert(CallTracer::Function);
                self.call(event);
            }
            SWITCH => self.switch(event),
            _ => {}
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.lost(gap.cpu, gap.to_ns);
    }
}
