//! Parses all formats of real kernels and compiles all their print fmts.

use std::fs;
use std::path::Path;

use ftrace::eventfmt::{
    ElementForm, EventFormat, FieldKind, HeaderPage, Kallsyms, NumberForm, PrintContext,
    PrintProgram, PrintkFormats, write_raw,
};
use raw_bytes::{Abi, ByteOrder, LongSize};

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };

fn read(path: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)).unwrap()
}

fn format(path: &str) -> EventFormat {
    EventFormat::parse("kvm", &read(path)).unwrap()
}

fn all_formats(folder: &str) -> Vec<EventFormat> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "format"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let system = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
            EventFormat::parse(system, &fs::read(&path).unwrap()).unwrap()
        })
        .collect()
}

fn text(program: &PrintProgram, record: &[u8]) -> String {
    let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = Vec::new();
    program.write(record, &context, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn record(format: &EventFormat, values: &[(&str, u64)]) -> Vec<u8> {
    let mut record = format.blank_record();
    for &(name, value) in values {
        assert!(format.field(name).unwrap().poke(&mut record, ABI.order, value), "{name}");
    }
    record
}

#[test]
fn every_print_fmt_of_kvm_is_compiled_and_writes_a_blank_record() {
    let formats = all_formats("formats-6.18");
    assert_eq!(formats.len(), 111);
    for format in formats.iter().chain(&all_formats("formats-6.1")) {
        let program = PrintProgram::compile(format, ABI)
            .unwrap_or_else(|error| panic!("{}: {error}", format.full_name()));
        text(&program, &format.blank_record());
        assert_eq!(format.common_fields().len(), 4, "{}", format.full_name());
        assert!(format.record_size() >= 8, "{}", format.full_name());
    }
}

#[test]
fn the_header_page_is_read() {
    let page = HeaderPage::parse(&read("formats-6.18/header_page")).unwrap();
    assert_eq!((page.timestamp_size, page.commit_offset), (8, 8));
    assert_eq!((page.long, page.data_offset, page.data_size), (LongSize::Eight, 16, 4080));
}

#[test]
fn fields_have_their_kinds() {
    let format = format("formats-6.18/kvm.kvm_emulate_insn.format");
    assert_eq!(format.full_name(), "kvm:kvm_emulate_insn");
    let insn = format.field("insn").unwrap();
    let FieldKind::Array(element) = insn.kind else { panic!("{insn:?}") };
    assert_eq!((element.size, element.form), (1, ElementForm::Byte));
    assert_eq!(format.field("common_pid").unwrap().number().map(|at| at.signed), Some(true));
    let format = self::format("formats-6.18/kvm.kvm_nested_vmenter.format");
    let enabled = format.field("tdp_enabled").unwrap();
    assert_eq!(enabled.kind, FieldKind::Number(NumberForm::Bool));
    assert_eq!(format.field("no_such"), None);
}

#[test]
fn x86_exit_reasons_come_from_the_table_of_the_isa() {
    let format = format("formats-6.18/kvm.kvm_exit.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let symbol = |isa, reason| {
        let record = record(&format, &[("isa", isa), ("exit_reason", reason)]);
        let symbol = program.symbol_of(&format, "exit_reason", &record);
        symbol.map(|name| String::from_utf8(name.to_vec()).unwrap())
    };
    assert_eq!(symbol(1, 48).as_deref(), Some("EPT_VIOLATION"));
    assert_eq!(symbol(1, 0x8000_0021).as_deref(), Some("INVALID_STATE"));
    assert_eq!(symbol(2, 0x400).as_deref(), Some("npf"));
    assert_eq!(symbol(2, 0x040 + 14).as_deref(), Some("PF excp"));
    assert_eq!(symbol(1, 9999), None);
    let symbols = program.symbols_of(&format, "exit_reason");
    assert!(symbols.contains(&(12, b"HLT")) && symbols.contains(&(0x78, b"hlt")));
    assert!(program.symbols_of(&format, "guest_rip").is_empty());
}

#[test]
fn flags_next_to_a_reason_are_those_of_the_print_fmt() {
    let format = format("formats-6.18/kvm.kvm_exit.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let flags = |isa, reason| {
        let record = record(&format, &[("isa", isa), ("exit_reason", reason)]);
        program.flags_of(&format, "exit_reason", &record)
    };
    assert_eq!(flags(1, 0x8000_0021).as_deref(), Some("FAILED_VMENTRY"));
    assert_eq!(flags(1, 0x8400_0021).as_deref(), Some("FAILED_VMENTRY 0x4000000"));
    assert_eq!(flags(1, 48).as_deref(), Some(""));
    // Of the other instruction set no flags are written.
    assert_eq!(flags(2, 0x400), None);
}

/// Tables of the kernel's xdp events end in a value without a name, which the preprocessor writes in several ways.
#[test]
fn tables_may_end_in_an_entry_without_a_name() {
    for end in ["{ -1, 0 }", "{ -1, NULL }", "{ -1, ((void *)0) }", "{ -1, 0 }, { 2, \"PASS\" }"] {
        let text = format!(
            "name: e\nID: 7\nformat:\n\
             \tfield:u32 act;\toffset:0;\tsize:4;\tsigned:0;\n\
             \nprint fmt: \"action=%s %s\", \
             __print_symbolic(REC->act, {{ 0, \"ABORTED\" }}, {{ 1, \"DROP\" }}, {end}), \
             __print_flags(REC->act, ((void *)0), {{ 1, \"a\" }}, {end})\n"
        );
        let format = EventFormat::parse("xdp", text.as_bytes()).unwrap();
        let program = PrintProgram::compile(&format, ABI).unwrap();
        let line = |act| self::text(&program, &record(&format, &[("act", act)]));
        assert_eq!(line(1), "action=DROP a", "{end}");
        assert_eq!(line(2), "action=0x2 0x2", "{end}");
    }
}

#[test]
fn arm64_exits_have_two_tables() {
    let format = format("formats-6.1/arm64.kvm_exit.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let record = record(&format, &[("ret", 2), ("esr_ec", 0x24), ("vcpu_pc", 0xffff_0000)]);
    assert_eq!(program.symbol_of(&format, "ret", &record), Some(&b"TRAP"[..]));
    assert_eq!(program.symbol_of(&format, "esr_ec", &record), Some(&b"DABT_LOW"[..]));
    assert_eq!(text(&program, &record), "TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0x00000000ffff0000");
}

#[test]
fn an_empty_table_shows_the_number() {
    let format = format("formats-6.1/x86.kvm_inj_exception.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let values = [("exception", 13), ("has_error", 1), ("error_code", 0x18), ("reinjected", 1)];
    assert_eq!(text(&program, &record(&format, &values)), "#GP (0x18) [reinjected]");
    assert_eq!(text(&program, &record(&format, &[("exception", 6)])), "#UD");
}

#[test]
fn characters_and_missing_names_are_written() {
    let format = self::format("formats-6.1/arm64.kvm_wfx_arm64.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let wfe = record(&format, &[("is_wfe", 1), ("vcpu_pc", 0x10)]);
    assert_eq!(text(&program, &wfe), "guest executed wfe at: 0x0000000000000010");
    let format = self::format("formats-6.1/arm64.kvm_sys_access.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let nameless = record(&format, &[("vcpu_pc", 0xabc), ("Op0", 3), ("is_write", 1)]);
    assert_eq!(text(&program, &nameless), "PC: abc UNKN (3,0,0,0,0) write");
}

#[test]
fn the_role_of_an_mmu_page_is_spelled_out() {
    let format = format("formats-6.18/kvmmmu.kvm_mmu_get_page.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    // Level 4, direct, access "wux", efer_nx, ad_disabled.
    let role = 4 | 1 << 7 | 7 << 8 | 1 << 12 | 1 << 16;
    let values = [("role", role), ("gfn", 0x1f), ("created", 1), ("root_count", 2)];
    assert_eq!(
        text(&program, &record(&format, &values)),
        "sp gen 0 gfn 1f l4 8-byte q0 direct wux nxe !ad root 2 sync new"
    );
}

#[test]
fn signed_fields_keep_their_sign_in_conditions() {
    let format = format("formats-6.18/kvm.kvm_wait_lapic_expire.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let early = record(&format, &[("delta", (-3i64).cast_unsigned())]);
    assert_eq!(text(&program, &early), "vcpu 0: delta -3 (early)");
    let format = self::format("formats-6.18/kvm.kvm_userspace_exit.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let interrupted = record(&format, &[("errno", (-4i64).cast_unsigned())]);
    assert_eq!(text(&program, &interrupted), "reason restart (4)");
}

#[test]
fn instruction_bytes_are_written_in_hex() {
    let format = format("formats-6.18/kvm.kvm_emulate_insn.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let mut record = record(&format, &[("rip", 0x1006f), ("len", 3), ("flags", 5)]);
    let at = format.field("insn").unwrap().offset as usize;
    record[at..at + 3].copy_from_slice(&[0x0f, 0x01, 0xda]);
    assert_eq!(text(&program, &record), "0:1006f:0f 01 da (prot32)");
    let mut raw = Vec::new();
    write_raw(&format, &record, ABI.order, &mut raw);
    let raw = String::from_utf8(raw).unwrap();
    assert!(raw.starts_with(" rip=65647 csbase=0 len=3 insn=ARRAY[0f, 01, da, 00"), "{raw}");
    assert!(raw.ends_with("] flags=5 failed=0"), "{raw}");
}

#[test]
fn strings_elsewhere_in_the_record_are_found() {
    let format = format("formats-6.1/x86.irq_handler_entry.format");
    let program = PrintProgram::compile(&format, ABI).unwrap();
    let mut record = record(&format, &[("irq", 49)]);
    let at = format.field("name").unwrap().offset as usize;
    let start = record.len();
    record[at..at + 2].copy_from_slice(&(start as u16).to_le_bytes());
    record[at + 2..at + 4].copy_from_slice(&8u16.to_le_bytes());
    record.extend_from_slice(b"virtio0\0");
    assert_eq!(text(&program, &record), "irq=49 name=virtio0");
    let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
    let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
    let mut out = b"kept ".to_vec();
    assert!(program.write(&record[..start + 4], &context, &mut out).is_err());
    assert_eq!(out, b"kept ");
}
