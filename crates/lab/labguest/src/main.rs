//! Runs inside the lab's machines: as init, as command server, and as workloads.

#![forbid(unsafe_code)]

use std::process::ExitCode;

mod compile;
mod counters;
mod drain;
mod exec;
mod exit_costs;
mod exits;
mod failure;
mod files;
mod handoff;
mod init;
mod load;
mod mark;
mod measure;
mod modules;
mod number_argument;
mod ping_pong;
mod plant;
mod ports;
mod qmp;
mod relay;
mod score;
mod serve;
mod subject;
mod timers;
mod usage;
mod vmm;
mod wakeups;

fn main() -> ExitCode {
    let first = rustix::process::getpid().is_init();
    let verb = std::env::args().nth(1);
    let done = match verb.as_deref() {
        _ if first => init::run(),
        Some("serve") => serve::run(),
        Some("host") => modules::host(),
        Some("rearm") => timers::rearm(),
        Some("exits") => exits::run(std::env::args().skip(2)),
        Some("exit-costs") => exit_costs::run(std::env::args().nth(2)),
        Some("exit-ablation") => exit_costs::ablate(std::env::args().nth(2)),
        Some("exit-counts") => exit_costs::count(std::env::args().nth(2).as_deref()),
        Some("mark") => mark::run(&std::env::args().nth(2).unwrap_or_default()),
        Some("measure") => measure::run(std::env::args().skip(2)),
        Some("subject") => subject::run(std::env::args().skip(2)),
        Some("drain") => drain::run(std::env::args().skip(2)),
        Some("compile") => compile::run(std::env::args().skip(2)),
        Some("handoff") => handoff::run(std::env::args().skip(2)),
        Some("ping-pong") => ping_pong::run(std::env::args().skip(2)),
        Some("wakeups") => wakeups::run(std::env::args().skip(2)),
        Some("usage") => usage::run(),
        Some("counters") => counters::run(),
        Some("plant") => plant::run(std::env::args().skip(2)),
        Some("qmp") => qmp::run(std::env::args().skip(2)),
        Some("vmm") => vmm::run(std::env::args().nth(2)),
        _ => {
            eprintln!(
                "hyperscope-labguest runs inside machines of `hyperscope lab`: as /init, or with serve"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyperscope-labguest: {error}");
            ExitCode::FAILURE
        }
    }
}
