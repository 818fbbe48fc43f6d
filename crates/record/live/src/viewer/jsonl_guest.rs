//! How guests see themselves, in a line of JSON.

use channel::wire::{CpuUse, GuestView, TaskUse};
use schemars::JsonSchema;
use serde::Serialize;

use crate::guest_views::SeenGuest;

#[derive(JsonSchema, Serialize)]
pub(super) struct Guest<'i> {
    /// Name of the guest.
    name: &'i str,
    /// Channel to its agent.
    channel: &'i str,
    /// Process of its VMM, where that is known: the pid of its vCPUs.
    #[schemars(extend("minimum" = 1))]
    pid: Option<u32>,
    /// Why there is no view; null if there is one.
    fault: Option<&'i str>,
    /// The view at the end of the interval; null: see fault.
    view: Option<View<'i>>,
}

/// The view at the end of the interval; null: see fault.
#[derive(JsonSchema, Serialize)]
struct View<'i> {
    /// Time since the previous query, on the guest's monotonic clock.
    interval_ns: u64,
    /// CPU time that its agent has used since it started.
    agent_cpu_ns: u64,
    /// CPUs that are online.
    cpu_count: u32,
    /// All of them together.
    all_cpus: CpuTimes,
    /// Each of the first 256.
    cpus: Vec<Cpu>,
    /// Processes and threads of its kernel.
    task_count: u32,
    /// Threads beyond the first 8,192, which were not read.
    unread_threads: u32,
    /// Run time of all threads that were read.
    tasks_run_ns: u64,
    /// Time in which they were runnable without a CPU of the guest.
    tasks_waited_ns: u64,
    /// The processes with the longest run time, at most 40.
    tasks: Vec<Task<'i>>,
}

/// All of them together.
#[derive(JsonSchema, Serialize)]
struct Cpu {
    /// The CPU's number.
    cpu: u32,
    #[serde(flatten)]
    times: CpuTimes,
}

/// All of them together.
#[derive(JsonSchema, Serialize)]
struct CpuTimes {
    /// Programs, and guests of its own.
    user_ns: u64,
    /// Its kernel.
    system_ns: u64,
    /// Its kernel, for interrupts and soft interrupts.
    irq_ns: u64,
    /// Steal: the CPU had work, but the host ran something else.
    steal_ns: u64,
    /// Nothing to run, or waiting for a disk.
    idle_ns: u64,
    /// The part of user_ns in which its own guests ran.
    guest_ns: u64,
}

#[derive(JsonSchema, Serialize)]
struct Task<'i> {
    /// The process, as the guest numbers it.
    #[schemars(extend("minimum" = 1))]
    pid: u32,
    /// Its name.
    name: &'i str,
    /// Its threads.
    threads: u32,
    /// How long they ran.
    run_ns: u64,
    /// Time in which they were runnable without a CPU of the guest.
    waited_ns: u64,
}

impl<'i> Guest<'i> {
    pub(super) fn new(guest: &'i SeenGuest) -> Self {
        let view = guest.view.as_ref();
        Self {
            name: &guest.name,
            channel: &guest.channel,
            pid: guest.process,
            fault: view.err().map(String::as_str),
            view: view.ok().map(View::new),
        }
    }
}

impl<'i> View<'i> {
    fn new(view: &'i GuestView) -> Self {
        let cpu = |(cpu, used): &(u32, CpuUse)| Cpu { cpu: *cpu, times: CpuTimes::new(used) };
        Self {
            interval_ns: view.span_ns,
            agent_cpu_ns: view.agent_cpu_ns,
            cpu_count: view.cpu_count,
            all_cpus: CpuTimes::new(&view.all_cpus),
            cpus: view.cpus.iter().map(cpu).collect(),
            task_count: view.task_count,
            unread_threads: view.unread_threads,
            tasks_run_ns: view.tasks_run_ns,
            tasks_waited_ns: view.tasks_waited_ns,
            tasks: view.tasks.iter().map(Task::new).collect(),
        }
    }
}

impl CpuTimes {
    fn new(used: &CpuUse) -> Self {
        Self {
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            irq_ns: used.irq_ns,
            steal_ns: used.steal_ns,
            idle_ns: used.idle_ns,
            guest_ns: used.guest_ns,
        }
    }
}

impl<'i> Task<'i> {
    fn new(task: &'i TaskUse) -> Self {
        Self {
            pid: task.pid,
            name: &task.name,
            threads: task.threads,
            run_ns: task.run_ns,
            waited_ns: task.waited_ns,
        }
    }
}
