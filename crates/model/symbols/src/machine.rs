//! A machine's own tables, and the names that they give its addresses.

use ftrace::eventfmt::Kallsyms;

use crate::files::MappedFile;
use crate::processes::Processes;

/// Where code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// At an address of the machine's kernel.
    Kernel(u64),
    /// In a file that a process mapped: the same whatever the address was.
    File {
        /// Its number in the machine's [`Files`](crate::Files).
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// At an address of user space of which no more is known.
    User(u64),
}

/// A machine: its kernel's symbols, its processes' mappings.
#[derive(Clone, Debug)]
pub struct Machine<'k> {
    pub(crate) kernel: &'k Kallsyms,
    pub(crate) processes: Processes,
    pub(crate) is_here: bool,
}

impl<'k> Machine<'k> {
    /// The machine that this program runs on: files are also looked for at the paths they were mapped from, and
    /// taken where their build ids are those recorded.
    #[must_use]
    pub const fn here(kernel: &'k Kallsyms, processes: Processes) -> Self {
        Self { kernel, processes, is_here: true }
    }

    /// Another machine, such as a guest: its paths mean nothing here and are not opened.
    #[must_use]
    pub const fn elsewhere(kernel: &'k Kallsyms, processes: Processes) -> Self {
        Self { kernel, processes, is_here: false }
    }

    /// Names its kernel's code by these symbols from now on.
    pub const fn set_kernel(&mut self, kernel: &'k Kallsyms) {
        self.kernel = kernel;
    }

    /// Its kernel's symbols.
    #[must_use]
    pub const fn kernel(&self) -> &'k Kallsyms {
        self.kernel
    }

    /// Its processes' mappings.
    #[must_use]
    pub const fn processes(&self) -> &Processes {
        &self.processes
    }

    /// The place at an address of its kernel.
    #[must_use]
    pub const fn kernel_place(&self, address: u64) -> Place {
        Place::Kernel(address)
    }

    /// The place at an address of a process at a time in nanoseconds.
    #[must_use]
    pub fn user_place(&self, pid: u32, time_ns: u64, address: u64) -> Place {
        match self.processes.find(pid, time_ns, address) {
            Some((file, offset)) => Place::File { file, offset },
            None => Place::User(address),
        }
    }

    /// The file of a place.
    #[must_use]
    pub fn file(&self, place: Place) -> Option<&MappedFile> {
        match place {
            Place::File { file, .. } => self.processes.files().get(file),
            _ => None,
        }
    }
}
