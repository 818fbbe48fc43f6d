//! The shared part of rows of all tables.

use analyses::vmm::VmmExits;
use timeline::Detail;
use timeline::reasons::Code;

use super::VmmSource;
use crate::column::{self, Cell};

/// A row, with its recording.
#[derive(Debug)]
pub(super) struct Row<'r, T> {
    pub(super) source: &'r VmmSource,
    pub(super) subject: &'r T,
}

impl<T> column::Row for Row<'_, T> {
    fn is_nanoseconds(&self) -> bool {
        self.source.vmm.nanoseconds
    }
}

/// The meaning of the number that distinguishes exits of one reason.
pub(super) fn kind(about: Option<(Detail, u64)>) -> Option<&'static str> {
    about.map(|(detail, _)| match detail {
        Detail::Msr => "msr",
        Detail::Port => "port",
        Detail::Gpa => "gpa",
        Detail::Hypercall => "hypercall",
        Detail::CpuidLeaf => "cpuid_leaf",
        Detail::VmcbClean => "vmcb_clean",
    })
}

/// The same with the number and the device, for text.
pub(super) fn address(group: &VmmExits) -> String {
    let address = match group.about {
        Some((Detail::Gpa, value)) => format!("{value:#x}"),
        Some((_, value)) => format!("{} {value:#x}", kind(group.about).unwrap_or_default()),
        None => "-".to_owned(),
    };
    match &group.device {
        Some(device) => format!("{address} ({device})"),
        None => address,
    }
}

/// Exits by their reason and number, without repeated words.
pub(super) fn exits(group: &VmmExits) -> String {
    match group.about {
        Some(_) if kind(group.about) == Some(&group.reason) => address(group),
        Some(_) => format!("{} {}", group.reason, address(group)),
        None => group.reason.clone(),
    }
}

/// A raw code.
pub(super) fn code(code: &Code) -> Cell {
    match code {
        Code::Number(code) => Cell::Number(Some(*code)),
        pair @ Code::Pair(..) => Cell::Text(Some(pair.to_string())),
        Code::NotRecorded => Cell::Text(None),
    }
}

/// A thread for text.
pub(super) fn thread(thread: &analyses::vmm::NamedThread) -> String {
    match &thread.name {
        Some(name) => format!("{name} ({})", thread.tid),
        None => thread.tid.to_string(),
    }
}
