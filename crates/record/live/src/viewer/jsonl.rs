//! An interval as one line of JSON: docs/formats/top.schema.json.

use schemars::JsonSchema;
use serde::Serialize;

use super::jsonl_guest::Guest;
use crate::guest_views::SeenGuest;
use crate::{Interval, RanInstead, Row, Sums, Vcpu};
use timeline::VcpuActivity;
use timeline::reasons::Code;

/// The document's name and version.
const SCHEMA: &str = "hyperscope.top/1";

/// The line, without its end; guests are those that were asked for.
#[must_use]
pub fn line(interval: &Interval, guests: &[SeenGuest]) -> String {
    // Writing into memory cannot fail, and keys are strings.
    serde_json::to_string(&Line::new(interval, guests)).unwrap_or_default()
}

/// Added up inside the kernel. Of a row kernel_ns + user_ns + runnable_ns + blocked_ns + halt_poll_ns = time_ns,
/// exactly; of a vCPU the states add up to time_ns. docs/top.md defines the numbers.
#[derive(JsonSchema, Serialize)]
pub(super) struct Line<'i> {
    schema: &'static str,
    /// End of the interval on the monotonic clock; an exit whose entry lies there belongs to the next one.
    ts_ns: u64,
    /// How long it was; its begin is the end of the interval before.
    interval_ns: u64,
    /// Exits by VM (with --by vcpu: and vCPU), level and reason; the most expensive come first,
    /// waiting exits last.
    rows: Vec<RowLine<'i>>,
    /// vCPUs that entered or left their guests since top started.
    vcpus: Vec<VcpuLine<'i>>,
    /// The own views of guests that --guest names.
    guests: Vec<Guest<'i>>,
    /// The cost of measuring.
    cost: Cost,
    /// Events that are in no row or in the wrong part.
    left_out: LeftOut,
}

#[derive(JsonSchema, Serialize)]
struct RowLine<'i> {
    /// Name of the VM; null in the row "other", which sums exits of all VMs and reasons beyond the
    /// capacity of the kernel's table.
    vm: Option<&'i str>,
    /// The vCPU's number with --by vcpu, otherwise null.
    vcpu: Option<u32>,
    /// 1: a guest of this host, 2: any nested guest; null in "other".
    #[schemars(extend("enum" = [1, 2, null]))]
    level: Option<u8>,
    /// Architecture of the exit reasons; null in "other".
    isa: Option<&'static str>,
    /// The kernel's symbol for the code, otherwise the code; for "other" see vm.
    reason: &'i str,
    /// The raw code; "ret:esr_ec" on arm64; null of "other".
    #[schemars(with = "serde_json::Value", extend("type" = ["integer", "string", "null"]))]
    code: Option<&'i Code>,
    /// A waiting exit: the guest was idle.
    waiting: bool,
    /// Exits that ended in the interval: by an entry, by another exit, or with their thread.
    #[schemars(extend("minimum" = 1))]
    count: u64,
    /// Exits that ended with an entry; only these have times.
    paired: u64,
    /// Paired exits by handler.
    handled: Handled,
    /// From exit to entry, all of them.
    time_ns: u64,
    /// before_exit_ns + kernel_ns + user_ns.
    cost_ns: u64,
    /// Host work before kvm_exit, on top of time_ns.
    before_exit_ns: u64,
    /// The thread ran in the kernel.
    kernel_ns: u64,
    /// The thread ran in the VMM.
    user_ns: u64,
    /// The thread was runnable without a CPU.
    runnable_ns: u64,
    /// It slept.
    blocked_ns: u64,
    /// The kernel polled for work before it released the CPU.
    halt_poll_ns: u64,
    /// The guest ran before these exits.
    guest_ns: u64,
    /// Median of the times, with an error of at most 19%; null without paired exits.
    p50_ns: Option<u64>,
    /// The 99th percentile, as p50_ns.
    p99_ns: Option<u64>,
}

/// Paired exits by handler.
#[derive(JsonSchema, Serialize)]
struct Handled {
    /// Handled in kernel alone.
    kernel: u64,
    /// Went to the VMM.
    user: u64,
    /// Reflected to a level-1 hypervisor.
    l1: u64,
}

#[derive(JsonSchema, Serialize)]
struct VcpuLine<'i> {
    /// Name of its VM.
    vm: &'i str,
    /// Process of its VMM.
    #[schemars(extend("minimum" = 1))]
    pid: u32,
    /// Number of the vCPU, if the kernel knows it.
    vcpu: Option<u32>,
    /// Its thread.
    #[schemars(extend("minimum" = 1))]
    thread: u32,
    /// The thread has ended.
    gone: bool,
    /// Sum of the states: the interval without the time before the vCPU's first exit and after its
    /// end.
    time_ns: u64,
    /// Time of its thread by state.
    states: States,
    /// The part of the state guest in which nested guests ran.
    nested_guest_ns: u64,
    /// Waits for a CPU that ended in the interval: preempted, or woken up and not yet running.
    run_queue: RunQueue<'i>,
}

/// Time of its thread by state.
#[derive(JsonSchema, Serialize)]
struct States {
    /// The guest ran.
    guest: u64,
    /// Host work after the hardware exit and before kvm_exit.
    before_exit: u64,
    /// The kernel handled an exit.
    exit_kernel: u64,
    /// The VMM handled an exit.
    exit_user: u64,
    /// The kernel polled for work.
    halt_poll: u64,
    /// Switched out while it could have continued.
    preempted: u64,
    /// Woken up, without a CPU.
    waiting: u64,
    /// Asleep.
    blocked: u64,
    /// Not known.
    unknown: u64,
}

/// Waits for a CPU that ended in the interval: preempted, or woken up and not yet running.
#[derive(JsonSchema, Serialize)]
struct RunQueue<'i> {
    /// How many.
    waits: u64,
    /// Total length, from their beginning, which may lie in an earlier interval.
    time_ns: u64,
    /// Their median, as of rows.
    p50_ns: Option<u64>,
    /// Their 99th percentile, as of rows.
    p99_ns: Option<u64>,
    /// Threads that ran on the CPU for which the vCPU waited, longest first. They add up to
    /// time_ns, except for time before the last 31 switches of a CPU to which the vCPU was moved or
    /// woken, and time beyond the capacity.
    ran_instead: Vec<RanInsteadLine<'i>>,
}

#[derive(JsonSchema, Serialize)]
struct RanInsteadLine<'i> {
    /// The thread that ran; 0: the CPU was idle.
    thread: u32,
    /// Its process.
    pid: u32,
    /// Its name; null if it had ended.
    name: Option<&'i str>,
    /// The VM whose process that is.
    vm: Option<&'i str>,
    /// For how long.
    time_ns: u64,
}

/// The cost of measuring.
#[derive(JsonSchema, Serialize)]
struct Cost {
    /// process_ns + programs_ns.
    cpu_ns: Option<u64>,
    /// CPU time of hyperscope itself.
    process_ns: u64,
    /// CPU time of the BPF programs; null if the kernel or the user's privileges do not allow to
    /// measure it.
    programs_ns: Option<u64>,
    /// programs_ns per exit, with all events that belong to it; null without exits.
    per_exit_ns: Option<u64>,
}

/// Events that are in no row or in the wrong part.
#[derive(JsonSchema, Serialize)]
struct LeftOut {
    /// Exits of vCPUs beyond the capacity of the kernel's table.
    exits: u64,
    /// Parts of exits in which halt polling could not be detected; it is in kernel_ns.
    pieces: u64,
    /// Waits for a CPU that are not in run_queue, because of the capacity.
    waits: u64,
    /// Pieces of waits that are in no vCPU's ran_instead, because of the capacity.
    ran_instead: u64,
    /// Switches and wake-ups of vCPU threads that the kernel did not trace; time around them may be
    /// in another part or state.
    sched_events: u64,
}

impl<'i> Line<'i> {
    fn new(interval: &'i Interval, guests: &'i [SeenGuest]) -> Self {
        let (cost, left_out) = (&interval.cost, &interval.left_out);
        Self {
            schema: SCHEMA,
            ts_ns: interval.end_ns,
            interval_ns: interval.interval_ns(),
            rows: interval.rows.iter().map(RowLine::new).collect(),
            vcpus: interval.vcpus.iter().map(VcpuLine::new).collect(),
            guests: guests.iter().map(Guest::new).collect(),
            cost: Cost {
                cpu_ns: cost.cpu_ns(),
                process_ns: cost.process_ns,
                programs_ns: cost.programs_ns,
                per_exit_ns: cost.per_exit_ns(),
            },
            left_out: LeftOut {
                exits: left_out.without_state,
                pieces: left_out.pieces,
                waits: left_out.waits,
                ran_instead: left_out.takers,
                sched_events: left_out.sched_events,
            },
        }
    }
}

impl<'i> RowLine<'i> {
    fn new(row: &'i Row) -> Self {
        let Sums { parts, times, handled: [kernel, user, l1], .. } = &row.sums;
        Self {
            vm: row.vm.as_deref(),
            vcpu: row.vcpu,
            level: (row.level > 0).then_some(row.level),
            isa: row.code.as_ref().map(|_| row.isa.name()),
            reason: &row.reason,
            code: row.code.as_ref(),
            waiting: row.waiting,
            count: row.sums.count,
            paired: row.sums.paired,
            handled: Handled { kernel: *kernel, user: *user, l1: *l1 },
            time_ns: row.sums.time_ns,
            cost_ns: row.sums.cost_ns(),
            before_exit_ns: row.sums.before_exit_ns,
            kernel_ns: parts.kernel_ns,
            user_ns: parts.user_ns,
            runnable_ns: parts.runnable_ns,
            blocked_ns: parts.blocked_ns,
            halt_poll_ns: parts.halt_poll_ns,
            guest_ns: row.sums.guest_ns,
            p50_ns: times.quantile_ns(0.5),
            p99_ns: times.quantile_ns(0.99),
        }
    }
}

impl<'i> VcpuLine<'i> {
    fn new(vcpu: &'i Vcpu) -> Self {
        let waits = &vcpu.waits;
        Self {
            vm: &vcpu.vm,
            pid: vcpu.process,
            vcpu: vcpu.vcpu,
            thread: vcpu.thread,
            gone: vcpu.gone,
            time_ns: vcpu.states.total_ns(),
            states: States::new(&vcpu.states),
            nested_guest_ns: vcpu.states.nested_ns(),
            run_queue: RunQueue {
                waits: waits.count,
                time_ns: waits.time_ns,
                p50_ns: waits.times.quantile_ns(0.5),
                p99_ns: waits.times.quantile_ns(0.99),
                ran_instead: vcpu.ran_instead.iter().map(RanInsteadLine::new).collect(),
            },
        }
    }
}

impl States {
    fn new(states: &crate::States) -> Self {
        Self {
            guest: states.time_ns(VcpuActivity::Guest),
            before_exit: states.time_ns(VcpuActivity::BeforeExit),
            exit_kernel: states.time_ns(VcpuActivity::Kernel),
            exit_user: states.time_ns(VcpuActivity::User),
            halt_poll: states.time_ns(VcpuActivity::HaltPoll),
            preempted: states.time_ns(VcpuActivity::Preempted),
            waiting: states.time_ns(VcpuActivity::Waiting),
            blocked: states.time_ns(VcpuActivity::Blocked),
            unknown: states.time_ns(VcpuActivity::Unknown),
        }
    }
}

impl<'i> RanInsteadLine<'i> {
    fn new(ran: &'i RanInstead) -> Self {
        Self {
            thread: ran.thread,
            pid: ran.process,
            name: ran.name.as_deref(),
            vm: ran.vm.as_deref(),
            time_ns: ran.time_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::{PublishedSchema, assert_published};

    use super::*;

    #[test]
    fn its_schema_is_published() {
        let title = "A line of hyperscope top --format jsonl on a host: exits that ended in an interval, and what vCPUs did in it";
        assert_published::<Line<'_>>(&PublishedSchema::new("top").titled(title).closed());
    }
}
