//! Run time and run-queue wait of each thread since its start: `/proc/PID/task/TID/schedstat` (`proc_pid_schedstat()`),
//! in nanoseconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use channel::wire::{MAX_TASK_NAME_BYTES, TaskUse};

/// Max threads to read: each takes three system calls.
const MAX_THREADS: usize = 8192;

/// A process id, and a thread id in it.
type Thread = (u32, u32);

/// Times of threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    threads: HashMap<Thread, Times>,
    processes: usize,
    unread: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    run_ns: u64,
    waited_ns: u64,
}

/// Activity of tasks in an interval.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) run_ns: u64,
    pub(super) waited_ns: u64,
    /// Processes that ran or waited, sorted by descending run time.
    pub(super) tasks: Vec<TaskUse>,
}

impl Tasks {
    pub(super) fn read(proc: &Path) -> io::Result<Self> {
        let mut tasks = Self::default();
        for pid in numbers(proc)? {
            // The process may have ended since.
            let Ok(threads) = numbers(&proc.join(format!("{pid}/task"))) else { continue };
            tasks.processes += 1;
            for tid in threads {
                if tasks.threads.len() >= MAX_THREADS {
                    tasks.unread = tasks.unread.saturating_add(1);
                    continue;
                }
                let text = fs::read_to_string(proc.join(format!("{pid}/task/{tid}/schedstat")));
                let times = text.ok().and_then(|text| times(&text));
                tasks.threads.extend(times.map(|times| ((pid, tid), times)));
            }
        }
        Ok(tasks)
    }

    pub(super) fn processes(&self) -> usize {
        self.processes
    }

    pub(super) fn unread(&self) -> u32 {
        self.unread
    }

    /// The activity of the current threads since `before`.
    pub(super) fn since(&self, before: &Self) -> Ran {
        let mut by_process: BTreeMap<u32, TaskUse> = BTreeMap::new();
        for (thread, now) in &self.threads {
            let since = now.since(before.threads.get(thread));
            let task = by_process
                .entry(thread.0)
                .or_insert_with(|| TaskUse { pid: thread.0, ..TaskUse::default() });
            task.threads = task.threads.saturating_add(1);
            task.run_ns = task.run_ns.saturating_add(since.run_ns);
            task.waited_ns = task.waited_ns.saturating_add(since.waited_ns);
        }
        let mut ran = Ran::default();
        for task in by_process.into_values().filter(|task| task.run_ns > 0 || task.waited_ns > 0) {
            ran.run_ns = ran.run_ns.saturating_add(task.run_ns);
            ran.waited_ns = ran.waited_ns.saturating_add(task.waited_ns);
            ran.tasks.push(task);
        }
        ran.tasks.sort_by_key(|task| (Reverse(task.run_ns), Reverse(task.waited_ns)));
        ran
    }
}

impl Times {
    /// The whole time if the thread is new, or reuses the id of an earlier one.
    fn since(self, before: Option<&Self>) -> Self {
        let before = before.filter(|before| before.run_ns <= self.run_ns);
        let Self { run_ns, waited_ns } = before.copied().unwrap_or_default();
        Self {
            run_ns: self.run_ns.saturating_sub(run_ns),
            waited_ns: self.waited_ns.saturating_sub(waited_ns),
        }
    }
}

/// The task with its current name.
pub(super) fn named(proc: &Path, task: TaskUse) -> TaskUse {
    let name = fs::read(proc.join(format!("{}/comm", task.pid))).unwrap_or_default();
    let mut name = String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned();
    while name.len() > MAX_TASK_NAME_BYTES {
        name.pop();
    }
    TaskUse { name, ..task }
}

fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(folder)?.filter_map(|entry| entry.ok());
    Ok(names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// `run_ns waited_ns timeslices`.
fn times(text: &str) -> Option<Times> {
    let mut words = text.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    Some(Times { run_ns: next()?, waited_ns: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(proc: &Path, pid: u32, tid: u32, schedstat: &str) {
        let folder = proc.join(format!("{pid}/task/{tid}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("schedstat"), schedstat).unwrap();
        fs::write(proc.join(format!("{pid}/comm")), format!("of-{pid}\n")).unwrap();
    }

    #[test]
    fn threads_count_for_their_process_from_when_they_were_seen_before() {
        let proc = tempfile::tempdir().unwrap();
        let proc = proc.path();
        task(proc, 7, 7, "100 10 1\n");
        task(proc, 7, 8, "50 5 1\n");
        task(proc, 9, 9, "1000 0 3\n");
        fs::write(proc.join("uptime"), "1 1").unwrap();
        let before = Tasks::read(proc).unwrap();
        task(proc, 7, 7, "130 10 2\n");
        // The id of a thread that has ended, and a new process.
        task(proc, 7, 8, "5 2 1\n");
        task(proc, 12, 12, "400 7 1\n");
        task(proc, 13, 13, "no numbers");
        let now = Tasks::read(proc).unwrap();
        let ran = now.since(&before);
        let shown: Vec<_> =
            ran.tasks.iter().map(|t| (t.pid, t.threads, t.run_ns, t.waited_ns)).collect();
        assert_eq!(shown, [(12, 1, 400, 7), (7, 2, 35, 2)]);
        assert_eq!((ran.run_ns, ran.waited_ns), (435, 9));
        assert_eq!((now.processes(), now.unread()), (4, 0));
        assert_eq!(named(proc, ran.tasks[0].clone()).name, "of-12");
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        let proc = tempfile::tempdir().unwrap();
        task(proc.path(), 7, 7, "1 1 1");
        fs::write(proc.path().join("7/comm"), "ä".repeat(20)).unwrap();
        let named = named(proc.path(), TaskUse { pid: 7, ..TaskUse::default() });
        assert_eq!(named.name, "ä".repeat(16));
    }
}
