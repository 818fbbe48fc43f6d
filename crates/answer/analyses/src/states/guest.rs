//! Activity of a guest's CPUs, by its own events.

use rustc_hash::FxHashMap;
use timeline::cycles::SWITCH_TAG;
use timeline::trace_events::TraceEvent;

use super::span::VcpuState;
use super::wanted::{ActivityEvent, sign_of};

/// Max threads with a known mode: the kernel's max number of threads (`PID_MAX_LIMIT`).
const MAX_THREADS: usize = 1 << 22;

/// Activity of a guest's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// The current thread; 0 for the idle thread.
    pub(super) task: Option<u32>,
    /// One of the guest's states.
    pub(super) state: VcpuState,
}

impl Context {
    pub(super) const UNKNOWN: Self = Self { task: None, state: VcpuState::Guest };
}

/// Mode of a thread, now or when it runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    User,
    Kernel,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    task: Option<u32>,
    irqs: u32,
    in_softirq: bool,
    last: Option<Context>,
}

/// State of all CPUs of one guest.
#[derive(Debug, Default)]
pub(super) struct GuestContexts {
    cpus: FxHashMap<u16, Cpu>,
    modes: FxHashMap<u32, Mode>,
    event_kinds: GuestEventKinds,
}

/// Kinds of events in a guest's recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestEventKinds {
    /// Events that separate user space from the kernel, such as system calls.
    pub modes: bool,
    /// Interrupts or soft interrupts.
    pub irqs: bool,
}

impl GuestContexts {
    /// Handles the next event; returns the CPU's new context if it changes.
    pub(super) fn event(&mut self, event: &TraceEvent) -> Option<Context> {
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.task = Some(event.thread);
        if event.tag == SWITCH_TAG {
            // Handlers never span a thread switch: an open one has lost its end.
            *cpu = Cpu { task: event.thread_value(2), last: cpu.last, ..Cpu::default() };
        } else if let Some(sign) = sign_of(event.tag) {
            self.event_kinds.add(sign);
            match sign {
                ActivityEvent::IrqBegins => cpu.irqs = cpu.irqs.saturating_add(1),
                ActivityEvent::IrqEnds => cpu.irqs = cpu.irqs.saturating_sub(1),
                ActivityEvent::SoftIrqBegins => cpu.in_softirq = true,
                ActivityEvent::SoftIrqEnds => cpu.in_softirq = false,
                ActivityEvent::Kernel => note(&mut self.modes, event.thread, Mode::Kernel),
                ActivityEvent::User => note(&mut self.modes, event.thread, Mode::User),
                ActivityEvent::OfUser if self.modes.contains_key(&event.thread) => {}
                ActivityEvent::OfUser => note(&mut self.modes, event.thread, Mode::User),
                ActivityEvent::Open => {
                    self.modes.remove(&event.thread);
                }
                ActivityEvent::SoftIrqDue => {}
            }
        }
        let next = context(cpu, &self.modes);
        let changes = cpu.last != Some(next);
        cpu.last = Some(next);
        changes.then_some(next)
    }

    pub(super) fn event_kinds(&self) -> GuestEventKinds {
        self.event_kinds
    }

    /// Events of a CPU were lost; the modes of threads are unknown until the next events.
    pub(super) fn lost(&mut self, cpu: u16) -> Context {
        self.modes.clear();
        let last = Some(Context::UNKNOWN);
        self.cpus.insert(cpu, Cpu { last, ..Cpu::default() });
        Context::UNKNOWN
    }
}

impl GuestEventKinds {
    fn add(&mut self, sign: ActivityEvent) {
        match sign {
            ActivityEvent::IrqBegins
            | ActivityEvent::IrqEnds
            | ActivityEvent::SoftIrqBegins
            | ActivityEvent::SoftIrqEnds => {
                self.irqs = true;
            }
            ActivityEvent::Kernel
            | ActivityEvent::User
            | ActivityEvent::OfUser
            | ActivityEvent::Open => self.modes = true,
            ActivityEvent::SoftIrqDue => {}
        }
    }
}

fn note(modes: &mut FxHashMap<u32, Mode>, thread: u32, mode: Mode) {
    if modes.len() < MAX_THREADS || modes.contains_key(&thread) {
        modes.insert(thread, mode);
    }
}

fn context(cpu: &Cpu, modes: &FxHashMap<u32, Mode>) -> Context {
    let mode = cpu.task.and_then(|task| modes.get(&task));
    let state = match (cpu.task, mode) {
        _ if cpu.irqs > 0 || cpu.in_softirq => VcpuState::GuestIrq,
        (Some(0), _) => VcpuState::GuestIdle,
        (_, Some(Mode::User)) => VcpuState::GuestUser,
        (_, Some(Mode::Kernel)) => VcpuState::GuestKernel,
        (_, None) => VcpuState::Guest,
    };
    Context { task: cpu.task, state }
}
