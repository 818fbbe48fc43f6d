//! One thread's calls: which functions it is in, and what is known when one returns.
//!
//! Each call and return has the depth at which the kernel put it on the thread's stack. Calls at or
//! below the depth of a new one have returned without telling; a return belongs to the innermost call
//! only if depth and function are that call's.

/// Most functions that a thread is in at once; the kernel follows some hundred at most.
const DEEPEST: usize = 4096;

/// Calls that are remembered one by one: more than an interrupt makes from where it begins.
const RECENT: usize = 8;

/// The last calls that a function made, with their times.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    calls: [Option<(Measured, u64)>; RECENT],
    next: usize,
}

impl Recent {
    fn put(&mut self, measured: Measured, total_ns: u64) {
        if let Some(place) = self.calls.get_mut(self.next) {
            *place = Some((measured, total_ns));
        }
        self.next = (self.next + 1) % RECENT;
    }

    /// Takes out those for which `is_wanted` holds; their time.
    fn take(&mut self, is_wanted: impl Fn(Measured) -> bool) -> u64 {
        let wanted = self
            .calls
            .iter_mut()
            .filter_map(|one| one.take_if(|(measured, _)| is_wanted(*measured)));
        wanted.fold(0, |sum_ns, (_, total_ns)| sum_ns.saturating_add(total_ns))
    }
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
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
}

/// What the kernel measured of a call, on a clock of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// When it was called.
    pub call_ns: u64,
    /// When it returned.
    pub return_ns: u64,
}

/// A call that returned. `total_ns` is `self_ns`, `own_off_cpu_ns` and the total of what it called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub node: u32,
    pub function: u32,
    pub from_ns: u64,
    pub total_ns: u64,
    pub self_ns: u64,
    pub own_off_cpu_ns: u64,
    pub calls_made: u64,
    /// No other call of the function is under way in this thread.
    pub outermost: bool,
    /// From the return of the call before, by the same caller, to this one.
    pub since_last_ns: Option<u64>,
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
}

impl Stack {
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= DEEPEST
    }

    /// Takes out the calls that are at `depth` or deeper.
    pub(super) fn cut(&mut self, depth: i64) -> impl Iterator<Item = Frame> + '_ {
        let kept = self.frames.iter().rposition(|frame| frame.depth < depth);
        self.frames.drain(kept.map_or(0, |last| last + 1)..)
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
        });
    }

    /// The thread was off the CPU for so long.
    pub(super) fn off_cpu(&mut self, length_ns: u64) {
        if let Some(frame) = self.frames.last_mut() {
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
        if let Some(measured) = measured {
            frame.settle(measured, self.frames.last_mut());
        }
        let total_ns = frame.total_ns(to_ns, measured, sleep);
        let outermost = !self.frames.iter().any(|one| one.function == function);
        let mut since_last_ns = None;
        if let Some(caller) = self.frames.last_mut() {
            let left = measured.zip(caller.callee_left);
            since_last_ns = left.and_then(|(now, left)| now.call_ns.checked_sub(left));
            caller.callee_left = measured.map(|now| now.return_ns);
            caller.calls_made += 1;
            caller.callees_ns = caller.callees_ns.saturating_add(total_ns);
            if let Some(measured) = measured {
                caller.recent.put(measured, total_ns);
            }
            caller.off_cpu_ns = caller.off_cpu_ns.saturating_add(frame.off_cpu_ns);
        }
        let inside_ns = frame.callees_ns.saturating_add(frame.own_off_cpu_ns);
        Some(Returned {
            node: frame.node,
            function,
            from_ns: frame.from_ns,
            total_ns,
            self_ns: total_ns.saturating_sub(inside_ns),
            own_off_cpu_ns: frame.own_off_cpu_ns,
            calls_made: frame.calls_made,
            outermost,
            since_last_ns,
        })
    }
}

impl Frame {
    /// From call to return, time off the CPU included.
    fn total_ns(&self, to_ns: u64, measured: Option<Measured>, sleep: &mut SleepTime) -> u64 {
        let between_ns = to_ns.saturating_sub(self.from_ns);
        let guest_known_ns = measured.and_then(|one| one.return_ns.checked_sub(one.call_ns));
        guest_known_ns.map_or(between_ns, |guest_known_ns| {
            sleep.note(guest_known_ns, self.off_cpu_ns);
            guest_known_ns.saturating_add(if sleep.is_left_out { self.off_cpu_ns } else { 0 })
        })
    }

    /// Puts interrupts right that came while the tracer itself worked, between its reading of the
    /// clock and its event. Before the event of the call they seem to be the caller's; before that of
    /// the return they seem to be this call's, and are not in its time.
    fn settle(&mut self, own: Measured, caller: Option<&mut Self>) {
        let after_ns = self.recent.take(|one| one.call_ns >= own.return_ns);
        self.callees_ns = self.callees_ns.saturating_sub(after_ns);
        let Some(caller) = caller else { return };
        let is_within =
            |one: Measured| one.call_ns >= own.call_ns && one.return_ns <= own.return_ns;
        let within_ns = caller.recent.take(is_within);
        self.callees_ns = self.callees_ns.saturating_add(within_ns);
        let less_ns = caller.callees_ns.saturating_sub(within_ns);
        caller.callees_ns = less_ns.saturating_add(after_ns);
    }
}
