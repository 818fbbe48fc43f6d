//! A row of the CPU report: a user of CPUs, and its report.

use analyses::cpu::{HostCpuUse, StateTimes, TakenCpu, TaskUse, ThreadUse, VcpuUse, VmUse};
use analyses::states::{GuestEventKinds, Part};

use super::CpuReport;
use super::known::RecordedEvents;
use crate::column::{self, Column};

/// The parts that threads play for VMs.
pub(super) const PARTS: [Part; 4] = [Part::Vcpu, Part::Vmm, Part::Vhost, Part::Kvm];

/// A user of CPUs, with the report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r, T> {
    pub(super) report: &'r CpuReport,
    pub(super) subject: &'r T,
}

impl<T> column::Row for Row<'_, T> {
    fn is_nanoseconds(&self) -> bool {
        self.report.cpu.nanoseconds
    }
}

/// A user whose recording is known.
pub(super) trait OfRecording {
    /// The index of the recording.
    fn recording(&self) -> usize;
}

pub(super) fn source<'r, T: OfRecording>(table: &'static str, several: bool) -> Column<Row<'r, T>> {
    let help = "Path of the recording, as given.";
    let column = Column::text(("source", "recording"), help, |row: &Row<'r, T>| {
        Some(row.report.source(row.subject.recording()).to_owned())
    });
    if several { column.shown(table, 1) } else { column }
}

/// A user whose time is divided into states.
pub(super) trait InStates: Sized {
    fn times(&self) -> &StateTimes;
    /// The events recorded about it.
    fn known(row: &Row<'_, Self>) -> RecordedEvents;
}

macro_rules! of_recording {
    ($($of:ty),*) => {
        $(impl OfRecording for $of {
            fn recording(&self) -> usize {
                self.recording
            }
        })*
    };
}

of_recording!(VmUse, VcpuUse, TakenCpu, ThreadUse, TaskUse, HostCpuUse);

/// The states that a host's recording shows, combined with those from its guest's events.
fn known_of_host<T: OfRecording>(
    row: &Row<'_, T>,
    guest: Option<GuestEventKinds>,
) -> RecordedEvents {
    RecordedEvents { host: row.report.cpu.recorded.get(row.subject.recording()).copied(), guest }
}

impl InStates for VmUse {
    fn times(&self) -> &StateTimes {
        &self.times
    }

    fn known(row: &Row<'_, Self>) -> RecordedEvents {
        known_of_host(row, row.subject.guest_known_ns.map(|_| row.subject.guest_events))
    }
}

impl InStates for VcpuUse {
    fn times(&self) -> &StateTimes {
        &self.times
    }

    fn known(row: &Row<'_, Self>) -> RecordedEvents {
        known_of_host(row, row.subject.guest_known_ns.map(|_| row.subject.guest_events))
    }
}

impl InStates for TaskUse {
    fn times(&self) -> &StateTimes {
        &self.times
    }

    /// Its guest's recording shows a guest's thread, and so does the host's if there is one.
    fn known(row: &Row<'_, Self>) -> RecordedEvents {
        let (cpu, recording) = (&row.report.cpu, row.subject.recording);
        let pair = cpu.guests.iter().find(|(guest, ..)| *guest == recording);
        let placed = cpu.placed.iter().any(|(guest, _)| *guest == recording);
        let host = pair.filter(|_| placed).and_then(|(_, host, _)| cpu.recorded.get(*host));
        RecordedEvents { host: host.copied(), guest: Some(row.subject.guest_events) }
    }
}
