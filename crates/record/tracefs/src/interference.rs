//! What other programs do to an instance while it records: of what is missing then the kernel counts
//! nothing.
//!
//! `inotify` reports each write to a file of the instance, also one that was taken back again. Where it
//! can't be had, and for what it misses, the state at the end is compared with the one at the beginning.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use crate::instance::Instance;

/// Files that may be written while a recording runs: nothing in the buffers is lost by that.
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
/// Events whose folders are watched; of more, the folders of their systems and of all events.
const MAX_EVENTS: usize = 512;
/// Files that are named; of more it is known that there are some.
const MAX_NAMED: usize = 8;
/// Bytes of reports that are read at once.
const REPORT_BYTES: usize = 4096;

/// Notices what others do to an instance.
#[derive(Debug)]
pub(crate) struct Watch {
    /// None: the system gives no more of these.
    inotify: Option<OwnedFd>,
    /// Names of the watched folders, by what reports call them.
    folders: HashMap<i32, String>,
    initial_state: State,
    /// When it was last noted that others had written each: they did not do it later.
    written: BTreeMap<String, Instant>,
}

/// What others could change.
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

    /// What is not as it was at the beginning.
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
        // A folder that is not there has no files that could be written.
        if let Ok(number) = add_watch(inotify, instance.file(&folder), flags) {
            self.folders.insert(number, folder);
        }
    }

    /// Notes what was written until now.
    pub(crate) fn note(&mut self) {
        let now = Instant::now();
        for file in self.reported() {
            if self.written.len() < MAX_NAMED || self.written.contains_key(&file) {
                self.written.insert(file, now);
            }
        }
    }

    /// The files that others may have written since a moment, or have changed for as long as the instance stays so. What was
    /// written before, and is noted only now, is among them.
    pub(crate) fn changed_since(&mut self, begin: Instant, instance: &Instance) -> Vec<String> {
        self.note();
        let written =
            self.written.iter().filter(|(_, at)| **at >= begin).map(|(file, _)| file.clone());
        let files: BTreeSet<String> = written.chain(self.differs(instance)).collect();
        files.into_iter().collect()
    }

    /// What is not as it was at the beginning.
    fn differs(&self, instance: &Instance) -> Vec<String> {
        let differs = self.initial_state.differs(&State::read(instance));
        let is_off = instance.get("tracing_on").is_ok_and(|on| on.trim() == "0");
        let off = is_off.then_some("tracing_on");
        differs.into_iter().chain(off).map(str::to_owned).collect()
    }

    /// Forgets what was reported since the last note: this program wrote it.
    pub(crate) fn forget(&mut self) {
        self.reported();
    }

    /// The files that others have changed, at the end of the recording.
    pub(crate) fn end(mut self, instance: &Instance) -> Vec<String> {
        self.note();
        let differs = self.differs(instance);
        let files: BTreeSet<String> = self.written.into_keys().chain(differs).collect();
        files.into_iter().collect()
    }

    /// Files that were written since this was asked last.
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

/// Folders whose files change what is recorded.
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

    /// An instance of this test's own; none where there can be none.
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
        // What is harmless, or this program's own.
        let mut watch = begin();
        instance.set("trace_marker", "hello").unwrap();
        std::fs::read(instance.file("trace")).unwrap();
        watch.note();
        instance.set("events/sched/sched_switch/filter", "prev_pid == 1").unwrap();
        watch.forget();
        assert_eq!(watch.end(&instance), [""; 0]);
        // A write concerns the time before it. A changed setting concerns all time until it is set back.
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
        // Without reports, what is different at the end.
        let watch = Watch { inotify: None, ..begin() };
        instance.set("events/sched/sched_switch/enable", "0").unwrap();
        instance.set("tracing_on", "0").unwrap();
        assert_eq!(watch.end(&instance), ["set_event", "tracing_on"]);
    }
}
