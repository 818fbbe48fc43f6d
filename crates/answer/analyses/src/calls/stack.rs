//! One thread's calls: which functions it is in, and what is known when one returns.
//!
//! Each call and return has the depth at which the kernel put it on the thread's stack. A return belongs
//! to the innermost call of its function at its depth. Calls deeper than a new one returned, and no event
//! says so. One at its own depth is over, and its event may still come: the tracer takes a call off the
//! kernel's stack before it writes that event, and what interrupts it there begins at the depth that is
//! free again.

use std::collections::VecDeque;

/// Most functions that a thread is in at once; the kernel follows some hundred at most.
const DEEPEST: usize = 4096;

/// Calls that are open at one depth at most: a thread's, and those of what interrupts one another there
/// (softirq, interrupt, NMI).
const MAX_AT_ONE_DEPTH: usize = 4;

/// Calls that are remembered one by one: more than interrupts make that interrupt one another twice, where the
/// tracer writes a call's event and again where it writes that of its return.
const RECENT: usize = 64;

/// The last calls that a function made, with their times.
#[derive(Clone, Debug, Default)]
struct Recent(VecDeque<(Measured, u64)>);

impl Recent {
    fn put(&mut self, measured: Measured, total_ns: u64) {
        if self.0.len() >= RECENT {
            self.0.pop_front();
        }
        self.0.push_back((measured, total_ns));
    }

    /// Takes out those for which `is_wanted` holds; their time.
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

/// A call that has not returned.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its node in the tree.
    pub node: u32,
    /// Number of the function.
    pub function: u32,
    /// The depth that the kernel gave it.
    pub depth: i64,
    from_ns: u64,
    /// Calls that it made and that returned: how many, and their time.
    calls_made: u64,
    callees_ns: u64,
    /// Off the CPU in this call, and of it in none that it made.
    off_cpu_ns: u64,
    own_off_cpu_ns: u64,
    recent: Recent,
    /// When the last call that it made returned, unless the thread lost the CPU since.
    callee_left: Option<u64>,
    /// When another call began at its depth: it is over since, and only its return's event is to come.
    over_ns: Option<u64>,
}

/// What the kernel measured of a call, on a clock of its own.
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

/// A call that returned. `total_ns` is `self_ns`, `own_off_cpu_ns` and the total of what it called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub node: u32,
    pub function: u32,
    pub from_ns: u64,
    /// When it was over, by events.
    pub to_ns: u64,
    pub total_ns: u64,
    pub self_ns: u64,
    pub own_off_cpu_ns: u64,
    pub calls_made: u64,
    /// No other call of the function is under way in this thread.
    pub outermost: bool,
    /// From the return of the call before, by the same caller, to this one.
    pub since_last_ns: Option<u64>,
    /// What the kernel measured.
    pub measured: Option<Measured>,
}

/// Whether the kernel leaves time off the CPU out of what it measures: its option `sleep-time`, of
/// which a recording says nothing.
#[derive(Debug, Default)]
pub(super) struct SleepTime {
    is_left_out: bool,
}

impl SleepTime {
    /// A call of `guest_known_ns` was off the CPU for longer, which only one can be that leaves it out. The
    /// scheduler's own functions show it, and return before those that wait by them. An eighth is
    /// for events and measured times on clocks that don't run alike.
    fn note(&mut self, guest_known_ns: u64, off_cpu_ns: u64) {
        self.is_left_out |= guest_known_ns < off_cpu_ns - off_cpu_ns / 8;
    }
}

/// Functions that a thread is in, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    /// Calls that none of them made.
    recent: Recent,
}

impl Stack {
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= DEEPEST
    }

    /// The call that one at `depth` is made by.
    pub(super) fn caller_of(&self, depth: i64) -> Option<&Frame> {
        self.frames.iter().rfind(|frame| frame.makes(depth))
    }

    fn caller_of_mut(&mut self, depth: i64) -> Option<&mut Frame> {
        self.frames.iter_mut().rfind(|frame| frame.makes(depth))
    }

    /// Takes out the calls that are at `depth` or deeper.
    pub(super) fn cut(&mut self, depth: i64) -> Vec<Frame> {
        let caller_at = self.frames.iter().rposition(|frame| frame.depth < depth);
        let gone = self.frames.drain(caller_at.map_or(0, |last| last + 1)..).collect();
        self.taken_out(gone)
    }

    /// What was in calls whose return isn't known is their caller's.
    fn taken_out(&mut self, gone: Vec<Frame>) -> Vec<Frame> {
        for frame in &gone {
            if let Some(caller) = self.caller_of_mut(frame.depth) {
                caller.take_over(frame);
            }
        }
        gone
    }

    /// Makes room for a call at `depth`: takes out those that are deeper, and of those as deep the
    /// outermost, if they are more than can interrupt one another. The others are over.
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

    /// Takes out the calls above the innermost of a function at `depth`, if that is open.
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

    /// The thread was off the CPU for so long.
    pub(super) fn off_cpu(&mut self, length_ns: u64) {
        if let Some(frame) = self.caller_of_mut(i64::MAX) {
            frame.off_cpu_ns = frame.off_cpu_ns.saturating_add(length_ns);
            frame.own_off_cpu_ns = frame.own_off_cpu_ns.saturating_add(length_ns);
            frame.callee_left = None;
        }
    }

    /// The innermost call returns at `to_ns`, if it is of that function and depth.
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
            // What interrupted the tracer before this call's event seemed to be theirs.
            let over = self.frames.iter_mut().rev().take_while(|outer| outer.over_ns.is_some());
            over.for_each(|outer| outer.give_back(times, &mut frame));
        }
        // Not `caller_of_mut`: calls without a caller are this stack's own.
        let mut caller = self.frames.iter_mut().rfind(|outer| outer.makes(depth));
        let recent = caller.as_mut().map_or(&mut self.recent, |caller| &mut caller.recent);
        let settled = measured.map_or((0, 0), |times| frame.settle(times, recent));
        let total_ns = frame.total_ns(to_ns, measured, sleep);
        let inside_ns = frame.callees_ns.saturating_add(frame.own_off_cpu_ns);
        // Where more was inside than the kernel measured, the rest is time of the caller's, too.
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
    /// Whether calls at a depth are made by it, or by calls that it made.
    const fn makes(&self, depth: i64) -> bool {
        self.depth < depth && self.over_ns.is_none()
    }

    /// From call to return, time off the CPU included.
    fn total_ns(&self, to_ns: u64, measured: Option<Measured>, sleep: &mut SleepTime) -> u64 {
        let between_ns = to_ns.saturating_sub(self.from_ns);
        let guest_known_ns = measured.and_then(|times| times.return_ns.checked_sub(times.call_ns));
        guest_known_ns.map_or(between_ns, |guest_known_ns| {
            sleep.note(guest_known_ns, self.off_cpu_ns);
            guest_known_ns.saturating_add(if sleep.is_left_out { self.off_cpu_ns } else { 0 })
        })
    }

    /// Puts interrupts right that came while the tracer itself worked, between its reading of the
    /// clock and its event. Before the event of the call they seem to be the caller's, whose `recent`
    /// calls have them; before that of the return they seem to be this call's, and are not in its time.
    /// Returns the times by which the caller has to be corrected: of the former, and of the latter.
    fn settle(&mut self, own_times: Measured, recent: &mut Recent) -> (u64, u64) {
        let is_after = |times: Measured| times.call_ns >= own_times.return_ns;
        let after_ns = self.recent.take(is_after);
        self.callees_ns = self.callees_ns.saturating_sub(after_ns);
        let within_ns = recent.take(|times| own_times.holds(times));
        self.callees_ns = self.callees_ns.saturating_add(within_ns);
        (within_ns, after_ns)
    }

    /// Gives calls that it seemed to make to one that they are within.
    fn give_back(&mut self, to: Measured, frame: &mut Self) {
        let within_ns = self.recent.take(|times| to.holds(times));
        self.callees_ns = self.callees_ns.saturating_sub(within_ns);
        frame.callees_ns = frame.callees_ns.saturating_add(within_ns);
    }

    /// What was in a call that it made is in this one.
    fn take_over(&mut self, gone: &Self) {
        self.callees_ns = self.callees_ns.saturating_add(gone.callees_ns);
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(gone.off_cpu_ns);
        self.own_off_cpu_ns = self.own_off_cpu_ns.saturating_add(gone.own_off_cpu_ns);
    }
}
