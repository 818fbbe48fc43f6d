//! `hyperscope-agent`: records this guest on its host's behalf.

use std::process::ExitCode;

use agent::Link;
use agent::trace_cmd::{self, Server};
use channel::{GuestAddress, GuestPorts};

const HELP: &str = "\
Records this guest on its host's behalf, as long as a `hyperscope record --guest` asks for it.

Usage: hyperscope-agent [CHANNEL]

Channels, of which the first that this machine has is the usual one:
  shm[:PCI-ADDRESS]       memory shared with the host (an ivshmem device)
  virtio-serial           ports hyperscope.control, hyperscope.cpu0, ...
  vsock[:PORT]            listen to the host [port: 8823]
  tls:ADDRESS:PORT        listen to hosts that are known (see hyperscope keys)
  tcp-plain:ADDRESS:PORT  listen to whoever can connect, not encrypted
  unix:PATH               listen to this machine itself
  connect:vsock[:PORT]    connect to a host that listens (hyperscope listen)
  connect:tls:HOST:PORT

Options:
  --trace-cmd [CHANNEL]   serve `trace-cmd record -A` in place of hyperscope [vsock[:PORT], 823;
                          tcp:ADDRESS:PORT]
  -h, --help              this text
  -V, --version           the version

The host may choose events, filters, probes, clock and sizes of buffers of a tracefs instance of the
agent's own, and read that. Nothing else: no message names a program or a file.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => {
            eprintln!("hyperscope-agent: {text}\nTry: hyperscope-agent --help");
            ExitCode::from(2)
        }
        Err(Failure::Agent(error)) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("hyperscope-agent: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Usage(String),
    Agent(agent::AgentError),
}

enum Asked {
    Serve(Option<GuestAddress>),
    ServeTraceCmd(GuestAddress),
    Print(String),
}

fn run() -> Result<(), Failure> {
    let address = match arguments().map_err(Failure::Usage)? {
        Asked::Serve(address) => address.unwrap_or_else(usual),
        Asked::ServeTraceCmd(address) => {
            let server = Server::bind(&address).map_err(Failure::Agent)?;
            tell(&format!("waiting on {address} for trace-cmd record -A"));
            return server.run(&tell).map_err(Failure::Agent);
        }
        Asked::Print(text) => {
            print!("{text}");
            return Ok(());
        }
    };
    let link = Link::open(&address).map_err(Failure::Agent)?;
    eprintln!("hyperscope-agent: waiting on {address}");
    agent::serve(&link).map_err(Failure::Agent)
}

fn tell(text: &str) {
    eprintln!("hyperscope-agent: {text}");
}

fn arguments() -> Result<Asked, String> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_env();
    let (mut address, mut for_trace_cmd) = (None::<String>, false);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => return Ok(Asked::Print(HELP.into())),
            Short('V') | Long("version") => {
                let version = concat!("hyperscope-agent ", env!("CARGO_PKG_VERSION"), "\n");
                return Ok(Asked::Print(version.into()));
            }
            Long("trace-cmd") if !for_trace_cmd => for_trace_cmd = true,
            Value(text) if address.is_none() => address = Some(text.to_string_lossy().into()),
            other => return Err(other.unexpected().to_string()),
        }
    }
    if for_trace_cmd {
        let address = address.as_deref().unwrap_or("vsock");
        return Ok(Asked::ServeTraceCmd(trace_cmd::address(address)?));
    }
    let address = address.map(|text| text.parse::<GuestAddress>().map_err(|e| e.to_string()));
    Ok(Asked::Serve(address.transpose()?))
}

/// What somebody made for recording is the channel to use; else whatever needs nothing.
fn usual() -> GuestAddress {
    if channel::has_shared_memory() {
        return GuestAddress::SharedMemory { at: None };
    }
    match GuestPorts::find() {
        Some(_) => GuestAddress::VirtioSerial,
        None => GuestAddress::Vsock { port: channel::PORT },
    }
}
