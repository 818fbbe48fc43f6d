//! A vCPU thread's life, made up step by step: what happened, and the events recorded of it.

use timeline::Parts;

/// Time passes in steps, so that threads that begin at different remainders never share a moment.
pub(crate) const STEP_NS: u64 = 8;
/// `TASK_INTERRUPTIBLE`.
const SLEEPS: u64 = 1;
/// The mark of a preempted thread.
const PREEMPTED: u64 = 0x100;
/// A thread that is no vCPU's.
const OTHER: i32 = 7;

/// Off the CPU for a while, then on `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Off {
    Preempted { steps: u64, to: u32 },
    Blocked { asleep: u64, woken: u64, waker: u32, to: u32 },
}

/// What happens while an exit is handled.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Kernel(u64),
    Off(Off),
    /// To user space and back; what happens there.
    User(Vec<(u64, Option<Off>)>),
    /// Polling that finds work, interrupted or not.
    Poll {
        steps: u64,
        off: Option<Off>,
        more: u64,
    },
    /// Polling in vain, and waiting.
    Wait {
        poll: u64,
        wait: Off,
        after: u64,
    },
}

/// A stay in the guest, and how the exit after it is handled.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) guest: u64,
    /// An interrupt is taken before `kvm_exit`.
    pub(crate) interrupt: Option<u64>,
    /// The thread leaves the CPU before `kvm_exit`.
    pub(crate) off: Option<Off>,
    pub(crate) handling: Vec<Segment>,
    /// The guest is entered again without `kvm_entry`.
    pub(crate) fast_path: bool,
}

/// An event: CPU, time, thread that ran, name, fields.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEvent {
    pub(crate) cpu: u32,
    pub(crate) ns: u64,
    pub(crate) ran: i32,
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<(&'static str, u64)>,
}

/// An exit as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrueExit {
    pub(crate) start_ns: u64,
    /// `None`: no `kvm_entry` followed.
    pub(crate) end_ns: Option<u64>,
    pub(crate) parts: Parts,
    pub(crate) guest_ns: u64,
    pub(crate) before_exit_ns: u64,
}

/// What the thread does at a moment.
#[derive(Clone, Copy, Debug)]
enum State {
    Guest,
    BeforeExit,
    Kernel,
    User,
    Runnable,
    Blocked,
    Poll,
}

/// Lives through rounds.
#[derive(Debug)]
pub(crate) struct Life {
    thread: i32,
    cpu: u32,
    now_ns: u64,
    exit: TrueExit,
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) exits: Vec<TrueExit>,
}

impl Life {
    pub(crate) fn new(thread: i32, cpu: u32, start_ns: u64, rounds: &[Round]) -> Self {
        let (exit, events, exits) = (TrueExit::default(), Vec::new(), Vec::new());
        let mut life = Self { thread, cpu, now_ns: start_ns, exit, events, exits };
        let mut by_entry = true;
        for round in rounds {
            life.round(round, by_entry);
            by_entry = !round.fast_path;
        }
        if by_entry {
            life.record("kvm_entry", &[("vcpu_id", 0)]);
        }
        life
    }

    fn round(&mut self, round: &Round, by_entry: bool) {
        if by_entry {
            self.record("kvm_entry", &[("vcpu_id", 0)]);
            self.spend(round.guest, State::Guest);
            if let Some(steps) = round.interrupt {
                self.record("softirq_entry", &[("vec", 1)]);
                self.spend(steps, State::BeforeExit);
            }
            if let Some(off) = round.off {
                self.off(off, State::BeforeExit, State::BeforeExit);
                self.spend(1, State::BeforeExit);
            }
        }
        self.exit.start_ns = self.now_ns;
        self.record("kvm_exit", &[("exit_reason", 0x78), ("isa", 2)]);
        for segment in &round.handling {
            self.spend(1, State::Kernel);
            self.segment(segment);
        }
        self.spend(1, State::Kernel);
        self.exit.end_ns = (!round.fast_path).then_some(self.now_ns);
        self.exits.push(std::mem::take(&mut self.exit));
    }

    fn segment(&mut self, segment: &Segment) {
        match segment {
            Segment::Kernel(steps) => self.spend(*steps, State::Kernel),
            Segment::Off(off) => self.off(*off, State::Runnable, State::Blocked),
            Segment::User(stays) => {
                self.record("kvm_userspace_exit", &[("reason", 2)]);
                for (steps, off) in stays {
                    self.spend(*steps, State::User);
                    if let Some(off) = off {
                        self.off(*off, State::Runnable, State::Blocked);
                    }
                }
                self.spend(1, State::User);
                self.record("kvm_fpu", &[("load", 1)]);
            }
            Segment::Poll { steps, off, more } => {
                let from_ns = self.now_ns;
                self.spend(*steps, State::Poll);
                if let Some(Off::Preempted { .. }) = off {
                    self.off(off.unwrap(), State::Runnable, State::Blocked);
                    self.spend(*more, State::Poll);
                }
                self.wakeup(from_ns, 0);
            }
            Segment::Wait { poll, wait, after } => {
                let from_ns = self.now_ns;
                self.spend(*poll, State::Poll);
                let sleeps = matches!(wait, Off::Blocked { .. });
                self.off(*wait, State::Runnable, State::Blocked);
                self.spend(*after, if sleeps { State::Kernel } else { State::Poll });
                self.wakeup(from_ns, u64::from(sleeps));
            }
        }
    }

    fn wakeup(&mut self, from_ns: u64, waited: u64) {
        self.record("kvm_vcpu_wakeup", &[("ns", self.now_ns - from_ns), ("waited", waited)]);
    }

    fn off(&mut self, off: Off, runnable: State, blocked: State) {
        let to = match off {
            Off::Preempted { steps, to } => {
                self.switch(self.thread, PREEMPTED, OTHER);
                self.spend(steps, runnable);
                to
            }
            Off::Blocked { asleep, woken, waker, to } => {
                self.switch(self.thread, SLEEPS, OTHER);
                self.spend(asleep, blocked);
                let fields = vec![("pid", self.thread as u64)];
                let (ns, name) = (self.now_ns, "sched_waking");
                self.events.push(RecordedEvent { cpu: waker, ns, ran: OTHER, name, fields });
                self.spend(woken, runnable);
                to
            }
        };
        self.cpu = to;
        self.switch(OTHER, PREEMPTED, self.thread);
    }

    fn switch(&mut self, prev: i32, state: u64, next: i32) {
        let fields =
            vec![("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)];
        let (cpu, ns, name) = (self.cpu, self.now_ns, "sched_switch");
        self.events.push(RecordedEvent { cpu, ns, ran: prev, name, fields });
    }

    fn record(&mut self, name: &'static str, fields: &[(&'static str, u64)]) {
        let (cpu, ns, ran) = (self.cpu, self.now_ns, self.thread);
        self.events.push(RecordedEvent { cpu, ns, ran, name, fields: fields.to_vec() });
    }

    fn spend(&mut self, steps: u64, state: State) {
        let ns = steps * STEP_NS;
        self.now_ns += ns;
        let parts = &mut self.exit.parts;
        *match state {
            State::Guest => &mut self.exit.guest_ns,
            State::BeforeExit => &mut self.exit.before_exit_ns,
            State::Kernel => &mut parts.kernel_ns,
            State::User => &mut parts.user_ns,
            State::Runnable => &mut parts.runnable_ns,
            State::Blocked => &mut parts.blocked_ns,
            State::Poll => &mut parts.halt_poll_ns,
        } += ns;
    }
}
