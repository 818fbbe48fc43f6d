//! Names of exit reasons: the kernel's own names, from the print fmt in the recording.

use std::collections::HashMap;

use ftrace::eventfmt::{EventFormat, PrintProgram};
use raw_bytes::{Abi, ByteOrder, LongSize};
use serde::{Serialize, Serializer};
use sources::{FormatTable, Recording};

use crate::arch::{self, Arch, HIGH, Isa, Rule, VALUE};

/// An exit code as users and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// `exit_reason`, `icptcode`, `scause`, `reason`.
    Number(u64),
    /// arm64: `ret` and `esr_ec`, written `ret:esr_ec`; POWER: `ceded` and `trap`.
    Pair(u32, u32),
    /// Not recorded: printed traces have names of reasons, but no codes.
    NotRecorded,
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(code) => write!(f, "{code}"),
            Self::Pair(ret, esr_ec) => write!(f, "{ret}:{esr_ec}"),
            Self::NotRecorded => Ok(()),
        }
    }
}

/// Serializes to a number, to text for a pair, or to null if the code was not recorded.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(code) => serializer.serialize_u64(*code),
            Self::Pair(..) => serializer.collect_str(self),
            Self::NotRecorded => serializer.serialize_none(),
        }
    }
}

impl Code {
    /// The code of an exit of `isa`, from the timeline's form.
    #[must_use]
    pub fn new(isa: Isa, code: u64) -> Self {
        if isa == Isa::Text {
            Self::NotRecorded
        } else if isa.has_code_pairs() {
            Self::Pair((code >> 32) as u32, code as u32)
        } else {
            Self::Number(code)
        }
    }
}

/// Names codes according to the recording's tables.
#[derive(Debug)]
pub struct ReasonNames {
    exits: Option<Exits>,
    abi: Abi,
    known: HashMap<(u8, u64), String>,
}

/// The exit event: its architecture and print fmt.
#[derive(Debug)]
struct Exits {
    arch: &'static Arch,
    rule: &'static Rule,
    format: EventFormat,
    print: Option<PrintProgram>,
}

impl ReasonNames {
    /// Prepares the tables of `recording`.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        Self::of_formats(recording.formats(), recording.abi())
    }

    /// Prepares the tables of a kernel from the format text of its exit event
    /// (`events/kvm/kvm_exit/format` in tracefs); if that cannot be used, codes stay raw.
    #[must_use]
    pub fn of_event_text(text: &str) -> Self {
        let abi = Abi {
            order: if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
            long: if cfg!(target_pointer_width = "64") { LongSize::Eight } else { LongSize::Four },
        };
        let format = EventFormat::parse("kvm", text.as_bytes()).ok();
        Self::of_formats(&format.into_iter().collect::<FormatTable>(), abi)
    }

    /// Prepares the tables of a machine with these formats.
    #[must_use]
    pub fn of_formats(formats: &FormatTable, abi: Abi) -> Self {
        let exits = arch::exit_event(formats).map(|event| Exits {
            arch: event.arch,
            rule: event.rule,
            format: event.format.clone(),
            print: PrintProgram::compile(event.format, abi).ok(),
        });
        Self { exits, abi, known: HashMap::new() }
    }

    /// The virtualization extension of an exit with this `isa` field (0: no such field).
    #[must_use]
    pub fn isa(&self, isa: u8) -> Isa {
        self.exits.as_ref().map_or(Isa::Unknown, |exits| exits.arch.isa(isa))
    }

    /// The kernel's symbol for a code; the raw code if it has none.
    pub fn name(&mut self, isa: u8, code: u64) -> String {
        if let Some(name) = self.known.get(&(isa, code)) {
            return name.clone();
        }
        let instruction_set = self.isa(isa);
        let symbol = self.symbol(isa, code).map(|symbol| {
            let flags =
                if instruction_set.has_flags(code) { self.flags(isa, code) } else { String::new() };
            let space = if flags.is_empty() { "" } else { " " };
            symbol + space + &flags + instruction_set.suffix(code)
        });
        let builtin_name = || instruction_set.name_without_symbol(code).map(str::to_owned);
        let name = symbol.or_else(builtin_name).unwrap_or_else(|| {
            match Code::new(instruction_set, code) {
                Code::Number(code) => format!("{code:#x}"),
                pair @ Code::Pair(..) => pair.to_string(),
                Code::NotRecorded => "not readable".to_owned(),
            }
        });
        self.known.insert((isa, code), name.clone());
        name
    }

    /// The symbol for the code in the event's print fmt.
    fn symbol(&self, isa: u8, code: u64) -> Option<String> {
        let exits = self.exits.as_ref()?;
        exits.symbol(self.isa(isa).symbol_in(code), isa, code, self.abi)
    }

    /// The flags of a code, as the event's print fmt formats them. If the print fmt has no flags,
    /// built-in names apply: flags distinguish reasons.
    fn flags(&self, isa: u8, code: u64) -> String {
        let written = self.exits.as_ref().and_then(|exits| exits.flags(isa, code, self.abi));
        written
            .filter(|flags| !flags.is_empty())
            .unwrap_or_else(|| self.isa(isa).flags_without_table(code))
    }
}

impl Exits {
    /// The symbol of the first field in `fields` that exists (empty: the field with the code), in
    /// an event with this code.
    fn symbol(&self, fields: &str, isa: u8, code: u64, abi: Abi) -> Option<String> {
        let record = self.record(isa, code, abi);
        let named = if fields.is_empty() { self.field(VALUE)? } else { fields };
        let symbol = self.print.as_ref()?.symbol_of(&self.format, named, &record)?;
        Some(String::from_utf8_lossy(symbol).into_owned())
    }

    /// The flags in the print fmt's output for an event with this code; `None` if it has no table
    /// of flags.
    fn flags(&self, isa: u8, code: u64, abi: Abi) -> Option<String> {
        let record = self.record(isa, code, abi);
        self.print.as_ref()?.flags_of(&self.format, self.field(VALUE)?, &record)
    }

    /// The field of the format at an index of the rule.
    fn field(&self, place: usize) -> Option<&'static str> {
        self.rule.field(place).split('|').find(|name| self.format.field(name).is_some())
    }

    /// A record with this code.
    fn record(&self, isa: u8, code: u64, abi: Abi) -> Vec<u8> {
        let mut record = self.format.blank_record();
        let mut poke = |name: Option<&str>, value: u64| {
            if let Some(field) = name.and_then(|name| self.format.field(name)) {
                field.poke(&mut record, abi.order, value);
            }
        };
        let (low, high) = (self.field(VALUE), self.field(HIGH));
        poke(Some("isa"), u64::from(isa));
        poke(high, code >> 32);
        poke(low, if high.is_some() { code & u64::from(u32::MAX) } else { code });
        record
    }
}
