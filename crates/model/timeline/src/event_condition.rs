//! A condition on an event field: on its number, its text, or its printed name.

use ftrace::eventfmt::{
    EventFormat, Field, FieldKind, NamedValue, NumberAt, PrintProgram, ShownValue, Value, glob,
};
use raw_bytes::{Abi, ByteOrder};

use crate::trace_cmd_forms::TraceCmdForm;

/// A filter that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is not a list of CPUs.
    #[error("\"{0}\" is not a list of CPUs; write it as in 0,2-3")]
    Cpus(String),
    /// The text is not a condition.
    #[error("\"{0}\" is not a condition; write FIELD OP VALUE with one of == != < <= > >= & ~")]
    Condition(String),
    /// `=` between field and value.
    #[error("\"{0}\": = is not a comparison; write == for equal, or ~ for a pattern with * and ?")]
    Assignment(String),
    /// Several conditions in one text.
    #[error("\"{0}\": give one condition per --where; an event must satisfy all of them")]
    Several(String),
    /// An order comparison of text.
    #[error("\"{0}\": only == != and ~ compare text")]
    TextOrder(String),
}

/// The prefix that trace-cmd adds to the kernel's names of AMD exit reasons.
const PREFIX: &str = "exit_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    HasBits,
    Matches,
}

/// Operators; longer ones come before their prefixes.
const OPERATORS: [(&str, Option<Compare>); 9] = [
    ("==", Some(Compare::Equal)),
    ("!=", Some(Compare::NotEqual)),
    ("<=", Some(Compare::LessOrEqual)),
    (">=", Some(Compare::GreaterOrEqual)),
    ("<", Some(Compare::Less)),
    (">", Some(Compare::Greater)),
    ("&", Some(Compare::HasBits)),
    ("~", Some(Compare::Matches)),
    // Refused because it is ambiguous: some languages assign with it, others compare.
    ("=", None),
];

/// A condition on one field: `FIELD OP VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: String,
    field: String,
    compare: Compare,
    wanted: String,
    number: Option<i128>,
}

/// Why no event of a format can meet a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The format has no such field.
    #[error("no event has a field {0}")]
    NoField(String),
    /// The field is a number without printed names.
    #[error("{field} is a number, but {wanted} is not")]
    NotANumber {
        /// The field.
        field: String,
        /// The value of the condition.
        wanted: String,
    },
    /// The field has printed names, but not this one.
    #[error("{field} is never printed as {wanted}")]
    NoSuchName {
        /// The field.
        field: String,
        /// The value of the condition.
        wanted: String,
        /// The printed names.
        names: Vec<String>,
    },
    /// The number is outside the field's range.
    #[error("{field} ranges from {least} to {most}: it is never {wanted}")]
    OutOfRange {
        /// The field.
        field: String,
        /// The minimum of the field.
        least: i128,
        /// The maximum of the field.
        most: i128,
        /// The value of the condition.
        wanted: String,
    },
    /// Text has no order.
    #[error("{0} is text: only == != and ~ compare text")]
    TextOrder(String),
    /// The field is neither a number nor a text.
    #[error("{0} is neither a number nor text: it cannot be compared")]
    NoValue(String),
}

impl Condition {
    /// Parses a condition such as `exit_reason == 12`, `reason == msr` or `comm ~ qemu*`.
    ///
    /// # Errors
    /// If the operator, the field or the value is missing, or for an order comparison of text.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let wrong = || FilterError::Condition(text.to_owned());
        let (at, sign, compare) = OPERATORS
            .iter()
            .filter_map(|(sign, compare)| Some((text.find(sign)?, *sign, *compare)))
            .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
            .ok_or_else(wrong)?;
        let (field, rest) = text.split_at_checked(at).ok_or_else(wrong)?;
        let value = rest.strip_prefix(sign).ok_or_else(wrong)?.trim();
        let compare = compare.ok_or_else(|| FilterError::Assignment(text.to_owned()))?;
        let field = field.trim().to_owned();
        if field.is_empty() || value.is_empty() || value.starts_with('=') {
            return Err(wrong());
        }
        if field.contains(char::is_whitespace) || value.contains("&&") || value.contains("||") {
            return Err(FilterError::Several(text.to_owned()));
        }
        let number = number(value).filter(|_| compare != Compare::Matches);
        if number.is_none() && !compare.is_on_text() {
            return Err(FilterError::TextOrder(text.to_owned()));
        }
        let wanted = value.trim_matches('"').to_owned();
        Ok(Self { text: text.to_owned(), field, compare, wanted, number })
    }

    /// The condition's source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Prepares the condition for events of a format. The field is found by its name, or by the
    /// word before it in the printed event.
    ///
    /// # Errors
    /// If no such event can meet it.
    pub fn compile(&self, format: &EventFormat, abi: Abi) -> Result<CompiledCondition, Unfit> {
        let (field, shown) = self.field_of(format, abi)?;
        let test = match (field.number(), self.number) {
            (Some(at), Some(number)) => self.on_number(at, number)?,
            (Some(_), None) => Test::Named(self.named(&field, &shown)?, normal(&self.wanted)),
            (None, _) if !is_text(&field) => return Err(Unfit::NoValue(self.field.clone())),
            (None, _) if !self.compare.is_on_text() => {
                return Err(Unfit::TextOrder(self.field.clone()));
            }
            (None, _) => Test::Text(field, self.wanted.clone()),
        };
        Ok(CompiledCondition { compare: self.compare, test })
    }

    /// The field, and the printed values of events if they are needed.
    fn field_of(&self, format: &EventFormat, abi: Abi) -> Result<(Field, Vec<ShownValue>), Unfit> {
        let own_field = format.field(&self.field).cloned();
        // Printed names are compiled only if a number alone is ambiguous.
        let needs_texts = own_field
            .as_ref()
            .is_none_or(|field| field.number().is_some() && self.number.is_none());
        let shown = if needs_texts { shown(format, abi) } else { Vec::new() };
        let labelled = || shown.iter().find(|value| value.label == self.field);
        let field = own_field.or_else(|| format.field(&labelled()?.field).cloned());
        let field = field.ok_or_else(|| Unfit::NoField(self.field.clone()))?;
        Ok((field, shown))
    }

    fn on_number(&self, at: NumberAt, number: i128) -> Result<Test, Unfit> {
        let bits = u32::from(at.size) * 8;
        let (least, most) = if at.signed {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        if (least..=most).contains(&number) {
            return Ok(Test::Number(at, number));
        }
        let (field, wanted) = (self.field.clone(), self.wanted.clone());
        Err(Unfit::OutOfRange { field, least, most, wanted })
    }

    /// The names with which a number is printed, if the condition has a name.
    fn named(&self, field: &Field, shown: &[ShownValue]) -> Result<Vec<NamedValue>, Unfit> {
        let of_field = shown.iter().filter(|value| value.field == field.name);
        let all: Vec<NamedValue> = of_field.filter_map(|value| value.named.clone()).collect();
        if all.is_empty() {
            let (field, wanted) = (self.field.clone(), self.wanted.clone());
            return Err(Unfit::NotANumber { field, wanted });
        }
        if all.iter().any(|value| self.may_be(value)) {
            return Ok(all);
        }
        let names = all.iter().flat_map(|value| value.names().iter().cloned()).collect();
        let (field, wanted) = (self.field.clone(), self.wanted.clone());
        Err(Unfit::NoSuchName { field, wanted, names })
    }

    /// Whether a value has the condition's name, or several flags that are all names.
    fn may_be(&self, value: &NamedValue) -> bool {
        let is_name = |part: &str| {
            let part = normal(part.trim());
            value.names().iter().any(|name| self.compare.names(&part, name))
        };
        if value.has_flags() && self.compare != Compare::Matches {
            self.wanted.split('|').all(is_name)
        } else {
            is_name(&self.wanted)
        }
    }
}

/// The printed values of events: by their kernel, and by trace-cmd.
fn shown(format: &EventFormat, abi: Abi) -> Vec<ShownValue> {
    let kernels = PrintProgram::compile(format, abi).ok();
    let trace_cmds = TraceCmdForm::for_event(format, abi);
    let programs = [kernels.as_ref(), trace_cmds.as_ref().map(TraceCmdForm::program)];
    programs.into_iter().flatten().flat_map(|program| program.shown_values(format)).collect()
}

fn is_text(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Array(_) | FieldKind::Dynamic(_) | FieldKind::Relative(_))
}

/// A name in the form in which names are compared.
fn normal(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_prefix(PREFIX).map(str::to_owned).unwrap_or(name)
}

fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None => i128::from(digits.parse::<u64>().ok()?),
    };
    Some(if negative { -value } else { value })
}

/// A condition with the offset of its field.
#[derive(Clone, Debug)]
pub struct CompiledCondition {
    compare: Compare,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Number(NumberAt, i128),
    Text(Field, String),
    /// The printed names of the number, and the condition's name.
    Named(Vec<NamedValue>, String),
}

impl CompiledCondition {
    /// Whether a record meets the condition; a record that is too short does not.
    #[must_use]
    pub fn holds(&self, record: &[u8], order: ByteOrder) -> bool {
        match &self.test {
            Test::Number(at, wanted) => {
                let value = if at.signed {
                    at.read_signed(record, order).map(i128::from)
                } else {
                    at.read(record, order).map(i128::from)
                };
                value.is_some_and(|value| self.compare.numbers(value, *wanted))
            }
            Test::Text(field, wanted) => match field.value(record, order) {
                Some(Value::Text(text)) => {
                    self.compare.texts(&String::from_utf8_lossy(text), wanted)
                }
                _ => false,
            },
            Test::Named(all, wanted) => {
                let texts: Vec<String> =
                    all.iter().filter_map(|value| value.text(record)).collect();
                let is_so = texts.iter().any(|text| self.compare.names(wanted, text));
                !texts.is_empty() && is_so != (self.compare == Compare::NotEqual)
            }
        }
    }
}

impl Compare {
    fn is_on_text(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual | Self::Matches)
    }

    fn numbers(self, value: i128, wanted: i128) -> bool {
        match self {
            Self::Equal => value == wanted,
            Self::NotEqual => value != wanted,
            Self::Less => value < wanted,
            Self::LessOrEqual => value <= wanted,
            Self::Greater => value > wanted,
            Self::GreaterOrEqual => value >= wanted,
            Self::HasBits => value & wanted != 0,
            Self::Matches => false,
        }
    }

    fn texts(self, text: &str, wanted: &str) -> bool {
        match self {
            Self::Equal => text == wanted,
            Self::NotEqual => text != wanted,
            Self::Matches => glob(wanted, text),
            _ => false,
        }
    }

    /// Whether a printed name equals the condition's name (in the form of [`normal`]), or matches
    /// it as a pattern.
    fn names(self, wanted: &str, name: &str) -> bool {
        match self {
            Self::Matches => glob(wanted, &normal(name)),
            _ => wanted == normal(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use raw_bytes::LongSize;

    use super::*;

    const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    const EXIT: &[u8] = b"name: kvm_exit\nID: 67\nformat:\n\
        \tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:28;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"reason %s rip 0x%lx\", (REC->isa == 1) ? \
        __print_symbolic(REC->exit_reason, {12, \"HLT\"}, {32, \"MSR_WRITE\"}) : \
        __print_symbolic(REC->exit_reason, {96, \"interrupt\"}, {124, \"msr\"}), REC->guest_rip\n";

    fn holds(condition: &str, isa: u64, reason: u64) -> bool {
        let format = EventFormat::parse("kvm", EXIT).unwrap();
        let mut record = format.blank_record();
        format.field("exit_reason").unwrap().poke(&mut record, ABI.order, reason);
        format.field("isa").unwrap().poke(&mut record, ABI.order, isa);
        let compiled = Condition::parse(condition).unwrap().compile(&format, ABI).unwrap();
        compiled.holds(&record, ABI.order)
    }

    fn unfit(condition: &str) -> Unfit {
        let format = EventFormat::parse("kvm", EXIT).unwrap();
        Condition::parse(condition).unwrap().compile(&format, ABI).unwrap_err()
    }

    #[test]
    fn conditions_name_field_operator_and_value() {
        assert!(Condition::parse("exit_reason == 12").is_ok());
        assert!(Condition::parse("error_code>=0x10").is_ok());
        assert_eq!(Condition::parse("a<=1").unwrap().compare, Compare::LessOrEqual);
        assert!(Condition::parse("exit_reason").is_err());
        assert!(Condition::parse("== 12").is_err());
        assert!(Condition::parse("comm < qemu").is_err());
        assert!(Condition::parse("comm ~ qemu*").is_ok());
        for assignment in ["exit_reason = 3", "comm =~ x", "a=b"] {
            let error = Condition::parse(assignment).unwrap_err();
            assert_eq!(error, FilterError::Assignment(assignment.to_owned()));
        }
        for several in ["a == 1 && b == 2", "a == x || a == y", "a and b == 1"] {
            let error = Condition::parse(several).unwrap_err();
            assert_eq!(error, FilterError::Several(several.to_owned()));
        }
    }

    #[test]
    fn names_are_those_that_are_printed() {
        for name in ["msr", "MSR", "EXIT_MSR", "exit_msr"] {
            assert!(holds(&format!("exit_reason == {name}"), 2, 124), "{name}");
            assert!(holds(&format!("reason == {name}"), 2, 124), "{name}");
            assert!(!holds(&format!("reason == {name}"), 2, 96), "{name}");
            assert!(holds(&format!("reason != {name}"), 2, 96), "{name}");
        }
        // The kernel and trace-cmd have different names for the same reason.
        assert!(holds("reason == interrupt", 2, 96) && holds("reason == EXIT_INTR", 2, 96));
        assert!(holds("reason ~ msr_*", 1, 32) && !holds("reason ~ msr_*", 1, 12));
        assert!(holds("rip == 0", 1, 12));
    }

    #[test]
    fn what_can_never_be_is_said() {
        let Unfit::NoSuchName { names, .. } = unfit("reason == msrs") else { panic!() };
        assert!(names.contains(&"msr".to_owned()) && names.contains(&"EXIT_INTR".to_owned()));
        assert!(matches!(unfit("guest_rip == web"), Unfit::NotANumber { .. }));
        assert!(matches!(unfit("exit_reason == -1"), Unfit::OutOfRange { .. }));
        assert!(matches!(unfit("exit_reason < 0x100000000"), Unfit::OutOfRange { .. }));
        assert!(matches!(unfit("comm > 3"), Unfit::TextOrder(_)));
        assert!(matches!(unfit("nosuch == 1"), Unfit::NoField(_)));
    }
}
