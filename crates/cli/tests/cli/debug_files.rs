//! Only servers in the environment name code of stripped programs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hypertrace::collected::{Begin, ClockPair, Entry, VERSION};
use perfdata::{
    Attr, BuildId, EarlierMapping, Flags, PipeWriter, event_type, flag, kind, marker, sample_type,
};
use serde_json::Value;
use symbols::ElfFunctions;

use crate::tool::{command, hyperscope, repository};

/// A host's recording with exits that its VMM handled, and the thread of its vCPU.
const HOST: &str = "fixtures/x86-vmx/vmm.dat";
const VCPU: u32 = 171;
const FUNCTION: &str = "only_in_the_debug_file";
const BASE: u64 = 0x5555_0000_0000;
/// `PERF_RECORD_MISC_USER`.
const HOST_USER: u16 = 2;

/// A program's debug file, its build id, the mapping of its code, and the offset of its function.
struct Program {
    debug: Vec<u8>,
    build_id: BuildId,
    mapped: (u64, u64),
    into: u64,
}

fn build(folder: &Path) -> Program {
    let [source, binary, debug] = ["p.c", "whole", "p.debug"].map(|name| folder.join(name));
    let text = format!(
        "static volatile int sum;\n\
         static __attribute__((noinline)) int {FUNCTION}(int n) {{ return sum += n; }}\n\
         int main(void) {{ return {FUNCTION}(1); }}\n"
    );
    fs::write(&source, text).unwrap();
    let run = |program: &str, arguments: &[&str], files: [&PathBuf; 2]| {
        assert!(Command::new(program).args(arguments).args(files).status().unwrap().success());
    };
    run("gcc", &["-g", "-O1", "-Wl,--build-id=sha1", "-o"], [&binary, &source]);
    run("objcopy", &["--only-keep-debug"], [&binary, &debug]);
    let debug = fs::read(debug).unwrap();
    let functions = ElfFunctions::parse(&debug).unwrap();
    let code = functions.segments[0];
    let is_in_function =
        |at: &u64| functions.at(&debug, *at).is_some_and(|found| found.name == FUNCTION.as_bytes());
    let at = (code.address..code.address + code.len).find(is_in_function).unwrap();
    let begin = code.address & !4095;
    let len = (code.address + code.len).next_multiple_of(4096) - begin;
    let build_id = functions.build_id.unwrap();
    Program { build_id, mapped: (begin, len), into: at - begin, debug }
}

/// The times at which the VMM began to handle exits, in nanoseconds.
fn handled() -> Vec<u64> {
    let words = ["events", "--format", "jsonl", "-e", "kvm:kvm_userspace_exit", HOST];
    let run = hyperscope(&words);
    assert_eq!(run.code, 0, "{}", run.err);
    let time = |line: &str| serde_json::from_str::<Value>(line).unwrap()["ts_ns"].as_u64().unwrap();
    run.out.lines().map(time).collect()
}

/// A session with samples of the VMM, all in the program's function.
fn session(folder: &Path, program: &Program) -> String {
    let session = folder.join("s.hscope");
    fs::create_dir(&session).unwrap();
    fs::copy(repository().join(HOST), session.join("host.dat")).unwrap();
    let times = handled();
    let trace_id = sources::open(&repository().join(HOST)).unwrap().trace_id().unwrap_or(0);
    let begin = Begin { version: VERSION, trace_id, clock: "local".into(), ..Begin::default() };
    let pair = |ns| Entry::Pair(ClockPair { mono_before_ns: ns, trace: ns, mono_after_ns: ns });
    let ends = [times[0], times[times.len() - 1] + 1_000_000_000];
    let entries = [Entry::Begin(begin)].into_iter().chain(ends.map(pair));
    let clock: Vec<u8> = entries.flat_map(|entry| entry.to_bytes()).collect();
    fs::write(session.join("host.clock"), clock).unwrap();
    let attr = Attr {
        kind: event_type::SOFTWARE,
        config: 0,
        sample_period: 997,
        sample_type: sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::CALLCHAIN,
        read_format: 0,
        flags: Flags::with_bits(&[flag::SAMPLE_ID_ALL]),
        wakeup: 0,
        branch_sample_type: 0,
        sample_regs_user: 0,
        sample_regs_intr: 0,
        clock_id: 1,
    };
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::new(&mut bytes, &attr);
    writer.head(&attr, &[], &[]);
    let (file_offset, len) = program.mapped;
    writer.mapping(&EarlierMapping {
        pid: Some(VCPU),
        addr: BASE,
        len,
        file_offset,
        device: (0, 0),
        inode: 0,
        build_id: Some(program.build_id),
        path: b"/gone/vmm",
    });
    times.iter().for_each(|time| sample(&mut bytes, time + 1, BASE + program.into));
    fs::write(session.join("host.data"), bytes).unwrap();
    session.to_str().unwrap().to_owned()
}

fn sample(out: &mut Vec<u8>, time_ns: u64, ip: u64) {
    let ids = [VCPU, VCPU].into_iter().flat_map(u32::to_ne_bytes);
    let mut body: Vec<u8> = ip.to_ne_bytes().into_iter().chain(ids).collect();
    let rest = [time_ns, 2, marker::USER, ip];
    body.extend(rest.into_iter().flat_map(u64::to_ne_bytes));
    let size = u16::try_from(body.len() + 8).unwrap();
    out.extend(kind::SAMPLE.to_ne_bytes());
    out.extend([HOST_USER, size].into_iter().flat_map(u16::to_ne_bytes));
    out.extend(body);
}

/// Serves the debug file; returns the address, and a counter of requests.
fn serve(program: &Program) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, debug) = (Arc::clone(&count), program.debug.clone());
    let path = format!("GET /buildid/{}/debuginfo ", program.build_id);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            counted.fetch_add(1, Ordering::Relaxed);
            let (status, body) = if request.starts_with(&path) {
                ("200 OK", &debug[..])
            } else {
                ("404 No", &[][..])
            };
            let len = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close");
            let _ = stream.write_all(format!("{head}\r\n\r\n").as_bytes());
            let _ = stream.write_all(body);
        }
    });
    (url, count)
}

#[test]
fn servers_are_asked_where_the_environment_names_them_and_not_else() {
    let at = tempfile::tempdir().unwrap();
    let program = build(at.path());
    let session = session(at.path(), &program);
    let (url, count) = serve(&program);
    let profile = |urls: Option<&str>, cache: &str, more: &[&str]| {
        let mut command = command();
        command.args(["profile", "--format", "json", &session]).args(more);
        command.env("DEBUGINFOD_CACHE_PATH", at.path().join(cache));
        command.envs(urls.map(|urls| ("DEBUGINFOD_URLS", urls)));
        let out = command.output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{err}");
        (String::from_utf8(out.stdout).unwrap(), err)
    };
    let is_named = |(out, _): &(String, String)| {
        let report: Value = serde_json::from_str(out).unwrap();
        let rows = report["rows"].as_array().unwrap();
        let frames = rows.iter().flat_map(|row| row["stack"].as_array().unwrap());
        let of_file: Vec<_> = frames.filter(|frame| frame["module"] == "vmm").collect();
        assert!(!of_file.is_empty(), "{out}");
        of_file.iter().all(|frame| frame["symbol"] == FUNCTION)
    };
    assert!(!is_named(&profile(None, "a", &[])));
    assert!(!is_named(&profile(Some(&url), "a", &["--no-debuginfod"])));
    assert!(!at.path().join("a").exists() && count.load(Ordering::Relaxed) == 0);
    let fetched = profile(Some(&url), "a", &[]);
    assert!(is_named(&fetched) && fetched.1.is_empty(), "{}", fetched.1);
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // The cache has it now, so no server is needed.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}");
    let cached = profile(Some(&gone), "a", &[]);
    assert!(is_named(&cached) && cached.1.is_empty(), "{}", cached.1);
    let (out, err) = profile(Some(&gone), "b", &[]);
    assert!(!is_named(&(out, err.clone())));
    let lines: Vec<&str> = err.lines().collect();
    let [line] = lines[..] else { panic!("{err}") };
    assert!(
        line.starts_with(&format!("hyperscope: debuginfod: {gone} is ignored from now on")),
        "{line}"
    );
}
