//! The cost of making a recording, shown with its results.

use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{plural, share, time};

/// The recorder's own use of the machine that it recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderCost {
    /// CPU time of the recorder.
    pub cpu_ns: u64,
    /// How long it recorded.
    pub duration_ns: u64,
    /// CPUs that it recorded.
    pub cpus: u64,
    /// Agents that recorded guests for it.
    pub agents: Vec<AgentCost>,
}

/// The resources that an agent used in the guest that it recorded.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AgentCost {
    /// The guest's name.
    pub guest: String,
    /// CPU time of the agent. Null: not reported.
    pub cpu_ns: Option<u64>,
    /// Number of wake-ups of its threads. Null: not reported.
    pub wakeups: Option<u64>,
    /// Exits of the guest at the device of its channel. Null: unknown.
    pub channel_exits: Option<u64>,
}

impl AgentCost {
    fn note(&self) -> String {
        let time = self.cpu_ns.map(|cpu_ns| format!("{} of CPU time", time(cpu_ns, true)));
        let wakeups = self.wakeups.map(|wakeups| plural(wakeups, "wake-up"));
        let parts: Vec<String> = time.into_iter().chain(wakeups).collect();
        let parts = if parts.is_empty() { "an unknown time".into() } else { parts.join(" and ") };
        let exits =
            self.channel_exits.map(|exits| format!(", and its channel {}", plural(exits, "exit")));
        format!("its agent in {} took {parts}{}", self.guest, exits.unwrap_or_default())
    }
}

impl RecorderCost {
    /// Total CPU time of the recorded CPUs.
    fn available_ns(&self) -> u64 {
        self.duration_ns.saturating_mul(self.cpus)
    }

    pub(crate) fn note(&self) -> String {
        let summary = format!(
            "recording took {} of CPU time, {} of the available time",
            time(self.cpu_ns, true),
            share(self.cpu_ns, self.available_ns())
        );
        std::iter::once(summary)
            .chain(self.agents.iter().map(AgentCost::note))
            .collect::<Vec<_>>()
            .join("; ")
    }

    pub(crate) fn document(&self) -> CostDocument<'_> {
        CostDocument {
            cpu_ns: self.cpu_ns,
            available_ns: self.available_ns(),
            agents: &self.agents,
        }
    }
}

/// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not measured.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub(crate) struct CostDocument<'c> {
    /// CPU time of the recorder; for sensitivity, which records nothing, of the command and its programs in the
    /// kernel.
    cpu_ns: u64,
    /// Total CPU time of all recorded CPUs meanwhile.
    available_ns: u64,
    /// Agents in recorded guests.
    agents: &'c [AgentCost],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_shown() {
        let known = AgentCost {
            guest: "web".into(),
            cpu_ns: Some(2_000_000),
            wakeups: Some(7),
            channel_exits: Some(0),
        };
        let note = known.note();
        assert!(note.ends_with("and 7 wake-ups, and its channel 0 exits"), "{note}");
        let document = |cost: &AgentCost| serde_json::to_value(cost).unwrap();
        assert_eq!(document(&known)["channel_exits"], 0);
        let unknown = AgentCost { channel_exits: None, ..known };
        assert!(unknown.note().ends_with("and 7 wake-ups"), "{}", unknown.note());
        assert!(document(&unknown)["channel_exits"].is_null());
    }
}
