//! Converts an event of a trace to a record with fields at fixed positions. `format.rs` writes the
//! matching format.
//!
//! Fields at fixed positions are copied in runs; strings and sequences follow them. Variants and
//! arrays of structures have no fixed layout, and are stored as text.

use std::collections::BTreeSet;
use std::ops::Range;

use ctf::{ByteOrder, EventClass, FixedField, FixedType, Float, Integer, Scope, Step};

use super::aliases;
use super::comms::{self, NameAt};
use super::format::{self, Print, RecordField, declared, number};
use crate::identifier::identifier;

/// Bytes before the event's fields: `common_type` to `common_pid`.
pub(super) const HEAD_BYTES: u16 = 8;
/// Position of `common_pid`.
pub(super) const PID_AT: usize = 4;
/// Maximum bytes of a record's fixed part.
const MAX_BYTES: u32 = 1 << 15;
/// Bytes of a floating-point number as text with its separator: `-2.2250738585072014e-308, `.
const FLOAT_BYTES: u32 = 26;
/// Maximum fields of an event.
const MAX_FIELDS: usize = 256;

/// The position of a string in a record: in an array of this size, or after all fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    at: u16,
    len: Option<u16>,
}

impl Behind {
    /// The string, up to its NUL.
    pub(super) fn text_in(self, record: &[u8], order: ByteOrder) -> Option<&[u8]> {
        let bytes = match self.len {
            Some(len) => record.get(usize::from(self.at)..)?.get(..usize::from(len))?,
            None => {
                let place = order.u32_at(record, self.at.into())?;
                let (from, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
                record.get(from..)?.get(..len)?
            }
        };
        Some(raw_bytes::slice::until_nul(bytes))
    }
}

/// How to convert an event to a record.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) id: u16,
    pub(super) system: String,
    pub(super) name: String,
    /// Its format text, as a kernel would write it.
    pub(super) text: String,
    /// How to handle each step of the event.
    pub(super) plans: Vec<Plan>,
    /// The byte range of its only run, if copying this run gives the whole record.
    pub(super) run: Option<Range<usize>>,
    /// Bytes of a record before strings and sequences.
    pub(super) size: u16,
    /// Position of the thread id in the record.
    pub(super) thread_at: Option<u16>,
    /// Position of the CPU in the record.
    pub(super) cpu_at: Option<u16>,
    /// For a switch: positions of the previous and the next thread.
    pub(super) switch_at: Option<(u16, u16)>,
    /// Positions of thread names.
    pub(super) names_at: Vec<NameAt>,
    /// Whether it shows which thread runs, or a thread's name.
    pub(super) names_threads: bool,
    /// Positions of `common_flags` and `common_preempt_count`, if the event has them.
    pub(super) common_at: [Option<(u32, u32)>; 2],
}

/// How to convert a step of an event.
#[derive(Debug)]
pub(super) enum Plan {
    /// Copy pieces of a run.
    Pieces(Vec<Piece>),
    /// Append bytes to the record, and store their position at this offset; a string gets a NUL.
    Behind { at: u16, is_text: bool },
    /// Store a thread name at this offset, padded with NULs.
    Comm { at: u16 },
    /// Skip the step.
    Nothing,
}

/// A part of a run.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// First bit in the run.
    pub(super) from: u32,
    /// Byte offset in the record.
    pub(super) to: u16,
    pub(super) how: How,
}

#[derive(Clone, Debug)]
pub(super) enum How {
    /// A copy of this many bytes.
    Bytes(u16),
    /// An integer that is not made of whole bytes, or has the other byte order: it takes 8 bytes.
    Integer(Integer),
    /// Floating-point numbers, for which kernel formats have no type: as NUL-padded text.
    Floats(Float, u32),
}

/// Facts about a trace that decide how its events are converted.
pub(super) struct Of<'t> {
    /// The program that recorded it.
    pub(super) tracer: &'t str,
    /// The byte order of its records.
    pub(super) order: ByteOrder,
    /// Whether the threads of these events can be determined.
    pub(super) has_threads: bool,
    /// Whether exits have their vCPU id.
    pub(super) exits_have_vcpus: bool,
}

/// Fields with the thread that ran, in any event.
pub(super) const THREADS: [&str; 3] = ["context_tid", "context_vtid", "perf_tid"];
/// Fields with the CPU, in any event.
const CPUS: [&str; 2] = ["perf_cpu", "context_cpu_id"];

/// Bytes of a thread name, including its NUL (`TASK_COMM_LEN`).
pub(super) const COMM_BYTES: u16 = 16;
/// Fields with thread names in kernel events. libtraceevent's plugins expect them as arrays of
/// [`COMM_BYTES`].
const COMMS: [&str; 7] =
    ["comm", "prev_comm", "next_comm", "parent_comm", "child_comm", "oldcomm", "newcomm"];

struct Builder<'t> {
    context: &'t Of<'t>,
    is_entry: bool,
    system: String,
    /// Names of the event's own fields.
    payload: BTreeSet<&'t str>,
    fields: Vec<RecordField>,
    names: BTreeSet<String>,
    end: u32,
    common_at: [Option<(u32, u32)>; 2],
}

impl Shape {
    /// Whether its events have the thread that ran.
    pub(super) fn says_thread(&self) -> bool {
        self.thread_at.is_some() || self.switch_at.is_some()
    }

    pub(super) fn new(id: u16, event: &EventClass, context: &Of<'_>) -> Self {
        let (mut system, name) = aliases::event(&event.name, context.tracer);
        if !context.has_threads && system == "kvm" {
            // Exits are assigned by thread: without threads, they get another system.
            "kvm_of_no_thread".clone_into(&mut system);
        }
        let mut builder = Builder {
            context,
            is_entry: event.name == "kvm_x86_entry",
            system,
            payload: own_fields(event),
            fields: Vec::new(),
            names: BTreeSet::new(),
            end: HEAD_BYTES.into(),
            common_at: [None; 2],
        };
        let plans: Vec<Plan> = event.steps.iter().map(|step| builder.plan(step)).collect();
        let (thread_at, cpu_at) = (builder.place_of(&THREADS), builder.place_of(&CPUS));
        let is_switch = name == "sched_switch";
        let before = builder.place_of(&["prev_pid"]);
        let switch_at = before.zip(builder.place_of(&["next_pid"])).filter(|_| is_switch);
        let names_at = builder.names_at(&name);
        let names_threads = switch_at.is_some() || !names_at.is_empty();
        let text = format::text(id, &name, &builder.fields, builder.common_at[0].is_some());
        let size = u16::try_from(builder.end.next_multiple_of(4)).unwrap_or(u16::MAX);
        let common_at = builder.common_at;
        let run = only_run(&event.steps, &plans, size).filter(|_| common_at == [None; 2]);
        let system = builder.system;
        Self {
            id,
            system,
            name,
            text,
            plans,
            run,
            size,
            thread_at,
            cpu_at,
            switch_at,
            names_at,
            names_threads,
            common_at,
        }
    }
}

/// Names of the event's own fields.
fn own_fields(event: &EventClass) -> BTreeSet<&str> {
    let fields = event.payload.iter().flat_map(|payload| &payload.fields);
    fields.map(|field| field.name.as_str()).collect()
}

/// The bytes of an event's only step, if they are its whole record except the header.
fn only_run(steps: &[Step], plans: &[Plan], size: u16) -> Option<Range<usize>> {
    let ([Step::Fixed { bits, .. }], [Plan::Pieces(pieces)]) = (steps, plans) else { return None };
    let [Piece { from, to: HEAD_BYTES, how: How::Bytes(len) }] = pieces.as_slice() else {
        return None;
    };
    let (from, len) = (from.is_multiple_of(8).then_some(*from as usize / 8)?, usize::from(*len));
    let is_all = usize::from(size) == (usize::from(HEAD_BYTES) + len).next_multiple_of(4);
    (is_all && from + len <= *bits as usize / 8).then_some(from..from + len)
}

/// Whether the integer is made of whole bytes in the wanted byte order.
fn is_plain(bits: u32, order: ByteOrder, at: u32, wanted: ByteOrder) -> bool {
    at.is_multiple_of(8) && matches!(bits, 8 | 16 | 32 | 64) && (bits == 8 || order == wanted)
}

impl Builder<'_> {
    /// Reserves space for a field; `None` if the record is full.
    fn room(&mut self, bytes: u32) -> Option<u16> {
        let at = self.end;
        let end = at.checked_add(bytes)?;
        if end > MAX_BYTES || self.fields.len() >= MAX_FIELDS {
            return None;
        }
        self.end = end;
        u16::try_from(at).ok()
    }

    /// A name that no other field has.
    fn name(&mut self, name: &str, scope: Scope) -> String {
        let name = match scope {
            // In lttng-modules 2.13, entries have part of a pointer to the vCPU where exits have
            // the vCPU id: since Linux 5.10 the tracepoint passes the pointer, and their probe
            // records it as the id.
            Scope::Payload
                if self.is_entry && self.context.exits_have_vcpus && name == "vcpu_id" =>
            {
                "vcpu_pointer".to_owned()
            }
            Scope::Payload => identifier(aliases::field(&self.system, name, |candidate| {
                self.payload.contains(candidate)
            })),
            _ => format!("context_{}", identifier(name)),
        };
        // `common_…` is reserved for the record's header.
        let name = name.strip_prefix("common_").map_or(name.clone(), |rest| format!("own_{rest}"));
        let mut unique = name.clone();
        let mut number = 1;
        while !self.names.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        unique
    }

    fn place_of(&self, names: &[&str]) -> Option<u16> {
        names.iter().find_map(|name| {
            let field = self.field(name)?;
            (field.size == 4 && field.count.is_none()).then_some(field.at)
        })
    }

    fn names_at(&self, event: &str) -> Vec<NameAt> {
        // Other events have fields with these names for file and process names.
        let is_of_threads = self.system == "sched"
            || matches!(event, "perf_comm" | "lttng_statedump_process_state");
        let name_at = |names: &[&str]| {
            let field = names.iter().find_map(|name| self.field(name))?;
            let is_text = matches!(field.print, Print::Text);
            let len = field.count.map(|_| field.size);
            is_text.then_some(Behind { at: field.at, len })
        };
        comms::names_at(is_of_threads, |names| self.place_of(names), name_at)
    }

    fn field(&self, name: &str) -> Option<&RecordField> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn plan(&mut self, step: &Step) -> Plan {
        match step {
            Step::Fixed { fields, .. } => {
                let pieces: Vec<Piece> =
                    fields.iter().filter_map(|field| self.fixed(field)).collect();
                Plan::Pieces(joined(pieces))
            }
            Step::Text { name, scope: Scope::Payload } if self.is_comm(name) => self.comm(name),
            Step::Text { name, scope } | Step::Other { name, scope, .. } => {
                self.behind(name, *scope, "__data_loc char[]", Print::Text)
            }
            Step::Sequence { name, scope, element, is_text, .. } => {
                let is_plain = element.bits == 8 || element.order == self.context.order;
                let declared = match (element.bits, element.signed) {
                    _ if *is_text => "__data_loc char[]",
                    (8, false) => "__data_loc u8[]",
                    (8, true) => "__data_loc s8[]",
                    _ if !is_plain => return Plan::Nothing,
                    (16, false) => "__data_loc u16[]",
                    (16, true) => "__data_loc s16[]",
                    (32, false) => "__data_loc u32[]",
                    (32, true) => "__data_loc s32[]",
                    (_, false) => "__data_loc u64[]",
                    (_, true) => "__data_loc s64[]",
                };
                let print = if *is_text { Print::Text } else { self.numbers(element.bits / 8) };
                self.behind(name, *scope, declared, print)
            }
        }
    }

    /// How an array of numbers is printed.
    fn numbers(&self, size: u32) -> Print {
        let is_printed = size == 1 || self.context.order == ByteOrder::Little;
        if is_printed { Print::Numbers(size) } else { Print::Nothing }
    }

    /// Whether a field is a thread name in a kernel event.
    fn is_comm(&self, name: &str) -> bool {
        matches!(self.system.as_str(), "sched" | "task") && COMMS.contains(&name)
    }

    fn comm(&mut self, name: &str) -> Plan {
        let Some(at) = self.room(COMM_BYTES.into()) else { return Plan::Nothing };
        let name = self.name(name, Scope::Payload);
        let (declared, count, signed) = ("char", Some(COMM_BYTES.into()), false);
        let (size, print) = (COMM_BYTES, Print::Text);
        self.fields.push(RecordField { name, declared, count, at, size, signed, print });
        Plan::Comm { at }
    }

    fn behind(&mut self, name: &str, scope: Scope, declared: &'static str, print: Print) -> Plan {
        let Some(at) = self.room(4) else { return Plan::Nothing };
        let (name, is_text) = (self.name(name, scope), matches!(print, Print::Text));
        let (count, signed) = (None, declared.starts_with("__data_loc s"));
        self.fields.push(RecordField { name, declared, count, at, size: 4, signed, print });
        Plan::Behind { at, is_text }
    }

    fn fixed(&mut self, field: &FixedField) -> Option<Piece> {
        let integer = match &field.field_type {
            FixedType::Integer(integer) => integer,
            FixedType::Float(float) => return self.floats(field, float),
        };
        let is_own = field.count.is_none() && field.scope == Scope::Payload;
        if is_own && self.is_common(&field.name, field.at, integer) {
            return None;
        }
        let (bits, order) = (field.field_type.bits(), field.field_type.order());
        let plain = is_plain(bits, order, field.at, self.context.order);
        let count = field.count;
        if !plain && count.is_some() {
            return None;
        }
        let each = if plain { bits / 8 } else { 8 };
        let bytes = each.checked_mul(count.unwrap_or(1))?;
        let to = self.room(bytes)?;
        let (declared, signed) = declared(integer, each);
        let is_text = integer.is_text && each == 1 && count.is_some();
        let print = match count {
            _ if is_text => Print::Text,
            Some(_) => self.numbers(each),
            None => number(integer, each),
        };
        let name = self.name(&field.name, field.scope);
        let size = u16::try_from(bytes).ok()?;
        let declared = if is_text { "char" } else { declared };
        self.fields.push(RecordField { name, declared, count, at: to, size, signed, print });
        let how = if plain { How::Bytes(size) } else { How::Integer(integer.clone()) };
        Some(Piece { from: field.at, to, how })
    }

    /// Converts floating-point numbers to text.
    fn floats(&mut self, field: &FixedField, float: &Float) -> Option<Piece> {
        let count = field.count.unwrap_or(1);
        let bytes = count.checked_mul(FLOAT_BYTES)?.checked_add(1)?;
        let at = self.room(bytes)?;
        let (name, size) = (self.name(&field.name, field.scope), u16::try_from(bytes).ok()?);
        let (declared, count, signed) = ("char", Some(bytes), false);
        self.fields.push(RecordField {
            name,
            declared,
            count,
            at,
            size,
            signed,
            print: Print::Text,
        });
        let how = How::Floats(float.clone(), field.count.unwrap_or(1));
        Some(Piece { from: field.at, to: at, how })
    }

    /// Whether the record's header already has this field: perf includes common fields in
    /// tracepoints.
    fn is_common(&mut self, name: &str, at: u32, integer: &Integer) -> bool {
        let place = (at, integer.bits);
        match name {
            "common_flags" => self.common_at[0] = Some(place),
            "common_preempt_count" => self.common_at[1] = Some(place),
            "common_type" | "common_pid" => {}
            _ => return false,
        }
        true
    }
}

/// Merges pieces that are adjacent in both run and record.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        if let (Some(last), How::Bytes(more)) = (all.last_mut(), &piece.how)
            && let How::Bytes(len) = &mut last.how
        {
            let follows = u32::from(*len) * 8 + last.from == piece.from;
            if follows && last.to.checked_add(*len) == Some(piece.to) {
                *len = len.saturating_add(*more);
                continue;
            }
        }
        all.push(piece);
    }
    all
}
