//! Formats and records that no kernel writes: none may panic, loop or use unbounded memory.

use std::fs;
use std::path::Path;

use ftrace::eventfmt::{
    EventFormat, HeaderPage, Kallsyms, PrintContext, PrintProgram, PrintkFormats, write_raw,
};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use raw_bytes::{Abi, ByteOrder, LongSize};

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats-6.18");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn abis() -> impl Strategy<Value = Abi> {
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let long = prop_oneof![Just(LongSize::Four), Just(LongSize::Eight)];
    (order, long).prop_map(|(order, long)| Abi { order, long })
}

/// Fragments of print fmts in random order, so that most results are nearly valid.
fn print_fmts() -> impl Strategy<Value = String> {
    let pieces = [
        "\"%d %s\"",
        "\"%*ph\"",
        "\"%*pbl %pI4\"",
        ",",
        "REC->a",
        "REC->bytes",
        "REC->comm",
        "REC->list",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "({",
        "})",
        ";",
        "?",
        ":",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">>",
        "&",
        "&&",
        "!",
        "~",
        "0",
        "1",
        "-1",
        "0xffffffffffffffff",
        "(u8)",
        "(void *)",
        "sizeof(",
        "__print_symbolic(",
        "__print_flags(",
        "__print_hex(",
        "__print_array(",
        "__get_dynamic_array(list)",
        "__get_str(list)",
        "{ 1, \"x\" }",
        "\"|\"",
        "trace_seq_printf(p,",
        "role.level",
        "union kvm_mmu_page_role role;",
        "'c'",
    ];
    vec(0..pieces.len(), 0..40).prop_map(move |picks| {
        let picked: Vec<_> = picks.into_iter().filter_map(|at| pieces.get(at)).copied().collect();
        format!("\"%d\", {}", picked.join(" "))
    })
}

/// Compiles and runs everything possible; ignores the results.
fn run(format: &EventFormat, abi: Abi, record: &[u8]) {
    let kallsyms = Kallsyms::parse(b"10 t low\nffffffffffffff00 t high [m]\n");
    let printk = PrintkFormats::parse(b"0x0 : \"%s %*d %pS %ph\"\n");
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = Vec::new();
    write_raw(format, record, abi.order, &mut out);
    for field in format.fields() {
        let _ = field.value(record, abi.order);
    }
    if let Ok(program) = PrintProgram::compile(format, abi) {
        out.clear();
        let _ = program.write(record, &context, &mut out);
        program.write_fields(format, record, &context, &mut out);
        for field in format.fields() {
            let _ = program.symbol_of(format, &field.name, record);
        }
        assert!(out.len() < 1 << 22, "{} bytes", out.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_texts_are_parsed_or_refused(
        pick in any::<proptest::sample::Index>(),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<proptest::sample::Index>(),
        abi in abis(),
        record in vec(any::<u8>(), 0..200),
    ) {
        let texts = texts();
        let mut text = pick.get(&texts).clone().into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let cut = cut.index(text.len() * 2);
        text.truncate(cut.max(1));
        let _ = HeaderPage::parse(&text);
        if let Ok(format) = EventFormat::parse("kvm", &text) {
            run(&format, abi, &record);
        }
    }

    #[test]
    fn any_print_fmt_and_record_is_survived(
        print_fmt in print_fmts(),
        abi in abis(),
        record in vec(any::<u8>(), 0..100),
    ) {
        let text = format!(
            "name: bprint\nID: 1\n\
            field:int a; offset:4; size:4; signed:1;\n\
            field:u64 ip; offset:8; size:8; signed:0;\n\
            field:u64 fmt; offset:16; size:8; signed:0;\n\
            field:u8 bytes[9]; offset:24; size:9; signed:0;\n\
            field:char comm[]; offset:33; size:0; signed:0;\n\
            field:__data_loc u16[] list; offset:36; size:4; signed:0;\n\
            field:u32 buf[]; offset:40; size:0; signed:0;\n\
            print fmt: {print_fmt}"
        );
        for system in ["kvm", "ftrace"] {
            run(&EventFormat::parse(system, text.as_bytes()).unwrap(), abi, &record);
        }
    }

    #[test]
    fn real_formats_survive_any_record(
        pick in any::<proptest::sample::Index>(),
        abi in abis(),
        record in vec(any::<u8>(), 0..200),
    ) {
        let texts = texts();
        if let Ok(format) = EventFormat::parse("kvm", pick.get(&texts).as_bytes()) {
            run(&format, abi, &record);
        }
    }

    #[test]
    fn symbol_texts_of_any_kind_are_survived(text in vec(any::<u8>(), 0..300), at in any::<u64>()) {
        let _ = Kallsyms::parse(&text).lookup(at);
        let _ = PrintkFormats::parse(&text).get(at);
        let _ = EventFormat::parse("x", &text);
    }
}
