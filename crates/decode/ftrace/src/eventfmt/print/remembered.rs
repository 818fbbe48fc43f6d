//! Caches texts that depend on a few bytes of a record, such as names of reasons.

use std::sync::OnceLock;

use super::eval::Record;
use super::ir::{Conversion, ConversionKind, Num, Piece, Text};
use super::writer::Writer;
use crate::eventfmt::error::WriteError;
use crate::eventfmt::number::NumberAt;
use crate::eventfmt::often::OftenText;

/// Maximum record bytes that a cached text depends on.
const KEY_BYTES: usize = 8;
/// Number of cached texts; others are computed each time.
const SLOTS: usize = 64;

/// Pieces whose text depends only on a few bytes of the record.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    needs: Needs,
    pieces: Box<[Piece]>,
    /// By hash of the value. The first value in a slot stays there.
    texts: Box<[OnceLock<(u64, OftenText)>]>,
}

impl Remembered {
    pub(super) fn new(needs: Needs, pieces: Vec<Piece>) -> Self {
        Self { needs, pieces: pieces.into(), texts: (0..SLOTS).map(|_| OnceLock::new()).collect() }
    }

    /// Appends the text of a record.
    #[inline]
    pub(super) fn write(&self, writer: Writer<'_>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if let Some(value) = self.needs.value(writer.record) {
            match self.place(value).and_then(OnceLock::get) {
                Some((key, text)) if *key == value => {
                    text.append(out);
                    return Ok(());
                }
                Some(_) => {}
                None => return self.write_first(value, writer, out),
            }
        }
        writer.pieces(&self.pieces, out)
    }

    fn place(&self, value: u64) -> Option<&OnceLock<(u64, OftenText)>> {
        let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        self.texts.get(hash as usize)
    }

    #[cold]
    fn write_first(
        &self,
        value: u64,
        writer: Writer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let begin = out.len();
        writer.pieces(&self.pieces, out)?;
        if let (Some(place), Some(text)) = (self.place(value), out.get(begin..)) {
            // Another thread may have filled the slot first.
            let _ = place.set((value, OftenText::new(text)));
        }
        Ok(())
    }
}

/// Numbers of a record that a text depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    numbers: Vec<NumberAt>,
}

impl Needs {
    /// The inputs of a conversion to text; `None` if it has others than a few numbers, and for
    /// numeric conversions, which have too many values to cache.
    pub(super) fn from_conversion(conversion: &Conversion) -> Option<Self> {
        let ConversionKind::Text(text) = &conversion.what else { return None };
        let mut needs = Self::default();
        let widths = conversion.width.iter().chain(&conversion.precision);
        let known =
            needs.add_text(text) && widths.fold(true, |all, number| all & needs.add(number));
        known.then_some(needs)
    }

    /// The union of both; `None` if it is too large.
    pub(super) fn with(&self, other: &Self) -> Option<Self> {
        let mut all = self.clone();
        other.numbers.iter().for_each(|&at| all.add_number(at));
        let bytes: usize = all.numbers.iter().map(|at| usize::from(at.size)).sum();
        (bytes <= KEY_BYTES).then_some(all)
    }

    /// The bytes in the record; `None` if the record is too short.
    #[inline]
    fn value(&self, record: Record<'_>) -> Option<u64> {
        let mut value = 0u64;
        for at in &self.numbers {
            let bits = u32::from(at.size).wrapping_mul(8);
            value = value.wrapping_shl(bits) | at.read(record.bytes, record.order)?;
        }
        Some(value)
    }

    fn add_number(&mut self, at: NumberAt) {
        if !self.numbers.contains(&at) {
            self.numbers.push(at);
        }
    }

    fn add(&mut self, num: &Num) -> bool {
        match num {
            Num::Const(_) => true,
            Num::Field(at) => {
                self.add_number(*at);
                true
            }
            Num::Element(_) | Num::Length(_) => false,
            Num::Binary(binary) => self.add(&binary.lhs) && self.add(&binary.right),
            Num::Choice(parts) => parts.iter().all(|part| self.add(part)),
            Num::Not(inner)
            | Num::Cast(inner, _)
            | Num::Swap(inner, _)
            | Num::LowestBit(inner)
            | Num::HighestBit(inner) => self.add(inner),
        }
    }

    fn add_text(&mut self, text: &Text) -> bool {
        match text {
            Text::Literal(_) => true,
            Text::Symbol(symbolic) => self.add(&symbolic.value),
            Text::Flags(flags) => self.add(&flags.value),
            Text::Choice(parts) => {
                let (condition, yes, no) = &**parts;
                self.add(condition) && self.add_text(yes) && self.add_text(no)
            }
            Text::Indexed(_, index) => self.add(index),
            _ => false,
        }
    }
}
