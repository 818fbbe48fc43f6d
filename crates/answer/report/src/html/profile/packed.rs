//! The rows of a profile in bounded space: the longest ones with complete stacks, the rest summed.

use std::collections::{BTreeMap, HashMap};

use analyses::profile::{CodeFrame, Evidence, Profile, SampledTime};
use analyses::states::VcpuState;

/// Max frames of all stacks; stacks that need more are truncated.
const MAX_FRAMES: usize = 50_000;
/// Max rows, besides one per owner and state for the rest.
const MAX_ROWS: usize = 30_000;
/// Max bytes of a name.
const MAX_NAME_BYTES: usize = 400;

/// Suffix of a truncated name.
const ELLIPSIS: &str = "…";

/// Names, frames and rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    /// Unique names.
    pub(super) names: Vec<String>,
    /// Frames; inner ones after their outer frames.
    pub(super) frames: Vec<PackedFrame>,
    pub(super) rows: Vec<PackedRow>,
}

/// A frame of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PackedFrame {
    /// The frame around it, counted from 1; 0: it is the outermost frame.
    pub(super) parent: u32,
    /// Index of its name.
    pub(super) name: u32,
    pub(super) user_space: bool,
}

/// The owner of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// A vCPU, in this state.
    Vcpu(VcpuState),
    /// Another thread.
    Thread,
}

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedKey {
    /// Index of the owner: vCPUs, then other threads.
    pub(super) owner: u32,
    pub(super) whose: Whose,
    pub(super) level: u8,
    /// Index of the name, counted from 1; 0: none.
    pub(super) reason: u32,
    /// As `reason`.
    pub(super) comm: u32,
    pub(super) evidence: Evidence,
    pub(super) host_code: bool,
    /// Whether further frames were left out.
    pub(super) is_cut: bool,
    /// The innermost frame, counted from 1; 0: none.
    pub(super) frame: u32,
}

/// A row: a part of the time.
#[derive(Clone, Debug)]
pub(super) struct PackedRow {
    pub(super) key: PackedKey,
    pub(super) time: SampledTime,
    /// Slices with the time in each, ascending.
    pub(super) slices: Vec<(u32, u64)>,
}

/// A row before packing.
#[derive(Clone, Copy, Debug)]
struct UnpackedRow<'p> {
    owner: u32,
    whose: Whose,
    level: u8,
    reason: Option<&'p str>,
    comm: Option<&'p str>,
    evidence: Evidence,
    host_code: bool,
    stack: &'p [CodeFrame],
    time: &'p SampledTime,
    slices: &'p [(u32, u64)],
}

impl Packed {
    pub(super) fn new(profile: &Profile) -> Self {
        Self::within(profile, MAX_FRAMES, MAX_ROWS)
    }

    fn within(profile: &Profile, most_frames: usize, most_rows: usize) -> Self {
        let mut all = found(profile);
        // The longest rows get their stacks first.
        all.sort_by_key(|entry| std::cmp::Reverse(entry.time.ns));
        let mut packer = Packer { most_frames, ..Packer::default() };
        let mut rows: BTreeMap<PackedKey, (SampledTime, BTreeMap<u32, u64>)> = BTreeMap::new();
        for entry in &all {
            let key = if rows.len() < most_rows {
                packer.key(entry)
            } else {
                PackedKey { reason: 0, comm: 0, ..packer.cut(entry) }
            };
            let (time, slices) = rows.entry(key).or_default();
            time.add(entry.time);
            for &(slice, ns) in entry.slices {
                let sum = slices.entry(slice).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let row = |(key, (time, slices)): (PackedKey, (SampledTime, BTreeMap<u32, u64>))| {
            PackedRow { key, time, slices: slices.into_iter().collect() }
        };
        let rows = rows.into_iter().map(row).collect();
        Self { names: packer.names, frames: packer.frames, rows }
    }

    /// The time of rows whose stacks were truncated.
    pub(super) fn cut_ns(&self) -> u64 {
        let cut = self.rows.iter().filter(|row| row.key.is_cut);
        cut.map(|row| row.time.ns).fold(0, u64::saturating_add)
    }
}

fn found(profile: &Profile) -> Vec<UnpackedRow<'_>> {
    let slices = profile.slices.as_ref();
    let rows = profile.rows.iter().enumerate().map(|(at, row)| UnpackedRow {
        owner: number(row.vcpu),
        whose: Whose::Vcpu(row.state),
        level: row.level,
        reason: row.reason.as_deref(),
        comm: row.comm.as_deref(),
        evidence: row.evidence,
        host_code: row.host_code,
        stack: &row.stack,
        time: &row.time,
        slices: slices.and_then(|all| all.rows.get(at)).map_or(&[], Vec::as_slice),
    });
    let threads = profile.threads.iter().enumerate().flat_map(|(at, thread)| {
        let by_slice = slices.and_then(|all| all.threads.get(at));
        thread.stacks.iter().enumerate().map(move |(stack_at, (stack, evidence, time))| {
            UnpackedRow {
                owner: number(profile.vcpus.len().saturating_add(at)),
                whose: Whose::Thread,
                level: 0,
                reason: None,
                comm: None,
                evidence: *evidence,
                host_code: true,
                stack,
                time,
                slices: by_slice.and_then(|all| all.get(stack_at)).map_or(&[], Vec::as_slice),
            }
        })
    });
    let before = profile.vcpus.len().saturating_add(profile.threads.len());
    rows.chain(threads).chain(of_machines(profile, before)).collect()
}

/// The stacks of machines without vCPUs; `before` is the number of owners before their threads.
fn of_machines(profile: &Profile, before: usize) -> impl Iterator<Item = UnpackedRow<'_>> {
    let machines = profile.machines.iter();
    let threads =
        machines.flat_map(|machine| machine.threads.iter().map(move |thread| (machine, thread)));
    threads.enumerate().flat_map(move |(at, (machine, thread))| {
        thread.stacks.iter().enumerate().map(move |(stack_at, (stack, time))| UnpackedRow {
            owner: number(before.saturating_add(at)),
            whose: machine.state_of(stack).map_or(Whose::Thread, Whose::Vcpu),
            level: 0,
            reason: None,
            comm: None,
            evidence: machine.evidence_of(stack),
            host_code: machine.is_host_code(stack),
            stack,
            time,
            slices: thread.by_slice.get(stack_at).map_or(&[], Vec::as_slice),
        })
    })
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Numbers names and frames.
#[derive(Debug, Default)]
struct Packer {
    most_frames: usize,
    names: Vec<String>,
    name_numbers: HashMap<String, u32>,
    frames: Vec<PackedFrame>,
    frame_numbers: HashMap<PackedFrame, u32>,
}

impl Packer {
    fn key(&mut self, entry: &UnpackedRow<'_>) -> PackedKey {
        let mut frame = 0;
        let mut is_cut = false;
        for code_frame in entry.stack {
            let Some(next) = self.frame(frame, code_frame) else {
                is_cut = true;
                break;
            };
            frame = next;
        }
        let [reason, comm] =
            [entry.reason, entry.comm].map(|name| name.map_or(0, |name| self.name(name) + 1));
        PackedKey { reason, comm, frame, is_cut, ..self.cut(entry) }
    }

    /// The key of a row reduced to owner and state.
    const fn cut(&self, entry: &UnpackedRow<'_>) -> PackedKey {
        PackedKey {
            owner: entry.owner,
            whose: entry.whose,
            level: entry.level,
            reason: 0,
            comm: 0,
            evidence: entry.evidence,
            host_code: entry.host_code,
            is_cut: true,
            frame: 0,
        }
    }

    fn frame(&mut self, parent: u32, code_frame: &CodeFrame) -> Option<u32> {
        let name = self.name(&code_frame.name());
        let frame = PackedFrame { parent, name, user_space: code_frame.user_space };
        if let Some(&known) = self.frame_numbers.get(&frame) {
            return Some(known);
        }
        if self.frames.len() >= self.most_frames {
            return None;
        }
        self.frames.push(frame);
        let number = number(self.frames.len());
        self.frame_numbers.insert(frame, number);
        Some(number)
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.name_numbers.get(name) {
            return known;
        }
        let number = number(self.names.len());
        self.name_numbers.insert(name.to_owned(), number);
        self.names.push(shortened(name));
        number
    }
}

fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let fits = name.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_NAME_BYTES);
    let end = fits.last().unwrap_or(0);
    name.get(..end).unwrap_or_default().to_owned() + ELLIPSIS
}

#[cfg(test)]
mod tests {
    use analyses::profile::{ProfileSlices, ProfileThread};
    use analyses::states::Part;

    use super::*;

    /// Threads with stacks as deep as their numbers.
    fn threads(many: u64) -> Profile {
        let frame = |at: u64| CodeFrame { symbol: Some(format!("f{at}")), ..CodeFrame::default() };
        let thread = |at: u64| ProfileThread {
            vm: "vm".to_owned(),
            part: Part::Vmm,
            thread: 1,
            comm: None,
            time_ns: at,
            stacks: vec![((0..at).map(frame).collect(), Evidence::Host, SampledTime::known(at))],
        };
        let slices = ProfileSlices {
            threads: (0..many).map(|at| vec![vec![(at as u32, at)]]).collect(),
            ..ProfileSlices::default()
        };
        Profile {
            vcpus: Vec::new(),
            rows: Vec::new(),
            machines: Vec::new(),
            threads: (0..many).map(thread).collect(),
            slices: Some(slices),
            differences: BTreeMap::new(),
            losses: Vec::new(),
            symbols: BTreeMap::new(),
            by_address: false,
            nanoseconds: true,
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_and_no_time_is_lost() {
        let profile = threads(100);
        let (full, cut) = (Packed::new(&profile), Packed::within(&profile, 60, 50));
        assert_eq!((full.frames.len(), full.rows.len(), full.cut_ns()), (99, 100, 0));
        assert_eq!(cut.frames.len(), 60);
        let sum = |packed: &Packed| packed.rows.iter().map(|row| row.time.ns).sum::<u64>();
        assert_eq!(sum(&cut), sum(&full));
        // The 39 deeper ones, and those without a row of their own.
        let less: u64 = (61..100).sum();
        assert!(cut.cut_ns() >= less, "{}", cut.cut_ns());
        for row in cut.rows.iter().chain(&full.rows) {
            assert_eq!(row.slices.iter().map(|(_, ns)| ns).sum::<u64>(), row.time.ns);
        }
    }

    #[test]
    fn long_names_end_at_a_letter() {
        let name = shortened(&"ä".repeat(300));
        assert!(name.len() <= MAX_NAME_BYTES + ELLIPSIS.len() && name.ends_with("ä…"));
        assert_eq!(shortened("kvm"), "kvm");
    }
}
