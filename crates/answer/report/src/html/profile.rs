//! Which code vCPUs ran, as the page carries it: stacks as a tree of frames, and rows of time at its nodes.

mod packed;

use std::io::{self, Write};

use analyses::profile::{Evidence, Profile};
use analyses::states::VcpuState;
use serde::Serialize;
use serde_json::{Value, json};

use self::packed::{Packed, PackedRow, Whose};
use super::columns::Columns;
use crate::profile::{ProfileBy, ProfileReport, machine_name, profile_notes};

/// The element that has names, frames and rows.
const ID: &str = "hyperscope-profile";

/// In place of a state: a thread of the host's that is no vCPU.
const HOST: &str = "host";

/// Bits of a row's flags after those of the evidence.
const HOST_CODE: u8 = 1 << 2;
const CUT: u8 = 1 << 3;

/// Whose time rows are: a vCPU's, or another thread's; of machines without vCPUs, a thread's.
#[derive(Clone, Debug, Serialize)]
struct Owner {
    /// The VM's name, or that of a guest that was sampled by itself; empty: the host.
    vm: String,
    /// `None`: it is another thread.
    vcpu: Option<u32>,
    /// What that does for the VM, if there is one.
    part: Option<&'static str>,
    #[serde(rename = "tid")]
    thread: u32,
    comm: Option<String>,
    time_ns: u64,
}

/// The profile of a page.
#[derive(Clone, Debug)]
pub struct PageProfile {
    owners: Vec<Owner>,
    notes: Vec<String>,
    /// When the first slice begins, how wide slices are, and how many there are.
    slices: Option<(u64, u64, u32)>,
    packed: Packed,
}

/// What the columns are about.
#[derive(Debug, Serialize)]
pub(super) struct Document<'p> {
    columns_in: &'static str,
    owners: &'p [Owner],
    states: Vec<Value>,
    names: usize,
    frames: usize,
    rows: usize,
    cut_ns: u64,
    slices: Option<Value>,
    notes: &'p [String],
}

impl PageProfile {
    /// What of a profile is kept in a page; `None` without vCPUs and without samples of time. `sources` are the paths of
    /// its recordings.
    #[must_use]
    pub fn of(mut profile: Profile, sources: Vec<String>) -> Option<Self> {
        profile.machines.retain(|one| one.unit.nanoseconds && !one.threads.is_empty());
        if profile.vcpus.is_empty() && profile.machines.is_empty() {
            return None;
        }
        let packed = Packed::of(&profile);
        let slices = profile.slices.as_ref().map(|one| (one.from_ns, one.slice_ns, one.count));
        let vcpus = profile.vcpus.iter().map(|one| Owner {
            vm: one.vm.clone(),
            vcpu: Some(one.vcpu),
            part: None,
            thread: one.thread,
            comm: one.comm.clone(),
            time_ns: one.time_ns,
        });
        let threads = profile.threads.iter().map(|one| Owner {
            vm: one.vm.clone(),
            vcpu: None,
            part: Some(one.part.name()),
            thread: one.thread,
            comm: one.comm.clone(),
            time_ns: one.time_ns,
        });
        let sampled = profile.machines.iter().flat_map(|machine| {
            let vm = machine_name(&sources, machine);
            machine.threads.iter().map(move |one| Owner {
                vm: vm.to_owned(),
                vcpu: None,
                part: None,
                thread: one.thread,
                comm: one.comm.clone(),
                time_ns: one.time_ns(),
            })
        });
        let owners = vcpus.chain(threads).chain(sampled).collect();
        // A page has no columns of these names.
        let plain =
            |note: String| note.strip_prefix("from, to: ").map_or(note.clone(), str::to_owned);
        let notes = profile_notes(&ProfileReport {
            sources,
            profile,
            by: ProfileBy::Symbol,
            symbol: None,
            top: usize::MAX,
            idle: true,
            threads: true,
            raw: false,
            recorder_cost: None,
        });
        let notes = notes.into_iter().map(plain).collect();
        Some(Self { owners, notes, slices, packed })
    }

    /// What the columns are about.
    pub(super) fn document(&self, origin_ns: u64) -> Document<'_> {
        let state = |state: &VcpuState| json!({ "key": state.name(), "is_idle": state.is_idle() });
        let states = VcpuState::ALL.iter().map(state);
        let slices = self.slices.map(|(from_ns, slice_ns, count)| {
            let from_ns = i128::from(from_ns) - i128::from(origin_ns);
            let from_ns = i64::try_from(from_ns).unwrap_or(0);
            json!({ "from_ns": from_ns, "slice_ns": slice_ns, "count": count })
        });
        Document {
            columns_in: ID,
            owners: &self.owners,
            states: states.chain([json!({ "key": HOST, "is_idle": false })]).collect(),
            names: self.packed.names.len(),
            frames: self.packed.frames.len(),
            rows: self.packed.rows.len(),
            cut_ns: self.packed.cut_ns(),
            slices,
            notes: &self.notes,
        }
    }

    /// Names, frames and rows, column by column.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut columns = Columns::begin(ID, out)?;
        self.packed.write(&mut columns)?;
        columns.end()
    }
}

impl Packed {
    fn write(&self, columns: &mut Columns<'_>) -> io::Result<()> {
        for name in &self.names {
            columns.number(name.len() as u64)?;
            name.bytes().try_for_each(|byte| columns.byte(byte))?;
        }
        for (at, frame) in (1..).zip(&self.frames) {
            columns.number(at - u64::from(frame.parent))?;
        }
        for frame in &self.frames {
            columns.number(frame.name.into())?;
        }
        for frame in &self.frames {
            columns.byte(frame.user_space.into())?;
        }
        for number in NUMBERS {
            for row in &self.rows {
                columns.number(number(row))?;
            }
        }
        for row in &self.rows {
            columns.number(row.slices.len() as u64)?;
            let mut before = 0;
            for &(slice, ns) in &row.slices {
                columns.number(u64::from(slice.saturating_sub(before)))?;
                columns.number(ns)?;
                before = slice;
            }
        }
        Ok(())
    }
}

/// The numbers of a row, but for its slices.
const NUMBERS: [fn(&PackedRow) -> u64; 11] = [
    |row| u64::from(row.key.owner),
    |row| state_number(row.key.whose),
    |row| u64::from(row.key.level),
    |row| u64::from(row.key.reason),
    |row| u64::from(row.key.comm),
    |row| u64::from(flags(row)),
    |row| u64::from(row.key.frame),
    |row| row.time.ns,
    |row| row.time.samples,
    |row| row.time.ns - row.time.low_ns.min(row.time.ns),
    |row| row.time.high_ns.saturating_sub(row.time.ns),
];

/// A state by its place in the list of the JSON part.
fn state_number(whose: Whose) -> u64 {
    let Whose::Vcpu(state) = whose else { return VcpuState::ALL.len() as u64 };
    VcpuState::ALL.iter().position(|one| *one == state).unwrap_or(0) as u64
}

fn flags(row: &PackedRow) -> u8 {
    let evidence = match row.key.evidence {
        Evidence::None => 0,
        Evidence::Exits => 1,
        Evidence::Host => 2,
        Evidence::Agent => 3,
    };
    let flag = |is: bool, bit| if is { bit } else { 0 };
    evidence | flag(row.key.host_code, HOST_CODE) | flag(row.key.is_cut, CUT)
}
