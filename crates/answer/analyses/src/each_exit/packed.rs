//! Exits in few bytes: zeros, the most frequent value, take no space.

use rustc_hash::FxHashMap;
use timeline::{Detail, ExitSpan, Handler, Outcome, Parts};

use raw_bytes::seven_bits::{NUMBER_BYTES, put, take};

/// Size of a chunk: growing a single buffer would temporarily need twice its size.
const CHUNK_BYTES: usize = 4096;

/// Max bytes of an exit: two of flags, and nine numbers.
const MAX_EXIT_BYTES: usize = 2 + 9 * NUMBER_BYTES;

/// Max texts of a list; exits with further ones have no text.
const MAX_VALUES: usize = 1 << 14;

/// Bytes of a value in its table and as a text.
const VALUE_BYTES: usize = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptExit {
    /// Time of `kvm_exit`.
    pub start_ns: u64,
    /// Time from exit to entry; 0 unless the exit is paired.
    pub length_ns: u64,
    pub outcome: Outcome,
    pub handler: Handler,
    /// See [`ExitSpan::poll_unknown`].
    pub poll_unknown: bool,
    /// Time by part, if the exit is paired.
    pub parts: Parts,
    /// Host work before `kvm_exit`.
    pub before_exit_ns: u64,
    /// Index of the guest's location in the list's values, plus 1; 0 if unknown.
    pub pc: u32,
    /// Index of the detail in the list's values, plus 1; 0 if unknown.
    pub about: u32,
}

impl KeptExit {
    pub(super) fn new(span: &ExitSpan, pc: u32, about: u32) -> Self {
        let is_paired = span.outcome == Outcome::Paired;
        Self {
            start_ns: span.start_ns,
            length_ns: if is_paired { span.duration_ns() } else { 0 },
            outcome: span.outcome,
            handler: span.handler,
            poll_unknown: span.poll_unknown,
            parts: if is_paired { span.parts } else { Parts::default() },
            before_exit_ns: span.before_exit_ns,
            pc,
            about,
        }
    }

    /// Outcome, handler and `poll_unknown` in the page's format.
    #[must_use]
    pub fn flags(&self) -> u8 {
        let outcome = match self.outcome {
            Outcome::Paired => 0,
            Outcome::Unpaired => 1,
            Outcome::LostIn => 2,
        };
        let handler = match self.handler {
            Handler::Kernel => 0,
            Handler::User => 1,
            Handler::L1 => 2,
        };
        outcome | handler << 2 | u8::from(self.poll_unknown) << 4
    }

    /// Fields that are mostly zero.
    fn rare(&self) -> [u64; 7] {
        let Parts { kernel_ns: _, user_ns, runnable_ns, blocked_ns, halt_poll_ns } = self.parts;
        let (pc, about) = (u64::from(self.pc), u64::from(self.about));
        [user_ns, runnable_ns, blocked_ns, halt_poll_ns, self.before_exit_ns, pc, about]
    }
}

/// Exits by start time.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedExits {
    chunks: Vec<Vec<u8>>,
    len: usize,
    last_ns: u64,
}

impl PackedExits {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
    }

    /// Adds an exit; returns false if it starts before the previous one.
    pub(super) fn push(&mut self, exit: KeptExit) -> bool {
        let Some(gap_ns) = exit.start_ns.checked_sub(self.last_ns) else { return false };
        self.last_ns = exit.start_ns;
        self.len += 1;
        let is_full =
            self.chunks.last().is_none_or(|last| last.len() + MAX_EXIT_BYTES > CHUNK_BYTES);
        if is_full {
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES));
        }
        let Some(chunk) = self.chunks.last_mut() else { return false };
        let rare = exit.rare();
        let mask = (0u8..).zip(rare).filter(|(_, value)| *value > 0);
        chunk.extend([exit.flags(), mask.map(|(bit, _)| 1 << bit).sum()]);
        for value in [gap_ns, exit.length_ns].into_iter().chain(rare.into_iter().filter(|&v| v > 0))
        {
            put(chunk, value);
        }
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = KeptExit> {
        let mut start_ns = 0u64;
        self.chunks.iter().flat_map(|chunk| Unpacked(chunk)).map(move |mut exit| {
            start_ns = start_ns.saturating_add(exit.start_ns);
            exit.start_ns = start_ns;
            exit
        })
    }
}

/// Iterator over a chunk. Start times are relative to the previous exit.
struct Unpacked<'c>(&'c [u8]);

impl Iterator for Unpacked<'_> {
    type Item = KeptExit;

    fn next(&mut self) -> Option<KeptExit> {
        let (&[flags, mask], rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        let start_ns = take(&mut self.0)?;
        let length_ns = take(&mut self.0)?;
        let mut rare = [0; 7];
        for (bit, value) in rare.iter_mut().enumerate() {
            if mask & 1 << bit != 0 {
                *value = take(&mut self.0)?;
            }
        }
        let [user_ns, runnable_ns, blocked_ns, halt_poll_ns, before_exit_ns, pc, about] = rare;
        let others = [user_ns, runnable_ns, blocked_ns, halt_poll_ns];
        let kernel_ns = length_ns.saturating_sub(others.into_iter().fold(0, u64::saturating_add));
        let parts = Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns };
        Some(KeptExit {
            start_ns,
            length_ns,
            outcome: match flags & 3 {
                0 => Outcome::Paired,
                1 => Outcome::Unpaired,
                _ => Outcome::LostIn,
            },
            handler: match flags >> 2 & 3 {
                0 => Handler::Kernel,
                1 => Handler::User,
                _ => Handler::L1,
            },
            poll_unknown: flags & 1 << 4 != 0,
            parts,
            before_exit_ns,
            pc: u32::try_from(pc).unwrap_or(0),
            about: u32::try_from(about).unwrap_or(0),
        })
    }
}

/// Numbers of details and guest locations.
#[derive(Debug, Default)]
pub(super) struct ValueTable {
    all: Vec<(Option<Detail>, u64)>,
    numbers: FxHashMap<(Option<Detail>, u64), u32>,
}

impl ValueTable {
    /// Index of a value, plus 1; 0 if there are too many values, or if a program counter is unknown.
    pub(super) fn number(&mut self, kind: Option<Detail>, value: u64) -> u32 {
        if kind.is_none() && value == 0 {
            return 0;
        }
        if let Some(&known) = self.numbers.get(&(kind, value)) {
            return known;
        }
        if self.all.len() >= MAX_VALUES {
            return 0;
        }
        self.all.push((kind, value));
        let number = u32::try_from(self.all.len()).unwrap_or(0);
        self.numbers.insert((kind, value), number);
        number
    }

    pub(super) fn all(&self) -> &[(Option<Detail>, u64)] {
        &self.all
    }

    pub(super) fn bytes(&self) -> usize {
        self.all.len() * VALUE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exit(start_ns: u64, fields: (u8, [u32; 5], u32)) -> KeptExit {
        let (kind, [user, runnable, blocked, poll, before], value) = fields;
        let outcome = [Outcome::Paired, Outcome::Unpaired, Outcome::LostIn][usize::from(kind % 3)];
        let handler = [Handler::Kernel, Handler::User, Handler::L1][usize::from(kind / 3 % 3)];
        let parts = Parts {
            kernel_ns: u64::from(user ^ runnable),
            user_ns: u64::from(user),
            runnable_ns: u64::from(runnable),
            blocked_ns: u64::from(blocked),
            halt_poll_ns: u64::from(poll),
        };
        let is_paired = outcome == Outcome::Paired;
        KeptExit {
            start_ns,
            length_ns: if is_paired { parts.total_ns() } else { 0 },
            outcome,
            handler,
            poll_unknown: kind & 16 != 0,
            parts: if is_paired { parts } else { Parts::default() },
            before_exit_ns: u64::from(before),
            pc: value,
            about: value >> 7,
        }
    }

    proptest! {
        #[test]
        fn exits_come_back(
            all in prop::collection::vec((any::<u32>(), any::<(u8, [u32; 5], u32)>()), 1..700),
        ) {
            let (mut packed, mut at_ns, mut expected) = (PackedExits::default(), 1 << 60, Vec::new());
            for (gap_ns, fields) in all {
                at_ns += u64::from(gap_ns);
                let kept_exit = exit(at_ns, fields);
                prop_assert!(packed.push(kept_exit));
                expected.push(kept_exit);
            }
            prop_assert_eq!(packed.len(), expected.len());
            prop_assert!(packed.iter().eq(expected));
            prop_assert!(!packed.push(exit(at_ns - 1, (0, [0; 5], 0))), "out of order");
        }
    }

    #[test]
    fn values_have_numbers_from_one_on() {
        let mut table = ValueTable::default();
        assert_eq!(table.number(None, 0), 0);
        assert_eq!(table.number(Some(Detail::Port), 0), 1);
        assert_eq!(table.number(None, 7), 2);
        assert_eq!(table.number(Some(Detail::Port), 0), 1);
        for value in 0..1 << 15 {
            table.number(Some(Detail::Gpa), value);
        }
        assert_eq!(table.number(Some(Detail::Gpa), 1 << 40), 0);
        assert_eq!(table.all().len(), MAX_VALUES);
    }
}
