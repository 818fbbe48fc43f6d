//! The list of tracks, found by a separate pass: a writer knows all names and numbers before the
//! first span.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use analyses::calls::{CallTracer, tracer_recorded};
use analyses::machine_names::MachineName;
use analyses::states::{
    GuestCpu, OccupantSpan, StateSink, StateSpan, States, VcpuRef, states_by_thread,
};
use analyses::view::View;
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::trace_events::ThreadNames;
use timeline::{Losses, Vm};

use crate::Arg;
use crate::calls::CallThread;

/// The content of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// States of a vCPU.
    Vcpu,
    /// States of a guest's task while it had a CPU of the guest.
    Task,
    /// Times in which a thread had a CPU.
    Thread,
    /// Threads that a CPU ran.
    Cpu,
    /// Kernel functions that a thread was in.
    Calls,
}

/// Tracks that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The content of its tracks.
    pub role: Role,
}

/// A sequence of states over time, such as those of a vCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Index of its group in [`Scene::groups`].
    pub group: usize,
    /// Index of its recording.
    pub recording: usize,
    pub name: String,
    /// Its content.
    pub role: Role,
    /// Number of the vCPU or CPU, or id of the thread.
    pub number: u32,
    /// The host's thread of the vCPU, or the thread itself.
    pub thread: Option<u32>,
}

/// All tracks, and facts about the recordings.
#[derive(Debug)]
pub struct Scene {
    /// Groups, in display order.
    pub groups: Vec<Group>,
    /// Tracks, in display order within a group.
    pub tracks: Vec<Track>,
    /// First and last time.
    pub span_ns: Option<RangeInclusive<u64>>,
    /// By recording: its path.
    pub sources: Vec<String>,
    /// By recording: system, host name, release and machine.
    pub unames: Vec<Option<String>>,
    /// By recording: its clock.
    pub clocks: Vec<Option<String>>,
    /// By recording: its machine.
    pub machines: Vec<MachineName>,
    /// By recording: its losses.
    pub losses: Vec<Losses>,
    /// The host's recording whose scheduling the format displays on its own: its threads have no
    /// tracks.
    pub scheduled: Option<usize>,
    /// By recording: its VMs.
    pub(crate) vms: Vec<Vec<Vm>>,
    names: Vec<ThreadNames>,
    /// By recording, thread and first time of a vCPU.
    vcpus: FxHashMap<(usize, u32, u64), usize>,
    /// By recording and thread: the vCPU first seen in it.
    by_thread: FxHashMap<(usize, u32), usize>,
    tasks: FxHashMap<(usize, u32), usize>,
    threads: FxHashMap<(usize, u32), usize>,
    cpus: FxHashMap<(usize, u32), usize>,
    pub(crate) calls: FxHashMap<CallThread, usize>,
    /// By recording: whether it has calls with their returns.
    pub(crate) has_calls: Vec<bool>,
}

/// By recording: whether it has calls with their returns.
fn has_calls(recordings: &[Recording], found: &States) -> Vec<bool> {
    let tracer = |(at, recording)| tracer_recorded(recording, at, &found.pass);
    recordings
        .iter()
        .enumerate()
        .map(tracer)
        .map(|tracer| tracer == Some(CallTracer::Graph))
        .collect()
}

/// The tracks that spans need.
#[derive(Debug, Default)]
struct Survey {
    tasks: BTreeSet<(usize, u32)>,
    threads: BTreeSet<(usize, u32)>,
    cpus: BTreeSet<(usize, u32)>,
}

impl StateSink for Survey {
    fn vcpu(&mut self, _: VcpuRef, _: &StateSpan) {}

    fn task(&mut self, guest: GuestCpu, task: u32, _: &StateSpan) {
        // The idle tasks of all CPUs share an id, so the tracks of CPUs show idle time.
        if task != 0 {
            self.tasks.insert((guest.recording.into(), task));
        }
    }

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        let recording = cpu.recording.into();
        self.cpus.insert((recording, cpu.cpu.into()));
        if let Some(thread) = span.thread.filter(|thread| *thread != 0) {
            self.threads.insert((recording, thread));
        }
    }
}

impl Scene {
    /// Finds the tracks of recordings. With `own_scheduling`, the format displays the scheduling of
    /// one host on its own.
    #[must_use]
    pub fn find(view: View<'_>, own_scheduling: bool, progress: &(dyn Fn(u64) + Sync)) -> Self {
        let View { recordings, .. } = view;
        let machines: Vec<MachineName> = view.machines().collect();
        let mut survey = Survey::default();
        let found = states_by_thread(view, &mut survey, progress);
        for (at, recording) in recordings.iter().enumerate() {
            survey.cpus.extend(recording.streams().iter().map(|stream| (at, stream.cpu())));
        }
        let spans = found.pass.spans_ns.iter().flatten();
        let span_ns =
            spans.copied().reduce(|span, other| (span.0.min(other.0), span.1.max(other.1)));
        let mut scene = Self {
            groups: Vec::new(),
            tracks: Vec::new(),
            span_ns: span_ns.map(|(from_ns, to_ns)| from_ns..=to_ns),
            sources: recordings
                .iter()
                .map(|recording| recording.path().display().to_string())
                .collect(),
            unames: recordings.iter().map(|recording| recording.info().uname.clone()).collect(),
            clocks: recordings.iter().map(|recording| recording.info().clock.clone()).collect(),
            losses: found.pass.losses.clone(),
            scheduled: machines.iter().position(|machine| own_scheduling && !machine.is_guest),
            machines,
            vms: found.vms.clone(),
            names: found.pass.names.clone(),
            vcpus: FxHashMap::default(),
            by_thread: FxHashMap::default(),
            tasks: FxHashMap::default(),
            threads: FxHashMap::default(),
            cpus: FxHashMap::default(),
            calls: FxHashMap::default(),
            has_calls: has_calls(recordings, &found),
        };
        for recording in 0..recordings.len() {
            scene.add_vms(recording, &found);
            scene.add_threads(recording, &survey);
            scene.add_cpus(recording, &survey);
        }
        scene
    }

    fn add_vms(&mut self, recording: usize, found: &States) {
        for vm in found.vms.get(recording).map_or(&[][..], Vec::as_slice) {
            let name = match &vm.comm {
                Some(comm) if !vm.name.contains(comm) => format!("{} vCPUs ({comm})", vm.name),
                _ => format!("{} vCPUs", vm.name),
            };
            let group = self.add_group(name, Role::Vcpu);
            for vcpu in &vm.vcpus {
                let name = format!("vCPU {}", vcpu.vcpu);
                let thread = Some(vcpu.thread);
                let role = Role::Vcpu;
                let track = Track { group, recording, name, role, number: vcpu.vcpu, thread };
                let at = self.add(track);
                let infos = found.vcpus.get(recording);
                if let Some(info) = infos.and_then(|infos| infos.get(vcpu.index)) {
                    self.vcpus.insert((recording, vcpu.thread, info.first_ns), at);
                }
                self.by_thread.entry((recording, vcpu.thread)).or_insert(at);
            }
        }
    }

    /// Adds tracks for tasks of a guest, or threads of a host.
    fn add_threads(&mut self, recording: usize, survey: &Survey) {
        let machine = self.machine(recording).clone();
        let (role, what, all) = if machine.is_guest {
            (Role::Task, "tasks", &survey.tasks)
        } else if self.scheduled == Some(recording) {
            return;
        } else {
            (Role::Thread, "threads", &survey.threads)
        };
        let of_it = all.range((recording, 0)..=(recording, u32::MAX));
        let mut group = None;
        for &(_, thread) in of_it {
            let name = format!("{} {thread}", self.thread_name(recording, thread));
            let group = *group
                .get_or_insert_with(|| self.add_group(format!("{} {what}", machine.name), role));
            let number = thread;
            let at = self.add(Track { group, recording, name, role, number, thread: Some(thread) });
            let map = if machine.is_guest { &mut self.tasks } else { &mut self.threads };
            map.insert((recording, thread), at);
        }
    }

    fn add_cpus(&mut self, recording: usize, survey: &Survey) {
        let name = format!("{} CPUs", self.machine(recording).name);
        let of_it = survey.cpus.range((recording, 0)..=(recording, u32::MAX));
        let mut group = None;
        for &(_, cpu) in of_it {
            let group = *group.get_or_insert_with(|| self.add_group(name.clone(), Role::Cpu));
            let (name, role) = (format!("CPU {cpu}"), Role::Cpu);
            let track = Track { group, recording, name, role, number: cpu, thread: None };
            let at = self.add(track);
            self.cpus.insert((recording, cpu), at);
        }
    }

    /// The group for calls of threads.
    pub(crate) fn call_group(&mut self, recording: usize) -> usize {
        self.add_group(format!("{} calls", self.machine(recording).name), Role::Calls)
    }

    fn add_group(&mut self, name: String, role: Role) -> usize {
        self.groups.push(Group { name, role });
        self.groups.len() - 1
    }

    fn add(&mut self, track: Track) -> usize {
        self.tracks.push(track);
        self.tracks.len() - 1
    }

    fn machine(&self, recording: usize) -> &MachineName {
        const NONE: &MachineName = &MachineName { name: String::new(), is_guest: false };
        self.machines.get(recording).unwrap_or(NONE)
    }

    /// The thread's name; `thread` if it is unknown.
    #[must_use]
    pub fn thread_name(&self, recording: usize, thread: u32) -> &str {
        match thread {
            0 => "idle",
            _ => self.names.get(recording).and_then(|names| names.get(thread)).unwrap_or("thread"),
        }
    }

    /// The track of the vCPU that ran in a thread from `first_ns` on.
    #[must_use]
    pub fn vcpu(&self, recording: usize, thread: u32, first_ns: u64) -> Option<usize> {
        self.vcpus.get(&(recording, thread, first_ns)).copied()
    }

    /// The track of a guest's task.
    #[must_use]
    pub fn task(&self, recording: usize, task: u32) -> Option<usize> {
        self.tasks.get(&(recording, task)).copied()
    }

    /// The track of a host's thread.
    #[must_use]
    pub fn thread(&self, recording: usize, thread: u32) -> Option<usize> {
        self.threads.get(&(recording, thread)).copied()
    }

    /// The track of a CPU.
    #[must_use]
    pub fn cpu(&self, recording: usize, cpu: u32) -> Option<usize> {
        self.cpus.get(&(recording, cpu)).copied()
    }

    /// The track of a thread: that of its vCPU, or its own.
    pub(crate) fn of_thread(&self, recording: usize, thread: u32) -> Option<usize> {
        let track_in =
            |map: &FxHashMap<(usize, u32), usize>| map.get(&(recording, thread)).copied();
        track_in(&self.by_thread)
            .or_else(|| track_in(&self.tasks))
            .or_else(|| track_in(&self.threads))
    }

    /// The track for an event of a thread: that of its vCPU, its own, or its CPU's.
    #[must_use]
    pub fn of_event(&self, recording: usize, cpu: u32, thread: u32) -> Option<usize> {
        self.of_thread(recording, thread).or_else(|| self.cpu(recording, cpu))
    }
}

/// A fact about a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Text(String),
    Number(u64),
}

impl Fact {
    pub(crate) fn arg(&self) -> Arg<'_> {
        match self {
            Self::Text(text) => Arg::Text(text),
            Self::Number(number) => Arg::Number(*number),
        }
    }
}

impl Scene {
    /// Facts for formats that have a place for them: the recording's source and its losses.
    pub(crate) fn facts(&self, recording: usize) -> Vec<(&'static str, Fact)> {
        let text = |value: Option<&str>| value.map(|text| Fact::Text(text.to_owned()));
        let losses = self.losses.get(recording);
        let number = |count_of: fn(&Losses) -> u64| Some(Fact::Number(losses.map_or(0, count_of)));
        let facts = [
            ("file", text(self.sources.get(recording).map(String::as_str))),
            ("machine", text(Some(&self.machine(recording).name))),
            ("kernel", text(self.unames.get(recording).and_then(Option::as_deref))),
            ("clock", text(self.clocks.get(recording).and_then(Option::as_deref))),
            ("events_lost", number(|losses| losses.events_lost)),
            ("uncounted_losses", number(|losses| losses.uncounted_losses)),
            ("pages_damaged", number(Losses::pages_damaged)),
        ];
        facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
    }
}
