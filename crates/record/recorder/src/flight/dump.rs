//! Writes a session from the flight recorder's segments.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use ftrace::ringbuf::PageLayout;
use os::folder::Folder;
use raw_bytes::LongSize;
use session_json::{CpuLosses, FlightSummary, Recorded, Trigger};
use tracefs::{Clock, CpuStats, Texts};
use vms::Vm;

use super::FlightPlan;
use crate::assemble::{self, About, From, Tick};
use crate::cut_pages::{CutPages, Window};
use crate::ending::Stop;
use crate::error::{RecordError, Result};
use crate::flight_sessions;
use crate::guest::{GuestRecorded, HostClock, OpenSegments, Parts, make_pages_folder};
use crate::guests;
use crate::host_identity;
use crate::losses::hold;
use crate::nanoseconds::nanoseconds;
use crate::pages_folder::{header, pages};
use crate::recording::Recording;
use crate::rolling::{Edge, Generation, Segment};
use crate::session;
use crate::session_folder::{HOST_FILE, SessionFolder, invoking_user};
use crate::session_number;
use crate::tracer;

/// A session's name while it is being written.
const UNFINISHED: &str = ".dump";
/// The kernel may round shown timestamps down by this much; a tick of a counter is a few nanoseconds at most.
const MICROSECOND_NS: u64 = 1000;
/// Bytes of the disk that stay free in addition to the segments and the new session.
const SPARE_BYTES: u64 = 16 << 20;

/// Facts of a recording besides its pages.
pub(super) struct FlightFacts {
    pub(super) vms: Vec<Vm>,
    pub(super) names: Vec<u8>,
    pub(super) trigger: Trigger,
    /// Segments of each guest, or why they are not available.
    pub(super) guests: Vec<std::result::Result<(Parts, OpenSegments), String>>,
}

/// A session to be written, with all its inputs.
#[derive(Debug)]
pub struct DumpJob {
    plan: FlightPlan,
    to: SessionFolder,
    outside: Stop,
    cpus: Vec<CpuPages>,
    layout: PageLayout,
    window: Window,
    texts: Texts,
    clock: Clock,
    names: Vec<u8>,
    /// Max further bytes that segments may take meanwhile.
    room_bytes: u64,
    flight: FlightSummary,
    guests: Vec<(Parts, OpenSegments)>,
    recorded: Recorded,
}

/// A session that was written.
#[derive(Debug)]
pub struct Dumped {
    /// Its folder.
    pub path: PathBuf,
    /// The content of its session.json.
    pub recorded: Recorded,
    folder: Folder,
    owner: Option<(u32, u32)>,
}

impl Dumped {
    /// Adds a file to the session.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let added = self.folder.overwrite(name, bytes).and_then(|()| self.give());
        added.map_err(RecordError::io("write", &self.path.join(name)))
    }

    /// If this program was run by `sudo`, the folder belongs to the user who ran it.
    fn give(&self) -> std::io::Result<()> {
        self.owner.map_or(Ok(()), |(user, group)| self.folder.give_to(user, group))
    }
}

/// A CPU's pages, and the kernel's counts at their begin and end.
#[derive(Debug)]
struct CpuPages {
    cpu: u32,
    files: Vec<(File, u64)>,
    unwritten: u64,
    first: CpuStats,
    /// Counts when the last segment was to end, and when all its events were in the file.
    last: (CpuStats, CpuStats),
}

impl DumpJob {
    pub(super) fn new(recording: &mut Recording, known: FlightFacts) -> Result<Self> {
        let (to, outside) = (recording.folder().clone(), recording.outside().clone());
        let tracing = recording.tracing();
        let (texts, clock) = (tracing.texts().clone(), tracing.clock().clone());
        let tracer = tracing.tracer().map(|tracer| tracer::summary(tracer, tracing.traced()));
        let oldest = recording.rolling().map(|rolling| rolling.oldest());
        let tracing = recording.tracing();
        let interference = oldest.and_then(|oldest| tracing.interference_since(oldest));
        let interference = interference.map(|why| why.to_string());
        let recorded = Recorded {
            clock: clock.name.clone(),
            events: tracing.events().to_vec(),
            buffer_kib: tracing.buffer_kib(),
            host: Some(host_identity::here()),
            vms: known.vms,
            tracer,
            ..session::by_this_version()
        };
        let Some(rolling) = recording.rolling() else {
            return Err(RecordError::Usage("the flight recorder has no data to dump yet".into()));
        };
        let generations: Vec<&Generation> = rolling.generations().collect();
        let cpus = by_cpu(&generations, rolling.folder())?;
        let begin = generations.first().map_or(rolling.current_begin(), |first| first.begin);
        let segments = generations.len() as u64;
        let flight = FlightSummary {
            window_ns: nanoseconds(rolling.plan().window),
            shorter: rolling.is_shorter(),
            segments,
            events_cut: 0,
            unwritten_bytes: cpus.iter().map(|cpu| cpu.unwritten).sum(),
            trigger: known.trigger,
        };
        let late = rolling.late_cpus().into_iter().map(late_fault);
        let (mut guests, mut guest_faults) = (Vec::new(), Vec::new());
        for guest in known.guests {
            match guest {
                Ok(guest) => guests.push(guest),
                Err(fault) => guest_faults.push(fault),
            }
        }
        let plan = rolling.plan().clone();
        let room_bytes = plan.most_bytes.saturating_sub(rolling.bytes());
        let recorded = Recorded {
            faults: late.chain(guest_faults).chain(interference).collect(),
            ..spanning(begin, Edge::now(&clock), recorded)
        };
        let layout = layout(&texts)?;
        let window = window(&cpus);
        let names = known.names;
        Ok(Self {
            plan,
            to,
            outside,
            cpus,
            layout,
            window,
            texts,
            clock,
            names,
            room_bytes,
            flight,
            guests,
            recorded,
        })
    }

    /// Size of its pages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of_host = self.cpus.iter().flat_map(|cpu| &cpu.files);
        // Guests' pages are copied first, then written to their recordings.
        let of_guests = self
            .guests
            .iter()
            .flat_map(|(_, kept_segments)| kept_segments.files.values().flatten());
        of_host.chain(of_guests.clone()).chain(of_guests).map(|(_, bytes)| bytes).sum()
    }

    /// Writes the session; `progress` gets the number of bytes written.
    ///
    /// # Errors
    /// When there is not enough space, or a write fails: nothing of the session is left.
    pub fn run(self, progress: &dyn Fn(u64)) -> Result<Dumped> {
        let (to, outside) = (self.to.clone(), self.outside.clone());
        let (max, most_bytes) = (self.plan.most_sessions, self.plan.most_session_bytes);
        let bytes = self.bytes() + self.texts.kallsyms.len() as u64;
        let name = flight_sessions::name(&to, self.flight.trigger.unix_ns);
        flight_sessions::make_room(&to, max, most_bytes, bytes)?;
        self.check_room(bytes)?;
        // Left by a recorder that was killed meanwhile.
        let _ = to.remove_all(UNFINISHED);
        let path = to.path().join(UNFINISHED);
        let folder = to.subfolder(UNFINISHED).map_err(RecordError::io("make", &path))?;
        let progress: Tick<'_> = &|bytes| {
            progress(bytes);
            if outside.leaves() { Err(std::io::Error::other("stopped")) } else { Ok(()) }
        };
        let written = self.write(&folder, progress).and_then(|recorded| {
            to.rename(UNFINISHED, &name).map_err(RecordError::io("rename", &path))?;
            let owner = invoking_user().filter(|_| to.is_given_away());
            // The folder may have been moved meanwhile.
            let at = to.place().unwrap_or_else(|| to.path().to_owned());
            let dumped = Dumped { path: at.join(&name), recorded, folder, owner };
            dumped.give().map_err(RecordError::io("give away", &path))?;
            Ok(dumped)
        });
        if written.is_err() {
            let _ = to.remove_all(UNFINISHED);
        }
        written
    }

    /// Checks that a session leaves enough disk space for the segments.
    fn check_room(&self, bytes: u64) -> Result<()> {
        let free = self.to.free_bytes().map_err(RecordError::io("look at", self.to.path()))?;
        let wanted = bytes.saturating_add(self.room_bytes).saturating_add(SPARE_BYTES);
        if free >= wanted {
            return Ok(());
        }
        let source = std::io::Error::other(format!(
            "the disk has only {} MiB free, but this session and the data kept for the next one need {} MiB; recording continues",
            free >> 20,
            wanted >> 20
        ));
        Err(RecordError::io("dump into", self.to.path())(source))
    }

    fn write(self, session: &Folder, progress: Tick<'_>) -> Result<Recorded> {
        let Self { cpus, layout, window, texts, clock, names, .. } = self;
        let (flight, mut recorded) = (self.flight, self.recorded);
        let mut host_pages = Vec::new();
        let mut events_cut = 0;
        for cpu in cpus {
            let cut = CutPages::new(cpu.files, &layout, window);
            let cut = cut.map_err(RecordError::io("read pages for", session.path()))?;
            events_cut += cut.events_cut;
            recorded.cpus.push(losses(&cpu.first, &cpu.last.1, &cut));
            host_pages.push((cpu.cpu, cut));
        }
        recorded.flight = Some(FlightSummary { events_cut, ..flight });
        let stats: Vec<(u32, String)> =
            recorded.cpus.iter().map(|cpu| (cpu.cpu, stats_text(cpu))).collect();
        let trace_id = session_number::random()?;
        let guests = self.guests.into_iter();
        let guests =
            guests.map(|(parts, kept_segments)| copied(parts, kept_segments, session, progress));
        let mut guests = guests.collect::<Result<Vec<_>>>()?;
        recorded.guests = guests.iter().map(|guest| guest.summary().clone()).collect();
        let host = HostClock::new(&clock, trace_id);
        let options = recorded.vms.iter().map(|vm| guests::option(vm, &guests)).collect();
        let about = About::of_host(&texts, &clock, trace_id, options, &stats, names);
        session::write(&recorded, session)?;
        let from = From::Open(host_pages);
        let held = assemble::write_from(texts, about, from, (session, HOST_FILE), progress)?;
        recorded.faults.extend(hold(&mut recorded.cpus, &held));
        for guest in &mut guests {
            guests::write(guest, &host, session, progress)?;
        }
        recorded.guests = guests.iter().map(|guest| guest.summary().clone()).collect();
        session::write(&recorded, session)?;
        Ok(recorded)
    }
}

/// Copies a guest's segments into one file per CPU, from which its recording is assembled.
fn copied(
    parts: Parts,
    kept_segments: OpenSegments,
    session: &Folder,
    progress: Tick<'_>,
) -> Result<GuestRecorded> {
    let folder = make_pages_folder(session, &parts.identity.name)?;
    for (cpu, files) in kept_segments.files {
        let name = pages(cpu);
        let copied = folder.create_new(&name).and_then(|mut to| {
            for (file, bytes) in files {
                progress(std::io::copy(&mut file.take(bytes), &mut to)?)?;
            }
            Ok(())
        });
        copied.map_err(RecordError::io("write", &folder.path().join(name)))?;
    }
    Ok(GuestRecorded::new(Parts { folder, ..parts }))
}

/// Sets the session's data that depend on its begin and end.
fn spanning(begin: Edge, end: Edge, recorded: Recorded) -> Recorded {
    Recorded {
        begun_unix_ns: begin.unix_ns,
        duration_ns: nanoseconds(end.at.saturating_duration_since(begin.at)),
        clock_pairs: begin.clocks.into_iter().chain(end.clocks).map(session::clock_pair).collect(),
        recorder_cpu_ns: end.own_cpu_ns.saturating_sub(begin.own_cpu_ns),
        ..recorded
    }
}

fn late_fault(cpu: u32) -> String {
    format!("CPU {cpu}: the disk was too slow for its last events")
}

/// Opens the segments of all CPUs. Open files stay readable after they are removed.
fn by_cpu(generations: &[&Generation], folder: &Folder) -> Result<Vec<CpuPages>> {
    let mut cpus = BTreeMap::<u32, CpuPages>::new();
    let segments = generations.iter().flat_map(|generation| &generation.segments);
    for segment in segments {
        let cpu_pages = cpus.entry(segment.cpu).or_insert_with(|| CpuPages {
            cpu: segment.cpu,
            files: Vec::new(),
            unwritten: 0,
            first: segment.begin.clone(),
            last: Default::default(),
        });
        cpu_pages.add(segment, folder)?;
    }
    Ok(cpus.into_values().collect())
}

impl CpuPages {
    fn add(&mut self, segment: &Segment, folder: &Folder) -> Result<()> {
        self.unwritten += segment.unwritten;
        self.last = (segment.end.clone(), segment.next.clone());
        if segment.bytes > 0 {
            let name = segment.file();
            let file = folder.read(&name);
            let file = file.map_err(RecordError::io("read", &folder.path().join(name)))?;
            self.files.push((file, segment.bytes));
        }
        Ok(())
    }
}

/// The interval that all CPUs have recorded.
fn window(cpus: &[CpuPages]) -> Window {
    let begins: Option<Vec<u64>> = cpus.iter().map(|cpu| cpu.first.now_stamp).collect();
    let ends: Option<Vec<u64>> = cpus.iter().map(|cpu| cpu.last.0.now_stamp).collect();
    Window {
        // The kernel shows some clocks in microseconds, rounded down.
        begin: begins
            .and_then(|all| all.into_iter().max())
            .map(|begin| begin.saturating_add(MICROSECOND_NS)),
        end: ends.and_then(|all| all.into_iter().min()),
    }
}

fn layout(texts: &Texts) -> Result<PageLayout> {
    let header = header(texts);
    let commit = LongSize::from_bytes(size_of::<usize>() as u64).unwrap_or(LongSize::Eight);
    Ok(PageLayout { order: header.order, commit, page_size: texts.page_size() as usize })
}

/// A CPU's losses between two counts. Events that were cut off are not in the session, so they do not count as kept.
fn losses(first: &CpuStats, last: &CpuStats, cut: &CutPages) -> CpuLosses {
    CpuLosses {
        cpu: last.cpu,
        overrun: last.overrun.saturating_sub(first.overrun),
        commit_overrun: last.commit_overrun.saturating_sub(first.commit_overrun),
        dropped: last.dropped.saturating_sub(first.dropped),
        bytes: cut.bytes,
        kept: Some(last.read.saturating_sub(first.read).saturating_sub(cut.events_cut)),
        missing: None,
    }
}

/// The counts in the kernel's format, as if its buffer had held only this session.
fn stats_text(losses: &CpuLosses) -> String {
    let CpuLosses { overrun, commit_overrun, dropped, bytes, kept: read_events, .. } = losses;
    let read_events = read_events.unwrap_or(0);
    format!(
        "entries: 0\noverrun: {overrun}\ncommit overrun: {commit_overrun}\nbytes: {bytes}\n\
         dropped events: {dropped}\nread events: {read_events}\n"
    )
}
