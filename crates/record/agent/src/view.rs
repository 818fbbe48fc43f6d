//! This machine's view of itself: what its CPUs did and which tasks ran between two questions.

mod cpus;
mod tasks;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Instant;

use channel::wire::{CpuUse, GuestView, MAX_VIEW_CPUS, MAX_VIEW_TASKS};

use self::cpus::CpuTimes;
use self::tasks::Tasks;

/// The kernel's counts.
const PROC: &str = "/proc";

/// The counts at the last question.
#[derive(Debug)]
pub(crate) struct Before {
    at: Instant,
    cpus: CpuTimes,
    tasks: Tasks,
}

impl Before {
    /// Starts counting.
    ///
    /// # Errors
    /// When the kernel does not show its CPUs or tasks.
    pub(crate) fn now() -> io::Result<Self> {
        let proc = Path::new(PROC);
        Ok(Self { at: Instant::now(), cpus: CpuTimes::read(proc)?, tasks: Tasks::read(proc)? })
    }

    /// The activity since the last call, with at most `most_tasks` tasks; counting restarts.
    ///
    /// # Errors
    /// As [`Before::now`].
    pub(crate) fn view(&mut self, most_tasks: usize) -> io::Result<GuestView> {
        let before = std::mem::replace(self, Self::now()?);
        let span = self.at.duration_since(before.at);
        let cpus: BTreeMap<u32, CpuUse> = self.cpus.since(&before.cpus);
        let all_cpus = cpus.values().fold(CpuUse::default(), |sum, cpu| cpus::sum(&sum, cpu));
        let ran = self.tasks.since(&before.tasks);
        let listed = ran.tasks.iter().take(most_tasks.min(MAX_VIEW_TASKS)).cloned();
        Ok(GuestView {
            span_ns: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            agent_cpu_ns: sys::process_cpu_ns(),
            all_cpus,
            cpu_count: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            cpus: cpus.into_iter().take(MAX_VIEW_CPUS).collect(),
            task_count: u32::try_from(self.tasks.processes()).unwrap_or(u32::MAX),
            unread_threads: self.tasks.unread(),
            tasks_run_ns: ran.run_ns,
            tasks_waited_ns: ran.waited_ns,
            tasks: listed.map(|task| tasks::named(Path::new(PROC), task)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// This machine, with a busy thread.
    #[test]
    fn what_runs_here_is_seen_and_parts_of_cpus_add_up_to_the_time() {
        let mut before = Before::now().unwrap();
        let start = Instant::now();
        let mut spins = 0_u64;
        while start.elapsed() < Duration::from_millis(400) {
            spins = std::hint::black_box(spins.wrapping_add(1));
        }
        let view = before.view(MAX_VIEW_TASKS).unwrap();
        let own_task = view.tasks.iter().find(|task| task.pid == std::process::id());
        let own_task = own_task.unwrap_or_else(|| panic!("{view:?}"));
        // The thread was on a CPU, or waited for one.
        let busy_ns = own_task.run_ns + own_task.waited_ns;
        assert!(busy_ns > 300_000_000 && own_task.run_ns > 0, "{own_task:?}");
        assert!(view.tasks_run_ns >= own_task.run_ns && !own_task.name.is_empty(), "{view:?}");
        assert!(view.cpu_count > 0 && view.cpus.len() == view.cpu_count as usize);
        let CpuUse { user_ns, system_ns, irq_ns, steal_ns, idle_ns, .. } = view.all_cpus;
        let sum = user_ns + system_ns + irq_ns + steal_ns + idle_ns;
        let time = view.span_ns * u64::from(view.cpu_count);
        // The kernel rounds each part of each CPU to ticks of 10 ms, and counts a late tick once.
        let rounding = 100_000_000 * u64::from(view.cpu_count);
        assert!(sum > time / 2 - rounding && sum <= time + rounding, "{sum} of {time}: {view:?}");
        assert!(before.view(0).unwrap().tasks.is_empty());
    }
}
