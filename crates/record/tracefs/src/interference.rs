//! Detects changes that other programs make to an instance during a recording: the kernel does not count the events
//! that these changes cost.
//!
//! `inotify` reports each write to a file of the instance, even a write that was undone. The state at the end is
//! compared with the initial state as well, for what `inotify` misses or if it is not available.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use crate::instance::Instance;

/// Files that others may write during a recording: this loses no buffered events.
const HARMLESS: [&str; 9] = [
    "trace_marker",
    "trace_marker_raw",
    "error_log",
    "buffer_percent",
    "kprobe_events",
    "uprobe_events",
    "dynamic_events",
    "synthetic_events",
    "saved_cmdlines_size",
];
/// Max events with a watched folder. With more, the folders of their systems and of all events are watched.
const MAX_EVENTS: usize = 512;
/// Max files that are named.
const MAX_NAMED: usize = 8;
/// Size of a read of inotify's reports.
const REPORT_BYTES: usize = 4096;

/// Detects other programs' changes to an instance.
#[derive(Debug)]
pub(crate) struct Watch {
    /// `None`: the system has no inotify instances left.
    inotify: Option<OwnedFd>,
    /// Names of the watched folders, by watch descriptor.
    folders: HashMap<i32, String>,
    initial_state: State,
    /// When a write by others to each file was last noted: it happened no later than that.
    written: BTreeMap<String, Instant>,
}

/// Settings that others can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    clock: Option<String>,
    cpus: Option<String>,
    events: BTreeSet<String>,
}

impl State {
    fn read(instance: &Instance) -> Self {
        Self {
            clock: instance.get("trace_clock").ok(),
            cpus: instance.get("tracing_cpumask").ok(),
            events: instance.enabled().unwrap_or_default().into_iter().collect(),
        }
    }

    /// Names of the settings that changed.
    fn differs(&self, now: &Self) -> Vec<&'static str> {
        let differs = [
            (self.clock != now.clock, "trace_clock"),
            (self.cpus != now.cpus, "tracing_cpumask"),
            (!self.events.is_subset(&now.events), "set_event"),
        ];
        differs.into_iter().filter(|(differs, _)| *differs).map(|(_, file)| file).collect()
    }
}

impl Watch {
    /// Begins when the instance records `events` on `cpus`.
    pub(crate) fn begin(instance: &Instance, cpus: &[u32], events: &[String]) -> Self {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let mut watch = Self {
            inotify,
            folders: HashMap::new(),
            initial_state: State::read(instance),
            written: BTreeMap::new(),
        };
        for folder in folders(cpus, events) {
            watch.add(instance, folder);
        }
        watch
    }

    fn add(&mut self, instance: &Instance, folder: String) {
        let Some(inotify) = &self.inotify else { return };
        let flags = WatchFlags::MODIFY | WatchFlags::ONLYDIR;
        // A missing folder has no files to write.
        if let Ok(number) = add_watch(inotify, instance.file(&folder), flags) {
            self.folders.insert(number, folder);
        }
    }

    /// Notes the writes until now.
    pub(crate) fn note(&mut self) {
        let now = Instant::now();
        for file in self.reported() {
            if self.written.len() < MAX_NAMED || self.written.contains_key(&file) {
                self.written.insert(file, now);
            }
        }
    }

    /// Files that others may have written since `begin`, and settings that are still changed. Writes that happened
    /// before `begin` but are noted only now are included.
    pub(crate) fn changed_since(&mut self, begin: Instant, instance: &Instance) -> Vec<String> {
        self.note();
        let written =
            self.written.iter().filter(|(_, at)| **at >= begin).map(|(file, _)| file.clone());
        let files: BTreeSet<String> = written.chain(self.differs(instance)).collect();
        files.into_iter().collect()
    }

    /// Names of the settings that differ from the initial state.
    fn differs(&self, instance: &Instance) -> Vec<String> {
        let differs = self.initial_state.differs(&State::read(instance));
        let is_off = instance.get("tracing_on").is_ok_and(|on| on.trim() == "0");
        let off = is_off.then_some("tracing_on");
        differs.into_iter().chain(off).map(str::to_owned).collect()
    }

    /// Discards the reports since the last note: this program made these writes.
    pub(crate) fn forget(&mut self) {
        self.reported();
    }

    /// Files that others changed until the end of the recording.
    pub(crate) fn end(mut self, instance: &Instance) -> Vec<String> {
        self.note();
        let differs = self.differs(instance);
        let files: BTreeSet<String> = self.written.into_keys().chain(differs).collect();
        files.into_iter().collect()
    }

    /// Files written since the last call.
    fn reported(&self) -> Vec<String> {
        let Some(inotify) = &self.inotify else { return Vec::new() };
        let mut buffer = [MaybeUninit::uninit(); REPORT_BYTES];
        let mut reports = Reader::new(inotify, &mut buffer);
        let mut written = Vec::new();
        while let Ok(report) = reports.next() {
            if report.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                written.push("many files".to_owned());
            }
            let name = report.file_name().map(|name| name.to_string_lossy().into_owned());
            let Some(name) = name.filter(|name| !HARMLESS.contains(&name.as_str())) else {
                continue;
            };
            if report.events().contains(ReadFlags::MODIFY)
                && let Some(folder) = self.folders.get(&report.wd())
            {
                let separator = if folder.is_empty() { "" } else { "/" };
                written.push(format!("{folder}{separator}{name}"));
            }
        }
        written
    }
}

/// Folders whose files control what is recorded.
fn folders(cpus: &[u32], events: &[String]) -> BTreeSet<String> {
    let mut folders: BTreeSet<String> =
        ["", "options", "events"].into_iter().map(str::to_owned).collect();
    folders.extend(cpus.iter().map(|cpu| format!("per_cpu/cpu{cpu}")));
    for (number, event) in events.iter().enumerate() {
        let Some((system, name)) = event.split_once(':') else { continue };
        folders.insert(format!("events/{system}"));
        if number < MAX_EVENTS {
            folders.insert(format!("events/{system}/{name}"));
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounted::Tracefs;

    /// An instance for this test; `None` if the system does not allow it.
    fn instance() -> Option<Instance> {
        let made = Tracefs::find().and_then(|tracefs| Instance::make_another(&tracefs));
        if let Err(why) = &made {
            testkit::skip!("no instance of tracefs can be made here: {why}");
        }
        made.ok()
    }

    #[test]
    fn what_others_write_is_noticed_though_they_take_it_back() {
        let Some(instance) = instance() else { return };
        let event = "sched:sched_switch".to_owned();
        instance.enable(&event).unwrap();
        instance.set("tracing_on", "1").unwrap();
        let begin = || Watch::begin(&instance, &[0], std::slice::from_ref(&event));
        assert_eq!(begin().end(&instance), [""; 0]);
        let clock = instance.get("trace_clock").unwrap();
        let clock = clock.split(['[', ']']).nth(1).unwrap().to_owned();
        let cpus = instance.get("tracing_cpumask").unwrap();
        let changes = [
            ("trace", "", ""),
            ("tracing_on", "0", "1"),
            ("trace_clock", "counter", &*clock),
            ("tracing_cpumask", "1", cpus.trim()),
            ("events/enable", "0", "0"),
            ("events/sched/enable", "0", "0"),
            ("events/sched/sched_switch/enable", "0", "1"),
            ("events/sched/sched_switch/filter", "prev_pid == 1", "0"),
            ("per_cpu/cpu0/trace", "", ""),
        ];
        for (file, there, back) in changes {
            instance.enable(&event).unwrap();
            let watch = begin();
            std::fs::write(instance.file(file), there).unwrap();
            std::fs::write(instance.file(file), back).unwrap();
            let found = watch.end(&instance);
            assert!(found.iter().any(|name| name == file), "{file}: {found:?}");
        }
        // Harmless writes, and this program's own.
        let mut watch = begin();
        instance.set("trace_marker", "hello").unwrap();
        std::fs::read(instance.file("trace")).unwrap();
        watch.note();
        instance.set("events/sched/sched_switch/filter", "prev_pid == 1").unwrap();
        watch.forget();
        assert_eq!(watch.end(&instance), [""; 0]);
        // A write affects the time before it. A changed setting affects all time until it is restored.
        let mut watch = begin();
        let began = Instant::now();
        std::fs::write(instance.file("trace"), "").unwrap();
        assert_eq!(watch.changed_since(began, &instance), ["trace"]);
        assert_eq!(watch.changed_since(began, &instance), ["trace"], "asked again");
        let later = Instant::now();
        assert_eq!(watch.changed_since(later, &instance), [""; 0]);
        instance.set("tracing_on", "0").unwrap();
        watch.forget();
        assert_eq!(watch.changed_since(later, &instance), ["tracing_on"]);
        instance.set("tracing_on", "1").unwrap();
        watch.forget();
        // Without reports, the changes at the end.
        let watch = Watch { inotify: None, ..begin() };
        instance.set("events/sched/sched_switch/enable", "0").unwrap();
        instance.set("tracing_on", "0").unwrap();
        assert_eq!(watch.end(&instance), ["set_event", "tracing_on"]);
    }
}
