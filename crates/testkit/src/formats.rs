//! Event formats as a kernel of a given architecture exports them.

use raw_bytes::Abi;

use crate::event::EventBuilder;
use crate::format::Format;
use crate::machine::Machine;
use crate::shapes::{self, Shape};
use crate::{bytes, layout};

/// Id of the first event; ids of real kernels are just as arbitrary.
const FIRST_ID: u16 = 301;

const COMMON_FIELDS: &[(&str, &str)] = &[
    ("unsigned short", "common_type"),
    ("unsigned char", "common_flags"),
    ("unsigned char", "common_preempt_count"),
    ("int", "common_pid"),
];

/// Text of `events/header_event`, the same on every machine.
pub const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

/// The event formats of a test kernel: KVM of one architecture, sched, irq.
#[derive(Clone, Debug)]
pub struct KernelFormats {
    machine: Machine,
    abi: Abi,
    all: Vec<Format>,
}

impl KernelFormats {
    /// The formats of `machine`, laid out for the long size of `abi`.
    #[must_use]
    pub fn new(machine: Machine, abi: Abi) -> Self {
        Self { machine, abi, all: Vec::new() }.with(shapes::for_machine(machine))
    }

    /// Adds the events of system calls and signals.
    #[must_use]
    pub fn with_syscalls(self) -> Self {
        self.with(shapes::RAW_SYSCALLS.iter())
    }

    /// Adds the events of x86's own interrupt vectors.
    #[must_use]
    pub fn with_vectors(self) -> Self {
        self.with(shapes::IRQ_VECTORS.iter())
    }

    fn with(mut self, shapes: impl Iterator<Item = &'static Shape>) -> Self {
        let (machine, abi) = (self.machine, self.abi);
        let common = layout::fields(machine, abi, 0, COMMON_FIELDS);
        let format = |(shape, id): (&Shape, u16)| Format {
            system: shape.system,
            name: shape.name,
            id,
            common: common.clone(),
            fields: layout::fields(machine, abi, 8, shape.fields),
            print: shape.print,
        };
        let first = self.all.last().map_or(FIRST_ID, |last| last.id + 1);
        self.all.extend(shapes.zip(first..).map(format));
        self
    }

    /// Byte order and long size of the machine.
    #[must_use]
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// All formats, grouped by system.
    #[must_use]
    pub fn all(&self) -> &[Format] {
        &self.all
    }

    /// The format of the event `name`; panics if it does not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> &Format {
        self.all
            .iter()
            .find(|format| format.name == name)
            .unwrap_or_else(|| panic!("no event `{name}` on this machine"))
    }

    /// Removes `field` from the event `name`, as in older kernels. Panics if the event or the field
    /// does not exist.
    #[must_use]
    pub fn without(mut self, name: &str, field: &str) -> Self {
        let format = self
            .all
            .iter_mut()
            .find(|format| format.name == name && format.field(field).is_some())
            .unwrap_or_else(|| panic!("no event `{name}` has a field `{field}`"));
        format.fields.retain(|other| other.name != field);
        self
    }

    /// Removes the event `name`.
    #[must_use]
    pub fn without_event(mut self, name: &str) -> Self {
        self.all.retain(|format| format.name != name);
        self
    }

    /// Begins a record of the event `name`; panics if the event does not exist.
    #[must_use]
    pub fn event(&self, name: &str) -> EventBuilder<'_> {
        EventBuilder::new(self.abi, self.get(name))
    }

    /// Systems with their format texts, as a recording stores them.
    #[must_use]
    pub fn systems(&self) -> Vec<(&'static str, Vec<String>)> {
        let mut systems: Vec<(&'static str, Vec<String>)> = Vec::new();
        for format in &self.all {
            match systems.last_mut() {
                Some((system, texts)) if *system == format.system => texts.push(format.text()),
                _ => systems.push((format.system, vec![format.text()])),
            }
        }
        systems
    }

    /// Text of `events/header_page` for pages of `page_size` bytes.
    #[must_use]
    pub fn header_page(&self, page_size: usize) -> String {
        let long = bytes::long_bytes(self.abi);
        let data = 8 + long;
        let room = page_size - data;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{room};\tsigned:1;\n"
        )
    }
}
