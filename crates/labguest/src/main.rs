//! Runs inside the lab's machines: as their first process, as their command server, as workload.

use std::process::ExitCode;

mod exec;
mod exits;
mod files;
mod init;
mod modules;
mod ports;
mod relay;
mod serve;
mod timers;

fn main() -> ExitCode {
    let first = rustix::process::getpid().is_init();
    let verb = std::env::args().nth(1);
    let done = match verb.as_deref() {
        _ if first => init::run(),
        Some("serve") => serve::run(),
        Some("rearm") => timers::rearm(),
        Some("exits") => exits::run(std::env::args().skip(2)),
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
