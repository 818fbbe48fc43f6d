//! Leaves of recordings the part that is asked for, and says what is left out: `--from`, `--to`, `--vm`, `--vcpu`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use analyses::align::GuestAlignment;
use analyses::machine_names::MachineName;
use analyses::vms::find_vms;
use anyhow::bail;
use printable::messages;
use report::{PartRead, RangeRead, plural};
use sources::{Clock, Recording, TimeRange};
use timeline::event_filter::CpuSet;

use crate::aligned::align_guests;
use crate::args::part::VmArgs;
use crate::misuse::Misuse;
use crate::notice::say;
use crate::seconds::{Seconds, When};

/// A part of recordings; all there is, where it is left open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    from: Option<When>,
    to: Option<When>,
    vms: Vec<String>,
    vcpus: Option<CpuSet>,
}

impl Part {
    pub(crate) fn new(from: Option<When>, to: Option<When>, vms: &VmArgs) -> Self {
        Self { from, to, vms: vms.vm.clone(), vcpus: vms.vcpu.clone() }
    }

    /// What is read, where that is not all.
    pub(crate) fn description(&self) -> Option<String> {
        let range = match (self.from, self.to) {
            (None, None) => None,
            (Some(from), None) => Some(format!("from {from} s")),
            (None, Some(to)) => Some(format!("to {to} s")),
            (Some(from), Some(to)) => Some(format!("{from} to {to} s")),
        };
        let vms = (!self.vms.is_empty()).then(|| format!("VM {}", self.vms.join(", ")));
        let vcpus = self.vcpus.as_ref().map(|vcpus| format!("vCPU {vcpus}"));
        let all: Vec<String> = [range, vms, vcpus].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn has_all_times(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether no VM or vCPU was named.
    pub(crate) fn has_all_vcpus(&self) -> bool {
        self.vms.is_empty() && self.vcpus.is_none()
    }

    /// Reads of recordings whose guests were brought to their hosts' clocks only this part. Drops
    /// recordings of guests that are not asked for.
    ///
    /// # Errors
    /// When there is no such VM or vCPU, or the range ends before it begins.
    pub(crate) fn set(
        &self,
        recordings: &mut Vec<Recording>,
        guests: &mut Vec<GuestAlignment>,
    ) -> anyhow::Result<PartRead> {
        let mut read = self.set_vms(recordings, guests)?;
        read.add(self.set_range(recordings, guests)?);
        Ok(read)
    }

    /// As [`Part::set`], for who reads each recording by its own clock.
    ///
    /// # Errors
    /// As there, and those of aligning guests.
    pub(crate) fn set_on_own_clocks(
        &self,
        recordings: &mut Vec<Recording>,
    ) -> anyhow::Result<PartRead> {
        if self.has_all_times() && self.has_all_vcpus() {
            return Ok(PartRead::default());
        }
        let own = clocks(recordings);
        let mut guests = align_guests(recordings, None)?;
        let read = self.set(recordings, &mut guests)?;
        set_clocks(recordings, &own);
        Ok(read)
    }

    fn set_range(
        &self,
        recordings: &mut [Recording],
        guests: &[GuestAlignment],
    ) -> anyhow::Result<PartRead> {
        let mut read = PartRead::default();
        if self.has_all_times() {
            return Ok(read);
        }
        let whole: Vec<_> = recordings.iter().map(Recording::first_and_last_ns).collect();
        let mut outside = Vec::new();
        for (at, recording) in recordings.iter_mut().enumerate() {
            let aligned = guests.iter().find(|one| one.guest == at && one.chosen.is_some());
            let clock_of = aligned.map_or(at, |one| one.host);
            let own = whole.get(at).copied().flatten();
            let begin_ns = whole.get(clock_of).copied().flatten().or(own).map_or(0, |ends| ends.0);
            let times = self.times(recording, begin_ns)?;
            match own {
                Some(whole) if is_outside(whole, times) => {
                    outside.push(outside_note(recording, whole));
                    read.add_range(RangeRead::nothing(recording.path().display().to_string()));
                }
                Some(whole) => {
                    let range = Left::by(times, whole);
                    range.report(recording);
                    read.add_range(range.of(recording));
                }
                None => {}
            }
            recording.set_range(times);
        }
        if outside.len() == recordings.len() {
            bail!(Misuse(outside.join("; ")));
        }
        outside.iter().for_each(|note| say(note));
        Ok(read)
    }

    /// Leaves out VMs and vCPUs that are not asked for, and recordings of guests that are not.
    ///
    /// # Errors
    /// When there are no such.
    pub(crate) fn set_vms(
        &self,
        recordings: &mut Vec<Recording>,
        guests: &mut Vec<GuestAlignment>,
    ) -> anyhow::Result<PartRead> {
        if self.has_all_vcpus() {
            return Ok(PartRead::default());
        }
        let machines: Vec<MachineName> =
            (0..recordings.len()).map(|at| MachineName::of(at, recordings, guests)).collect();
        let is_wanted = |vm: &String| self.vms.is_empty() || self.vms.contains(vm);
        let (mut seen, mut kept_any, mut dropped) = (BTreeSet::new(), false, Vec::new());
        for (at, (recording, machine)) in recordings.iter_mut().zip(&machines).enumerate() {
            let is_guest = machine.is_guest;
            if is_guest && is_wanted(&machine.name) {
                seen.insert(machine.name.clone());
                continue;
            }
            let is_in = |vcpu| self.vcpus.as_ref().is_none_or(|wanted| wanted.contains(vcpu));
            let Vcpus { vms, left_out, kept } = leave_out_vcpus(recording, is_wanted, is_in);
            seen.extend(vms);
            if kept == 0 && is_guest {
                dropped.push(at);
            } else if left_out > 0 {
                report_vcpus(recording, left_out, kept);
            }
            kept_any |= kept > 0;
        }
        self.refuse_unknown(&seen, kept_any)?;
        dropped.iter().rev().for_each(|at| drop_recording(*at, recordings, guests));
        let vcpus = self.vcpus.as_ref().map(ToString::to_string);
        Ok(PartRead::of_vcpus(self.vms.clone(), vcpus))
    }

    fn refuse_unknown(&self, seen: &BTreeSet<String>, kept_any: bool) -> anyhow::Result<()> {
        if let Some(unknown) = self.vms.iter().find(|vm| !seen.contains(*vm)) {
            let all: Vec<&str> = seen.iter().map(String::as_str).collect();
            bail!("no VM is called {unknown}; there are: {}", all.join(", "));
        }
        if self.vcpus.is_some() && !kept_any {
            bail!("no vCPU has such a number; hyperscope info lists them");
        }
        Ok(())
    }

    /// The same, for who compares recordings: each has a clock of its own.
    ///
    /// # Errors
    /// When a time is by a clock.
    pub(crate) fn for_clocks_of_their_own(self, who: &str) -> anyhow::Result<Self> {
        if [self.from, self.to].into_iter().flatten().any(|one| matches!(one, When::At(_))) {
            bail!(Misuse(format!(
                "{who} compares recordings that have clocks of their own: give times from their \
                 beginnings, such as --from +1.5"
            )));
        }
        Ok(self)
    }

    /// The range on the clock that recordings share whose guests were brought to it: that of the first
    /// which is no guest's. `None`: all times.
    ///
    /// # Errors
    /// When the range ends before it begins.
    pub(crate) fn of_all(
        &self,
        recordings: &[Recording],
        guests: &[GuestAlignment],
    ) -> anyhow::Result<Option<TimeRange>> {
        let is_guest = |at: usize| guests.iter().any(|one| one.guest == at);
        let host = (0..recordings.len()).find(|at| !is_guest(*at)).unwrap_or(0);
        let Some(host) = recordings.get(host).filter(|_| !self.has_all_times()) else {
            return Ok(None);
        };
        self.times(host, host.first_and_last_ns().map_or(0, |ends| ends.0)).map(Some)
    }

    fn times(&self, recording: &Recording, begin_ns: u64) -> anyhow::Result<TimeRange> {
        self.refuse_units_of_ticks(recording)?;
        let unit = if recording.is_nanoseconds() { Seconds::ns } else { |one: Seconds| one.whole };
        let ns = |time: When| match time {
            When::At(time) => unit(time),
            When::FromBeginning(time) => begin_ns.saturating_add(unit(time)),
        };
        let from_ns = self.from.map_or(TimeRange::ALL.from_ns, ns);
        let to_ns = self.to.map_or(TimeRange::ALL.to_ns, ns);
        if from_ns > to_ns {
            bail!(Misuse("--from lies after --to, by the times of the recording".to_owned()));
        }
        Ok(TimeRange { from_ns, to_ns })
    }
}

impl Part {
    /// A clock of ticks has no seconds, nor any other unit.
    fn refuse_units_of_ticks(&self, recording: &Recording) -> anyhow::Result<()> {
        let has_unit = |when: When| when.seconds().has_unit;
        if !recording.is_nanoseconds() && [self.from, self.to].into_iter().flatten().any(has_unit) {
            bail!(Misuse(format!(
                "{}: its clock counts ticks of unknown length: give --from and --to in ticks, without a unit",
                recording.path().display()
            )));
        }
        Ok(())
    }
}

/// vCPUs of a recording.
#[derive(Debug, Default)]
pub(crate) struct Vcpus {
    /// Names of all VMs.
    vms: Vec<String>,
    /// How many are left out.
    left_out: usize,
    /// How many are not.
    kept: usize,
}

/// Leaves out of a recording what vCPUs did that are not wanted, by VM and by number.
pub(crate) fn leave_out_vcpus(
    recording: &mut Recording,
    is_wanted: impl Fn(&String) -> bool,
    is_in: impl Fn(u32) -> bool,
) -> Vcpus {
    let (mut vms, mut left_out, mut kept) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    for vm in find_vms(recording, &|_| ()) {
        for vcpu in &vm.vcpus {
            if is_in(vcpu.vcpu) && is_wanted(&vm.name) {
                kept.insert(vcpu.thread, (vm.name.clone(), vcpu.vcpu));
            } else {
                left_out.insert(vcpu.thread);
            }
        }
        vms.push(vm.name);
    }
    let vcpus = Vcpus { vms, left_out: left_out.len(), kept: kept.len() };
    recording.leave_out_vcpus(left_out, kept);
    vcpus
}

/// Drops a recording, and what was known of it as a guest.
fn drop_recording(at: usize, recordings: &mut Vec<Recording>, guests: &mut Vec<GuestAlignment>) {
    let dropped = recordings.remove(at);
    let path = dropped.path().display();
    let _ = writeln!(messages(), "hyperscope: {path}: left out: it is of another guest");
    guests.retain(|one| one.guest != at && one.host != at);
    for guest in guests {
        guest.guest -= usize::from(guest.guest > at);
        guest.host -= usize::from(guest.host > at);
    }
}

/// The clocks of recordings as they are now, by their paths.
pub(crate) fn clocks(recordings: &[Recording]) -> Vec<(PathBuf, Clock)> {
    recordings.iter().map(|one| (one.path().to_owned(), one.clock())).collect()
}

/// Sets clocks as [`clocks`] gave them.
pub(crate) fn set_clocks(recordings: &mut [Recording], clocks: &[(PathBuf, Clock)]) {
    let of = |path: &Path| clocks.iter().find(|(other, _)| other == path);
    for recording in recordings {
        if let Some((_, clock)) = of(recording.path()) {
            recording.set_clock(clock.clone());
        }
    }
}

/// Reports on standard error how many vCPUs of a recording are left out.
fn report_vcpus(recording: &Recording, left_out: usize, kept: usize) {
    let path = recording.path().display();
    let of = plural((left_out + kept) as u64, "vCPU");
    let _ = writeln!(messages(), "hyperscope: {path}: left out: exits of {left_out} of {of}");
}

/// Whether nothing between the first and the last event lies in a range.
fn is_outside((first_ns, last_ns): (u64, u64), times: TimeRange) -> bool {
    last_ns < times.from_ns || first_ns >= times.to_ns
}

fn outside_note(recording: &Recording, (first_ns, last_ns): (u64, u64)) -> String {
    let (first, last) = (shown(recording, first_ns), shown(recording, last_ns));
    let path = recording.path().display();
    format!("{path}: nothing of it lies in this range: it goes from {first} to {last}")
}

/// A moment by the recording's clock.
fn shown(recording: &Recording, ns: u64) -> String {
    match recording.is_nanoseconds() {
        true => format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000),
        false => format!("{ns} ticks"),
    }
}

/// What a range of time leaves of a recording.
#[derive(Clone, Copy, Debug)]
struct Left {
    from_ns: u64,
    to_ns: u64,
    before_ns: u64,
    after_ns: u64,
}

impl Left {
    fn by(times: TimeRange, (first_ns, last_ns): (u64, u64)) -> Self {
        Self {
            from_ns: times.from_ns.max(first_ns),
            to_ns: times.to_ns.min(last_ns.saturating_add(1)),
            before_ns: times.from_ns.saturating_sub(first_ns),
            after_ns: last_ns.saturating_add(1).saturating_sub(times.to_ns),
        }
    }

    fn of(self, recording: &Recording) -> RangeRead {
        let Self { from_ns, to_ns, before_ns, after_ns } = self;
        let source = recording.path().display().to_string();
        let is_nanoseconds = recording.is_nanoseconds();
        RangeRead::new(source, is_nanoseconds, (from_ns, to_ns), (before_ns, after_ns))
    }

    /// Says on standard error what is read and what is left out.
    fn report(self, recording: &Recording) {
        let length = |ns| report::time(ns, recording.is_nanoseconds());
        let _ = writeln!(
            messages(),
            "hyperscope: {}: read from {} to {}; left out: {} before it, {} after it",
            recording.path().display(),
            shown(recording, self.from_ns),
            shown(recording, self.to_ns),
            length(self.before_ns),
            length(self.after_ns),
        );
    }
}
