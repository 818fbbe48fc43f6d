//! Waits of threads from a naive search: examines each time separately in the list of all events.

use std::collections::{BTreeMap, BTreeSet};

use analyses::critical::{Critical, CriticalOf, CriticalState, CriticalTask, critical};
use analyses::view::View;
use sources::Recording;

use super::flat::{Event, events};
use super::open;

/// Time by thread, state, and thread on the CPU for run-queue waits.
type Sums = BTreeMap<(String, CriticalState, Option<String>), u64>;

/// Events of one thread, and all other events of its recording.
struct Naive<'e, 'r> {
    recording: &'r Recording,
    all: &'e [Event<'r>],
    /// Names of vCPU threads.
    vcpus: &'e BTreeMap<u64, String>,
    /// Names of threads with the times of the naming events.
    names: BTreeMap<u64, Vec<(u64, String)>>,
    of_thread: BTreeMap<u64, Vec<usize>>,
    of_cpu: BTreeMap<u32, Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Activity {
    Runs,
    Preempted,
    Woken { by: usize },
    Sleeps,
}

impl<'e, 'r> Naive<'e, 'r> {
    fn new(
        recording: &'r Recording,
        all: &'e [Event<'r>],
        vcpus: &'e BTreeMap<u64, String>,
    ) -> Self {
        let mut names = BTreeMap::<_, Vec<(u64, String)>>::new();
        let mut name = |event: &Event<'_>, thread: &str, name: String| {
            names.entry(event.get(thread).unwrap()).or_default().push((event.ns, name));
        };
        for event in all {
            if event.is("sched_switch") {
                name(event, "prev_pid", event.text("prev_comm").unwrap());
                name(event, "next_pid", event.text("next_comm").unwrap());
            } else if event.is("sched_process_exec") {
                // The kernel names the thread after the file's last path component, truncated.
                let file = event.text("filename").unwrap();
                name(event, "pid", file.rsplit('/').next().unwrap().chars().take(15).collect());
            }
        }
        let (mut of_thread, mut of_cpu) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::new());
        for (at, event) in all.iter().enumerate() {
            let mut threads = vec![event.ran()];
            if event.is("sched_switch") {
                threads.extend(event.get("prev_pid").into_iter().chain(event.get("next_pid")));
                of_cpu.entry(event.cpu).or_insert_with(Vec::new).push(at);
            } else if event.is("sched_waking")
                || event.is("sched_wakeup")
                || event.is("sched_wakeup_new")
            {
                threads.extend(event.get("pid"));
            }
            threads.sort_unstable();
            threads.dedup();
            threads.into_iter().for_each(|thread| of_thread.entry(thread).or_default().push(at));
        }
        Self { recording, all, vcpus, names, of_thread, of_cpu }
    }

    /// A thread's name at a time.
    fn called(&self, thread: u64, ns: u64) -> String {
        if thread == 0 {
            return "idle".to_owned();
        }
        if let Some(vcpu) = self.vcpus.get(&thread) {
            return vcpu.clone();
        }
        let names = self.names.get(&thread).map_or(&[][..], Vec::as_slice);
        let then = names.iter().rev().find(|(at_ns, _)| *at_ns <= ns).or(names.first());
        let name = then.map(|(_, name)| name.as_str());
        name.or_else(|| self.recording.comm(thread as u32))
            .map_or_else(|| thread.to_string(), str::to_owned)
    }

    /// Adds time to a thread's state, with the names at its start.
    fn add(
        &self,
        sums: &mut Sums,
        (thread, state, other): (u64, CriticalState, Option<u64>),
        (begin, to): (u64, u64),
    ) {
        let other = other.map(|other| self.called(other, begin));
        *sums.entry((self.called(thread, begin), state, other)).or_default() += to - begin;
    }

    /// State of a thread just before a time, with its start and its latest possible end.
    fn activity(&self, thread: u64, ns: u64) -> Option<(u64, Activity)> {
        let indices = self.of_thread.get(&thread)?;
        let end = indices.partition_point(|&at| self.all[at].ns < ns);
        let (mut found, mut slept) = (None, false);
        for &at in indices[..end].iter().rev() {
            let event = &self.all[at];
            let is_wake = event.is("sched_waking")
                || event.is("sched_wakeup")
                || event.is("sched_wakeup_new");
            if event.leaves(thread) {
                let sleeps = event.get("prev_state").unwrap() & 0xff != 0;
                let now = (event.ns, if sleeps { Activity::Sleeps } else { Activity::Preempted });
                // A wake-up counts if the thread is asleep.
                let found =
                    found.map(|(ns, activity)| (ns, self.earlier_waker(thread, at, activity)));
                let early =
                    self.woken_before(thread, at).map(|by| (event.ns, Activity::Woken { by }));
                let is_over = indices[end..].iter().find(|&&at| self.all[at].resumes(thread));
                // The thread was woken on its way to sleep, and not again since.
                let early = early.filter(|_| is_over.is_some() && !self.is_woken_later(thread, at));
                return Some(found.or(early).filter(|_| sleeps).unwrap_or(now));
            }
            if event.resumes(thread) {
                return Some((event.ns, Activity::Runs));
            }
            if is_wake && event.get("pid") == Some(thread) && event.ran() != thread {
                found = Some((event.ns, Activity::Woken { by: at }));
            } else if event.ran() == thread {
                // The thread runs; an earlier event may show since when.
                slept = true;
            }
        }
        if slept {
            let first = indices.iter().find(|&&at| self.all[at].ran() == thread)?;
            Some((self.all[*first].ns, Activity::Runs))
        } else {
            found
        }
    }

    /// The wake-up while the thread was still running, in the run that ends with this switch, if no `sched_wakeup`
    /// completed it.
    fn woken_before(&self, thread: u64, switch: usize) -> Option<usize> {
        let indices = &self.of_thread[&thread];
        let end = indices.partition_point(|&at| at < switch);
        let back = indices[..end].iter().rev().take_while(|&&at| !self.all[at].resumes(thread));
        let of_it = |event: &Event<'_>| event.get("pid") == Some(thread) && event.ran() != thread;
        for &at in back {
            let event = &self.all[at];
            if event.is("sched_wakeup") && event.get("pid") == Some(thread) {
                return None;
            }
            if event.is("sched_waking") && of_it(event) {
                return Some(at);
            }
        }
        None
    }

    fn is_woken_later(&self, thread: u64, switch: usize) -> bool {
        let indices = &self.of_thread[&thread];
        let from = indices.partition_point(|&at| at <= switch);
        let until = indices[from..].iter().take_while(|&&at| !self.all[at].resumes(thread));
        let mut wakes = until.filter(|&&at| self.all[at].wakes(thread));
        wakes.next().is_some()
    }

    /// A `sched_wakeup` after the switch completes a wake-up that began before it.
    fn earlier_waker(&self, thread: u64, switch: usize, activity: Activity) -> Activity {
        match activity {
            Activity::Woken { by } if self.all[by].is("sched_wakeup") => {
                Activity::Woken { by: self.woken_before(thread, switch).unwrap_or(by) }
            }
            activity => activity,
        }
    }

    /// Mode of a running vCPU thread, and its start.
    fn mode(&self, thread: u64, ns: u64) -> (u64, CriticalState) {
        let indices = &self.of_thread[&thread];
        let end = indices.partition_point(|&at| self.all[at].ns < ns);
        let mut back = None;
        for &at in indices[..end].iter().rev() {
            let event = &self.all[at];
            if event.ran() != thread {
                continue;
            }
            match event.format.name() {
                "kvm_entry" => return (event.ns, CriticalState::Guest),
                "kvm_exit" => return (event.ns, CriticalState::ExitKernel),
                "kvm_userspace_exit" => {
                    return back.map_or((event.ns, CriticalState::ExitUser), |since_ns| {
                        (since_ns, CriticalState::ExitKernel)
                    });
                }
                "kvm_fpu" if event.get("load") == Some(1) => back = Some(event.ns),
                "kvm_timer_restore_state" => back = Some(event.ns),
                _ => {}
            }
        }
        (0, CriticalState::Running)
    }

    /// The current thread of a CPU just before a time, and its start.
    fn had(&self, cpu: u32, ns: u64) -> Option<(u64, u64)> {
        let switches = self.of_cpu.get(&cpu)?;
        let end = switches.partition_point(|&at| self.all[at].ns < ns);
        if let Some(&at) = end.checked_sub(1).and_then(|at| switches.get(at)) {
            return Some((self.all[at].ns, self.all[at].get("next_pid")?));
        }
        // Before the first switch, the current thread follows from other events, because switches may be recorded
        // later.
        let seen = |event: &&Event<'_>| event.cpu == cpu && event.ran() != 0;
        let before = self.all.partition_point(|event| event.ns < ns);
        let last = self.all[..before].iter().rev().find(seen)?;
        Some((last.ns, last.ran()))
    }

    /// The CPU where a thread runs next.
    fn runs_next(&self, thread: u64, ns: u64) -> Option<u32> {
        let indices = self.of_thread.get(&thread)?;
        let from = indices.partition_point(|&at| self.all[at].ns < ns);
        indices[from..].iter().find(|&&at| self.all[at].resumes(thread)).map(|&at| self.all[at].cpu)
    }

    /// Attributes a thread's time between two times.
    fn explain(
        &self,
        thread: u64,
        (from, to): (u64, u64),
        is_vcpu: &dyn Fn(u64) -> bool,
        sums: &mut Sums,
    ) {
        let mut to = to;
        while from < to {
            let Some((since, activity)) = self.activity(thread, to) else {
                self.add(sums, (thread, CriticalState::Unknown, None), (from, to));
                return;
            };
            let mut begin = since.max(from);
            match activity {
                Activity::Runs => {
                    let (mode_since, mode) = if is_vcpu(thread) {
                        self.mode(thread, to)
                    } else {
                        (0, CriticalState::Running)
                    };
                    begin = begin.max(mode_since);
                    self.add(sums, (thread, mode, None), (begin, to));
                }
                Activity::Preempted | Activity::Woken { .. } => {
                    let had = self.runs_next(thread, to).and_then(|cpu| self.had(cpu, to));
                    begin = begin.max(had.map_or(0, |(since, _)| since));
                    let state = match activity {
                        Activity::Preempted => CriticalState::Preempted,
                        _ => CriticalState::Waiting,
                    };
                    let other = had.map(|(_, other)| other).filter(|other| *other != thread);
                    self.add(sums, (thread, state, other), (begin, to));
                }
                Activity::Sleeps => {
                    // The waker: the state that begins at that time.
                    let waker = match self.activity(thread, to + 1) {
                        Some((_, Activity::Woken { by })) => Some(&self.all[by]),
                        _ => None,
                    };
                    let by_thread = waker.filter(|waker| {
                        waker.ran() != 0 && waker.get("common_flags").unwrap_or(0) & 8 == 0
                    });
                    match by_thread {
                        Some(waker) => self.explain(waker.ran(), (begin, to), is_vcpu, sums),
                        None => {
                            self.add(sums, (thread, CriticalState::Blocked, None), (begin, to));
                        }
                    }
                }
            }
            to = begin;
        }
    }
}

fn found(recording: &Recording, thread: u64) -> Critical {
    let target = CriticalOf::Task(CriticalTask(thread.to_string()));
    critical(View::on_own_clocks(std::slice::from_ref(recording)), &target, &|_| ()).unwrap()
}

/// Waits of vCPUs, VMMs and workers from two implementations without common code.
#[test]
fn waits_are_those_of_a_naive_search() {
    let cases: [(&str, &[u64]); 4] = [
        ("x86-svm/host-guest.dat", &[119]),
        ("x86-svm/tsc.dat", &[106, 107, 97, 108]),
        ("arm64/A.dat", &[148, 158, 125]),
        ("arm64/B-vhost-on.dat", &[732, 729]),
    ];
    for (name, threads) in cases {
        let recording = open(name);
        let all = events(&recording);
        let vcpus: Vec<u64> =
            all.iter().filter(|event| event.is("kvm_exit")).map(Event::ran).collect();
        let is_vcpu = |thread: u64| vcpus.contains(&thread);
        let vms = analyses::vms::find_vms(&recording, &|_| ());
        let vcpu_name = vms.iter().flat_map(|vm| {
            vm.vcpus
                .iter()
                .map(|vcpu| (u64::from(vcpu.thread), format!("{} vCPU {}", vm.name, vcpu.vcpu)))
        });
        let names: BTreeMap<u64, String> = vcpu_name.collect();
        let naive = Naive::new(&recording, &all, &names);
        for &thread in threads {
            let found = found(&recording, thread);
            let parts: u64 = found.parts.iter().map(|part| part.time_ns).sum();
            assert_eq!(parts, found.waited_ns(), "{name} {thread}");
            let [critical_thread] = &found.threads[..] else { panic!("{name} {thread}") };
            assert_eq!(
                critical_thread.wall_ns,
                critical_thread.ran_ns + critical_thread.waited_ns + critical_thread.unknown_ns
            );
            let first = naive.of_thread[&thread].first().map(|&at| all[at].ns).unwrap();
            let last = all.last().unwrap().ns;
            // The thread's own CPU time is no wait.
            let (mut sums, mut to) = (Sums::new(), last);
            while to > first {
                let (since, activity) = naive.activity(thread, to).unwrap();
                let from = since.max(first);
                if activity != Activity::Runs {
                    naive.explain(thread, (from, to), &is_vcpu, &mut sums);
                }
                to = from;
            }
            let mut of_report = Sums::new();
            for part in &found.parts {
                let other = part.reason.clone().filter(|_| {
                    matches!(part.state, CriticalState::Preempted | CriticalState::Waiting)
                });
                let thread = if part.state == CriticalState::Guest {
                    format!("{} {}", part.machine, part.thread)
                } else {
                    part.thread.clone()
                };
                *of_report.entry((thread, part.state, other)).or_default() += part.time_ns;
            }
            assert!(of_report.len() > 8, "{name} {thread}: {of_report:?}");
            sums.retain(|_, ns| *ns > 0);
            let keys: BTreeSet<_> = of_report.keys().chain(sums.keys()).collect();
            let both = keys.into_iter().map(|key| (key, of_report.get(key), sums.get(key)));
            let differ: Vec<_> = both.filter(|(_, ours, other)| ours != other).collect();
            assert!(differ.is_empty(), "{name} {thread}: {differ:#?}");
        }
    }
}
