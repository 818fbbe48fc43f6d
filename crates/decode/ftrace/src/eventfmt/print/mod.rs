//! Print fmts: C expressions that are compiled once and evaluated for every record.
//!
//! `lexer` and `parser` turn the text into the tree of `ir`, `eval` computes its numbers and
//! `writer` its text. Numbers have C types, so that signs and widths are those of the kernel.

mod binary_print;
mod block;
mod constants;
mod eval;
mod ir;
mod lexer;
mod masks;
mod operators;
mod parser;
mod plain;
mod pointer;
mod primary;
mod quick;
mod raw_like;
mod remembered;
mod shown_values;
mod spec;
mod stack;
mod steps;
mod symbols;
mod tables;
mod template;
mod texts;
mod value;
mod writer;

use raw_bytes::Abi;

use crate::eventfmt::error::{PrintError, WriteError};
use crate::eventfmt::format::EventFormat;
use crate::eventfmt::kallsyms::Kallsyms;
use crate::eventfmt::printk_formats::PrintkFormats;
use eval::Record;
use ir::Piece;
use parser::Parser;
use steps::Step;
use writer::Writer;

pub use shown_values::{NamedValue, ShownValue};

/// Data that printing needs besides the record: names and strings of the recorded kernel.
#[derive(Clone, Copy, Debug)]
pub struct PrintContext<'a> {
    /// Names of kernel functions.
    pub kallsyms: &'a Kallsyms,
    /// Constant strings of the kernel.
    pub printk: &'a PrintkFormats,
}

/// A compiled print fmt.
#[derive(Clone, Debug)]
pub struct PrintProgram {
    abi: Abi,
    pieces: Box<[Piece]>,
    /// The pieces as optimized steps for each record.
    steps: Box<[Step]>,
    is_always_plain: bool,
    needs_kernel: bool,
    special: Option<Special>,
}

/// Events that are not printed by their pieces.
#[derive(Clone, Copy, Debug)]
enum Special {
    Binary(binary_print::BinaryPrint),
    Stack(stack::StackPrint),
}

impl Special {
    fn for_event(format: &EventFormat, pieces: &[Piece]) -> Option<Self> {
        let stack = || stack::StackPrint::for_event(format, pieces).map(Self::Stack);
        binary_print::BinaryPrint::for_event(format).map(Self::Binary).or_else(stack)
    }

    const fn needs_kernel(self) -> bool {
        match self {
            Self::Binary(_) => true,
            Self::Stack(stack) => stack.needs_kernel(),
        }
    }
}

impl PrintProgram {
    /// Compiles the print fmt of an event.
    ///
    /// # Errors
    /// If the print fmt uses a construct that cannot be computed from a record; the error names it.
    pub fn compile(format: &EventFormat, abi: Abi) -> Result<Self, PrintError> {
        let mut parser = Parser::new(format, abi)?;
        let pieces: Box<[Piece]> = parser.template()?.into();
        if parser.peek().is_some() {
            return Err(parser.unexpected("the end"));
        }
        let special = Special::for_event(format, &pieces);
        let is_always_plain = special.is_none() && plain::is_always_plain(&pieces);
        let needs_kernel =
            special.map_or_else(|| plain::needs_kernel(&pieces), Special::needs_kernel);
        let steps = steps::steps_of(&pieces);
        Ok(Self { abi, steps, pieces, is_always_plain, needs_kernel, special })
    }

    /// Whether [`write`](Self::write) appends only printable ASCII characters and tabs, for any
    /// record.
    #[must_use]
    pub fn is_always_plain(&self) -> bool {
        self.is_always_plain
    }

    /// Whether [`write`](Self::write) may need the kernel's symbols or strings; otherwise any
    /// context will do.
    #[must_use]
    pub fn needs_kernel(&self) -> bool {
        self.needs_kernel
    }

    /// Appends the text of a record.
    ///
    /// # Errors
    /// If the record is too short; partial output is removed.
    pub fn write(
        &self,
        record: &[u8],
        context: &PrintContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let start = out.len();
        let record = Record::new(record, self.abi);
        let writer = Writer { record, context: *context };
        let result = match &self.special {
            Some(Special::Binary(binary)) => binary.write(writer, self.abi, out),
            Some(Special::Stack(stack)) => stack.write(writer, self.abi, out),
            None => steps::write(&self.steps, writer, out),
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }
}
