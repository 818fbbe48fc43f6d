//! Writes a track as a thread of the processed profile format: as markers for the chart, and each
//! slice also as a sample, so that call tree and flame graph sum up states and reasons.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::categories::has_cpu;
use super::marks::{Data, Mark, Marks};
use crate::json::{scaled, string};
use crate::{Scene, Track};

/// Writes `[…]`, an element for each item.
fn list<W: Write, T>(
    out: &mut W,
    name: &str,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        write(out, item)?;
    }
    out.write_all(b"]")
}

fn repeated<W: Write>(out: &mut W, name: &str, value: &str, count: usize) -> io::Result<()> {
    list(out, name, std::iter::repeat_n(value, count), |out, value| out.write_all(value.as_bytes()))
}

/// The stacks of a track: a state, and below it its full name.
#[derive(Debug, Default)]
struct Stacks {
    /// By state and name, the index of the stack.
    numbers: FxHashMap<(u32, u32), usize>,
    /// String, category, and index of the parent stack.
    all: Vec<(u32, u8, Option<usize>)>,
}

impl Stacks {
    fn intern(&mut self, mark: &Mark) -> usize {
        if let Some(known) = self.numbers.get(&(mark.state, mark.name)) {
            return *known;
        }
        let above = (mark.state != mark.name).then(|| {
            let state = Mark { name: mark.state, ..*mark };
            self.intern(&state)
        });
        self.all.push((mark.name, mark.category, above));
        self.numbers.insert((mark.state, mark.name), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Writes a track; times count from `begin_ns`.
pub(super) fn write(
    out: &mut impl Write,
    (scene, track): (&Scene, &Track),
    marks: &Marks,
    data: &Data,
    begin_ns: u64,
) -> io::Result<()> {
    let group = scene.groups.get(track.group).map_or("", |group| &group.name);
    out.write_all(b"{\"name\":")?;
    string(out, &track.name)?;
    out.write_all(b",\"processName\":")?;
    string(out, group)?;
    write!(
        out,
        ",\"processType\":\"default\",\"isMainThread\":false,\"pid\":\"{}\",\"tid\":{},\
         \"registerTime\":0,\"unregisterTime\":null,\"processStartupTime\":0,\
         \"processShutdownTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true",
        track.group + 1,
        track.thread.unwrap_or(track.number)
    )?;
    markers(out, marks, data, begin_ns)?;
    samples(out, marks, begin_ns)?;
    list(out, "stringArray", &marks.strings.all, |out, text| string(out, text))?;
    out.write_all(b"}")
}

fn markers(out: &mut impl Write, marks: &Marks, data: &Data, begin_ns: u64) -> io::Result<()> {
    let all = &marks.marks;
    let ms = |ns: u64| ns.saturating_sub(begin_ns);
    write!(out, ",\"markers\":{{\"length\":{}", all.len())?;
    list(out, "name", all, |out, mark| write!(out, "{}", mark.name))?;
    list(out, "startTime", all, |out, mark| scaled(out, ms(mark.from_ns), 6))?;
    list(out, "endTime", all, |out, mark| match mark.to_ns {
        Some(to_ns) => scaled(out, ms(to_ns), 6),
        None => out.write_all(b"null"),
    })?;
    // 0: an instant, 1: an interval.
    list(out, "phase", all, |out, mark| write!(out, "{}", u8::from(mark.to_ns.is_some())))?;
    list(out, "category", all, |out, mark| write!(out, "{}", mark.category))?;
    list(out, "data", all, |out, mark| out.write_all(data.get(mark.data)))?;
    out.write_all(b"}")
}

fn samples(out: &mut impl Write, marks: &Marks, begin_ns: u64) -> io::Result<()> {
    let slices = || marks.marks.iter().filter_map(|mark| Some((mark, mark.to_ns?)));
    let mut stacks = Stacks::default();
    write!(out, ",\"samples\":{{\"length\":{},\"weightType\":\"tracing-ms\"", slices().count())?;
    list(out, "stack", slices(), |out, (mark, _)| write!(out, "{}", stacks.intern(mark)))?;
    list(out, "time", slices(), |out, (mark, _)| {
        scaled(out, mark.from_ns.saturating_sub(begin_ns), 6)
    })?;
    list(out, "weight", slices(), |out, (mark, to_ns)| {
        scaled(out, to_ns.saturating_sub(mark.from_ns), 6)
    })?;
    // CPU time since the sample before: that of the slice before.
    let mut spent_ns = 0;
    list(out, "threadCPUDelta", slices(), |out, (mark, to_ns)| {
        let on_cpu = has_cpu(mark.category);
        let own_ns = if on_cpu { to_ns.saturating_sub(mark.from_ns) } else { 0 };
        write!(out, "{}", std::mem::replace(&mut spent_ns, own_ns))
    })?;
    out.write_all(b"}")?;
    tables(out, &stacks)
}

/// Writes stacks, with a frame and a function for each; all three have the same index.
fn tables(out: &mut impl Write, stacks: &Stacks) -> io::Result<()> {
    let count = stacks.all.len();
    let optional = |out: &mut dyn Write, number: Option<usize>| match number {
        Some(number) => write!(out, "{number}"),
        None => out.write_all(b"null"),
    };
    write!(out, ",\"stackTable\":{{\"length\":{count}")?;
    list(out, "frame", 0..count, |out, at| write!(out, "{at}"))?;
    list(out, "prefix", &stacks.all, |out, stack| optional(out, stack.2))?;
    write!(out, "}},\"frameTable\":{{\"length\":{count}")?;
    repeated(out, "address", "-1", count)?;
    repeated(out, "inlineDepth", "0", count)?;
    list(out, "category", &stacks.all, |out, stack| write!(out, "{}", stack.1))?;
    repeated(out, "subcategory", "0", count)?;
    list(out, "func", 0..count, |out, at| write!(out, "{at}"))?;
    repeated(out, "nativeSymbol", "null", count)?;
    repeated(out, "innerWindowID", "0", count)?;
    repeated(out, "line", "null", count)?;
    repeated(out, "column", "null", count)?;
    write!(out, "}},\"funcTable\":{{\"length\":{count}")?;
    list(out, "name", &stacks.all, |out, stack| write!(out, "{}", stack.0))?;
    repeated(out, "isJS", "false", count)?;
    repeated(out, "relevantForJS", "false", count)?;
    repeated(out, "resource", "-1", count)?;
    repeated(out, "fileName", "null", count)?;
    repeated(out, "lineNumber", "null", count)?;
    repeated(out, "columnNumber", "null", count)?;
    out.write_all(
        b"},\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\
          \"name\":[]},\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\
          \"type\":[]}",
    )
}
