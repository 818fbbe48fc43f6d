//! How a guest sees itself, live: what its CPUs did, and which tasks ran, since it was asked before.

use crate::wire::fields::{Fields, Malformed, Payload};

/// CPUs of a view that have figures of their own, at most: with more, messages would not hold them.
pub const MAX_VIEW_CPUS: usize = 256;
/// Tasks of a view, at most.
pub const MAX_VIEW_TASKS: usize = 64;
/// Bytes of a task's name, at most; Linux has 15.
pub const MAX_TASK_NAME_BYTES: usize = 32;

/// Asks for a view. The first message of a connection that is for views alone; then one for each view.
/// Agents that know nothing of views don't answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewRequest {
    /// Tasks at most: those that ran longest.
    pub tasks: u16,
}

/// What a guest did since its view before, on this connection. The first has no time and no figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestView {
    /// How long that is, on its monotonic clock.
    pub span_ns: u64,
    /// CPU time that the agent used, in all.
    pub agent_cpu_ns: u64,
    /// All its CPUs together.
    pub all_cpus: CpuUse,
    /// CPUs that are in that.
    pub cpu_count: u32,
    /// Each of them, with its number: [`MAX_VIEW_CPUS`] at most.
    pub cpus: Vec<(u32, CpuUse)>,
    /// Processes and threads of the kernel that were looked at.
    pub task_count: u32,
    /// Threads that were not looked at: there are too many.
    pub unread_threads: u32,
    /// Run time of all threads that were read.
    pub tasks_run_ns: u64,
    /// How long they waited for a CPU of the guest's.
    pub tasks_waited_ns: u64,
    /// Those of them that ran longest: [`MAX_VIEW_TASKS`] at most.
    pub tasks: Vec<TaskUse>,
}

/// What a CPU of a guest did, as its kernel accounts for it (`/proc/stat`): in ticks of its timer, so that
/// nanoseconds are no finer than those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Programs; guests of its own are among them.
    pub user_ns: u64,
    /// Its kernel.
    pub system_ns: u64,
    /// Its kernel, for interrupts.
    pub irq_ns: u64,
    /// Steal: the CPU had work, but the host ran something else.
    pub steal_ns: u64,
    /// It had nothing to run.
    pub idle_ns: u64,
    /// Of [`CpuUse::user_ns`]: guests of its own.
    pub guest_ns: u64,
}

/// What all threads of a process did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskUse {
    /// The process.
    pub pid: u32,
    pub name: String,
    pub threads: u32,
    /// How long they ran.
    pub run_ns: u64,
    /// How long they waited for a CPU of the guest's.
    pub waited_ns: u64,
}

impl ViewRequest {
    pub(crate) fn write(self, to: &mut Payload) {
        to.u16(self.tasks);
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self { tasks: from.u16()? })
    }
}

impl GuestView {
    pub(crate) fn write(&self, to: &mut Payload) {
        to.u64(self.span_ns).u64(self.agent_cpu_ns);
        self.all_cpus.write(to);
        to.u32(self.cpu_count);
        to.list(first(&self.cpus, MAX_VIEW_CPUS), |to, (cpu, used)| {
            to.u32(*cpu);
            used.write(to);
        });
        to.u32(self.task_count).u32(self.unread_threads);
        to.u64(self.tasks_run_ns).u64(self.tasks_waited_ns);
        to.list(first(&self.tasks, MAX_VIEW_TASKS), |to, task| task.write(to));
    }

    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        let view = Self {
            span_ns: from.u64()?,
            agent_cpu_ns: from.u64()?,
            all_cpus: CpuUse::read(from)?,
            cpu_count: from.u32()?,
            cpus: from.list(|from| Ok((from.u32()?, CpuUse::read(from)?)))?,
            task_count: from.u32()?,
            unread_threads: from.u32()?,
            tasks_run_ns: from.u64()?,
            tasks_waited_ns: from.u64()?,
            tasks: from.list(TaskUse::read)?,
        };
        let fits = view.cpus.len() <= MAX_VIEW_CPUS && view.tasks.len() <= MAX_VIEW_TASKS;
        fits.then_some(view).ok_or(Malformed)
    }
}

fn first<T>(values: &[T], max: usize) -> &[T] {
    values.get(..max).unwrap_or(values)
}

impl CpuUse {
    fn write(self, to: &mut Payload) {
        for ns in
            [self.user_ns, self.system_ns, self.irq_ns, self.steal_ns, self.idle_ns, self.guest_ns]
        {
            to.u64(ns);
        }
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            user_ns: from.u64()?,
            system_ns: from.u64()?,
            irq_ns: from.u64()?,
            steal_ns: from.u64()?,
            idle_ns: from.u64()?,
            guest_ns: from.u64()?,
        })
    }
}

impl TaskUse {
    fn write(&self, to: &mut Payload) {
        to.u32(self.pid).text(&self.name).u32(self.threads);
        to.u64(self.run_ns).u64(self.waited_ns);
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        let task = Self {
            pid: from.u32()?,
            name: from.text()?,
            threads: from.u32()?,
            run_ns: from.u64()?,
            waited_ns: from.u64()?,
        };
        (task.name.len() <= MAX_TASK_NAME_BYTES).then_some(task).ok_or(Malformed)
    }
}
