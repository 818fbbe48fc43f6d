//! KernelShark's library reads exports: it has no program without a GUI, so Python calls the functions that its GUI
//! calls.

use std::path::Path;
use std::process::Command;

use super::{SMP, export, folder, lines};
use crate::tool::repository;

/// Inputs of every kind without losses: KernelShark adds an entry for a loss.
const INPUTS: [&str; 8] = [
    SMP,
    "fixtures/arm64/D.ctf",
    "fixtures/arm64/D.dat",
    "fixtures/arm64/D.perf.data",
    "fixtures/lttng-program/trace",
    "fixtures/x86-svm/lttng",
    "fixtures/x86-svm/lttng-ctf2",
    "crates/cli/tests/inputs/text-riscv.txt",
];

/// Opens a file, and prints its number of entries. Code 3: the library is not installed.
const LOAD: &str = "
import ctypes, sys
try:
    kshark = ctypes.CDLL('libkshark.so.2')
except OSError:
    sys.exit(3)
context, rows = ctypes.c_void_p(), ctypes.c_void_p()
kshark.kshark_load_entries.restype = ctypes.c_ssize_t
kshark.kshark_instance(ctypes.byref(context))
stream = kshark.kshark_open(context, sys.argv[1].encode())
print(kshark.kshark_load_entries(context, stream, ctypes.byref(rows)) if stream >= 0 else stream)
";

/// KernelShark's number of entries of a file; `None` if it is not installed.
fn entries(file: &Path) -> Option<i64> {
    let ran = Command::new("python3").args(["-c", LOAD]).arg(file).output();
    let ran = ran.ok().filter(|ran| ran.status.code() != Some(3))?;
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    Some(text.trim().parse().unwrap())
}

#[test]
fn kernelshark_loads_every_event_of_exports() {
    let folder = folder();
    let file = folder.path().join("out.dat");
    for input in INPUTS {
        export("tracedat", &file, &[repository().join(input).to_str().unwrap()]);
        let Some(entries) = entries(&file) else {
            return testkit::skip!(
                "KernelShark's library is not installed (apt install libkshark2)"
            );
        };
        let events = lines(&[input]).lines().filter(|line| !line.starts_with("cpus=")).count();
        assert_eq!(entries, events as i64, "{input}");
    }
}
