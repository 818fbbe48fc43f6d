//! A profile for speedscope: `sampled` profiles with weights in nanoseconds, one for each vCPU or, without recorded
//! vCPUs, for each machine.
//!
//! The fields are those of speedscope's `file-format-schema.json`.

use std::collections::HashMap;

use serde::Serialize;

use super::ProfileReport;
use super::lines::{self, Line};
use super::stacks::stack;

#[derive(Serialize)]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared,
    profiles: Vec<Sampled>,
    name: String,
    exporter: &'static str,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
}

#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start_value: u64,
    #[serde(rename = "endValue")]
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

pub(super) fn speedscope(report: &ProfileReport, title: &str) -> String {
    let mut frames = Frames::default();
    let unit = if report.profile.nanoseconds { "nanoseconds" } else { "none" };
    let mut profiles: Vec<Sampled> = Vec::new();
    let mut add = |name: String, lines: &[Line<'_>]| {
        let weights: Vec<u64> = lines.iter().map(|line| line.time.ns).collect();
        profiles.push(Sampled {
            kind: "sampled",
            name,
            unit,
            start_value: 0,
            end_value: weights.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
            samples: lines.iter().map(|line| frames.numbers_of(line)).collect(),
            weights,
        });
    };
    for (vcpu, vcpu_lines) in report.profile.vcpus.iter().zip(lines::by_vcpu(report)) {
        add(format!("{} vCPU {}", vcpu.vm, vcpu.vcpu), &vcpu_lines);
    }
    for machine in &report.profile.machines {
        let machine_lines: Vec<Line<'_>> = lines::of_machine(report, machine, 0).collect();
        add(report.sources.get(machine.recording).cloned().unwrap_or_default(), &machine_lines);
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared { frames: frames.all },
        profiles,
        name: title.to_owned(),
        exporter: "hyperscope",
    };
    tables::json(&file)
}

/// Frames by their names.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    by_name: HashMap<String, usize>,
}

impl Frames {
    /// The frames of a line, from the root.
    fn numbers_of(&mut self, line: &Line<'_>) -> Vec<usize> {
        stack(line).into_iter().map(|(_, name)| self.number(name)).collect()
    }

    fn number(&mut self, name: String) -> usize {
        if let Some(&number) = self.by_name.get(&name) {
            return number;
        }
        let number = self.all.len();
        self.all.push(Frame { name: name.clone() });
        self.by_name.insert(name, number);
        number
    }
}
