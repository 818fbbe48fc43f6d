//! One file per question asked of a timeline.
//!
//! An analysis takes a recording and gives numbers; how they look is for `report` to say. The question is the
//! name of the function, of its file, and of the type that answers it:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use analyses::{By, exits};
//!
//! let path = "../../../fixtures/x86-svm/nested.dat";
//! let recording = sources::open(path.as_ref())?;
//! // Called with the bytes read, for whoever shows progress.
//! let progress = |_bytes| ();
//! let found = exits(&recording, &[By::Level, By::Reason], &progress);
//! for row in found.rows.iter().take(3) {
//!     let reason = &row.group.reason;
//!     println!("{reason:?}: {} exits, {} ns", row.tally.count, row.tally.durations.sum());
//! }
//! # assert!(found.rows.len() > 3);
//! # Ok(())
//! # }
//! ```
//!
//! Most are an [`ExitSink`](timeline::ExitSink) or a sink of the trace's few events in order of time
//! ([`timeline::trace_events`]); `docs/howto/add-an-analysis.md` goes through one.

#![forbid(unsafe_code)]

mod ab;
mod advice;
mod align;
mod boot;
mod calls;
mod contents;
mod cpu;
mod critical;
mod device_exits;
pub mod diff;
mod distribution;
mod each_exit;
mod exit_question;
mod exits;
mod group;
mod hypertrace;
mod known_parts;
mod lanes;
mod latencies;
mod msr_names;
mod nested;
mod nested_steps;
mod nested_touches;
mod over_time;
mod path;
mod profile;
mod reasons;
mod recorded;
mod seven_bits;
mod states;
mod tally;
mod virtio;
mod vms;

pub use ab::{Ab, AbMetric, AbRun, AbSide, ab};
pub use advice::{
    About, Advice, Amount, EvidenceOf, ExitEvidence, Fact, RULES, Rule, SavingOf, VmEvidence,
    advise,
};
pub use align::{AlignRow, GuestAlignment, Method, MethodResult, align};
pub use boot::{
    Boot, BootMarks, BootedMachine, EventCost, HostCost, InPhase, Initcall, Phase, PhaseKind,
    ReasonCost, TracingCost, Weight, boot, has_boot_events,
};
pub use calls::{
    CallNode, CallNodeKind, CallQuestion, CallSink, CallTracer, CallTree, Called, Function,
    GuestCalls, PerCall, RecordedCalls, Saving, ThreadCalls, TracerCost, calls, guest_calls,
    tracer_recorded,
};
pub use contents::{Contents, CpuContents, contents, contents_and_vms};
pub use cpu::{CpuUse, HostCpuUse, StateTimes, TakenCpu, TaskUse, ThreadUse, VcpuUse, VmUse, cpu};
pub use critical::{
    Critical, CriticalOf, CriticalPart, CriticalState, CriticalStep, CriticalTask, CriticalThread,
    CriticalWait, NoSuchTask, critical,
};
pub use device_exits::{DeviceAddresses, DeviceExits, device_exits};
pub use distribution::{Distribution, EXACT_VALUES, bucket, upper_end};
pub use each_exit::{
    EachExit, EachExitOf, ExitList, KeptExit, ListRoom, ListedGroup, MOST_LISTED_EXITS,
};
pub use exit_question::{ExitQuestion, FoundExits, ask};
pub use exits::{ExitCounts, ExitRow, Exits, ExitsBy, exits};
pub use group::{By, Group};
pub use hypertrace::{
    Carrier, GuestEvent, GuestEventSink, HypertraceFiles, HypertraceSummary, Route, StoredFrames,
    StreamSummary, VcpuThread, hypertrace,
};
pub use known_parts::KnownParts;
pub use lanes::{
    Arrow, Arrows, Item, Lane, LaneKind, LaneMachine, LanePlaces, LaneRoom, LaneSet, Merged, Span,
    State,
};
pub use latencies::{
    Heat, HeatCell, HeatKey, HeatName, LATENCY_ROWS_PER_OCTAVE, Latencies, LatenciesOf,
    LatencySink, latency_row,
};
pub use msr_names::msr_name;
pub use nested::{AncillaryRow, LevelCount, Nested, NestedExits, NestedRow, OfLevelTwo, nested};
pub use nested_steps::{Follower as NestedFollower, Step as NestedStep};
pub use nested_touches::VmcbWrites;
pub use over_time::{KnownOfAll, OverTime, PageRoom, over_time};
pub use path::{
    Actor, DoneRequest, DoneRequestSink, Example, ExampleOf, ExampleStep, FlowEnd, FlowSink,
    Handover, HandoverKind, Hop, NoSuchEvent, Path, PathEnds, Paths, Place, RequestStep,
    done_requests, flows, paths,
};
pub use profile::{
    CodeFrame, Evidence, GuestStacks, InstructionAt, Profile, ProfileRow, ProfileSlices,
    ProfileThread, ProfileVcpu, SampleDifference, SampledTime, USER_MODULE, profile,
    profile_of_instructions,
};
pub use reasons::{Code, ReasonNames};
pub use recorded::Recorded;
pub use states::{
    ExitOf, GuestCpu, GuestEventKinds, GuestFit, OccupantSpan, Part, Role, Roles, StateSink,
    StateSpan, States, VcpuRef, VcpuState, states,
};
pub use stats::Comparison;
pub use tally::Tally;
pub use timeline::arch::Isa;
pub use virtio::{VirtQueue, VirtQueueDepth, Virtio, virtio};
pub use vms::find_vms;
