//! Names in a recording: of threads, kernel symbols and format strings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use ftrace::eventfmt::{Kallsyms, PrintkFormats};
use sys::FileMap;
use tracedat::{Cmdlines, Section};

use crate::perf_data::running_kernel::RecordedKernel;

/// A text of a recording, which can have megabytes.
#[derive(Debug, Default)]
pub(crate) enum Text {
    /// There is no text.
    #[default]
    Missing,
    /// In memory.
    Here(Vec<u8>),
    /// In the recording's first file.
    InFile(Section),
    /// From the running kernel, if it is the recorded one.
    OfRunningKernel(RecordedKernel),
}

impl Text {
    pub(crate) fn in_file(section: Option<&Section>) -> Self {
        section.cloned().map_or(Self::Missing, Self::InFile)
    }

    /// The content; empty if it cannot be read: with a damaged symbol table, symbols have no names
    /// but events are readable.
    pub(crate) fn read<'t>(&'t self, file: Option<&'t FileMap>) -> Cow<'t, [u8]> {
        match (self, file) {
            (Self::Here(text), _) => Cow::Borrowed(text),
            (Self::InFile(section), Some(file)) => section.read(file).unwrap_or_default(),
            (Self::OfRunningKernel(kernel), _) => kernel.kallsyms().unwrap_or_default().into(),
            _ => Cow::Borrowed(&[]),
        }
    }
}

/// Thread names that are only in events; collecting them takes as long as reading the events.
pub(crate) trait ThreadNames: Debug + Send + Sync {
    /// All thread names.
    fn all(&self) -> Cmdlines;
}

/// Names in a recording; texts are read on first use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    cmdlines: OnceLock<Cmdlines>,
    in_events: Option<Arc<dyn ThreadNames>>,
    pub(crate) kallsyms_text: Text,
    pub(crate) printk_text: Text,
    kallsyms: OnceLock<Kallsyms>,
    printk: OnceLock<PrintkFormats>,
    /// Symbols of a guest of the recorded machine.
    pub(crate) guest_kallsyms: Option<Kallsyms>,
    /// The user's names for VMs, by the names in the recording.
    pub(crate) vms: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn new(cmdlines: Cmdlines, kallsyms_text: Text, printk_text: Text) -> Self {
        Self { cmdlines: cmdlines.into(), kallsyms_text, printk_text, ..Self::default() }
    }

    /// Names that are only in events.
    pub(crate) fn of_events(in_events: Arc<dyn ThreadNames>) -> Self {
        Self { in_events: Some(in_events), ..Self::default() }
    }

    /// Thread names.
    pub(crate) fn cmdlines(&self) -> &Cmdlines {
        self.cmdlines.get_or_init(|| {
            self.in_events.as_ref().map(|in_events| in_events.all()).unwrap_or_default()
        })
    }

    pub(crate) fn kallsyms(&self, file: Option<&FileMap>) -> &Kallsyms {
        self.kallsyms.get_or_init(|| Kallsyms::parse(&self.kallsyms_text.read(file)))
    }

    pub(crate) fn printk(&self, file: Option<&FileMap>) -> &PrintkFormats {
        self.printk.get_or_init(|| PrintkFormats::parse(&self.printk_text.read(file)))
    }
}
