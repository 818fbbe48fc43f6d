//! Stack traces of ftrace: a line per frame.

use raw_bytes::Abi;

use super::ir::{ByteRange, ConversionKind, Piece};
use super::writer::Writer;
use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::error::WriteError;
use crate::eventfmt::field::{ElementForm, FieldKind};
use crate::eventfmt::format::EventFormat;

/// Position and format of the frames of `ftrace:kernel_stack` or `ftrace:user_stack`.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackPrint {
    frames: ByteRange,
    /// Whether to print function names instead of addresses.
    names: bool,
}

impl StackPrint {
    /// The layout of an ftrace event whose print fmt prints only addresses of its last array, of
    /// which it lists the first few; `None` for other events.
    pub(super) fn for_event(format: &EventFormat, pieces: &[Piece]) -> Option<Self> {
        let last = format.fields().last().filter(|last| last.open_ended)?;
        let FieldKind::Array(element) = last.kind else { return None };
        if element.form != ElementForm::Long || !format.name().ends_with("_stack") {
            return None;
        }
        let names = pieces.iter().any(|piece| match piece {
            Piece::Conversion(conversion) => {
                matches!(conversion.what, ConversionKind::Function { .. })
            }
            Piece::Literal(_) => false,
        });
        Some(Self { frames: ByteRange::Fixed { offset: last.offset, len: 0 }, names })
    }

    pub(super) const fn needs_kernel(self) -> bool {
        self.names
    }

    /// Appends `\t=> function`, line by line.
    pub(super) fn write(
        self,
        writer: Writer<'_>,
        abi: Abi,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let bytes = writer.record.at(self.frames)?;
        let long = abi.long.bytes();
        for (index, frame) in bytes.chunks_exact(long).enumerate() {
            let address = abi.order.uint_at(frame, 0, long).unwrap_or(0);
            // Kernels before 5.2 pad the unused space of a stack with all-ones values.
            if frame.iter().all(|&byte| byte == 0xff) {
                break;
            }
            out.extend_from_slice(if index > 0 { b"\n\t=> " } else { b"\t=> " });
            let function = writer.context.kallsyms.lookup_within(address).filter(|_| self.names);
            match function {
                Some(symbol) => out.extend_from_slice(symbol.name),
                None if self.names => digits::address(out, address),
                None => {
                    let shape =
                        Shape { zero: true, width: long.saturating_mul(2), ..Shape::default() };
                    digits::unsigned(out, address, Radix::Hex, shape);
                }
            }
        }
        Ok(())
    }
}
