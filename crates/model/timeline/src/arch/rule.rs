//! The rule for an event: its meaning, and the fields that it uses.

use ftrace::eventfmt::EventFormat;

use crate::thread_event::Kind;
use crate::trace_events::TraceEvent;

/// Index of the field for the event's `value`: an exit's code, an entry's vCPU id, a time.
pub const VALUE: usize = 0;
/// Index of the field for the event's `flag`: an exit's `isa`.
pub const FLAG: usize = 1;
/// Index of the field with the id of the thread that the event concerns. Without it, this is the
/// thread that ran (`common_pid`).
pub const THREAD: usize = 2;
/// Index of the field with the guest's program counter at an exit, if requested. Exits have no
/// [`THREAD`] field, so the index is free.
pub(crate) const GUEST_PC_AT: usize = THREAD;
/// Index of the field that decides whether the event counts.
pub(crate) const ONLY_IF: usize = 3;
/// Index of the field for the bits above the low 32 bits of `value`.
pub const HIGH: usize = 4;

/// Field names of the guest's program counter: x86 (`guest_rip`, before 5.10 `rip`), arm64, RISC-V,
/// IBM Z, and the others.
const GUEST_PC: &str = "guest_rip|rip|vcpu_pc|sepc|pswaddr|pc";

/// The meaning of an event. Among field names separated by `|`, the first that the recording's
/// format has is used.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// `system:name`, or a name in any system.
    pub(super) event: &'static str,
    pub(crate) kind: Kind,
    fields: [&'static str; 5],
    /// The same fields, with the guest's program counter of an exit.
    fields_with_pc: [&'static str; 5],
    /// If the event has a field at [`ONLY_IF`], it counts only with this value.
    pub(crate) only_if: u64,
}

impl Rule {
    /// Any work of the host in a thread's context.
    pub(crate) const HOST_WORK: Self = Self::new("", Kind::HostWork);

    pub(super) const fn new(event: &'static str, kind: Kind) -> Self {
        let mut fields_with_pc = [""; 5];
        if matches!(kind, Kind::Exit) {
            fields_with_pc[GUEST_PC_AT] = GUEST_PC;
        }
        Self { event, kind, fields: [""; 5], fields_with_pc, only_if: 0 }
    }

    /// An event whose field `value` distinguishes exits with the same reason.
    pub(super) const fn detail(event: &'static str, value: &'static str) -> Self {
        Self::new(event, Kind::Detail).value(value)
    }

    pub(super) const fn value(self, names: &'static str) -> Self {
        self.with(VALUE, names)
    }

    pub(super) const fn flag(self, names: &'static str) -> Self {
        self.with(FLAG, names)
    }

    pub(super) const fn thread(self, names: &'static str) -> Self {
        self.with(THREAD, names)
    }

    pub(super) const fn high(self, names: &'static str) -> Self {
        self.with(HIGH, names)
    }

    pub(super) const fn only_if(self, names: &'static str, value: u64) -> Self {
        Self { only_if: value, ..self.with(ONLY_IF, names) }
    }

    const fn with(mut self, place: usize, names: &'static str) -> Self {
        self.fields[place] = names;
        self.fields_with_pc[place] = names;
        self
    }

    /// The event's meaning for its thread.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether an event with the [fields of this rule](Rule::fields) counts: some count only with a
    /// certain value.
    #[inline]
    #[must_use]
    pub fn counts(&self, event: &TraceEvent) -> bool {
        self.field(ONLY_IF).is_empty() || event.value(ONLY_IF) == Some(self.only_if)
    }

    /// Names of the field at an index; empty if the rule needs none.
    #[must_use]
    pub fn field(&self, place: usize) -> &'static str {
        self.fields.get(place).copied().unwrap_or("")
    }

    /// Names of its fields, by index.
    #[must_use]
    pub const fn fields(&self) -> &[&'static str] {
        &self.fields
    }

    /// [`Rule::fields`], and for an exit the guest's program counter at [`GUEST_PC_AT`].
    pub(crate) const fn fields_with_pc(&self) -> &[&'static str] {
        &self.fields_with_pc
    }

    /// For an exit: names of the field with the guest's program counter.
    pub(crate) fn guest_pc(&self) -> &'static str {
        if self.kind == Kind::Exit { GUEST_PC } else { "" }
    }

    /// Whether the rule applies to events of this format: they have the name, and the fields of the
    /// value.
    pub(super) fn is_for(&self, format: &EventFormat) -> bool {
        let has = |place| {
            let wanted = self.field(place);
            wanted.is_empty() || wanted.split('|').any(|name| format.field(name).is_some())
        };
        names(self.event, format) && has(VALUE) && has(HIGH)
    }
}

/// Whether `system:name`, or a name alone, matches the format.
pub(super) fn names(event: &str, format: &EventFormat) -> bool {
    match event.split_once(':') {
        Some((system, name)) => system == format.system() && name == format.name(),
        None => event == format.name(),
    }
}
