//! Chrome's trace events as JSON, written as a stream, for `chrome://tracing`, catapult and other
//! viewers of that format.
//!
//! The format requires numbered processes and threads: groups become processes, numbered from 1,
//! and tracks become their threads. Times are in microseconds, with three digits after the decimal
//! point.

use std::io::{self, Write};

use crate::json::{members, scaled, string};
use crate::{Arg, Args, Flow, Instant, Role, Scene, Slice, TimelineWriter, Track};

/// Writes trace events.
#[derive(Debug)]
pub struct ChromeWriter<W> {
    out: W,
    /// By track: process and thread.
    places: Vec<(usize, u32)>,
    names: Vec<String>,
    any: bool,
}

impl<W: Write + Send> ChromeWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        Self { out, places: Vec::new(), names: Vec::new(), any: false }
    }

    /// Begins an event of a kind on a track.
    fn open(&mut self, kind: &str, track: usize, name: &str) -> io::Result<()> {
        let (process, thread) = self.places.get(track).copied().unwrap_or_default();
        self.begin(kind, process, thread, name)
    }

    fn begin(&mut self, kind: &str, process: usize, thread: u32, name: &str) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        write!(self.out, "{{\"ph\":\"{kind}\",\"pid\":{process},\"tid\":{thread},\"name\":")?;
        string(&mut self.out, name)
    }

    fn stamp(&mut self, key: &str, ns: u64) -> io::Result<()> {
        write!(self.out, ",\"{key}\":")?;
        scaled(&mut self.out, ns, 3)
    }

    fn category(&mut self, category: &str) -> io::Result<()> {
        self.out.write_all(b",\"cat\":")?;
        string(&mut self.out, category)
    }

    fn args(&mut self, args: &Args<'_>) -> io::Result<()> {
        self.out.write_all(b",\"args\":{")?;
        members(&mut self.out, args)?;
        self.out.write_all(b"}}")
    }

    /// Writes a name or a place in the order of a process or a thread.
    fn metadata(
        &mut self,
        what: &str,
        place: (usize, u32),
        arg: (&str, Arg<'_>),
    ) -> io::Result<()> {
        self.begin("M", place.0, place.1, what)?;
        self.args(&[arg])
    }
}

/// By track, its process and its thread: the id of a task or thread, otherwise a number counted
/// from 1, because viewers ignore thread 0.
fn places(scene: &Scene) -> Vec<(usize, u32)> {
    let mut numbers = vec![0; scene.groups.len()];
    let place = |track: &Track| {
        let number = match (track.role, numbers.get_mut(track.group)) {
            (Role::Cpu | Role::Vcpu, Some(last)) => {
                *last += 1;
                *last
            }
            _ => track.number,
        };
        (track.group + 1, number)
    };
    scene.tracks.iter().map(place).collect()
}

impl<W: Write + Send> TimelineWriter for ChromeWriter<W> {
    const OWN_SCHEDULING: bool = false;
    const CALLS: bool = true;
    const FLOWS: bool = true;

    fn begin(&mut self, scene: &Scene) -> io::Result<()> {
        self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        self.places = places(scene);
        self.names = scene.tracks.iter().map(|track| track.name.clone()).collect();
        for (at, group) in scene.groups.iter().enumerate() {
            let place = (at + 1, 0);
            self.metadata("process_name", place, ("name", Arg::Text(&group.name)))?;
            let order = Arg::Number(at as u64);
            self.metadata("process_sort_index", place, ("sort_index", order))?;
        }
        for (at, track) in scene.tracks.iter().enumerate() {
            let place = self.places.get(at).copied().unwrap_or_default();
            self.metadata("thread_name", place, ("name", Arg::Text(&track.name)))?;
            let order = Arg::Number(at as u64);
            self.metadata("thread_sort_index", place, ("sort_index", order))?;
        }
        Ok(())
    }

    fn slice(&mut self, track: usize, slice: &Slice<'_>) -> io::Result<()> {
        self.open("X", track, slice.name)?;
        self.category(slice.category)?;
        self.stamp("ts", slice.from_ns)?;
        self.stamp("dur", slice.to_ns.saturating_sub(slice.from_ns))?;
        self.args(slice.args)
    }

    fn instant(&mut self, track: usize, instant: &Instant<'_>) -> io::Result<()> {
        self.open("i", track, instant.name)?;
        self.category(instant.category)?;
        self.stamp("ts", instant.stamp_ns)?;
        self.out.write_all(b",\"s\":\"t\"")?;
        self.args(instant.args)
    }

    /// Each end binds to the slice that covers its time.
    fn flow(&mut self, flow: &Flow<'_>) -> io::Result<()> {
        let last = flow.ends.len().saturating_sub(1);
        for (at, &(track, stamp_ns)) in flow.ends.iter().enumerate() {
            let kind = match at {
                0 => "s",
                at if at == last => "f",
                _ => "t",
            };
            self.open(kind, track, flow.name)?;
            self.category("flow")?;
            self.stamp("ts", stamp_ns)?;
            write!(self.out, ",\"id\":{},\"bp\":\"e\"}}", flow.id)?;
        }
        Ok(())
    }

    fn exit_rate(&mut self, track: usize, stamp_ns: u64, exits: u64) -> io::Result<()> {
        // Counters belong to processes, so the name of the vCPU distinguishes them.
        let name = format!("{} exits/s", self.names.get(track).map_or("", String::as_str));
        self.open("C", track, &name)?;
        self.stamp("ts", stamp_ns)?;
        self.args(&[("exits", Arg::Number(exits))])
    }

    fn end(&mut self, scene: &Scene) -> io::Result<()> {
        self.out.write_all(b"\n],\"otherData\":{\"recordings\":[")?;
        for at in 0..scene.sources.len() {
            self.out.write_all(if at > 0 { b",{" } else { b"{" })?;
            let facts = scene.facts(at);
            let args: Vec<_> = facts.iter().map(|(name, fact)| (*name, fact.arg())).collect();
            members(&mut self.out, &args)?;
            self.out.write_all(b"}")?;
        }
        self.out.write_all(b"]}}\n")?;
        self.out.flush()
    }
}
