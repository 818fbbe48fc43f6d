//! A machine's own tables, which locate its addresses.

use ftrace::eventfmt::Kallsyms;

use crate::files::MappedFile;
use crate::processes::Processes;

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// An address in the machine's kernel.
    Kernel(u64),
    /// An offset in a file that a process mapped, independent of the address.
    File {
        /// Index in the machine's [`Files`](crate::Files).
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// A user-space address that is in no known file.
    User(u64),
}

/// A machine: its kernel's symbols and its processes' mappings.
#[derive(Clone, Debug)]
pub struct Machine<'k> {
    pub(crate) kernel: &'k Kallsyms,
    pub(crate) processes: Processes,
    pub(crate) is_here: bool,
}

impl<'k> Machine<'k> {
    /// The machine that this program runs on: files are also searched at their mapped paths, and
    /// used if they have the recorded build ids.
    #[must_use]
    pub const fn here(kernel: &'k Kallsyms, processes: Processes) -> Self {
        Self { kernel, processes, is_here: true }
    }

    /// Another machine, such as a guest: its paths are not valid here and are not opened.
    #[must_use]
    pub const fn elsewhere(kernel: &'k Kallsyms, processes: Processes) -> Self {
        Self { kernel, processes, is_here: false }
    }

    /// Sets other symbols for its kernel.
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

    /// The place for an address of its kernel.
    #[must_use]
    pub const fn kernel_place(&self, address: u64) -> Place {
        Place::Kernel(address)
    }

    /// The place for an address of a process at a time in nanoseconds.
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
