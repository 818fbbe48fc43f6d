//! Which code vCPUs ran, as the page carries it: stacks as a tree of frames, and rows of time at its nodes.

mod packed;

use std::io::{self, Write};

use analyses::profile::{Evidence, Profile};
use analyses::states::{Part, VcpuState};
use schemars::JsonSchema;
use serde::Serialize;

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
#[derive(Clone, Debug)]
struct Owner {
    /// The VM's name, or that of a guest that was sampled by itself; empty: the host.
    vm: String,
    /// `None`: it is another thread.
    vcpu: Option<u32>,
    /// What that does for the VM, if there is one.
    part: Option<Part>,
    thread: u32,
    comm: Option<String>,
    time_ns: u64,
}

#[derive(Clone, Debug)]
pub struct PageProfile {
    owners: Vec<Owner>,
    notes: Vec<String>,
    /// When the first slice begins, how wide slices are, and how many there are.
    slices: Option<(u64, u64, u32)>,
    packed: Packed,
}

impl PageProfile {
    /// What of a profile is kept in a page; `None` without vCPUs and without samples of time. `sources` are the paths of
    /// its recordings.
    #[must_use]
    pub fn new(mut profile: Profile, sources: Vec<String>) -> Option<Self> {
        profile.machines.retain(|machine| machine.unit.nanoseconds && !machine.threads.is_empty());
        if profile.vcpus.is_empty() && profile.machines.is_empty() {
            return None;
        }
        let packed = Packed::new(&profile);
        let slices =
            profile.slices.as_ref().map(|slices| (slices.from_ns, slices.slice_ns, slices.count));
        let vcpus = profile.vcpus.iter().map(|vcpu| Owner {
            vm: vcpu.vm.clone(),
            vcpu: Some(vcpu.vcpu),
            part: None,
            thread: vcpu.thread,
            comm: vcpu.comm.clone(),
            time_ns: vcpu.time_ns,
        });
        let threads = profile.threads.iter().map(|thread| Owner {
            vm: thread.vm.clone(),
            vcpu: None,
            part: Some(thread.part),
            thread: thread.thread,
            comm: thread.comm.clone(),
            time_ns: thread.time_ns,
        });
        let sampled = profile.machines.iter().flat_map(|machine| {
            let vm = machine_name(&sources, machine);
            machine.threads.iter().map(move |thread| Owner {
                vm: vm.to_owned(),
                vcpu: None,
                part: None,
                thread: thread.thread,
                comm: thread.comm.clone(),
                time_ns: thread.time_ns(),
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
    pub(super) fn document(&self, origin_ns: u64) -> ProfileDocument<'_> {
        let states = VcpuState::ALL.iter();
        let states = states.map(|state| StateName { key: state.name(), is_idle: state.is_idle() });
        let slices = self.slices.map(|(from_ns, slice_ns, count)| {
            let from_ns = i128::from(from_ns) - i128::from(origin_ns);
            Slices { from_ns: i64::try_from(from_ns).unwrap_or(0), slice_ns, count }
        });
        ProfileDocument {
            columns_in: ID,
            owners: self.owners.iter().map(OwnerRow::new).collect(),
            states: states.chain([StateName { key: HOST, is_idle: false }]).collect(),
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

/// Which code vCPUs ran, as `hyperscope profile --threads` has it; null: there are no vCPUs.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ProfileDocument<'p> {
    /// Id of the element that holds names, frames and rows.
    columns_in: &'static str,
    /// vCPUs, and after them other threads that work for VMs; where no vCPU is recorded, the threads that were
    /// sampled.
    owners: Vec<OwnerRow<'p>>,
    /// What rows can be of, in the order of their numbers.
    states: Vec<StateName>,
    /// How many names there are.
    names: usize,
    /// How many frames there are.
    frames: usize,
    /// How many rows there are.
    rows: usize,
    /// Time of rows whose stacks were cut short, as too many frames would have been needed.
    cut_ns: u64,
    /// How time is cut into slices; null: it is not.
    slices: Option<Slices>,
    /// What a reader of the profile must know.
    notes: &'p [String],
}

/// One of them.
#[derive(Debug, JsonSchema, Serialize)]
struct OwnerRow<'p> {
    /// The VM, or a guest that was sampled by itself; empty: the host.
    vm: &'p str,
    /// The vCPU's number in it; null: it is another thread.
    vcpu: Option<u32>,
    /// What another thread does for the VM; null: it is a vCPU, or there is no VM.
    part: Option<&'static str>,
    /// The thread.
    tid: u32,
    /// Its name; null: not recorded.
    comm: Option<&'p str>,
    /// Of a vCPU the time from its first event to its last, of another thread that on CPUs, or what its samples
    /// stand for.
    time_ns: u64,
}

/// A state.
#[derive(Debug, JsonSchema, Serialize)]
struct StateName {
    /// Its name; `host`: another thread ran.
    key: &'static str,
    /// Whether the guest had nothing to do.
    is_idle: bool,
}

/// How time is cut into slices; null: it is not.
#[derive(Debug, JsonSchema, Serialize)]
struct Slices {
    /// When the first slice begins.
    from_ns: i64,
    /// How wide a slice is.
    #[schemars(extend("minimum" = 1))]
    slice_ns: u64,
    /// How many there are.
    count: u32,
}

impl<'p> OwnerRow<'p> {
    fn new(owner: &'p Owner) -> Self {
        Self {
            vm: &owner.vm,
            vcpu: owner.vcpu,
            part: owner.part.map(Part::name),
            tid: owner.thread,
            comm: owner.comm.as_deref(),
            time_ns: owner.time_ns,
        }
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
    VcpuState::ALL.iter().position(|candidate| *candidate == state).unwrap_or(0) as u64
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
