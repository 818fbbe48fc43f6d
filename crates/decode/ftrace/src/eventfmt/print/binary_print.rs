//! `trace_printk`: records with the address of a format string, and its arguments.

use raw_bytes::Abi;

use super::pointer::{self, Meaning};
use super::spec::{self, Amount, Length, Spec};
use super::writer::Writer;
use crate::eventfmt::digits::{self, Radix, Shape};
use crate::eventfmt::error::WriteError;
use crate::eventfmt::field::until_nul;
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::number::{NumberAt, sign_extend};

/// Positions of the parts of a `bprint` record.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryPrint {
    ip: NumberAt,
    format: NumberAt,
    arguments: u32,
}

/// Unused arguments, aligned as in the record.
struct Arguments<'w> {
    writer: Writer<'w>,
    abi: Abi,
    next: usize,
}

impl BinaryPrint {
    /// The layout of `ftrace:bprint`; `None` for other events.
    pub(super) fn for_event(format: &EventFormat) -> Option<Self> {
        if format.full_name() != "ftrace:bprint" {
            return None;
        }
        Some(Self {
            ip: format.field("ip")?.number()?,
            format: format.field("fmt")?.number()?,
            arguments: format.field("buf")?.offset,
        })
    }

    /// Appends `function: message`.
    pub(super) fn write(
        &self,
        writer: Writer<'_>,
        abi: Abi,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let record = writer.record;
        let number = |at: NumberAt| at.read(record.bytes, record.order).ok_or(WriteError::Short);
        name(writer, number(self.ip)?, false, out);
        out.extend_from_slice(b": ");
        let address = number(self.format)?;
        let Some(format) = writer.context.printk.get(address) else {
            out.extend_from_slice(b"(NO FORMAT FOUND at ");
            digits::plain(out, address, Radix::Hex);
            out.extend_from_slice(b")\n");
            return Ok(());
        };
        Arguments { writer, abi, next: self.arguments as usize }.template(format, out)
    }
}

/// Appends the function of an address.
fn name(writer: Writer<'_>, address: u64, offset: bool, out: &mut Vec<u8>) {
    let Some(symbol) = writer.context.kallsyms.lookup(address) else {
        digits::address(out, address);
        return;
    };
    out.extend_from_slice(symbol.name);
    if offset {
        out.push(b'+');
        digits::address(out, symbol.offset);
    }
}

impl Arguments<'_> {
    fn template(&mut self, format: &[u8], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut rest = format;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            match byte {
                b'\\' => {
                    if let Some((&escaped, tail)) = tail.split_first() {
                        out.push(unescaped(escaped));
                        rest = tail;
                    }
                }
                b'%' if tail.starts_with(b"%") => {
                    out.push(b'%');
                    rest = tail.get(1..).unwrap_or(&[]);
                }
                b'%' => match spec::parse(tail) {
                    Ok((spec, tail)) => {
                        self.conversion(&spec, out)?;
                        rest = tail;
                    }
                    // Text that is not a conversion is printed unchanged.
                    Err(_) => out.push(b'%'),
                },
                byte => out.push(byte),
            }
        }
        Ok(())
    }

    /// The next number, aligned to its size, at most to 4.
    fn number(&mut self, size: u8) -> Result<u64, WriteError> {
        let record = self.writer.record;
        let at = self.next.next_multiple_of(usize::from(size.clamp(1, 4)));
        let number = record.order.uint_at(record.bytes, at, usize::from(size));
        self.next = at.saturating_add(usize::from(size));
        number.ok_or(WriteError::Short)
    }

    fn string(&mut self) -> Result<&[u8], WriteError> {
        let rest = self.writer.record.bytes.get(self.next..).ok_or(WriteError::Short)?;
        let string = until_nul(rest);
        self.next = self.next.saturating_add(string.len()).saturating_add(1);
        Ok(string)
    }

    fn amount(&mut self, amount: Amount) -> Result<usize, WriteError> {
        match amount {
            Amount::Argument => Ok(usize::try_from(self.number(4)?).unwrap_or(0)),
            fixed => Ok(fixed.fixed()),
        }
    }

    fn conversion(&mut self, spec: &Spec<'_>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let width = self.amount(spec.width)?;
        let precision = self.amount(spec.precision)?;
        let precision = (spec.precision != Amount::None).then_some(precision);
        let shape = Shape { width, precision, ..spec.flags };
        let long = self.abi.long.bytes() as u8;
        let size = match spec.length {
            Length::Char => 1,
            Length::Short => 2,
            Length::Int => 4,
            Length::Long => long,
            Length::LongLong => 8,
        };
        match spec.conversion {
            b's' => {
                let start = out.len();
                out.extend_from_slice(self.string()?);
                digits::pad_text(out, start, shape);
            }
            b'p' => self.pointer(spec, long, out)?,
            b'c' => out.extend(Some(self.number(1)? as u8).filter(|&byte| byte != 0)),
            b'd' | b'i' => digits::signed(out, sign_extend(self.number(size)?, size), shape),
            b'u' => digits::unsigned(out, self.number(size)?, Radix::Decimal, shape),
            b'x' => digits::unsigned(out, self.number(size)?, Radix::Hex, shape),
            b'X' => digits::unsigned(out, self.number(size)?, Radix::UpperHex, shape),
            _ => digits::unsigned(out, self.number(size)?, Radix::Octal, shape),
        }
        Ok(())
    }

    fn pointer(&mut self, spec: &Spec<'_>, long: u8, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match pointer::parse(spec.suffix) {
            Meaning::Function { offset } => {
                let address = self.number(long)?;
                name(self.writer, address, offset, out);
            }
            Meaning::Address => digits::address(out, self.number(long)?),
            // The kernel stores the formatted data in the record as a string.
            Meaning::Bytes(_) => out.extend_from_slice(self.string()?),
        }
        Ok(())
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        other => other,
    }
}
