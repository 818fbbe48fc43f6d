//! `hyperscope-agent`: records this guest for its host.

#![forbid(unsafe_code)]

mod times;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use agent::trace_cmd::{self, Server};
use agent::{Allowed, Format, Guard, Link, Options, ToFolder};
use channel::wire::Start;
use channel::{AgentAddress, GuestPorts, KeyFiles};

const HELP: &str = "\
Records this guest for its host while `hyperscope record --guest` runs there.

Usage: hyperscope-agent [CHANNEL]

Channels; the default is the first one that this machine has:
  shm[:PCI-ADDRESS]       memory shared with the host (an ivshmem device)
  virtio-serial           ports hyperscope.control, hyperscope.cpu0, ...
  vsock[:PORT]            listen to the host's root [port: 8823]; refused if this machine has keys
  tls-vsock[:PORT]        listen to a known host (see hyperscope keys)
  tls:ADDRESS:PORT        listen to known hosts (see hyperscope keys)
  tcp-plain:ADDRESS:PORT  listen to anyone who can connect, without encryption
  unix:PATH               listen to this machine itself
  connect:vsock[:PORT]    connect to a host that runs hyperscope listen
  connect:tls-vsock[:PORT]
  connect:tls:HOST:PORT

Additional permissions for the host:
  --allow-kprobes         set arbitrary probes, whose arguments can read any memory of this
                          kernel; by default only the built-in sets: @virtio, @kvm-guest
  --allow-unprivileged-port
                          over vsock, send commands from ports that any user of the host can
                          use, for an older hyperscope; page streams may always do so

Without a host: hyperscope-agent --to FOLDER -e EVENT... records into a folder, which hyperscope
can read on any machine.
  --to FOLDER             the folder
  -e EVENT                SYSTEM:NAME, NAME, SYSTEM, or patterns with * and ?
  --sample HZ             also sample what this machine's CPUs run, HZ times per second
  --boot                  collect what the kernel recorded since it booted, instead of events
  --clock CLOCK           the trace clock
  --buffer KIB            kernel buffer size per CPU
  --for TIME              stop after this time: 10s, 2m [default: on a signal]

hyperscope-agent steal shows what the host does with this guest's vCPUs: exits, and times without a
CPU. The host must run hyperscope publish.
  --memory DEVICE         PCI address of the memory shared with the host, or a file
  --interval TIME         refresh interval [1s]
  --format FORMAT         table or jsonl [table]
  --record FILE           also write a recording (trace.dat)
  --for TIME              stop after this time

Options:
  --trace-cmd [CHANNEL]   serve `trace-cmd record -A` instead of hyperscope [vsock[:PORT], 823;
                          tcp:ADDRESS:PORT]. trace-cmd connects from ports that any user of the
                          host can use, so over vsock all of them may record this machine
  -h, --help              this text
  -V, --version           the version

The host may choose events, filters, probes, clock and buffer sizes of the agent's own tracefs
instance, and read it. It can do nothing else: no message names a program or a file.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => {
            printable::print_message(format_args!("hyperscope-agent: {text}"));
            printable::print_message(format_args!("Try: hyperscope-agent --help"));
            ExitCode::from(2)
        }
        Err(Failure::Agent(error)) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            printable::print_message(format_args!("hyperscope-agent: {error}{cause}"));
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Usage(String),
    Agent(agent::AgentError),
}

enum Invocation {
    Guard(u32, Option<AgentAddress>),
    Serve(Option<AgentAddress>, Allowed),
    ServeTraceCmd(AgentAddress),
    Record(Box<ToFolder>),
    ShowSteal(Options),
    Print(String),
}

fn run() -> Result<(), Failure> {
    let (address, allowed) = match arguments().map_err(Failure::Usage)? {
        Invocation::Guard(pid, channel) => {
            return agent::guard(pid, channel.as_ref()).map_err(Failure::Agent);
        }
        Invocation::Serve(address, allowed) => (address.unwrap_or_else(usual), allowed),
        Invocation::ServeTraceCmd(address) => {
            let server = Server::bind(&address).map_err(Failure::Agent)?;
            let _guard = Guard::start(None);
            report(&format!("waiting on {address} for trace-cmd record -A"));
            return agent::confined(move |_| server.run(&report)).map_err(Failure::Agent);
        }
        Invocation::Record(what) => {
            let _guard = Guard::start(None);
            let shown = agent::record(&what).map_err(Failure::Agent)?;
            report(&shown);
            return Ok(());
        }
        Invocation::ShowSteal(options) => {
            return agent::show_steal(&options).map_err(Failure::Agent);
        }
        Invocation::Print(text) => {
            print!("{text}");
            return Ok(());
        }
    };
    let link = Link::open(&address, allowed).map_err(Failure::Agent)?;
    let mut guard = Guard::start(Some(&address));
    printable::print_message(format_args!("hyperscope-agent: waiting on {address}"));
    agent::confined(move |starter| agent::serve(&link, &mut guard, starter)).map_err(Failure::Agent)
}

fn report(text: &str) {
    printable::print_message(format_args!("hyperscope-agent: {text}"));
}

#[derive(Default)]
struct Arguments {
    address: Option<String>,
    for_trace_cmd: bool,
    folder: Option<PathBuf>,
    start: Start,
    sample_hz: Option<u32>,
    time: Option<Duration>,
    steal: Steal,
    allowed: Allowed,
    /// The process that this guard watches.
    guard_of: Option<u32>,
}

/// Options of `steal`, if given.
#[derive(Default, PartialEq)]
struct Steal {
    memory: Option<String>,
    interval: Option<Duration>,
    is_jsonl: Option<bool>,
    record: Option<PathBuf>,
}

fn arguments() -> Result<Invocation, String> {
    let mut arguments = Arguments::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        use lexopt::Arg::{Long, Short};
        match argument {
            Short('h') | Long("help") => return Ok(Invocation::Print(HELP.into())),
            Short('V') | Long("version") => {
                let version = concat!("hyperscope-agent ", env!("CARGO_PKG_VERSION"), "\n");
                return Ok(Invocation::Print(version.into()));
            }
            _ => {}
        }
        match argument {
            Long("trace-cmd") if !arguments.for_trace_cmd => arguments.for_trace_cmd = true,
            lexopt::Arg::Value(text) if arguments.address.is_none() => {
                arguments.address = Some(text.to_string_lossy().into());
            }
            Long("guard") => arguments.guard_of = Some(value(&mut parser)?),
            Long("allow-kprobes") => arguments.allowed.kprobes = true,
            Long("allow-unprivileged-port") => arguments.allowed.unprivileged_port = true,
            Short('e') => arguments.start.events.push(value(&mut parser)?),
            Long("to") => arguments.folder = Some(value::<String>(&mut parser)?.into()),
            Long("boot") => arguments.start.boot = true,
            Long("clock") => arguments.start.clock = Some(value(&mut parser)?),
            Long("buffer") => arguments.start.buffer_kib = Some(value(&mut parser)?),
            Long("sample") => arguments.sample_hz = Some(value::<NonZeroU32>(&mut parser)?.get()),
            Long("for") => arguments.time = Some(time(&mut parser)?),
            Long("memory") => arguments.steal.memory = Some(value(&mut parser)?),
            Long("interval") => arguments.steal.interval = Some(time(&mut parser)?),
            Long("record") => arguments.steal.record = Some(value::<String>(&mut parser)?.into()),
            Long("format") => {
                arguments.steal.is_jsonl = Some(match value::<String>(&mut parser)?.as_str() {
                    "table" => false,
                    "jsonl" => true,
                    other => return Err(format!("unknown format {other:?}: use table or jsonl")),
                });
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    interpret(arguments)
}

fn value<T: FromStr>(parser: &mut lexopt::Parser) -> Result<T, String> {
    let text = parser.value().map_err(|error| error.to_string())?;
    let text = text.to_string_lossy();
    text.parse().map_err(|_| format!("invalid value {text:?}"))
}

fn time(parser: &mut lexopt::Parser) -> Result<Duration, String> {
    let text = parser.value().map_err(|error| error.to_string())?;
    times::time(&text.to_string_lossy())
}

fn interpret(arguments: Arguments) -> Result<Invocation, String> {
    let Arguments {
        address,
        for_trace_cmd,
        folder,
        start,
        sample_hz,
        time,
        steal,
        allowed,
        guard_of,
    } = arguments;
    if let Some(pid) = guard_of {
        // Channels without a connection are all spelled as they are parsed.
        return Ok(Invocation::Guard(pid, address.and_then(|address| address.parse().ok())));
    }
    let serves = address.as_deref() != Some("steal") && !for_trace_cmd && folder.is_none();
    if allowed != Allowed::default() && !serves {
        return Err(
            "--allow-kprobes and --allow-unprivileged-port need a host that records this machine"
                .into(),
        );
    }
    if address.as_deref() == Some("steal") {
        if for_trace_cmd || folder.is_some() || start != Start::default() || sample_hz.is_some() {
            return Err(
                "steal shows data that the host publishes; it can't record this guest".into()
            );
        }
        return Ok(Invocation::ShowSteal(Options {
            at: steal.memory,
            interval: steal.interval.unwrap_or(Duration::from_secs(1)),
            time,
            format: if steal.is_jsonl == Some(true) { Format::Jsonl } else { Format::Table },
            record: steal.record,
        }));
    }
    if steal != Steal::default() {
        return Err("--memory, --interval, --format and --record need steal".into());
    }
    if let Some(folder) = folder {
        if address.is_some() || for_trace_cmd {
            return Err("--to records without a host and takes no channel".into());
        }
        let start = Start { kallsyms: true, ..start };
        return Ok(Invocation::Record(Box::new(ToFolder { folder, start, sample_hz, time })));
    }
    if start != Start::default() || sample_hz.is_some() || time.is_some() {
        return Err(
            "the host chooses what is recorded; use --to FOLDER to record without a host".into()
        );
    }
    if for_trace_cmd {
        let address = address.as_deref().unwrap_or("vsock");
        return Ok(Invocation::ServeTraceCmd(trace_cmd::address(address)?));
    }
    let address = address.map(|text| text.parse::<AgentAddress>().map_err(|e| e.to_string()));
    Ok(Invocation::Serve(address.transpose()?, allowed))
}

/// The default channel: a device that was added for recording, otherwise one that needs no setup.
fn usual() -> AgentAddress {
    if channel::has_shared_memory() {
        return AgentAddress::SharedMemory { at: None };
    }
    match GuestPorts::find() {
        Some(_) => AgentAddress::VirtioSerial,
        None if KeyFiles::usual().are_there() => {
            AgentAddress::TlsVsock { port: channel::PORT, keys: KeyFiles::usual() }
        }
        None => AgentAddress::Vsock { port: channel::PORT },
    }
}
