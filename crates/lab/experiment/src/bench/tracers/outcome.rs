//! The results of a measurement of tracers.

use serde::Serialize;
use stats::Estimate;

use crate::bench::surroundings::Surroundings;

use super::{Part, Subject, Tracer};

/// The results of a measurement of tracers.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-tracers/1`.
    pub schema: &'static str,
    pub conditions: Conditions,
    /// One row per subject, level and tracer.
    pub tracers: Vec<Row>,
    /// One row per subject and recording variant of the host.
    pub volumes: Vec<Volume>,
}

/// Conditions of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Runs of each step.
    pub rounds: u32,
    /// System calls per run; half as many round trips.
    pub iterations: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// CPUs of the host inside the lab.
    pub host_cpus: u32,
    /// Number of runs that were repeated because a machine did not answer.
    pub repeated_runs: u32,
}

/// The cost of a tracer for its subject.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The traced subject.
    pub subject: Subject,
    /// Level of its guest.
    pub level: u8,
    pub tracer: Tracer,
    /// Untraced time of a system call, or of a round trip of two switches.
    pub untraced_ns: Option<Estimate>,
    /// Ratio of the traced to the untraced time.
    pub ratio: Option<Estimate>,
    /// Additional time per event.
    pub event_ns: Option<Estimate>,
    /// Parts of the additional time; they add up to it.
    pub parts: Vec<PartCost>,
    /// Exits of the guest, minus those of untraced runs.
    pub exits_per_event: Option<f64>,
    /// Hypercalls, minus those of untraced runs.
    pub hypercalls_per_event: Option<f64>,
    /// Events that the subject caused in those runs of the last step that were counted.
    pub events_made: Option<u64>,
    /// Events of the subject found in the data of these runs.
    pub events_seen: Option<u64>,
    /// Why it was not measured, if so.
    pub not_measured: Option<String>,
}

impl Row {
    /// A tracer that can't be measured here.
    pub(crate) fn without(subject: Subject, tracer: Tracer, why: &str) -> Self {
        Self {
            subject,
            level: 2,
            tracer,
            untraced_ns: None,
            ratio: None,
            event_ns: None,
            parts: Vec::new(),
            exits_per_event: None,
            hypercalls_per_event: None,
            events_made: None,
            events_seen: None,
            not_measured: Some(why.to_owned()),
        }
    }

    /// The cost of a part, if the tracer has it.
    pub(crate) fn part(&self, part: Part) -> Option<&PartCost> {
        self.parts.iter().find(|cost| cost.part == part)
    }
}

/// The cost of a part of a tracer.
#[derive(Clone, Debug, Serialize)]
pub struct PartCost {
    pub part: Part,
    pub event_ns: Option<Estimate>,
}

/// The host's recording of a guest that reports its own events.
#[derive(Clone, Debug, Serialize)]
pub struct Volume {
    /// The reported subject.
    pub subject: Subject,
    /// What the host recorded for each hypercall.
    pub recorded: &'static str,
    /// Whether events are packed, as many as fit in a hypercall, or sent one per hypercall.
    pub packed: bool,
    /// Events that the subject caused in all rounds.
    pub events_made: u64,
    /// Events of the subject found in the host's recording.
    pub events_seen: u64,
    /// Events that the host recorded.
    pub host_events: u64,
    pub host_events_lost: u64,
    /// Size of their pages.
    pub bytes: u64,
    /// Additional time of the subject per event.
    pub event_ns: Option<Estimate>,
    /// Ratio of the subject's traced to its untraced time.
    pub ratio: Option<Estimate>,
}
