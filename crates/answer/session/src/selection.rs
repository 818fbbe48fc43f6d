//! Applies `--from`, `--to`, `--vm` and `--vcpu`: keeps the requested part of recordings and reports what is left
//! out.

mod range_coverage;

use std::collections::{BTreeMap, BTreeSet};

use analyses::align::Method;
use analyses::machine_names::MachineName;
use analyses::view::View;
use analyses::vms::find_vms;
use anyhow::bail;
use report::{RangeRead, SelectionRead, plural};
use sources::{Recording, TimeRange};
use timeline::event_filter::CpuSet;

use self::range_coverage::{RangeCoverage, is_outside, outside_note};
use crate::opened::Session;
use crate::seconds::{Seconds, When};
use crate::{Misuse, say};

/// A part of recordings; an empty selection is everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    from: Option<When>,
    to: Option<When>,
    vms: Vec<String>,
    vcpus: Option<CpuSet>,
}

impl Session {
    /// Reads only a part of the recordings, with guests on their hosts' clocks.
    ///
    /// # Errors
    /// As those of [`Session::align`]; when a VM or vCPU does not exist, or the range ends before it begins.
    pub fn select_on_host_clock(
        &mut self,
        selection: &Selection,
        method: Option<Method>,
    ) -> anyhow::Result<()> {
        self.align(method)?;
        self.select(selection)
    }

    /// Reads only a part of the recordings, each on its own clock; a range of time is on the clock of the hosts.
    ///
    /// # Errors
    /// As those of [`Session::select_on_host_clock`].
    pub fn select_on_own_clocks(&mut self, selection: &Selection) -> anyhow::Result<()> {
        if selection.is_all() {
            return Ok(());
        }
        self.select_on_host_clock(selection, None)?;
        self.use_own_clocks();
        self.guests.clear();
        self.clocks.clear();
        Ok(())
    }

    /// Reads only a part of the recordings, on their current clocks.
    ///
    /// # Errors
    /// When a VM or vCPU does not exist, or the range ends before it begins.
    pub fn select(&mut self, selection: &Selection) -> anyhow::Result<()> {
        self.select_vms(selection)?;
        let range = selection.set_range(self)?;
        self.part.add(range);
        Ok(())
    }

    /// Leaves out VMs and vCPUs that are not selected, and recordings of such guests.
    ///
    /// # Errors
    /// When a VM or vCPU does not exist.
    pub fn select_vms(&mut self, selection: &Selection) -> anyhow::Result<()> {
        let vms = selection.set_vms(self)?;
        self.part.add(vms);
        Ok(())
    }

    /// Leaves out the vCPUs of other VMs in a recording.
    pub fn keep_vms(&mut self, at: usize, vms: &[String]) {
        if let Some(recording) = self.recordings.get_mut(at) {
            exclude_vcpus(recording, |vm| vms.contains(vm), |_| true);
        }
    }

    /// Skips blocks outside the times in all recordings.
    pub fn keep_times(&mut self, times: TimeRange) {
        self.recordings.iter_mut().for_each(|recording| recording.set_range(times));
    }
}

impl Selection {
    /// A range of times.
    #[must_use]
    pub fn of_times(from: Option<When>, to: Option<When>) -> Self {
        Self { from, to, ..Self::default() }
    }

    /// The same times, for these VMs and vCPUs only; empty: all.
    #[must_use]
    pub fn of_vms(self, vms: Vec<String>, vcpus: Option<CpuSet>) -> Self {
        Self { vms, vcpus, ..self }
    }

    /// The same times, for all VMs and vCPUs.
    #[must_use]
    pub fn times_alone(&self) -> Self {
        Self::of_times(self.from, self.to)
    }

    /// The selected part in words; `None` if it is everything.
    #[must_use]
    pub fn description(&self) -> Option<String> {
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

    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.has_all_times() && self.has_all_vcpus()
    }

    const fn has_all_times(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether no VM or vCPU was named.
    #[must_use]
    pub fn has_all_vcpus(&self) -> bool {
        self.vms.is_empty() && self.vcpus.is_none()
    }

    /// Limits the reading of a session's recordings to the range of time.
    ///
    /// # Errors
    /// When the range ends before it begins, or no event lies in it.
    pub(crate) fn set_range(&self, session: &mut Session) -> anyhow::Result<SelectionRead> {
        let mut read = SelectionRead::default();
        if self.has_all_times() {
            return Ok(read);
        }
        let Session { recordings, guests, .. } = session;
        let extents: Vec<_> = recordings.iter().map(Recording::first_and_last_ns).collect();
        let mut outside = Vec::new();
        for (at, recording) in recordings.iter_mut().enumerate() {
            let aligned = guests.iter().find(|guest| guest.guest == at && guest.chosen.is_some());
            let clock_of = aligned.map_or(at, |guest| guest.host);
            let recorded = extents.get(at).copied().flatten();
            let begin_ns =
                extents.get(clock_of).copied().flatten().or(recorded).map_or(0, |ends| ends.0);
            let times = self.times(recording, begin_ns)?;
            match recorded {
                Some(extent) if is_outside(extent, times) => {
                    outside.push(outside_note(recording, extent));
                    read.add_range(RangeRead::nothing(recording.path().display().to_string()));
                }
                Some(extent) => {
                    let range = RangeCoverage::by(times, extent);
                    range.report(recording);
                    read.add_range(range.to_range_read(recording));
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

    /// Leaves out VMs and vCPUs that are not selected, and recordings of such guests.
    ///
    /// # Errors
    /// When a VM or vCPU does not exist.
    pub(crate) fn set_vms(&self, session: &mut Session) -> anyhow::Result<SelectionRead> {
        if self.has_all_vcpus() {
            return Ok(SelectionRead::default());
        }
        let machines: Vec<MachineName> = session.view().machines().collect();
        let is_wanted = |vm: &String| self.vms.is_empty() || self.vms.contains(vm);
        let (mut seen, mut kept_any, mut dropped) = (BTreeSet::new(), false, Vec::new());
        for (at, (recording, machine)) in session.recordings.iter_mut().zip(&machines).enumerate() {
            let is_guest = machine.is_guest;
            if is_guest && is_wanted(&machine.name) {
                seen.insert(machine.name.clone());
                continue;
            }
            let is_in = |vcpu| self.vcpus.as_ref().is_none_or(|wanted| wanted.contains(vcpu));
            let Vcpus { vms, left_out, remaining } = exclude_vcpus(recording, is_wanted, is_in);
            seen.extend(vms);
            if remaining == 0 && is_guest {
                dropped.push(at);
            } else if left_out > 0 {
                report_vcpus(recording, left_out, remaining);
            }
            kept_any |= remaining > 0;
        }
        self.refuse_unknown(&seen, kept_any)?;
        dropped.iter().rev().for_each(|at| session.drop_recording(*at));
        let vcpus = self.vcpus.as_ref().map(ToString::to_string);
        Ok(SelectionRead::of_vcpus(self.vms.clone(), vcpus))
    }

    fn refuse_unknown(&self, seen: &BTreeSet<String>, kept_any: bool) -> anyhow::Result<()> {
        if let Some(unknown) = self.vms.iter().find(|vm| !seen.contains(*vm)) {
            let all: Vec<&str> = seen.iter().map(String::as_str).collect();
            bail!("no VM is called {unknown}; the VMs are: {}", all.join(", "));
        }
        if self.vcpus.is_some() && !kept_any {
            bail!("no vCPU has one of these numbers; hyperscope info lists the vCPUs");
        }
        Ok(())
    }

    /// The same selection for a comparison of recordings, each of which has its own clock.
    ///
    /// # Errors
    /// When a time is on a recording's clock, and not from its beginning.
    pub fn for_clocks_of_their_own(self, who: &str) -> anyhow::Result<Self> {
        if [self.from, self.to].into_iter().flatten().any(|time| matches!(time, When::At(_))) {
            bail!(Misuse(format!(
                "{who} compares recordings with different clocks: give times relative to their beginnings, such as --from +1.5"
            )));
        }
        Ok(self)
    }

    /// The range on the common clock of aligned recordings: that of the first recording that is not a guest's.
    /// `None`: all times.
    ///
    /// # Errors
    /// When the range ends before it begins.
    pub fn range_of(&self, view: View<'_>) -> anyhow::Result<Option<TimeRange>> {
        let mut all = 0..view.recordings.len();
        let host = all.find(|at| view.alignment(*at).is_none()).unwrap_or(0);
        let Some(host) = view.recordings.get(host).filter(|_| !self.has_all_times()) else {
            return Ok(None);
        };
        self.times(host, host.first_and_last_ns().map_or(0, |ends| ends.0)).map(Some)
    }

    fn times(&self, recording: &Recording, begin_ns: u64) -> anyhow::Result<TimeRange> {
        self.refuse_units_of_ticks(recording)?;
        let unit = if recording.is_nanoseconds() {
            Seconds::ns
        } else {
            |seconds: Seconds| seconds.integer
        };
        let ns = |time: When| match time {
            When::At(time) => unit(time),
            When::FromBeginning(time) => begin_ns.saturating_add(unit(time)),
        };
        let from_ns = self.from.map_or(TimeRange::ALL.from_ns, ns);
        let to_ns = self.to.map_or(TimeRange::ALL.to_ns, ns);
        if from_ns > to_ns {
            bail!(Misuse("--from is later than --to on the recording's clock".to_owned()));
        }
        Ok(TimeRange { from_ns, to_ns })
    }
}

impl Selection {
    /// Refuses units of time if the clock counts ticks.
    fn refuse_units_of_ticks(&self, recording: &Recording) -> anyhow::Result<()> {
        let has_unit = |when: When| when.seconds().has_unit;
        if !recording.is_nanoseconds() && [self.from, self.to].into_iter().flatten().any(has_unit) {
            bail!(Misuse(format!(
                "{}: the clock counts ticks of unknown length: give --from and --to in ticks, without a unit",
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
    /// Number of vCPUs that are left out.
    left_out: usize,
    /// Number of vCPUs that remain.
    remaining: usize,
}

/// Leaves out the vCPUs of a recording that are not selected by VM and number.
pub(crate) fn exclude_vcpus(
    recording: &mut Recording,
    is_wanted: impl Fn(&String) -> bool,
    is_in: impl Fn(u32) -> bool,
) -> Vcpus {
    let (mut vms, mut left_out, mut remaining) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    for vm in find_vms(recording, &|_| ()) {
        for vcpu in &vm.vcpus {
            if is_in(vcpu.vcpu) && is_wanted(&vm.name) {
                remaining.insert(vcpu.thread, (vm.name.clone(), vcpu.vcpu));
            } else {
                left_out.insert(vcpu.thread);
            }
        }
        vms.push(vm.name);
    }
    let vcpus = Vcpus { vms, left_out: left_out.len(), remaining: remaining.len() };
    recording.exclude_vcpus(left_out, remaining);
    vcpus
}

/// Reports on standard error how many vCPUs of a recording are left out.
fn report_vcpus(recording: &Recording, left_out: usize, remaining: usize) {
    let path = recording.path().display();
    let total = plural((left_out + remaining) as u64, "vCPU");
    say(&format!("{path}: left out: exits of {left_out} of {total}"));
}
