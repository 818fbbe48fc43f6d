//! What came of a measurement.

use serde::Serialize;
use stats::Estimate;

use crate::bench::surroundings::Surroundings;

use super::{Part, Subject, Tracer};

/// What came of a measurement of tracers.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `hyperscope.bench-tracers/1`.
    pub schema: &'static str,
    /// Under which conditions.
    pub conditions: Conditions,
    /// One row a subject, level and tracer.
    pub tracers: Vec<Row>,
    /// One row a subject and way to record on the host.
    pub volumes: Vec<Volume>,
}

/// Conditions of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Runs of each step.
    pub rounds: u32,
    /// System calls of a run; round trips are half as many.
    pub iterations: u64,
    /// What the order of runs was drawn from.
    pub seed: u64,
    /// Processors of the host inside the lab.
    pub host_cpus: u32,
    /// Runs that failed because a machine did not answer, and were made again.
    pub repeated_runs: u32,
}

/// What a tracer costs its subject.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was traced.
    pub subject: Subject,
    /// Level of the guest that it ran in.
    pub level: u8,
    pub tracer: Tracer,
    /// What a system call, or a round trip of two switches, takes untraced.
    pub untraced_ns: Option<Estimate>,
    /// How many times as long it takes traced.
    pub ratio: Option<Estimate>,
    /// What it takes longer for each event.
    pub event_ns: Option<Estimate>,
    /// The same, by what it is spent on: these add up to the whole.
    pub parts: Vec<PartCost>,
    /// Exits of the guest beyond those of untraced runs.
    pub exits_per_event: Option<f64>,
    /// Hypercalls beyond those of untraced runs.
    pub hypercalls_per_event: Option<f64>,
    /// Events that the subject made while the last step's runs were looked at.
    pub events_made: Option<u64>,
    /// Events of the subject that were found in what these kept.
    pub events_seen: Option<u64>,
    /// Why it was not measured, if it was not.
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

    /// What a part costs, where it is one of this tracer's.
    pub(crate) fn part(&self, part: Part) -> Option<&PartCost> {
        self.parts.iter().find(|cost| cost.part == part)
    }
}

/// What a part of a tracer costs.
#[derive(Clone, Debug, Serialize)]
pub struct PartCost {
    pub part: Part,
    pub event_ns: Option<Estimate>,
}

/// What a host records of a guest that reports its own events.
#[derive(Clone, Debug, Serialize)]
pub struct Volume {
    /// What the guest reported.
    pub subject: Subject,
    /// What the host recorded of each hypercall.
    pub recorded: &'static str,
    /// Whether events are packed, as many to a hypercall as have room, or each has one of its own.
    pub packed: bool,
    /// Events that the subject made in all rounds.
    pub events_made: u64,
    /// Those of them that were found in the host's recording.
    pub events_seen: u64,
    /// Events that the host recorded.
    pub host_events: u64,
    pub host_events_lost: u64,
    /// Bytes of their pages.
    pub bytes: u64,
    /// What the subject takes longer for each of its events.
    pub event_ns: Option<Estimate>,
    /// How many times as long the subject takes.
    pub ratio: Option<Estimate>,
}
