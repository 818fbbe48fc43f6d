//! Parses a frame's words into records, without interpreting them.

use crate::bits::Bits;
use crate::event::{Call, Syscall, Task, Wake};
use crate::frame_words::FrameWords;

/// The parameters of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u8,
    /// A repeated `Hello`: the stream continues.
    pub(crate) again: bool,
    pub(crate) cpu: u16,
    pub(crate) counter_khz: u32,
    pub(crate) shift: u8,
    pub(crate) words: u8,
    pub(crate) preempted_bit: u8,
}

/// An event before table look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Switch { state: u8, slot: u8 },
    Wake { wake: Wake, slot: u8, cpu: Option<u16> },
    Irq { irq: u32, handled: Option<bool> },
    Syscall { number: i32, what: Syscall },
    Call { slot: u8, what: Call },
}

/// The parts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Hello(Hello),
    /// A `Hello` of an unknown version: nothing after it can be parsed.
    Unknown,
    Current(u8),
    Lost(u32),
    Function {
        slot: u8,
        address: u64,
    },
    /// A part of a function name.
    Name {
        slot: u8,
        /// Another part follows.
        more: bool,
        piece: [u8; 16],
    },
    IrqName {
        irq: u8,
        name: [u8; 16],
    },
    Bye {
        events: u32,
    },
    Task {
        slot: u8,
        task: Task,
    },
    /// An event, this many units after the previous one in the frame.
    Event {
        after: u64,
        raw: Raw,
    },
}

/// The content of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) number: u8,
    pub(crate) records: Vec<Record>,
    /// Units from the last event of the previous frame to the first of this one; `None` if out of
    /// range, or if the version does not have it.
    pub(crate) since_before: Option<u64>,
    /// Units from the last event to the hypercall; `None` if out of range.
    pub(crate) age: Option<u64>,
    /// Whether it ends correctly. Otherwise `records` has the content up to the fault.
    pub(crate) is_whole: bool,
}

/// The supported versions: function names exist since version 2.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=3;
/// The first version with a time for the first event of a frame.
const FIRST_IS_TIMED: u8 = 3;
/// Value of the units since the previous frame if they are out of range.
const UNKNOWN_DELTA: u64 = (1 << 30) - 1;

impl Frame {
    /// Parses a frame of a stream with this version, unless the frame states another one. Never
    /// fails; see [`Frame::is_whole`].
    pub(crate) fn read(words: &[u64], version: u8) -> Self {
        Self::from_bits(Bits::new(words), version, false)
    }

    /// Parses a stored frame, which may be unfinished.
    pub(crate) fn stored(frame: &FrameWords, version: u8) -> Self {
        let bits = Bits::new(frame.used()).up_to(frame.used_bits());
        Self::from_bits(bits, version, !frame.is_whole)
    }

    fn from_bits(mut bits: Bits<'_>, version: u8, is_open: bool) -> Self {
        let mut frame = Self { number: bits.take_u8(8).unwrap_or(0), ..Self::default() };
        // Each iteration consumes bits, so the loop ends.
        frame.is_whole = frame.records(&mut bits, version, is_open).is_some();
        frame
    }

    fn records(&mut self, bits: &mut Bits<'_>, mut version: u8, is_open: bool) -> Option<()> {
        let mut first = true;
        loop {
            if is_open && bits.is_over() {
                return Some(());
            }
            let record = match bits.take(3)? {
                0 => {
                    self.age = age(bits)?;
                    return Some(());
                }
                6 => task(bits)?,
                7 => more(bits)?,
                kind => {
                    let raw = raw(kind, bits)?;
                    let timed = !first || version >= FIRST_IS_TIMED;
                    let mut after = if timed { delta(bits)? } else { 0 };
                    if std::mem::take(&mut first) {
                        self.since_before = (timed && after != UNKNOWN_DELTA).then_some(after);
                        after = 0;
                    }
                    Record::Event { after, raw }
                }
            };
            if let Record::Hello(hello) = &record {
                version = hello.version;
            }
            self.records.push(record);
            if record == Record::Unknown {
                return None;
            }
        }
    }
}

fn age(bits: &mut Bits<'_>) -> Option<Option<u64>> {
    let (count, unknown) = if bits.flag()? { (28, 0x0fff_ffff) } else { (12, 0x0fff) };
    let age = bits.take(count)?;
    Some((age != unknown).then_some(age))
}

fn delta(bits: &mut Bits<'_>) -> Option<u64> {
    let count = match bits.take(2)? {
        0 => 6,
        1 => 11,
        2 => 17,
        _ => 30,
    };
    bits.take(count)
}

fn raw(kind: u64, bits: &mut Bits<'_>) -> Option<Raw> {
    match kind {
        1 => {
            let state = match bits.take(2)? {
                0 => 1,
                1 => crate::event::PREEMPTED,
                2 => 0,
                _ => bits.take_u8(4)?,
            };
            Some(Raw::Switch { state, slot: bits.take_u8(6)? })
        }
        2 => {
            let wake = match bits.take(2)? {
                0 => Wake::Waking,
                1 => Wake::Wakeup,
                2 => Wake::New,
                _ => return None,
            };
            let slot = bits.take_u8(6)?;
            let cpu = if bits.flag()? { None } else { Some(bits.take_u16(16)?) };
            Some(Raw::Wake { wake, slot, cpu })
        }
        3 => {
            let (exit, irq) = numbered(bits, 8)?;
            let handled = if exit { Some(bits.flag()?) } else { None };
            Some(Raw::Irq { irq, handled })
        }
        4 => {
            let (exit, number) = numbered(bits, 9)?;
            let what = if exit { Syscall::Exit(result(bits)?) } else { Syscall::Enter };
            Some(Raw::Syscall { number: number.cast_signed(), what })
        }
        5 => {
            let what = if bits.flag()? { Call::Exit } else { Call::Entry };
            Some(Raw::Call { slot: bits.take_u8(7)?, what })
        }
        _ => None,
    }
}

/// Whether it is an end, and its number, in `few` or 32 bits.
fn numbered(bits: &mut Bits<'_>, few: u32) -> Option<(bool, u32)> {
    let exit = bits.flag()?;
    let count = if bits.flag()? { 32 } else { few };
    Some((exit, bits.take_u32(count)?))
}

/// The return value of a system call.
fn result(bits: &mut Bits<'_>) -> Option<i64> {
    match bits.take(2)? {
        0 => Some(0),
        1 => bits.take(16)?.try_into().ok(),
        2 => i64::from(bits.take_u16(12)?).checked_neg(),
        _ => Some(bits.take(64)?.cast_signed()),
    }
}

fn task(bits: &mut Bits<'_>) -> Option<Record> {
    let slot = bits.take_u8(6)?;
    let pid = bits.take_u32(22)?;
    let prio = i16::from(bits.take_u8(8)?).checked_sub(1)?;
    let name = text(bits)?;
    Some(Record::Task { slot, task: Task::new(pid, prio, &name) })
}

fn text(bits: &mut Bits<'_>) -> Option<[u8; 16]> {
    let mut name = [0; 16];
    let length = usize::try_from(bits.take(4)?).ok()?;
    for byte in name.iter_mut().take(length) {
        *byte = bits.take_u8(8)?;
    }
    Some(name)
}

fn more(bits: &mut Bits<'_>) -> Option<Record> {
    match bits.take(3)? {
        0 => hello(bits),
        1 => Some(Record::Current(bits.take_u8(6)?)),
        2 => {
            // docs/formats has the reasons of losses.
            let _reason = bits.take(2)?;
            Some(Record::Lost(bits.take_u32(32)?))
        }
        3 => {
            let slot = bits.take_u8(7)?;
            // Addresses are canonical: the upper bits equal bit 47.
            let address = bits.take(48)?.checked_shl(16)?.cast_signed() >> 16;
            Some(Record::Function { slot, address: address.cast_unsigned() })
        }
        4 => Some(Record::IrqName { irq: bits.take_u8(8)?, name: text(bits)? }),
        5 => Some(Record::Bye { events: bits.take_u32(32)? }),
        6 => {
            let (slot, more) = (bits.take_u8(7)?, bits.flag()?);
            Some(Record::Name { slot, more, piece: text(bits)? })
        }
        _ => None,
    }
}

fn hello(bits: &mut Bits<'_>) -> Option<Record> {
    let version = bits.take_u8(4)?;
    if !VERSIONS.contains(&version) {
        return Some(Record::Unknown);
    }
    let hello = Hello {
        version,
        again: bits.flag()?,
        cpu: bits.take_u16(16)?,
        counter_khz: bits.take_u32(32)?,
        shift: bits.take_u8(5)?,
        words: bits.take_u8(4)?,
        preempted_bit: bits.take_u8(4)?,
    };
    let _probes = bits.take(8)?;
    Some(Record::Hello(hello))
}
