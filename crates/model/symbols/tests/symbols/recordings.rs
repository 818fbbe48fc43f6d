//! Samples that perf records here, named as `perf script` names them.

use std::fs;
use std::path::Path;
use std::process::Command;

use perfdata::{Body, PerfData};
use symbols::{Kallsyms, Machine, Names, ProcessLog};

use crate::programs::{build, text};

/// Records a run of `program`, as a file or into a pipe; `false`: perf can't, here.
fn record(data: &Path, program: &Path, into_pipe: bool) -> bool {
    let clock = ["record", "--buildid-mmap", "-e", "cpu-clock:u", "-F", "499", "-o"];
    let mut perf = Command::new("perf");
    perf.args(clock).arg(if into_pipe { Path::new("-") } else { data });
    perf.arg("--").arg(program);
    let Ok(out) = perf.output() else { return false };
    if into_pipe {
        fs::write(data, &out.stdout).unwrap();
    }
    out.status.success()
}

/// Address and function of each sample, as perf says.
fn said_by_perf(data: &Path) -> Vec<(u64, String)> {
    let out = Command::new("perf").args(["script", "-F", "ip,sym", "-i", text(data)]).output();
    let text = String::from_utf8(out.unwrap().stdout).unwrap();
    let line = |line: &str| {
        let (address, name) = line.trim().split_once(' ')?;
        Some((u64::from_str_radix(address, 16).unwrap(), name.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn named_here(data: &Path) -> Vec<(u64, String, String)> {
    let file = fs::read(data).unwrap();
    let perf = PerfData::parse(&file).unwrap();
    let mut log = ProcessLog::default();
    for (build_id, path) in &perf.features.build_ids {
        log.build_id(path.as_bytes(), *build_id);
    }
    for record in perf.records(&file).flatten() {
        log.read(&perf.events, &record);
    }
    let kernel = Kallsyms::default();
    let machine = Machine::here(&kernel, log.finish());
    let mut names = Names::of_files_here();
    let mut found = Vec::new();
    for record in perf.records(&file).flatten() {
        if let Ok(Body::Sample(sample)) = perf.events.body(&record) {
            let (pid, address) = (sample.pid.unwrap(), sample.ip.unwrap());
            let place = machine.user_place(pid, sample.time.unwrap(), address);
            let name = names.name(&machine, place);
            let symbol = name.symbol.as_deref().unwrap_or("[unknown]").to_owned();
            found.push((address, symbol, name.module.as_deref().unwrap_or("-").to_owned()));
        }
    }
    found.sort();
    found
}

#[test]
fn samples_have_the_names_that_perf_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(&str, &[&str]); 2] =
        [("pie", &["-fPIE", "-pie"]), ("fixed", &["-fno-pie", "-no-pie"])];
    for (name, flags) in kinds {
        let program = build(folder.path(), name, flags);
        for into_pipe in [false, true] {
            let data = folder.path().join("perf.data");
            if !record(&data, &program, into_pipe) {
                println!("skipped: perf can't record here");
                return;
            }
            let mut perf = said_by_perf(&data);
            perf.sort();
            let ours = named_here(&data);
            assert_eq!(ours.len(), perf.len());
            let of_program = ours.iter().filter(|(_, _, module)| module == name);
            assert!(of_program.count() > 20, "{ours:?}");
            for (ours, perf) in ours.iter().zip(&perf) {
                // Of libraries without debug files perf takes what is exported for all there is, too.
                assert_eq!((ours.0, &ours.1), (perf.0, &perf.1), "{}", ours.2);
            }
        }
    }
}
