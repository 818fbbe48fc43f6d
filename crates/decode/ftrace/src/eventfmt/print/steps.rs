//! A compiled print fmt as optimized steps: literals, numbers, cached texts.

use super::ir::{ByteRange, Conversion, ConversionKind, Piece, Text};
use super::quick::Quick;
use super::remembered::{Needs, Remembered};
use super::writer::Writer;
use crate::eventfmt::error::WriteError;
use crate::eventfmt::field::append_until_nul;
use crate::eventfmt::often::OftenText;

/// One step in writing a record.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Literal(OftenText),
    Number(Quick),
    Remembered(Box<Remembered>),
    /// A string in the record.
    Chars(ByteRange),
    Conversion(Box<Conversion>),
}

/// Converts pieces to steps.
pub(super) fn steps_of(pieces: &[Piece]) -> Box<[Step]> {
    let mut steps = Steps::default();
    pieces.iter().for_each(|piece| steps.add(piece));
    steps.end_run();
    steps.done.into()
}

/// Writes a record.
#[inline]
pub(super) fn write(
    steps: &[Step],
    writer: Writer<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    for step in steps {
        match step {
            Step::Literal(text) => text.append(out),
            Step::Number(number) => number.write(writer.record, out).ok_or(WriteError::Short)?,
            Step::Remembered(remembered) => remembered.write(writer, out)?,
            Step::Chars(place) => append_until_nul(writer.record.at(*place)?, out),
            Step::Conversion(conversion) => writer.conversion(conversion, out)?,
        }
    }
    Ok(())
}

/// Builder of steps.
#[derive(Default)]
struct Steps {
    done: Vec<Step>,
    /// Pieces that may share a cached text.
    run: Vec<Piece>,
    /// The inputs of these pieces; `None` while all are literals.
    needs: Option<Needs>,
}

impl Steps {
    fn add(&mut self, piece: &Piece) {
        let Piece::Conversion(conversion) = piece else {
            self.run.push(piece.clone());
            return;
        };
        let piece_needs =
            Needs::from_conversion(conversion).and_then(|needs| needs.with(&Needs::default()));
        let Some(piece_needs) = piece_needs else {
            self.end_run();
            self.done.push(match (conversion.quick, &conversion.what) {
                (Some(quick), _) => Step::Number(quick),
                (None, ConversionKind::Text(Text::Chars(place))) if conversion.plain => {
                    Step::Chars(*place)
                }
                (None, _) => Step::Conversion(conversion.clone()),
            });
            return;
        };
        let all = match &self.needs {
            Some(needs) => needs.with(&piece_needs),
            None => Some(piece_needs.clone()),
        };
        self.needs = Some(all.unwrap_or_else(|| {
            self.end_run();
            piece_needs
        }));
        self.run.push(piece.clone());
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        match self.needs.take() {
            Some(needs) => {
                self.done.push(Step::Remembered(Box::new(Remembered::new(needs, run))));
            }
            None => self.done.extend(run.iter().filter_map(|piece| match piece {
                Piece::Literal(text) => Some(Step::Literal(OftenText::new(text))),
                Piece::Conversion(_) => None,
            })),
        }
    }
}
