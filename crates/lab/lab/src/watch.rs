//! Detects a guest that hangs while a program waits for it, by KVM's statistics on the machine below.
//!
//! KVM counts a guest's activity (exits for devices, halts, page faults) and the interrupts that it takes. A live
//! kernel takes some every few seconds, even if it is idle: its watchdog timer fires every 4 s. Exits that interrupts
//! of the machine below cause continue even in a guest that spins, and don't count here.
//!
//! An emulated level 1 has no machine below with such counts. It may spin on an instruction that the emulator does not
//! translate again; this is repaired silently ([`stale_code`]).

use std::fmt;
use std::time::{Duration, Instant};

use crate::arch::Arch;
use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::machine::Accelerator;
use crate::session::Session;
use crate::stale_code;

/// Silence of a level before its counters are read.
const SILENCE: Duration = Duration::from_secs(8);
/// Interval between readings.
const EVERY: Duration = Duration::from_secs(4);
/// Number of equal readings of a guest that hangs: 24 s after its last message.
const SAME: u32 = 5;
/// Max number of questions that level 1 may leave unanswered.
const UNANSWERED: u32 = 2;
/// Max time for a machine to read counters; its guest keeps it busy.
const READING: Duration = Duration::from_secs(10);
/// `sysconf(_SC_CLK_TCK)`, the unit of CPU times in /proc, on all of Linux's architectures but Alpha.
const TICKS_PER_SECOND: u64 = 100;

/// Prints KVM's counts of each guest, and its threads. KVM on arm64 counts no interrupts: there, only a guest that does
/// not run at all is detected.
const READ: &str = "cd /sys/kernel/debug/kvm || exit 1
    for vm in [0-9]*-*; do
        [ -d $vm ] || continue
        counts='halt_exits io_exits mmio_exits hypercalls insn_emulation irq_injections nmi_injections pf_taken pf_fixed'
        [ -e $vm/irq_injections ] || counts=exits
        for one in $counts; do echo count $one $(cat $vm/$one); done
        for task in /proc/${vm%%-*}/task/*; do echo thread $(cat $task/stat); done
    done";

/// The state of a guest at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reading {
    /// Its counts; empty without a QEMU.
    counts: Vec<String>,
    /// CPU time of its vCPUs, in ticks.
    cpu_ticks: u64,
    /// Whether a signal has stopped all of its vCPUs.
    is_stopped: bool,
}

/// Consecutive equal readings.
#[derive(Debug)]
struct Same {
    first: Reading,
    since: Instant,
    count: u32,
}

/// Watches the levels for which a caller waits.
#[derive(Debug)]
pub(crate) struct Watch {
    lab: Lab,
    deepest: u8,
    next: Option<Instant>,
    /// Number of questions that level 1 has not answered.
    unanswered: u32,
    /// For level 2, 3, and so on.
    same: Vec<Option<Same>>,
}

/// A level that hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StandsStill {
    pub(crate) level: u8,
    pub(crate) what: String,
}

impl fmt::Display for StandsStill {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "level {} {}", self.level, self.what)
    }
}

impl std::error::Error for StandsStill {}

impl Watch {
    /// Watches all guests down to this level.
    pub(crate) fn new(lab: &Lab, deepest: u8) -> Self {
        let same = (2..=deepest).map(|_| None).collect();
        Self { lab: lab.clone(), deepest, next: None, unanswered: 0, same }
    }

    /// Notes that level 1 did not answer.
    fn unanswered(&mut self) -> Option<StandsStill> {
        self.unanswered += 1;
        let is_dead = self.unanswered >= UNANSWERED;
        is_dead.then(|| StandsStill { level: 1, what: "doesn't answer".into() })
    }

    /// Repairs a hang of level 1 that its emulator causes. If it does not answer, the hang is detected in another way.
    fn renew_code(&self) {
        let Ok(description) = self.lab.description() else { return };
        if (description.arch, description.accelerator) == (Arch::X86_64, Some(Accelerator::Tcg)) {
            let _ = stale_code::renew(&self.lab, description.cpus);
        }
    }

    /// Reads counters when due; returns the level that hangs, once it has for long enough.
    pub(crate) fn look(&mut self, silence: Duration) -> Option<StandsStill> {
        let now = Instant::now();
        if silence < SILENCE {
            self.same.fill_with(|| None);
            return None;
        }
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + EVERY);
        self.renew_code();
        for (level, same) in (2..=self.deepest).zip(&mut self.same) {
            let reading = match self.lab.watching_session(level - 1) {
                Ok(Some(mut below)) => read(&mut below),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            let reading = match reading {
                Ok(reading) => reading,
                Err(LabError::Channel { .. }) if level == 2 => return self.unanswered(),
                // The guest can't report on its own guest: its own counters are sufficient.
                Err(_) => return None,
            };
            if !goes_on(same, reading.clone()) {
                return Some(StandsStill { level, what: still(same.as_ref()?, &reading)? });
            }
            // A guest that hangs can't report on its guests.
            if same.as_ref().is_some_and(|same| same.count > 1) {
                return None;
            }
        }
        None
    }
}

fn read(below: &mut Session) -> Result<Reading> {
    below.check(&["sh", "-c", READ], READING).map(|text| Reading::parse(&text))
}

/// Adds a reading; returns whether the guest may still be alive.
fn goes_on(same: &mut Option<Same>, reading: Reading) -> bool {
    match same {
        Some(same) if same.first.counts == reading.counts => same.count += 1,
        _ => *same = Some(Same { first: reading, since: Instant::now(), count: 1 }),
    }
    same.as_ref().is_some_and(|same| same.count < SAME)
}

/// Description of the hang.
fn still(same: &Same, last: &Reading) -> Option<String> {
    let seconds = same.since.elapsed().as_secs().max(1);
    let used =
        last.cpu_ticks.saturating_sub(same.first.cpu_ticks) * 100 / TICKS_PER_SECOND / seconds;
    if last.counts.is_empty() {
        return Some("has no QEMU process".into());
    }
    let how = if last.is_stopped {
        "a signal stopped its QEMU".into()
    } else if used >= 50 {
        format!("its vCPUs use {used}% of a processor without progress")
    } else {
        "its vCPUs do not run".into()
    };
    Some(format!("hangs: it had no interrupt and no exit of its own for {seconds} s; {how}"))
}

impl Reading {
    fn parse(text: &str) -> Self {
        let counts = text.lines().filter_map(|line| line.strip_prefix("count "));
        let threads = text.lines().filter_map(|line| line.strip_prefix("thread "));
        // QEMU's thread names with debug-threads=on: "(CPU 0/KVM)".
        let vcpus: Vec<Vec<&str>> = threads
            .filter_map(|line| line.rsplit_once(')').filter(|(name, _)| name.contains("(CPU ")))
            .map(|(_, rest)| rest.split_whitespace().collect())
            .collect();
        // After the name: the state, then utime and stime 11 and 12 fields later (proc_pid_stat(5)).
        let ticks = |fields: &Vec<&str>| -> u64 {
            fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
        };
        Self {
            counts: counts.map(str::to_owned).collect(),
            cpu_ticks: vcpus.iter().map(ticks).sum(),
            is_stopped: !vcpus.is_empty()
                && vcpus.iter().all(|fields| fields.first() == Some(&"T")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest in the lab, whose vCPU has this CPU time.
    fn reading(interrupts: u32, state: &str, ticks: u32) -> Reading {
        Reading::parse(&format!(
            "count halt_exits 120\ncount irq_injections {interrupts}\n\
             thread 98 (qemu-system-x86) S 1 98 98 0 -1 4194624 9 0 0 0 700 800 0 0 20 0 4 0 1 9 9\n\
             thread 104 (CPU 0/KVM) {state} 1 98 98 0 -1 4194368 1 0 0 0 {ticks} 100 0 0 20 0 4 0 1 9 9\n"
        ))
    }

    fn after(readings: impl IntoIterator<Item = Reading>) -> Option<String> {
        let mut same = None;
        for reading in readings {
            if !goes_on(&mut same, reading.clone()) {
                return still(same.as_ref().unwrap(), &reading);
            }
        }
        None
    }

    #[test]
    fn a_guest_that_takes_interrupts_is_alive() {
        assert_eq!(after((0..100).map(|at| reading(at / 3, "R", at * 400))), None);
        assert_eq!(reading(7, "S", 50).cpu_ticks, 150);
    }

    #[test]
    fn one_that_takes_none_stands_still_and_it_is_said_how() {
        let spins = after((0..SAME).map(|at| reading(7, "R", at * 400))).unwrap();
        assert!(spins.contains("without progress"), "{spins}");
        let stopped = after((0..SAME).map(|_| reading(7, "T", 0))).unwrap();
        assert!(stopped.contains("a signal stopped"), "{stopped}");
        let asleep = after((0..SAME).map(|_| reading(7, "S", 0))).unwrap();
        assert!(asleep.contains("do not run"), "{asleep}");
        assert!(
            after((0..SAME).map(|_| Reading::default())).unwrap().contains("has no QEMU process")
        );
        assert_eq!(after((1..SAME).map(|_| reading(7, "S", 0))), None);
    }
}
