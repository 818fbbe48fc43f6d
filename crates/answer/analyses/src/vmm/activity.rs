//! Activity of a VMM's thread between two of its events, by its system calls and signal handlers.

use super::calls::{CallKind, CallNumbers};

/// A system call in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: u32,
    pub(super) kind: CallKind,
    /// See [`CallNumbers::asks`].
    pub(super) asks: u32,
    /// The address of a futex call; 0 for other calls.
    pub(super) futex: u64,
    /// Only threads of the same process wait at that address (`FUTEX_PRIVATE_FLAG`).
    pub(super) is_private: bool,
}

/// `FUTEX_PRIVATE_FLAG` (`include/uapi/linux/futex.h`).
const FUTEX_PRIVATE_FLAG: u64 = 128;

impl Call {
    pub(super) fn new(numbers: CallNumbers, number: u32, arguments: [u64; 3]) -> Self {
        let kind = numbers.kind(number, arguments);
        let is_futex = kind == CallKind::Futex;
        Self {
            number,
            kind,
            asks: numbers.asks(number, arguments),
            futex: if is_futex { arguments[0] } else { 0 },
            is_private: is_futex && arguments[1] & FUTEX_PRIVATE_FLAG != 0,
        }
    }
}

/// Activity of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Activity {
    /// No event has shown it yet.
    #[default]
    Unknown,
    /// An exit goes to user space: the `ioctl` is about to return.
    Returning,
    /// The VMM's own code.
    Code,
    /// A signal handler.
    Handler,
    /// A system call.
    Call(Call),
}

/// Activity of a thread, and its number of nested signal handlers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) activity: Activity,
    handlers: u8,
}

impl Progress {
    pub(super) fn enters(&mut self, call: Call) {
        // A handler that was left by a longjmp does not return. Handlers never enter a guest or poll, so these
        // calls reset the nesting.
        if matches!(call.kind, CallKind::Run | CallKind::Poll) {
            self.handlers = 0;
        }
        self.activity = Activity::Call(call);
    }

    pub(super) fn leaves(&mut self) {
        if let Activity::Call(Call { kind: CallKind::HandlerEnds, .. }) = self.activity {
            self.handlers = self.handlers.saturating_sub(1);
        }
        self.activity = if self.handlers > 0 { Activity::Handler } else { Activity::Code };
    }

    pub(super) fn handler(&mut self) {
        self.handlers = self.handlers.saturating_add(1);
        self.activity = Activity::Handler;
    }

    pub(super) fn returns(&mut self) {
        self.activity = Activity::Returning;
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The futex call in progress, if any.
    pub(super) fn futex(&self) -> Option<Call> {
        match self.activity {
            Activity::Call(call) if call.futex != 0 => Some(call),
            _ => None,
        }
    }
}

/// A change of a thread's activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) at_ns: u64,
    pub(super) activity: Activity,
}

/// Splits an interval at marks, which are in the order of time, and calls `each` with activity and range.
///
/// The return from `KVM_RUN` lasts until the call is left. If that was not recorded, the end is unknown, and so is
/// the activity after it.
pub(super) fn cut(
    marks: &[Mark],
    (from_ns, to_ns): (u64, u64),
    mut each: impl FnMut(Activity, (u64, u64)),
) {
    let first = marks.partition_point(|mark| mark.at_ns <= from_ns);
    let mut now_ns = from_ns;
    let mut activity = first.checked_sub(1).and_then(|at| marks.get(at)).map(|mark| mark.activity);
    for next in marks.get(first..).unwrap_or_default() {
        let until_ns = next.at_ns.clamp(now_ns, to_ns);
        if until_ns > now_ns {
            each(until(activity, Some(next.activity)), (now_ns, until_ns));
        }
        (now_ns, activity) = (until_ns, Some(next.activity));
        if now_ns >= to_ns {
            return;
        }
    }
    if to_ns > now_ns {
        each(until(activity, None), (now_ns, to_ns));
    }
}

/// The activity until the next one begins.
fn until(activity: Option<Activity>, next: Option<Activity>) -> Activity {
    match activity {
        None => Activity::Unknown,
        Some(Activity::Returning) if !matches!(next, Some(Activity::Code | Activity::Handler)) => {
            Activity::Unknown
        }
        Some(activity) => activity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(marks: &[(u64, Activity)], range: (u64, u64)) -> Vec<(Activity, u64)> {
        let marks: Vec<Mark> =
            marks.iter().map(|&(at_ns, activity)| Mark { at_ns, activity }).collect();
        let mut pieces = Vec::new();
        cut(&marks, range, |activity, (from, to)| pieces.push((activity, to - from)));
        assert_eq!(pieces.iter().map(|(_, ns)| ns).sum::<u64>(), range.1 - range.0);
        pieces
    }

    #[test]
    fn intervals_are_cut_at_marks() {
        use Activity::{Code, Handler, Returning, Unknown};
        let marks = [(10, Returning), (13, Code), (20, Handler)];
        assert_eq!(pieces(&marks, (10, 25)), [(Returning, 3), (Code, 7), (Handler, 5)]);
        assert_eq!(pieces(&marks, (14, 18)), [(Code, 4)]);
        assert_eq!(pieces(&marks, (5, 11)), [(Unknown, 5), (Returning, 1)]);
        assert_eq!(pieces(&marks, (20, 30)), [(Handler, 10)]);
        assert_eq!(pieces(&[], (1, 3)), [(Unknown, 2)]);
        // Of two marks at the same time, the second one counts.
        assert_eq!(pieces(&[(1, Handler), (1, Code)], (1, 3)), [(Code, 2)]);
    }

    #[test]
    fn a_way_back_without_an_end_is_unknown() {
        use Activity::{Code, Returning, Unknown};
        assert_eq!(pieces(&[(10, Returning)], (10, 25)), [(Unknown, 15)]);
        let marks = [(10, Returning), (20, Returning), (22, Code)];
        assert_eq!(pieces(&marks, (10, 25)), [(Unknown, 10), (Returning, 2), (Code, 3)]);
    }

    #[test]
    fn handlers_end_with_their_return() {
        let call = |number| Call::new(CallNumbers::X86, number, [0; 3]);
        let mut progress = Progress::default();
        progress.leaves();
        progress.handler();
        progress.enters(call(0));
        progress.leaves();
        assert_eq!(progress.activity, Activity::Handler);
        progress.enters(call(15));
        progress.leaves();
        assert_eq!(progress.activity, Activity::Code);
        // A handler that was left by a longjmp.
        progress.handler();
        progress.enters(call(271));
        progress.leaves();
        assert_eq!(progress.activity, Activity::Code);
    }
}
