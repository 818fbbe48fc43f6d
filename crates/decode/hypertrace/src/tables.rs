//! Tables that resolve short numbers in a stream.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::Task;

/// Slot of the idle task of each CPU.
const IDLE_SLOT: u8 = 0;
/// Priority of the idle task in `sched_switch`.
const IDLE_PRIO: i16 = 120;

/// Maximum bytes of a name; only a malicious guest sends more.
const NAME_BYTES: usize = 120;
/// Maximum functions with names.
const MAX_NAMES: usize = 1 << 16;

/// Function names by address, for the lifetime of a stream.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<u64, Arc<str>>,
    /// Parts of the name of the function at this address.
    open: Vec<u8>,
    open_for: Option<u64>,
}

impl Names {
    /// Adds a part of the name of the function at an address.
    pub(crate) fn piece(&mut self, address: u64, piece: &[u8], more: bool) {
        if self.open_for != Some(address) {
            self.open.clear();
        }
        self.open_for = Some(address);
        self.open.extend_from_slice(piece);
        self.open.truncate(NAME_BYTES);
        if !more {
            if self.known.len() < MAX_NAMES {
                self.known.insert(address, String::from_utf8_lossy(&self.open).into());
            }
            self.forget_pieces();
        }
    }

    /// Parts may be missing from here on.
    pub(crate) fn forget_pieces(&mut self) {
        self.open.clear();
        self.open_for = None;
    }

    pub(crate) fn get(&self, address: Option<u64>) -> Option<Arc<str>> {
        self.known.get(&address?).cloned()
    }
}

/// The fixed-size tables of a stream.
#[derive(Debug)]
pub(crate) struct Tables {
    tasks: [Option<Task>; 64],
    functions: [Option<u64>; 128],
    irqs: Box<[[u8; 16]; 256]>,
}

impl Tables {
    /// The state at the start of a stream on a CPU: only the idle task is known.
    pub(crate) fn new(cpu: u16) -> Self {
        let mut tables =
            Self { tasks: [None; 64], functions: [None; 128], irqs: Box::new([[0; 16]; 256]) };
        tables.set_task(IDLE_SLOT, Task::new(0, IDLE_PRIO, format!("swapper/{cpu}").as_bytes()));
        tables
    }

    pub(crate) fn set_task(&mut self, slot: u8, task: Task) {
        if let Some(place) = self.tasks.get_mut(usize::from(slot)) {
            *place = Some(task);
        }
    }

    pub(crate) fn task(&self, slot: u8) -> Option<Task> {
        self.tasks.get(usize::from(slot)).copied().flatten()
    }

    pub(crate) fn set_function(&mut self, slot: u8, address: u64) {
        if let Some(place) = self.functions.get_mut(usize::from(slot)) {
            *place = Some(address);
        }
    }

    pub(crate) fn function(&self, slot: u8) -> Option<u64> {
        self.functions.get(usize::from(slot)).copied().flatten()
    }

    pub(crate) fn set_irq(&mut self, irq: u8, name: [u8; 16]) {
        if let Some(place) = self.irqs.get_mut(usize::from(irq)) {
            *place = name;
        }
    }

    /// The interrupt's name, or zeros.
    pub(crate) fn irq(&self, irq: u32) -> [u8; 16] {
        let name = usize::try_from(irq).ok().and_then(|irq| self.irqs.get(irq));
        name.copied().unwrap_or_default()
    }
}
