//! `trace_printk` and markers: text that the traced kernel or a program wrote.

use ftrace::eventfmt::{EventFormat, Kallsyms, PrintContext, PrintProgram, PrintkFormats};
use raw_bytes::{Abi, ByteOrder, LongSize};

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };

const HEAD: &str = "format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
";

fn text(format: &str, record: &[u8]) -> String {
    let format = EventFormat::parse("ftrace", format.as_bytes()).unwrap();
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let kallsyms = Kallsyms::parse(b"1000 t do_it\n2000 t end\n");
    let printk = PrintkFormats::parse(b"0x3000 : \"%s took %d of %lld (%c %hd) %5.1x%%\\n\"\n");
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = Vec::new();
    program.write(record, &context, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn bprint(record: &[u8]) -> String {
    let rest = "\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;

print fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n";
    text(&format!("name: bprint\nID: 6\n{HEAD}{rest}"), record)
}

fn start(format: u64) -> Vec<u8> {
    let mut record = vec![6, 0, 0, 0, 0, 0, 0, 0];
    record.extend_from_slice(&0x1010u64.to_le_bytes());
    record.extend_from_slice(&format.to_le_bytes());
    record
}

#[test]
fn arguments_lie_where_the_kernel_packs_them() {
    let mut record = start(0x3000);
    record.extend_from_slice(b"vmm\0\xfb\xff\xff\xff");
    record.extend_from_slice(&7u64.to_le_bytes());
    // A character, a short at the next even byte, an int at the next multiple of four.
    record.extend_from_slice(&[b'x', 0, 9, 0, 0xff, 0, 0, 0]);
    assert_eq!(bprint(&record), "do_it: vmm took -5 of 7 (x 9)    ff%");
}

#[test]
fn an_unknown_format_is_shown_by_its_address() {
    assert_eq!(bprint(&start(0x4000)), "do_it: (NO FORMAT FOUND at 4000)\n");
}

#[test]
fn markers_end_at_their_nul() {
    let rest = "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;

print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n";
    let mut record = vec![5, 0, 0, 0, 0, 0, 0, 0];
    record.extend_from_slice(&0u64.to_le_bytes());
    record.extend_from_slice(b"hello\0junk");
    assert_eq!(text(&format!("name: print\nID: 5\n{HEAD}{rest}"), &record), "0x0: hello");
}
