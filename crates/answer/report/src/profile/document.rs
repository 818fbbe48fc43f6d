//! The JSON document of profiles: docs/profile.md says what it is.

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

/// What `hyperscope profile --format json` prints: which code vCPUs ran. See docs/profile.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// What the recording lost, over all sources.
    losses: LossSums,
    /// What recording itself cost, where the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// VMs that were sampled from inside and by their hosts: how far the two differ.
    differences: Vec<Difference<'r>>,
    /// Where no vCPU is recorded: the machines that were sampled, whose rows have the sums of their samples'
    /// periods as times; else empty.
    machines: Vec<Machine<'r>>,
    /// All vCPUs.
    vcpus: Vec<Vcpu<'r>>,
    /// By vCPU, those first that took longest. Those of a vCPU add up to its time.
    rows: RowsWith<Line<'r>, Stack<'r>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Difference<'r> {
    /// The VM.
    vm: &'r str,
    /// Time of guests of which both had enough samples.
    time_ns: u64,
    /// Of that, what the guest's own samples give to other functions than the host saw.
    moved_ns: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Machine<'r> {
    /// The recording.
    source: &'r str,
    /// The event that made the samples.
    event: &'r str,
    /// Samples a second where each stands for one part of a second; null: each stands for its period.
    #[schemars(extend("minimum" = 1))]
    hz: Option<u64>,
    /// Whether times of its rows are nanoseconds; else they count the event.
    nanoseconds: bool,
    /// Samples of CPUs that had nothing to run, which are in no row.
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

/// Its code, from the root of the stack on.
#[derive(Debug, JsonSchema, Serialize)]
struct Stack<'r> {
    /// The code, root first. Exits, and samples of the host in a guest, give one frame.
    stack: Vec<Frame<'r>>,
}

/// A place in code.
#[derive(Debug, JsonSchema, Serialize)]
struct Frame<'r> {
    /// The function. Null: nothing names it.
    symbol: Option<&'r str>,
    /// The kernel module that it is in, or [user] for the guest's user space. Null: the kernel itself.
    module: Option<&'r str>,
    /// Of the file that was mapped, in hexadecimal. Null: of kernels, and where it was not recorded.
    build_id: Option<String>,
    /// Where no function is known, the offset in the file; of kernels and where no file is known the address. Of
    /// innermost frames by instruction (`--by instruction`) bytes from the function's beginning. Null otherwise,
    /// and where addresses were not kept apart.
    offset: Option<u64>,
    /// Of innermost frames by instruction alone: the instruction. Null: its code is not to be had here.
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

/// By VM, how far what a guest sampled of itself differs from what its host saw.
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
    /// Where no vCPU is recorded: what samples of a machine stand for.
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
