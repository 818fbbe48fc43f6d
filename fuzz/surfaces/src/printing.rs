//! Reads and prints a record of an event in every way.

use ftrace::eventfmt::{
    EventFormat, Kallsyms, PrintContext, PrintProgram, PrintkFormats, write_raw,
};
use raw_bytes::Abi;

/// Maximum text of a record: each conversion of a print fmt can repeat a field.
const MAX_TEXT: usize = 4 << 20;

/// Data of the recorded kernel besides the event format.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) abi: Abi,
    pub(crate) kallsyms: Kallsyms,
    pub(crate) printk: PrintkFormats,
}

impl Kernel {
    /// A kernel with two symbols, and a constant string at address 0.
    pub(crate) fn new(abi: Abi, string: &[u8]) -> Self {
        let kallsyms = Kallsyms::parse(b"10 t low\nffffffffffffff00 t high [m]\n");
        let printk = PrintkFormats::parse(&[b"0x0 : \"", string, b"\"\n"].concat());
        Self { abi, kallsyms, printk }
    }

    /// Prints `record`, whose content is arbitrary.
    pub(crate) fn print(&self, format: &EventFormat, record: &[u8]) {
        let order = self.abi.order;
        let mut out = Vec::new();
        write_raw(format, record, order, &mut out);
        for field in format.fields().iter().chain(format.common_fields()) {
            let value = field.value(record, order);
            assert!(value.is_none() || field.bytes(record, order).is_some(), "a value of no bytes");
            let numbers = (field.unsigned(record, order), field.signed(record, order));
            assert_eq!(numbers.0.is_some(), numbers.1.is_some());
        }
        match PrintProgram::compile(format, self.abi) {
            Ok(program) => self.run(&program, format, record),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    fn run(&self, program: &PrintProgram, format: &EventFormat, record: &[u8]) {
        let context = PrintContext { kallsyms: &self.kallsyms, printk: &self.printk };
        let mut out = b"before".to_vec();
        let result = program.write(record, &context, &mut out);
        assert!(out.starts_with(b"before") && out.len() < MAX_TEXT, "{} bytes", out.len());
        assert!(result.is_ok() || out == b"before", "text of a record that can't be printed");
        let mut again = b"before".to_vec();
        assert_eq!(program.write(record, &context, &mut again), result);
        assert!(again == out, "printed twice, it differs");

        out.clear();
        program.write_fields(format, record, &context, &mut out);
        assert!(out.len() < MAX_TEXT, "{} bytes of fields", out.len());
        for field in format.fields() {
            let all = program.symbols_of(format, &field.name);
            if let Some(name) = program.symbol_of(format, &field.name, record) {
                assert!(all.iter().any(|(_, known)| *known == name), "a name of no value");
            }
        }
    }
}
