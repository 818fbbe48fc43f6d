//! The JSON document of `hyperscope why`: docs/why.md says what it is.

use analyses::why::{Budget, Cause};
use schemars::JsonSchema;
use serde::Serialize;

use super::WhyReport;
use super::words::evidence;
use crate::Report;
use crate::losses::LossSums;

/// What `hyperscope why --format json` prints: what VMs did with their time, and the causes of slowness. See docs/why.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    question: Question<'r>,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// What the recording lost, over all sources.
    losses: LossSums,
    /// One sentence.
    verdict: String,
    /// Causes of all VMs, the costliest first; the only one is `none` if nothing is wrong.
    #[schemars(extend("minItems" = 1))]
    causes: Vec<CauseRow<'r>>,
    /// What VMs did with their time.
    vms: Vec<VmRow<'r>>,
}

/// What was asked.
#[derive(Debug, JsonSchema, Serialize)]
struct Question<'r> {
    /// The only VM asked about. Null: all.
    vm: Option<&'r str>,
}

/// A cause.
#[derive(Debug, JsonSchema, Serialize)]
struct CauseRow<'r> {
    /// Its id; docs/why.md lists all.
    cause: &'static str,
    /// The VM. Null: nothing is wrong.
    vm: Option<&'r str>,
    /// The vCPU, if the cause concerns only one of several; else null.
    vcpu: Option<u32>,
    /// The time that it cost the VM's vCPUs. Nanoseconds.
    cost_ns: u64,
    /// `cost_ns` as a share of the vCPUs' time.
    #[schemars(extend("minimum" = 0, "maximum" = 1))]
    share: f64,
    /// Probability that this is the cause.
    #[schemars(extend("minimum" = 0, "maximum" = 1))]
    confidence: f64,
    /// What the recording cannot exclude. Null: nothing that is known.
    open: Option<&'static str>,
    /// What was measured, the strongest first.
    evidence: Vec<EvidenceRow>,
    /// What usually helps, the likeliest first.
    helps: &'static [&'static str],
    /// Commands that show more; the recordings come after them.
    next: [String; 1],
}

/// What was measured.
#[derive(Debug, JsonSchema, Serialize)]
struct EvidenceRow {
    text: String,
    /// When the instance began, on the host's clock. Null: it is a sum.
    from_ns: Option<u64>,
    /// When it ended.
    to_ns: Option<u64>,
}

/// What a VM's vCPUs did with their time; the parts add up to `total_ns`.
#[derive(Debug, JsonSchema, Serialize)]
struct VmRow<'r> {
    vm: &'r str,
    vcpus: usize,
    /// From each vCPU's first event to its last. Nanoseconds.
    total_ns: u64,
    /// The guest ran and was not idle. Nanoseconds.
    guest_ns: u64,
    /// The guest had nothing to do. Nanoseconds.
    idle_ns: u64,
    /// The host handled exits. Nanoseconds.
    exits_ns: u64,
    /// No CPU although the vCPU could have run. Nanoseconds.
    run_queue_ns: u64,
    /// The vCPU's thread slept while it handled an exit. Nanoseconds.
    blocked_ns: u64,
    /// Events were lost, or no event splits this time. Nanoseconds.
    unknown_ns: u64,
}

impl<'r> Document<'r> {
    pub(super) fn new(report: &'r WhyReport) -> Self {
        let mut causes: Vec<CauseRow<'r>> = report.causes().map(CauseRow::new).collect();
        if causes.is_empty() {
            causes.push(CauseRow::nothing());
        }
        let vms = report.why.vms.iter();
        Self {
            schema: "hyperscope.why/1",
            question: Question { vm: report.question.vm.as_deref() },
            sources: &report.sources,
            losses: LossSums::new(report.why.losses.iter(), 0),
            verdict: report.headline(),
            causes,
            vms: vms.map(|vm| VmRow::new(&vm.vm, vm.vcpus, &vm.budget)).collect(),
        }
    }
}

impl<'r> CauseRow<'r> {
    fn new(cause: &'r Cause) -> Self {
        Self {
            cause: cause.id.name(),
            vm: Some(&cause.vm),
            vcpu: cause.vcpu,
            cost_ns: cause.cost_ns,
            share: cause.share,
            confidence: cause.confidence,
            open: cause.open,
            evidence: cause.evidence.iter().map(EvidenceRow::new).collect(),
            helps: cause.id.helps(),
            next: [format!("hyperscope {}", cause.id.next())],
        }
    }

    fn nothing() -> Self {
        let id = analyses::why::CauseId::None;
        Self {
            cause: id.name(),
            vm: None,
            vcpu: None,
            cost_ns: 0,
            share: 0.0,
            confidence: 0.8,
            open: None,
            evidence: Vec::new(),
            helps: id.helps(),
            next: [format!("hyperscope {}", id.next())],
        }
    }
}

impl EvidenceRow {
    fn new(row: &analyses::why::Evidence) -> Self {
        let (from_ns, to_ns) = row.span_ns.unzip();
        Self { text: evidence(row), from_ns, to_ns }
    }
}

impl<'r> VmRow<'r> {
    fn new(vm: &'r str, vcpus: usize, budget: &Budget) -> Self {
        let Budget { total_ns, guest_ns, idle_ns, exits_ns, run_queue_ns, blocked_ns, unknown_ns } =
            *budget;
        Self {
            vm,
            vcpus,
            total_ns,
            guest_ns,
            idle_ns,
            exits_ns,
            run_queue_ns,
            blocked_ns,
            unknown_ns,
        }
    }
}
