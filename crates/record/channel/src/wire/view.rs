//! A guest's live view of itself: what its CPUs did and which tasks ran since the last view.

use crate::wire::fields::{Fields, Malformed, Payload};

/// Max CPUs of a view with their own figures: bounded by the size of a message.
pub const MAX_VIEW_CPUS: usize = 256;
/// Max tasks of a view.
pub const MAX_VIEW_TASKS: usize = 64;
/// Max bytes of a task's name; Linux has 15.
pub const MAX_TASK_NAME_BYTES: usize = 32;

/// Asks for a view. It is the first message of a connection for views only, and is repeated for each view. Agents
/// without views don't answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewRequest {
    /// Max number of tasks: those that ran longest.
    pub tasks: u16,
}

/// The guest's activity since the last view on this connection. The first view has no span and no figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestView {
    /// Length of this span on the guest's monotonic clock.
    pub span_ns: u64,
    /// CPU time of the agent since its start.
    pub agent_cpu_ns: u64,
    /// Sum of all CPUs.
    pub all_cpus: CpuUse,
    /// Number of CPUs in the sum.
    pub cpu_count: u32,
    /// Number and figures of each CPU: at most [`MAX_VIEW_CPUS`].
    pub cpus: Vec<(u32, CpuUse)>,
    /// Number of processes and kernel threads that were read.
    pub task_count: u32,
    /// Number of threads that were not read because there are too many.
    pub unread_threads: u32,
    /// Run time of all threads that were read.
    pub tasks_run_ns: u64,
    /// Their run-queue wait in the guest.
    pub tasks_waited_ns: u64,
    /// The tasks that ran longest: at most [`MAX_VIEW_TASKS`].
    pub tasks: Vec<TaskUse>,
}

/// CPU time of a guest's CPU from its `/proc/stat`. The unit of the kernel's accounting is a timer tick, so the
/// nanoseconds have the resolution of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// User space, including nested guests.
    pub user_ns: u64,
    /// Kernel.
    pub system_ns: u64,
    /// Kernel, handling interrupts.
    pub irq_ns: u64,
    /// Steal: the CPU had work, but the host ran something else.
    pub steal_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Part of [`CpuUse::user_ns`]: nested guests.
    pub guest_ns: u64,
}

/// Sum of a process's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskUse {
    pub pid: u32,
    pub name: String,
    pub threads: u32,
    /// Run time.
    pub run_ns: u64,
    /// Run-queue wait in the guest.
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
