//! Resolves names, patterns and profiles to events of this kernel.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Result, TracefsError};
use crate::mounted;

/// A named set of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// All events that account for VM exits.
    Exits,
    /// [`Profile::Exits`], and the host's network path.
    Net,
    /// [`Profile::Exits`], and the host's disk path.
    Disk,
    /// [`Profile::Exits`], and the VMM's system calls and signals.
    Vmm,
    /// Scheduling only.
    Sched,
    /// All profiles except system calls and signals, which every program makes.
    Full,
}

/// Scheduling: which thread ran, and what each thread waited for.
const SCHED: &[&str] = &[
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "sched:sched_process_exec",
    "sched:sched_process_fork",
    "sched:sched_process_exit",
];
/// Interrupts: host work between the hardware exit and `kvm_exit`.
const IRQ: &[&str] = &["irq", "irq_vectors"];
/// KVM of all architectures: s390 and POWER have event systems of their own.
const KVM: &[&str] = &["kvm", "kvmmmu", "kvm-s390", "kvm_hv"];
const NET: &[&str] = &["net", "napi", "vhost"];
const DISK: &[&str] = &["block", "io_uring"];
/// System calls of the VMM's threads, and signals that interrupt them.
const SYSCALLS: &[&str] = &["raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "signal"];

impl Profile {
    /// The profile for guests of a host that records this one. Guests do not need [`Profile::Vmm`]: the VMM runs on the
    /// host.
    #[must_use]
    pub fn in_guests(self) -> Self {
        if self == Self::Vmm { Self::Exits } else { self }
    }

    /// Names and systems of the profile. Kernels may lack some of them.
    #[must_use]
    pub fn patterns(self) -> Vec<&'static str> {
        let parts: &[&[&str]] = match self {
            Self::Exits => &[KVM, SCHED, IRQ],
            Self::Net => &[KVM, SCHED, IRQ, NET],
            Self::Disk => &[KVM, SCHED, IRQ, DISK],
            Self::Vmm => &[KVM, SCHED, IRQ, SYSCALLS],
            Self::Sched => &[SCHED],
            Self::Full => &[KVM, SCHED, IRQ, NET, DISK],
        };
        parts.concat()
    }
}

/// An event with a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilteredEvent {
    /// The event, as `SYSTEM:NAME`.
    pub event: &'static str,
    /// Filter in the kernel's syntax. If the kernel rejects it, all events are recorded.
    pub filter: &'static str,
}

/// The events of a kernel, as `SYSTEM:NAME`.
#[derive(Clone, Debug)]
pub struct Available(BTreeSet<String>);

impl Available {
    /// Lists the events in an `events` folder.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn list(events: &Path) -> Result<Self> {
        let mut names = BTreeSet::new();
        for system in mounted::folders(events)? {
            for event in mounted::folders(&events.join(&system))? {
                names.insert(format!("{system}:{event}"));
            }
        }
        Ok(Self(names))
    }

    /// Resolves patterns to events, each once. Optional patterns may match nothing.
    ///
    /// # Errors
    /// When another pattern matches nothing.
    pub fn choose(&self, optional: &[impl AsRef<str>], patterns: &[String]) -> Result<Vec<String>> {
        let mut chosen = BTreeSet::new();
        for pattern in optional {
            chosen.extend(self.matching(pattern.as_ref()));
        }
        for pattern in patterns {
            let mut found = self.matching(pattern).peekable();
            if found.peek().is_none() {
                return Err(TracefsError::NoSuchEvent {
                    name: pattern.clone(),
                    similar: self.similar(pattern),
                });
            }
            chosen.extend(found);
        }
        Ok(chosen.into_iter().cloned().collect())
    }

    /// Events that the kernel has and that are not chosen.
    pub(crate) fn besides(
        &self,
        chosen: &[String],
        filtered: &[FilteredEvent],
    ) -> Vec<FilteredEvent> {
        let is_more = |filtered_event: &&FilteredEvent| {
            self.0.contains(filtered_event.event)
                && !chosen.iter().any(|name| name == filtered_event.event)
        };
        filtered.iter().filter(is_more).copied().collect()
    }

    fn matching<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = &'a String> {
        self.0.iter().filter(move |name| names(pattern, name))
    }

    fn similar(&self, pattern: &str) -> Vec<String> {
        let short = |name: &'_ str| name.split(':').next_back().unwrap_or(name).to_owned();
        let candidates: Vec<String> = self
            .0
            .iter()
            .flat_map(|name| {
                [name.clone(), short(name), name.split(':').next().unwrap_or("").to_owned()]
            })
            .collect();
        similar(pattern, candidates.iter().map(String::as_str))
    }
}

/// Whether a pattern (`SYSTEM:NAME`, `SYSTEM/NAME`, `NAME` or `SYSTEM`, with `*` and `?`) matches the event.
fn names(pattern: &str, event: &str) -> bool {
    let (system, name) = event.split_once(':').unwrap_or(("", event));
    match pattern.split_once([':', '/']) {
        Some((of_system, of_name)) => glob(of_system, system) && glob(of_name, name),
        None => glob(pattern, name) || glob(pattern, system),
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    // `star` holds the position of the last star and the length of its match: the time is at most their product.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || Some(&c) == text.get(t) => (p, t) = (p + 1, t + 1),
            _ => match &mut star {
                Some((at, end)) => {
                    *end += 1;
                    (p, t) = (*at + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&c| c == '*'))
}

/// Up to three names that are most similar to a wrong one.
#[must_use]
pub fn similar<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut scored: Vec<(u64, &str)> =
        names.map(|name| (score(wrong, name), name)).filter(|(score, _)| *score > 750).collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup();
    scored.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Similarity of two names, in thousandths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
fn score(a: &str, b: &str) -> u64 {
    (strsim::jaro_winkler(a, b) * 1000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available() -> Available {
        let names =
            ["kvm:kvm_exit", "kvm:kvm_entry", "sched:sched_switch", "irq:irq_handler_entry"];
        Available(names.map(str::to_owned).into())
    }

    fn chosen(patterns: &[&str]) -> Result<Vec<String>> {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        available().choose(&[""; 0], &patterns)
    }

    #[test]
    fn names_systems_and_patterns() {
        assert_eq!(chosen(&["kvm"]).unwrap(), ["kvm:kvm_entry", "kvm:kvm_exit"]);
        assert_eq!(chosen(&["kvm_exit", "kvm/kvm_exit"]).unwrap(), ["kvm:kvm_exit"]);
        assert_eq!(chosen(&["*:*_e?it"]).unwrap(), ["kvm:kvm_exit"]);
        assert_eq!(chosen(&["sched:*"]).unwrap(), ["sched:sched_switch"]);
        assert_eq!(
            available().choose(&Profile::Sched.patterns(), &[]).unwrap(),
            ["sched:sched_switch"]
        );
    }

    #[test]
    fn events_with_a_filter_are_added_where_nobody_else_chose_them() {
        let filtered = ["kvm:kvm_exit", "irq:irq_handler_entry", "net:net_dev_start_xmit"]
            .map(|event| FilteredEvent { event, filter: "vec != 7" });
        let chosen = chosen(&["kvm"]).unwrap();
        assert_eq!(available().besides(&chosen, &filtered), filtered[1..2]);
        assert_eq!(available().besides(&[], &filtered), filtered[..2]);
    }

    #[test]
    fn system_calls_are_recorded_where_they_are_asked_for() {
        let is_call = |pattern: &&str| names(pattern, "raw_syscalls:sys_enter");
        let has_calls = |profile: Profile| profile.patterns().iter().any(is_call);
        assert!(has_calls(Profile::Vmm));
        assert!(!has_calls(Profile::Vmm.in_guests()) && !has_calls(Profile::Full));
        assert_eq!(Profile::Net.in_guests(), Profile::Net);
    }

    #[test]
    fn wrong_names_come_with_right_ones() {
        let error = chosen(&["kvm_exits"]).unwrap_err().to_string();
        assert!(error.contains("did you mean kvm_exit"), "{error}");
        assert_eq!(chosen(&["qqqq"]).unwrap_err().to_string(), "unknown event qqqq");
    }

    #[test]
    fn stars_match_any_number() {
        for (pattern, text, matches) in
            [("*", "", true), ("a*b*c", "a--b--bc", true), ("a*b", "a-c", false), ("?", "", false)]
        {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
