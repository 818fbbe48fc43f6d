//! `hyperscope serve`: a host's live accounting as metrics, over HTTP on this machine, in a file, or once to standard output.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use httpd::{Answer, Body, Bounds, Guard, Query, Server, Tls, Token};
use live::metrics::{Format, Totals};
use live::{Accounting, By, Limits, LiveError};
use parking_lot::Mutex;
use printable::messages;

use crate::args::serve::ServeArgs;
use crate::cmd::record::stop_at_signals;
use command::output;
use command::verb::{Memory, Range, VerbArgs};
use session::Misuse;

/// Interval at which the kernel's sums are read even without requests, to free rows of ended
/// threads.
const UNASKED: Duration = Duration::from_secs(10);

/// Max connections: each may hold a page in memory.
const CONNECTIONS: usize = 8;

/// Timeout of a client for receiving its reply.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl VerbArgs for ServeArgs {
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

fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    if args.once {
        return once(args, &is_over);
    }
    if let Some(file) = &args.textfile {
        return into_file(args, file, &is_over);
    }
    // First, so that a port in use is reported before anything else begins.
    let bounds =
        Bounds { connections: CONNECTIONS, answer_within: ANSWER_WITHIN, ..Bounds::default() };
    let server = Server::open(args.listen, guard(args)?, bounds)
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let monitor = Arc::new(Mutex::new(Monitor::begin(args)?));
    let _ = writeln!(messages(), "hyperscope: metrics are at {}metrics", server.address());
    let answering = Arc::clone(&monitor);
    thread::Builder::new()
        .name("serve".to_owned())
        .spawn(move || server.serve(&|query| answer(query, &answering)))
        .context("cannot start the server")?;
    while is_over.recv_timeout(UNASKED).is_err() {
        // The next client receives the error.
        let _ = monitor.lock().refresh(UNASKED);
    }
    Ok(())
}

/// The credentials that a client needs; they are the only protection if other machines reach the address.
fn guard(args: &ServeArgs) -> anyhow::Result<Guard> {
    let token = args.token_file.as_deref().map(Token::read).transpose()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => Some(Tls::read(certificates, key)?),
        _ => None,
    };
    let lacks = match (&tls, &token) {
        _ if args.listen.ip().is_loopback() => None,
        (None, None) => Some("--tls-cert, --tls-key and --token-file"),
        (None, Some(_)) => Some("--tls-cert and --tls-key"),
        (Some(_), None) => Some("--token-file"),
        (Some(_), Some(_)) => None,
    };
    match lacks {
        Some(lacks) => bail!(Misuse(format!(
            "other machines could reach {}: add {lacks}, or listen on 127.0.0.1 or [::1]",
            args.listen
        ))),
        None => Ok(Guard { token, tls }),
    }
}

/// Writes one interval to standard output.
fn once(args: &ServeArgs, is_over: &Receiver<()>) -> anyhow::Result<()> {
    let mut monitor = Monitor::begin(args)?;
    let _ = is_over.recv_timeout(args.interval);
    monitor.refresh(Duration::ZERO)?;
    let mut out = io::stdout().lock();
    out.write_all(&live::metrics::page(&monitor.totals, Format::Text))?;
    Ok(out.flush()?)
}

/// Writes each interval into a file, which is removed at the end, so that its series end visibly.
fn into_file(args: &ServeArgs, file: &Path, is_over: &Receiver<()>) -> anyhow::Result<()> {
    let mut monitor = Monitor::begin(args)?;
    // First, so that a wrong path is reported immediately.
    let page = |monitor: &Monitor| live::metrics::page(&monitor.totals, Format::Text);
    output::write_file(file, &page(&monitor))?;
    let mut was_written = true;
    let ended = loop {
        if is_over.recv_timeout(args.interval).is_ok() {
            break Ok(());
        }
        if let Err(error) = monitor.refresh(Duration::ZERO) {
            break Err(error.into());
        }
        // A full disk may have space again later.
        let written = output::write_file(file, &page(&monitor));
        if let Err(error) = &written
            && was_written
        {
            let _ = writeln!(messages(), "hyperscope: {error:#}");
        }
        was_written = written.is_ok();
    };
    if fs::symlink_metadata(file).is_ok_and(|found| found.is_file()) {
        let _ = fs::remove_file(file);
    }
    ended
}

/// The accounting, and its totals.
#[derive(Debug)]
struct Monitor {
    accounting: Accounting,
    totals: Totals,
    latest: Instant,
    interval: Duration,
}

impl Monitor {
    fn begin(args: &ServeArgs) -> anyhow::Result<Self> {
        let accounting = Accounting::begin(Limits { rows: args.rows, ..Limits::default() })?;
        let totals = Totals::new(usize::try_from(args.max_series)?);
        Ok(Self { accounting, totals, latest: Instant::now(), interval: args.interval })
    }

    /// Adds the current interval, if it is at least this long.
    fn refresh(&mut self, least: Duration) -> Result<(), LiveError> {
        if self.latest.elapsed() >= least {
            self.totals.add(&self.accounting.interval(By::Vm)?);
            self.latest = Instant::now();
        }
        Ok(())
    }
}

/// Answers one client.
fn answer(query: &Query, monitor: &Mutex<Monitor>) -> Answer {
    if !["", "metrics", "healthz"].contains(&query.name.as_str()) {
        return Answer::sentence(404, "there is no such page: see /metrics, /healthz and /");
    }
    let mut monitor = monitor.lock();
    let interval = monitor.interval;
    if let Err(error) = monitor.refresh(interval) {
        return Answer::sentence(503, &format!("cannot read the kernel's sums: {error}"));
    }
    let (content_type, bytes) = match query.name.as_str() {
        "metrics" => {
            let format = live::metrics::accepted(&query.accept);
            (format.content_type(), live::metrics::page(&monitor.totals, format))
        }
        "healthz" => return Answer::sentence(200, "ok"),
        _ => {
            let version = env!("CARGO_PKG_VERSION");
            (
                "text/html; charset=utf-8",
                live::metrics::status(&monitor.totals, version).into_bytes(),
            )
        }
    };
    Answer { status: 200, content_type, body: Body::Bytes(bytes) }
}
