//! The JSON document of profiles, as docs/profile.md defines it.

use std::collections::BTreeMap;

use analyses::profile::{CodeFrame, ProfileVcpu, SampledMachine};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::ProfileReport;
use super::columns::columns;
use super::lines::{self, Line};
use crate::RecorderCost;
use crate::column::RowsWith;
use crate::json::times;
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;

/// Output of `hyperscope profile --format json`: the code that vCPUs ran. See docs/profile.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// Losses of all sources.
    losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// VMs that were sampled both inside and by their hosts: the difference between the two.
    differences: Vec<Difference<'r>>,
    /// Without recorded vCPUs: the sampled machines, whose rows have the sums of their samples' periods as
    /// times; otherwise empty.
    machines: Vec<Machine<'r>>,
    /// All vCPUs.
    vcpus: Vec<Vcpu<'r>>,
    /// Rows by vCPU, in descending order of time. Those of a vCPU add up to its time.
    rows: RowsWith<Line<'r>, Stack<'r>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Difference<'r> {
    /// The VM.
    vm: &'r str,
    /// Time of guests for which both have enough samples.
    time_ns: u64,
    /// Part of it that the guest's own samples assign to other functions than the host's do.
    moved_ns: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Machine<'r> {
    /// The recording.
    source: &'r str,
    /// The event that made the samples.
    event: &'r str,
    /// Samples per second, if each stands for that part of a second; null: each stands for its period.
    #[schemars(extend("minimum" = 1))]
    hz: Option<u64>,
    /// Whether times of its rows are nanoseconds; otherwise they count the event.
    nanoseconds: bool,
    /// Samples of idle CPUs, which are in no row.
    idle_samples: u64,
    /// Samples of other events, which are in no row.
    other_samples: u64,
}

/// One vCPU.
#[derive(Debug, JsonSchema, Serialize)]
struct Vcpu<'r> {
    /// Its VM.
    vm: &'r str,
    /// Its number.
    vcpu: u32,
    /// Its thread on the host.
    tid: u32,
    #[serde(flatten)]
    times: VcpuTimes,
    /// That time by state, in the unit of the time; states without any are left out.
    #[schemars(with = "BTreeMap<String, u64>")]
    states: Map<String, Value>,
}

/// The code of a row, from the root of the stack.
#[derive(Debug, JsonSchema, Serialize)]
struct Stack<'r> {
    /// The code, root first. Exits, and the host's samples of a guest, give one frame.
    stack: Vec<Frame<'r>>,
}

/// A place in code.
#[derive(Debug, JsonSchema, Serialize)]
struct Frame<'r> {
    /// The function. Null: unknown.
    symbol: Option<&'r str>,
    /// Its kernel module, or [user] for the guest's user space. Null: the kernel itself.
    module: Option<&'r str>,
    /// Build id of the mapped file, in hexadecimal. Null: for kernels, and if it was not recorded.
    build_id: Option<String>,
    /// Without a known function, the offset in the file; for kernels, and without a known file, the address. For
    /// innermost frames by instruction (`--by instruction`), bytes from the function's begin. Otherwise null,
    /// also if addresses were not kept separate.
    offset: Option<u64>,
    /// Only for innermost frames by instruction: the instruction. Null: its code is not available here.
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<Option<&'r str>>,
}

times! {
    /// A vCPU's time.
    struct VcpuTimes {
        /// From its first event to its last: the sum of its rows. Nanoseconds; null where the clock counts no
        /// nanoseconds.
        time = "time",
    }
}

impl<'r> Document<'r> {
    pub(super) fn new(report: &'r ProfileReport) -> Self {
        let profile = &report.profile;
        let vcpu = |vcpu| Vcpu::new(vcpu, profile.nanoseconds);
        let machine = |machine| Machine::new(machine, &report.sources);
        let row = |line: Line<'r>| {
            let stack = Stack::new(&line);
            (line, stack)
        };
        Self {
            schema: "hyperscope.profile/1",
            sources: &report.sources,
            losses: LossSums::new(profile.losses.iter(), 0),
            recorder_cost: report.recorder_cost.as_ref().map(RecorderCost::document),
            differences: differences(report),
            machines: profile.machines.iter().map(machine).collect(),
            vcpus: profile.vcpus.iter().map(vcpu).collect(),
            rows: RowsWith {
                columns: columns(),
                rows: lines::all(report).into_iter().map(row).collect(),
            },
        }
    }
}

/// By VM, the difference between a guest's own samples and those of its host.
fn differences(report: &ProfileReport) -> Vec<Difference<'_>> {
    let differences = report.profile.differences.iter();
    differences
        .map(|(vm, difference)| Difference {
            vm,
            time_ns: difference.time_ns,
            moved_ns: difference.moved_ns,
        })
        .collect()
}

impl<'r> Machine<'r> {
    /// Without recorded vCPUs: the weight of a machine's samples.
    fn new(machine: &'r SampledMachine, sources: &'r [String]) -> Self {
        Self {
            source: sources.get(machine.recording).map_or("", String::as_str),
            event: &machine.unit.event,
            hz: machine.unit.hz,
            nanoseconds: machine.unit.nanoseconds,
            idle_samples: machine.idle_samples,
            other_samples: machine.unit.others,
        }
    }
}

impl<'r> Vcpu<'r> {
    fn new(vcpu: &'r ProfileVcpu, in_ns: bool) -> Self {
        let states = vcpu.states.iter();
        Self {
            vm: &vcpu.vm,
            vcpu: vcpu.vcpu,
            tid: vcpu.thread,
            times: VcpuTimes { in_ns, time: Some(vcpu.time_ns) },
            states: states
                .map(|(state, &time_ns)| (state.name().to_owned(), time_ns.into()))
                .collect(),
        }
    }
}

impl<'r> Stack<'r> {
    fn new(line: &Line<'r>) -> Self {
        Self { stack: line.stack.iter().map(Frame::new).collect() }
    }
}

impl<'r> Frame<'r> {
    fn new(frame: &'r CodeFrame) -> Self {
        let instruction = frame.instruction.as_ref();
        Self {
            symbol: frame.symbol.as_deref(),
            module: frame.module.as_deref(),
            build_id: frame.build_id.map(|build_id| build_id.to_string()),
            offset: frame.address.or(instruction.map(|at| at.into)),
            instruction: instruction.map(|at| at.text.as_deref()),
        }
    }
}
