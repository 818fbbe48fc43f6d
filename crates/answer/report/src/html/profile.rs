//! The profile of vCPUs in the page: stacks as a tree of frames, and rows of time at its nodes.

mod packed;

use std::io::{self, Write};

use analyses::profile::{Evidence, Profile};
use analyses::states::{Part, VcpuState};
use schemars::JsonSchema;
use serde::Serialize;

use self::packed::{Packed, PackedRow, Whose};
use super::columns::Columns;
use crate::profile::{ProfileBy, ProfileReport, machine_name, profile_notes};

/// Id of the element with names, frames and rows.
const ID: &str = "hyperscope-profile";

/// Replaces the state for a thread of the host that is no vCPU.
const HOST: &str = "host";

/// Bits of a row's flags after those of the evidence.
const HOST_CODE: u8 = 1 << 2;
const CUT: u8 = 1 << 3;

/// The owner of rows: a vCPU, or another thread; on machines without vCPUs, a thread.
#[derive(Clone, Debug)]
struct Owner {
    /// The VM's name, or that of a guest with a recording of its own samples; empty: the host.
    vm: String,
    /// `None`: another thread.
    vcpu: Option<u32>,
    /// The role of that thread for the VM, if there is one.
    part: Option<Part>,
    thread: u32,
    comm: Option<String>,
    time_ns: u64,
}

#[derive(Clone, Debug)]
pub struct PageProfile {
    owners: Vec<Owner>,
    notes: Vec<String>,
    /// Start of the first slice, width of slices, and their number.
    slices: Option<(u64, u64, u32)>,
    packed: Packed,
}

impl PageProfile {
    /// The part of a profile that a page keeps; `None` without vCPUs and without samples of time. `sources` are the
    /// paths of its recordings.
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

    /// Describes the columns.
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

/// The code that vCPUs ran, as in `hyperscope profile --threads`; null: there are no vCPUs.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ProfileDocument<'p> {
    /// Id of the element that holds names, frames and rows.
    columns_in: &'static str,
    /// vCPUs, then other threads that work for VMs; without recorded vCPUs, the sampled threads.
    owners: Vec<OwnerRow<'p>>,
    /// The states of rows, by number.
    states: Vec<StateName>,
    /// Number of names.
    names: usize,
    /// Number of frames.
    frames: usize,
    /// Number of rows.
    rows: usize,
    /// Time of rows whose stacks were truncated because of too many frames.
    cut_ns: u64,
    /// The slices of time; null: there are none.
    slices: Option<Slices>,
    /// Notes for the reader.
    notes: &'p [String],
}

/// An owner.
#[derive(Debug, JsonSchema, Serialize)]
struct OwnerRow<'p> {
    /// The VM, or a guest with a recording of its own samples; empty: the host.
    vm: &'p str,
    /// The number of the vCPU in the VM; null: another thread.
    vcpu: Option<u32>,
    /// The role of another thread for the VM; null: a vCPU, or there is no VM.
    part: Option<&'static str>,
    /// The thread.
    tid: u32,
    /// Its name; null: not recorded.
    comm: Option<&'p str>,
    /// For a vCPU, the time from its first event to its last; for another thread, its CPU time, or the time that its
    /// samples represent.
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

/// The slices of time; null: there are none.
#[derive(Debug, JsonSchema, Serialize)]
struct Slices {
    /// Begin of the first slice.
    from_ns: i64,
    /// Width of a slice.
    #[schemars(extend("minimum" = 1))]
    slice_ns: u64,
    /// Number of slices.
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

/// The numbers of a row, except its slices.
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

/// The number of a state: its index in the list of the JSON part.
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
