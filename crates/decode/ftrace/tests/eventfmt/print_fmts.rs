//! Each construct of print fmts, on handwritten records.

use ftrace::eventfmt::{
    EventFormat, Kallsyms, PrintContext, PrintError, PrintProgram, PrintkFormats, WriteError,
};
use raw_bytes::{Abi, ByteOrder, LongSize};

const FIELDS: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:int a;\toffset:4;\tsize:4;\tsigned:1;
\tfield:u64 b;\toffset:8;\tsize:8;\tsigned:0;
\tfield:u8 bytes[8];\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;
\tfield:void * fn;\toffset:32;\tsize:8;\tsigned:0;
\tfield:__data_loc u16[] list;\toffset:40;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] rel;\toffset:44;\tsize:4;\tsigned:0;
\tfield:__data_loc cpumask_t cpus;\toffset:48;\tsize:4;\tsigned:0;
\tfield:s8 c;\toffset:52;\tsize:1;\tsigned:1;
";

fn event(print_fmt: &str) -> EventFormat {
    let text = format!("name: it\nID: 7\nformat:\n{FIELDS}\nprint fmt: {print_fmt}\n");
    EventFormat::parse("test", text.as_bytes()).unwrap()
}

fn record(order: ByteOrder) -> Vec<u8> {
    let format = event("\"\"");
    let mut record = format.blank_record();
    record.resize(56, 0);
    let mut poke = |name, value: i64| {
        assert!(format.field(name).unwrap().poke(&mut record, order, value.cast_unsigned()));
    };
    poke("a", -5);
    poke("b", 0x1_0000_00ff);
    poke("fn", 0xffff_1010);
    poke("c", -1);
    record[16..24].copy_from_slice(&[0xc0, 0xa8, 0, 1, 0xde, 0xad, 0xbe, 0xef]);
    record[24..27].copy_from_slice(b"vmm");
    let list: [u16; 2] = [0x0102, 3];
    let word = |record: &mut [u8], at: usize, offset: u32, len: u32| {
        let word = len << 16 | offset;
        let bytes =
            if order == ByteOrder::Little { word.to_le_bytes() } else { word.to_be_bytes() };
        record[at..at + 4].copy_from_slice(&bytes);
    };
    word(&mut record, 40, 56, 4);
    word(&mut record, 44, 60 - 48, 4);
    word(&mut record, 48, 64, 8);
    for number in list {
        let bytes =
            if order == ByteOrder::Little { number.to_le_bytes() } else { number.to_be_bytes() };
        record.extend_from_slice(&bytes);
    }
    record.extend_from_slice(b"rel\0");
    let mask = 0b1011u64;
    let mask = if order == ByteOrder::Little { mask.to_le_bytes() } else { mask.to_be_bytes() };
    record.extend_from_slice(&mask);
    record
}

fn shown_in(print_fmt: &str, abi: Abi) -> String {
    let program = PrintProgram::compile(&event(print_fmt), abi)
        .unwrap_or_else(|error| panic!("{print_fmt}: {error}"));
    let kallsyms = Kallsyms::parse(b"ffff1000 t do_it\nffff2000 t end\n");
    let printk = PrintkFormats::parse(b"0xffff1010 : \"a name\"\n");
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = Vec::new();
    program.write(&record(abi.order), &context, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text, which must be the same in both byte orders.
#[track_caller]
fn shown(print_fmt: &str) -> String {
    let long = LongSize::Eight;
    let little = shown_in(print_fmt, Abi { order: ByteOrder::Little, long });
    assert_eq!(little, shown_in(print_fmt, Abi { order: ByteOrder::Big, long }));
    little
}

fn refused(print_fmt: &str) -> PrintError {
    let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    PrintProgram::compile(&event(print_fmt), abi).unwrap_err()
}

#[test]
fn numbers_have_the_sizes_of_their_conversions() {
    assert_eq!(shown(r#""%d %u %x %lx", REC->a, REC->a, REC->a, REC->b"#), {
        "-5 4294967291 fffffffb 1000000ff"
    });
    assert_eq!(shown(r#""%x %hx %hhu %#llx", REC->b, REC->b, REC->b, REC->b"#), {
        "ff ff 255 0x1000000ff"
    });
    assert_eq!(shown(r#""[%6d|%-6d|%06d|%+d]", REC->a, REC->a, REC->a, 3"#), {
        "[    -5|-5    |-00005|+3]"
    });
    assert_eq!(shown(r#""%*d|%-*d|%.*s", 4, 7, 3, 7, 2, REC->comm"#), "   7|7  |vm");
    assert_eq!(shown(r#""100%% %c%o", 'x', 8"#), "100% x10");
    assert_eq!(shown(r#""%d", REC->c"#), "-1");
}

#[test]
fn operators_compute_as_in_c() {
    assert_eq!(shown(r#""%d", REC->a < 0 && REC->b > 0"#), "1");
    assert_eq!(shown(r#""%d", -REC->a * 2 + (1 << 3) - 7 / 2 % 2"#), "17");
    assert_eq!(shown(r#""%llx", ~REC->b & 0xffff"#), "ff00");
    assert_eq!(shown(r#""%u", (u8)(REC->b >> 4) | 0x300"#), "783");
    assert_eq!(shown(r#""%d", REC->a == -5 ? 1 : 2"#), "1");
    assert_eq!(shown(r#""%llu", (unsigned long long)REC->b ^ 0xffULL"#), "4294967296");
    assert_eq!(shown(r#""%d %d", !REC->a, !!REC->a"#), "0 1");
    assert_eq!(shown(r#""%d", REC->c == -1"#), "1");
    assert_eq!(shown(r#""%d %d", (bool)0x100, (REC)->a"#), "1 -5");
    assert_eq!(shown(r#""%d %d", REC->a ?: 3, 0 ?: 3"#), "-5 3");
    assert_eq!(shown(r#""%u:%u", ((unsigned int) ((0x800003U) >> 20)), MINOR(0x800003)"#), "8:3");
}

#[test]
fn helpers_of_the_kernel_are_known() {
    assert_eq!(shown(r#""%lu %lu", sizeof(u32), sizeof(REC->bytes)"#), "4 8");
    assert_eq!(shown(r#""%d %d", __fls(REC->b), ffs(REC->b)"#), "32 1");
    assert_eq!(shown(r#""%d", __builtin_expect(!!(REC->a), 0)"#), "1");
    assert_eq!(shown(r#""%d %d", min(REC->a, 3), max(REC->a, 3)"#), "-5 3");
    assert_eq!(shown(r#""%x", ({ (u32)0x12; })"#), "12");
    assert_eq!(shown(r#""%x", __builtin_bswap32(0x11223344)"#), "44332211");
    assert_eq!(
        shown(
            r#""%llu.%09u", __print_ns_to_secs(5000000007ULL), __print_ns_without_secs(5000000007ULL)"#
        ),
        "5.000000007"
    );
}

#[test]
fn tables_name_values() {
    let table = r#"{ 0, "none" }, { 0xff, "low" "er" }, { NO_SUCH_NAME, "x" }, { -5, "minus" }"#;
    assert_eq!(shown(&format!(r#""%s", __print_symbolic(REC->a, {table})"#)), "minus");
    assert_eq!(shown(&format!(r#""%8s|", __print_symbolic(REC->b & 0xff, {table})"#)), "   lower|");
    assert_eq!(shown(&format!(r#""%s", __print_symbolic(REC->b, {table})"#)), "0x1000000ff");
    let flags = r#"{ 0x0f, "LOW" }, { 0x10, "MID" }, { 0, "ZERO" }"#;
    assert_eq!(
        shown(&format!(r#""%s", __print_flags(REC->b, "|", {flags})"#)),
        "LOW|MID|0x1000000e0"
    );
    assert_eq!(shown(&format!(r#""[%s]", __print_flags(0, "|", {flags})"#)), "[]");
}

#[test]
fn strings_and_arrays_are_found() {
    assert_eq!(shown(r#""%s %5s|%-5s|", REC->comm, REC->comm, REC->comm"#), "vmm   vmm|vmm  |");
    assert_eq!(shown(r#""%s %s", __get_rel_str(rel), REC->a > 0 ? "pos" : "neg""#), "rel neg");
    assert_eq!(shown(r#""%s", __print_hex(REC->bytes, 4)"#), "c0 a8 00 01");
    assert_eq!(shown(r#""%s", __print_hex_str(REC->bytes, 2)"#), "c0a8");
    assert_eq!(
        shown(
            r#""%s", __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 2, 2)"#
        ),
        "{0x102,0x3}"
    );
    assert_eq!(shown(r#""%s", __print_dynamic_array(list, sizeof(u16))"#), "{0x102,0x3}");
    assert_eq!(shown(r#""%d %d", REC->bytes[4], ((u16 *)__get_dynamic_array(list))[1]"#), "222 3");
    assert_eq!(
        shown(r#""%s %s", __get_cpumask(cpus), __get_bitmask(cpus)"#),
        "0-1,3 00000000,0000000b"
    );
    assert_eq!(shown(r#""%*pbl", 2, __get_dynamic_array(cpus)"#), "0-1");
}

#[test]
fn pointers_are_named() {
    assert_eq!(shown(r#""%p %px %pK", REC->fn, REC->fn, REC->fn"#), {
        "0xffff1010 0xffff1010 0xffff1010"
    });
    assert_eq!(shown(r#""%ps %pS %pf %pB", REC->fn, REC->fn, REC->fn, (void *)REC->fn"#), {
        "do_it do_it+0x10 do_it do_it+0x10"
    });
    assert_eq!(shown(r#""%s", (char *)REC->fn"#), "a name");
    assert_eq!(shown(r#""%pI4 %pM", REC->bytes, REC->bytes"#), "192.168.0.1 c0:a8:00:01:de:ad");
    assert_eq!(shown(r#""%*ph|%*phN|%4phD", 2, REC->bytes, 3, REC->bytes, &REC->bytes"#), {
        "c0 a8|c0a800|c0-a8-00-01"
    });
    assert_eq!(shown(r#""%p", 0"#), "(nil)");
}

#[test]
fn dumps_have_a_row_for_each_sixteen_bytes() {
    let dump = r#""%s", __print_hex_dump("at ", 2, 16, 1, REC->bytes, 8, true)"#;
    assert_eq!(
        shown(dump),
        "\nat 00000000: c0 a8 00 01 de ad be ef                          ........\n"
    );
}

#[test]
fn what_cannot_be_computed_is_named() {
    let message = |print_fmt: &str| refused(print_fmt).to_string();
    assert_eq!(message(r#""%d", jiffies_to_msecs(REC->a)"#), {
        "the function `jiffies_to_msecs` is not supported"
    });
    assert_eq!(message(r#""%d", SOME_ENUM"#), "the constant `SOME_ENUM` is not supported");
    assert_eq!(message(r#""%d", REC->nope"#), "the event has no field `nope`");
    assert_eq!(message(r#""%d %d", REC->a"#), "no argument for `%d`");
    assert!(message(r#""%d", REC->a REC"#).contains("expected `"));
    assert_eq!(message(r#""%y", REC->a"#), "the conversion `%y` is not supported");
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(3000), close.repeat(3000));
        refused(&format!("\"%d\", {open}REC->a{close}"))
    };
    assert_eq!(deep("(", ")"), PrintError::TooDeep);
    assert_eq!(deep("~", ""), PrintError::TooDeep);
    assert_eq!(deep("", " + REC->a"), PrintError::TooDeep);
    assert_eq!(deep("1 ? 2 : ", ""), PrintError::TooDeep);
    assert_eq!(deep("REC->bytes[", "]"), PrintError::TooDeep);
    assert_eq!(shown(&format!("\"%d\", 1{}", " + 1".repeat(3000))), "3001");
}

#[test]
fn the_number_of_conversions_is_bounded() {
    let many = |count: usize| format!("\"{}\"{}", "%d".repeat(count), ", 1".repeat(count));
    assert_eq!(shown(&many(512)), "1".repeat(512));
    assert_eq!(refused(&many(513)), PrintError::TooManyConversions(512));
}

#[test]
fn division_by_zero_is_an_error_of_the_record() {
    let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    let program = PrintProgram::compile(&event(r#""x %d", 1 / (REC->a + 5)"#), abi).unwrap();
    let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = Vec::new();
    let error = program.write(&record(abi.order), &context, &mut out).unwrap_err();
    assert_eq!(error, WriteError::DivisionByZero);
    assert!(out.is_empty());
}

#[test]
fn a_long_of_four_bytes_is_shown_as_such() {
    let abi = Abi { order: ByteOrder::Big, long: LongSize::Four };
    let print_fmt = r#""%lx %llx %lu", REC->b, REC->b, sizeof(long)"#;
    assert_eq!(shown_in(print_fmt, abi), "ff 1000000ff 4");
}
