//! Open calls of one thread.
//!
//! Each call and return event has its depth on the kernel's return stack. A return belongs to the innermost call
//! of its function at its depth. When a call starts, open calls at a larger depth have returned without an event.
//! An open call at the same depth has returned too, but its return event may follow: the tracer pops a call from
//! the kernel's stack before it writes the event, and an interrupt in between starts at the depth that has just
//! become free.

use std::collections::VecDeque;

/// Max open functions of a thread; the kernel follows at most some hundred.
const DEEPEST: usize = 4096;

/// Max open calls at the same depth: the thread's own, and one each of softirq, interrupt and NMI.
const MAX_AT_ONE_DEPTH: usize = 4;

/// Max recent calls: more than interrupts produce while the tracer writes one event of a call and one of its
/// return.
const RECENT: usize = 64;

/// The latest callees of a function, with their times.
#[derive(Clone, Debug, Default)]
struct Recent(VecDeque<(Measured, u64)>);

impl Recent {
    fn put(&mut self, measured: Measured, total_ns: u64) {
        if self.0.len() >= RECENT {
            self.0.pop_front();
        }
        self.0.push_back((measured, total_ns));
    }

    /// Removes the calls for which `is_wanted` holds, and returns their time.
    fn take(&mut self, is_wanted: impl Fn(Measured) -> bool) -> u64 {
        let mut sum_ns = 0_u64;
        self.0.retain(|&(measured, total_ns)| {
            let is_taken = is_wanted(measured);
            sum_ns = sum_ns.saturating_add(if is_taken { total_ns } else { 0 });
            !is_taken
        });
        sum_ns
    }
}

/// An open call.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its node in the tree.
    pub node: u32,
    pub function: u32,
    /// Depth reported by the kernel.
    pub depth: i64,
    from_ns: u64,
    /// Number and time of its callees that returned.
    calls_made: u64,
    callees_ns: u64,
    /// Off-CPU time in this call, and the part of it outside of callees.
    off_cpu_ns: u64,
    own_off_cpu_ns: u64,
    recent: Recent,
    /// Return time of the last callee; `None` if the thread left the CPU since.
    callee_left: Option<u64>,
    /// Time when another call started at its depth: this call is over, and only its return event is missing.
    over_ns: Option<u64>,
}

/// Times of a call as measured by the kernel, on its own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub call_ns: u64,
    pub return_ns: u64,
}

impl Measured {
    const fn holds(self, other: Self) -> bool {
        other.call_ns >= self.call_ns && other.return_ns <= self.return_ns
    }
}

/// A call that returned. `total_ns` is the sum of `self_ns`, `own_off_cpu_ns` and its callees' `total_ns`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub node: u32,
    pub function: u32,
    pub from_ns: u64,
    /// Time of its end, by events.
    pub to_ns: u64,
    pub total_ns: u64,
    pub self_ns: u64,
    pub own_off_cpu_ns: u64,
    pub calls_made: u64,
    /// Whether no other call of the function is open in this thread.
    pub outermost: bool,
    /// Time from the previous return of a callee of the same caller to this call.
    pub since_last_ns: Option<u64>,
    /// The kernel's measurement.
    pub measured: Option<Measured>,
}

/// Whether the kernel excludes off-CPU time from its measurements: the tracer's option `sleep-time`, which
/// recordings lack.
#[derive(Debug, Default)]
pub(super) struct SleepTime {
    is_left_out: bool,
}

impl SleepTime {
    /// A measured time shorter than the off-CPU time proves that the kernel excludes it. The scheduler's functions
    /// show this early, because they return before their callers. An eighth is tolerance for different clocks of
    /// events and measurements.
    fn note(&mut self, guest_known_ns: u64, off_cpu_ns: u64) {
        self.is_left_out |= guest_known_ns < off_cpu_ns - off_cpu_ns / 8;
    }
}

/// Open calls of a thread, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    /// Recent calls without a caller.
    recent: Recent,
}

impl Stack {
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= DEEPEST
    }

    /// The caller of a call at `depth`.
    pub(super) fn caller_of(&self, depth: i64) -> Option<&Frame> {
        self.frames.iter().rfind(|frame| frame.makes(depth))
    }

    fn caller_of_mut(&mut self, depth: i64) -> Option<&mut Frame> {
        self.frames.iter_mut().rfind(|frame| frame.makes(depth))
    }

    /// Removes the calls at `depth` or deeper.
    pub(super) fn cut(&mut self, depth: i64) -> Vec<Frame> {
        let caller_at = self.frames.iter().rposition(|frame| frame.depth < depth);
        let gone = self.frames.drain(caller_at.map_or(0, |last| last + 1)..).collect();
        self.taken_out(gone)
    }

    /// Adds the times of calls without a return to their callers.
    fn taken_out(&mut self, gone: Vec<Frame>) -> Vec<Frame> {
        for frame in &gone {
            if let Some(caller) = self.caller_of_mut(frame.depth) {
                caller.take_over(frame);
            }
        }
        gone
    }

    /// Prepares for a call at `depth`: removes deeper calls. Of calls at the same depth, removes the outermost if
    /// there are more than interrupts can nest, and marks the others as over.
    pub(super) fn begin(&mut self, depth: i64, stamp_ns: u64) -> Vec<Frame> {
        let mut gone = self.cut(depth.saturating_add(1));
        let as_deep = self.frames.iter().rev().take_while(|frame| frame.depth == depth).count();
        let first = self.frames.len() - as_deep;
        self.frames.iter_mut().skip(first).for_each(|frame| {
            frame.over_ns.get_or_insert(stamp_ns);
        });
        if as_deep >= MAX_AT_ONE_DEPTH {
            let outermost = self.frames.remove(first);
            gone.extend(self.taken_out(vec![outermost]));
        }
        gone
    }

    /// Removes the calls above the innermost call of `function` at `depth`, if that is open.
    pub(super) fn uncover(&mut self, function: u32, depth: i64) -> Vec<Frame> {
        let is_same_call = |frame: &Frame| frame.depth == depth && frame.function == function;
        let as_deep = self.frames.iter().rev().take_while(|frame| frame.depth == depth);
        let above = as_deep.take_while(|frame| !is_same_call(frame)).count();
        let first = self.frames.len() - above;
        if above == 0
            || !first.checked_sub(1).and_then(|at| self.frames.get(at)).is_some_and(is_same_call)
        {
            return Vec::new();
        }
        let gone = self.frames.drain(first..).collect();
        self.taken_out(gone)
    }

    pub(super) fn push(&mut self, node: u32, function: u32, depth: i64, from_ns: u64) {
        self.frames.push(Frame {
            node,
            function,
            depth,
            from_ns,
            calls_made: 0,
            callees_ns: 0,
            off_cpu_ns: 0,
            own_off_cpu_ns: 0,
            recent: Recent::default(),
            callee_left: None,
            over_ns: None,
        });
    }

    /// Adds off-CPU time.
    pub(super) fn off_cpu(&mut self, length_ns: u64) {
        if let Some(frame) = self.caller_of_mut(i64::MAX) {
            frame.off_cpu_ns = frame.off_cpu_ns.saturating_add(length_ns);
            frame.own_off_cpu_ns = frame.own_off_cpu_ns.saturating_add(length_ns);
            frame.callee_left = None;
        }
    }

    /// Ends the innermost call, if it has this function and depth.
    pub(super) fn leave(
        &mut self,
        function: u32,
        depth: i64,
        to_ns: u64,
        measured: Option<Measured>,
        sleep: &mut SleepTime,
    ) -> Option<Returned> {
        let mut frame = self.frames.pop_if(|top| top.depth == depth && top.function == function)?;
        let outermost =
            !self.frames.iter().any(|outer| outer.function == function && outer.over_ns.is_none());
        if let Some(times) = measured {
            // Interrupts during the tracer's own work for this call were attributed to these calls.
            let over = self.frames.iter_mut().rev().take_while(|outer| outer.over_ns.is_some());
            over.for_each(|outer| outer.give_back(times, &mut frame));
        }
        // Not `caller_of_mut`: calls without a caller belong to this stack.
        let mut caller = self.frames.iter_mut().rfind(|outer| outer.makes(depth));
        let recent = caller.as_mut().map_or(&mut self.recent, |caller| &mut caller.recent);
        let settled = measured.map_or((0, 0), |times| frame.settle(times, recent));
        let total_ns = frame.total_ns(to_ns, measured, sleep);
        let inside_ns = frame.callees_ns.saturating_add(frame.own_off_cpu_ns);
        // If callees took longer than the kernel measured, the difference is the caller's time as well.
        let taken_ns = total_ns.max(inside_ns);
        if let Some(measured) = measured {
            recent.put(measured, taken_ns);
        }
        let mut since_last_ns = None;
        if let Some(caller) = caller {
            let pair = measured.zip(caller.callee_left);
            since_last_ns =
                pair.and_then(|(now, last_return_ns)| now.call_ns.checked_sub(last_return_ns));
            caller.callee_left = measured.map(|now| now.return_ns);
            caller.calls_made += 1;
            let (within_ns, after_ns) = settled;
            let less_ns = caller.callees_ns.saturating_sub(within_ns);
            caller.callees_ns = less_ns.saturating_add(after_ns).saturating_add(taken_ns);
            caller.off_cpu_ns = caller.off_cpu_ns.saturating_add(frame.off_cpu_ns);
        }
        Some(Returned {
            node: frame.node,
            function,
            from_ns: frame.from_ns,
            to_ns: frame.over_ns.unwrap_or(to_ns),
            total_ns,
            self_ns: total_ns.saturating_sub(inside_ns),
            own_off_cpu_ns: frame.own_off_cpu_ns,
            calls_made: frame.calls_made,
            outermost,
            since_last_ns,
            measured,
        })
    }
}

impl Frame {
    /// Whether this call is a direct or indirect caller of calls at `depth`.
    const fn makes(&self, depth: i64) -> bool {
        self.depth < depth && self.over_ns.is_none()
    }

    /// Time from call to return, including off-CPU time.
    fn total_ns(&self, to_ns: u64, measured: Option<Measured>, sleep: &mut SleepTime) -> u64 {
        let between_ns = to_ns.saturating_sub(self.from_ns);
        let guest_known_ns = measured.and_then(|times| times.return_ns.checked_sub(times.call_ns));
        guest_known_ns.map_or(between_ns, |guest_known_ns| {
            sleep.note(guest_known_ns, self.off_cpu_ns);
            guest_known_ns.saturating_add(if sleep.is_left_out { self.off_cpu_ns } else { 0 })
        })
    }

    /// Corrects interrupts that occurred while the tracer worked, between its clock reading and its event.
    /// Interrupts before the event of the call were attributed to the caller and are in its `recent` calls.
    /// Interrupts before the event of the return were attributed to this call, but are outside its time. Returns
    /// the caller's corrections: the time of the former, and of the latter.
    fn settle(&mut self, own_times: Measured, recent: &mut Recent) -> (u64, u64) {
        let is_after = |times: Measured| times.call_ns >= own_times.return_ns;
        let after_ns = self.recent.take(is_after);
        self.callees_ns = self.callees_ns.saturating_sub(after_ns);
        let within_ns = recent.take(|times| own_times.holds(times));
        self.callees_ns = self.callees_ns.saturating_add(within_ns);
        (within_ns, after_ns)
    }

    /// Moves callees to the frame whose measured time contains them.
    fn give_back(&mut self, to: Measured, frame: &mut Self) {
        let within_ns = self.recent.take(|times| to.holds(times));
        self.callees_ns = self.callees_ns.saturating_sub(within_ns);
        frame.callees_ns = frame.callees_ns.saturating_add(within_ns);
    }

    /// Adds the times of a removed callee.
    fn take_over(&mut self, gone: &Self) {
        self.callees_ns = self.callees_ns.saturating_add(gone.callees_ns);
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(gone.off_cpu_ns);
        self.own_off_cpu_ns = self.own_off_cpu_ns.saturating_add(gone.own_off_cpu_ns);
    }
}
