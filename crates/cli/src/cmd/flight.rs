//! `hyperscope flight`: makes a running flight recorder save its events as a session.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use recorder::flight::{self, DumpReply};
use report::{Report, Table};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::flight::{DumpArgs, FlightArgs, FlightVerb};
use command::output;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for FlightArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &FlightArgs) -> anyhow::Result<()> {
    match &args.verb {
        FlightVerb::Dump(args) => dump(args),
    }
}

fn dump(args: &DumpArgs) -> anyhow::Result<()> {
    let out = output::open(args.output.output.as_deref(), [])?;
    let socket = recorder_of(args.pid)?;
    let DumpReply { session, duration_ns, bytes, error } =
        flight::ask(&socket, args.why.as_deref())?;
    if let Some(error) = error {
        bail!("the flight recorder saved no session: {error}");
    }
    let session = session.context("the flight recorder did not report the session's folder")?;
    let session = session.display().to_string();
    let schema = "hyperscope.flight/1";
    let dumped = DumpedSession { schema, session, duration_ns, pages_bytes: bytes };
    output::write(&dumped, &args.output, out)
}

/// Output of `hyperscope flight dump --format json`: the new session. See docs/flight.md.
#[derive(JsonSchema, Serialize)]
struct DumpedSession {
    schema: &'static str,
    /// The session's folder, as an absolute path.
    session: String,
    /// The time that it covers.
    duration_ns: u64,
    /// Bytes of the host's pages in the session.
    pages_bytes: u64,
}

impl Report for DumpedSession {
    /// Only its folder, no sentence: an argument for other commands.
    fn headline(&self) -> String {
        self.session.clone()
    }

    fn tables(&self, _width: Option<usize>) -> String {
        String::new()
    }

    fn document(&self) -> impl Serialize {
        self
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        table.names("session", 0, vec![self.session.clone()]);
        table.numbers("duration_ns", 0, vec![self.duration_ns.to_string()]);
        table.numbers("pages_bytes", 0, vec![self.pages_bytes.to_string()]);
        table
    }
}

/// The socket of the selected recorder.
fn recorder_of(pid: Option<u32>) -> anyhow::Result<PathBuf> {
    let running = flight::running()?;
    let pids: Vec<String> = running.iter().map(|(pid, _)| pid.to_string()).collect();
    let mut meant =
        running.into_iter().filter(|(running_pid, _)| pid.is_none_or(|pid| pid == *running_pid));
    match (meant.next(), meant.next(), pid) {
        (Some((_, socket)), None, _) => Ok(socket),
        (Some(_), Some(_), _) => {
            bail!(
                "several flight recorders run (processes {}): choose one with --pid",
                pids.join(", ")
            )
        }
        (None, _, Some(pid)) => bail!("no flight recorder runs as process {pid}"),
        (None, ..) => {
            bail!("this user runs no flight recorder: hyperscope record --flight 60s starts one")
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::{PublishedSchema, assert_published};

    use super::*;

    #[test]
    fn its_schema_is_published() {
        assert_published::<DumpedSession>(&PublishedSchema::new("flight").closed());
    }
}
