//! The meaning of options: clock, host and guest relations, loss counts, machine.

use crate::Damage;
use crate::cpustat::{CpuStat, CpuStats};
use crate::options::{RawOption, id};
use crate::peers::{Guest, Tsc2Nsec};
use crate::time_shift::TimeShift;
use raw_bytes::{ByteOrder, Damages};

/// The content of a recording's options.
///
/// If an option occurs several times, its last value counts, except for DATE and OFFSET, which are
/// added: both as in trace-cmd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Sum of the DATE options in nanoseconds (the file has microseconds): added to all times.
    pub date_ns: Option<i64>,
    /// Sum of the OFFSET options in nanoseconds: added to all times.
    pub offset_ns: Option<i64>,
    /// The complete `trace_clock` file, such as `[local] global counter`.
    pub trace_clock: Option<String>,
    /// System, host name, release and machine of the recorded machine.
    pub uname: Option<String>,
    /// Version of the recording program.
    pub recorder_version: Option<String>,
    /// Event hooks as given to `trace-cmd record`.
    pub hooks: Vec<String>,
    /// Loss counts per buffer and CPU, in the order of the file.
    pub cpu_stats: Vec<CpuStat>,
    /// Number of CPUs of the recorded machine.
    pub cpu_count: Option<u32>,
    /// Memory maps of traced processes, one text per process.
    pub procmaps: Vec<String>,
    /// Trace id of this recording, by which peers refer to it.
    pub trace_id: Option<u64>,
    /// Conversions of times to a peer's clock, one per peer.
    pub time_shifts: Vec<TimeShift>,
    /// Guests recorded at the same time.
    pub guests: Vec<Guest>,
    /// Conversion from TSC ticks to nanoseconds.
    pub tsc2nsec: Option<Tsc2Nsec>,
    /// Texts about the previous boot, from persistent buffers.
    pub last_boot_info: Vec<String>,
    /// Numbers of unknown options in file order.
    pub unknown: Vec<u16>,
}

impl Metadata {
    pub(crate) fn read(options: &[RawOption], order: ByteOrder, damages: &mut Damages) -> Self {
        let mut metadata = Self::default();
        let mut stats = CpuStats::default();
        for option in options {
            if option.id == id::CPUSTAT && !stats.take(&option.data) {
                damages.note(option.offset, "the CPUSTAT option names no CPU");
            }
            if let Err(damage) = metadata.take(option, order, damages) {
                damages.add(damage);
            }
        }
        metadata.cpu_stats = stats.list;
        metadata
    }

    fn take(
        &mut self,
        option: &RawOption,
        order: ByteOrder,
        damages: &mut Damages,
    ) -> Result<(), Damage> {
        match option.id {
            id::DATE => add(&mut self.date_ns, number(option)?.saturating_mul(1000)),
            id::OFFSET => add(&mut self.offset_ns, number(option)?),
            // trace-cmd writes this option without text if it cannot read the file.
            id::TRACECLOCK if !option.data.is_empty() => self.trace_clock = Some(option.text()),
            id::UNAME => self.uname = Some(option.text()),
            id::VERSION => self.recorder_version = Some(option.text()),
            id::HOOK => self.hooks.push(option.text()),
            id::PROCMAPS => self.procmaps.push(option.text()),
            id::LAST_BOOT_INFO => self.last_boot_info.push(option.text()),
            id::CPUCOUNT => self.cpu_count = Some(cpu_count(option, order)?),
            id::TRACEID => self.trace_id = Some(trace_id(option, order)?),
            id::TSC2NSEC => self.tsc2nsec = Some(Tsc2Nsec::parse(option, order)?),
            id::TIME_SHIFT => {
                let (shift, damage) = TimeShift::parse(option, order);
                self.time_shifts.extend(shift);
                damage.into_iter().for_each(|damage| damages.add(damage));
            }
            id::GUEST => {
                let (guest, damage) = Guest::parse(option, order);
                self.guests.extend(guest);
                damage.into_iter().for_each(|damage| damages.add(damage));
            }
            id::DONE..=id::MODULES_FILE => {}
            unknown => self.unknown.push(unknown),
        }
        Ok(())
    }

    /// Name of the selected clock in [`trace_clock`](Self::trace_clock): the one in brackets.
    #[must_use]
    pub fn selected_clock(&self) -> Option<&str> {
        selected(self.trace_clock.as_deref()?)
    }

    /// Nanoseconds to add to all times: the sum of DATE and OFFSET.
    #[must_use]
    pub fn added_ns(&self) -> i64 {
        self.date_ns.unwrap_or(0).wrapping_add(self.offset_ns.unwrap_or(0))
    }
}

/// The name in brackets in a text like `local [global] counter`.
pub(crate) fn selected(line: &str) -> Option<&str> {
    let (_, from) = line.split_once('[')?;
    from.split_once(']').map(|(name, _)| name.trim()).filter(|name| !name.is_empty())
}

fn add(sum: &mut Option<i64>, value: i64) {
    *sum = Some(sum.unwrap_or(0).wrapping_add(value));
}

fn cpu_count(option: &RawOption, order: ByteOrder) -> Result<u32, Damage> {
    option.cursor(order).u32().map_err(|cut| Damage::short("CPUCOUNT option", cut))
}

fn trace_id(option: &RawOption, order: ByteOrder) -> Result<u64, Damage> {
    option.cursor(order).u64().map_err(|cut| Damage::short("TRACEID option", cut))
}

/// A number as `strtoll` with base 0 parses it: decimal, 0x hexadecimal or 0 octal, signed.
fn number(option: &RawOption) -> Result<i64, Damage> {
    let text = option.text();
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match (digits.strip_prefix("0x"), digits.strip_prefix("0X")) {
        (Some(hex), _) | (_, Some(hex)) => (16, hex),
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let digits = digits.get(..end).unwrap_or_default();
    if digits.is_empty() {
        return Err(Damage::new(option.offset, format!("option {} is not a number", option.id)));
    }
    let limit = if negative { i64::MIN } else { i64::MAX };
    let value = i128::from_str_radix(digits, base).unwrap_or(i128::MAX);
    let value = if negative { value.saturating_neg() } else { value };
    Ok(i64::try_from(value).unwrap_or(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: u16, text: &str) -> Metadata {
        let mut damages = Damages::default();
        let options = [RawOption { id, offset: 0, data: text.as_bytes().to_vec() }];
        Metadata::read(&options, ByteOrder::Little, &mut damages)
    }

    #[test]
    fn offsets_are_read_as_strtoll_reads_them() {
        let cases = [
            ("1000\0", Some(1000)),
            ("-1000", Some(-1000)),
            (" +0x1f\0", Some(31)),
            ("-0x10", Some(-16)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("12ns", Some(12)),
            ("99999999999999999999999999999999999999999999", Some(i64::MAX)),
            ("-9223372036854775809", Some(i64::MIN)),
            ("", None),
            ("x", None),
        ];
        for (text, value) in cases {
            assert_eq!(read(id::OFFSET, text).offset_ns, value, "{text:?}");
        }
        assert_eq!(read(id::DATE, "0x10\0").date_ns, Some(16_000));
    }

    #[test]
    fn the_selected_clock_is_the_one_in_brackets() {
        let clock = |line| read(id::TRACECLOCK, line).selected_clock().map(str::to_owned);
        assert_eq!(clock("local [global] counter\n\0").as_deref(), Some("global"));
        assert_eq!(clock("[x86-tsc]").as_deref(), Some("x86-tsc"));
        assert_eq!(clock("local global"), None);
        assert_eq!(clock("[]"), None);
    }

    #[test]
    fn unknown_options_are_listed() {
        assert_eq!(read(4711, "anything").unknown, [4711]);
    }
}
