//! `hyperscope top`: on a host, the exits of its VMs; in a guest, how its host schedules its vCPUs.

mod browser;
mod recording;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use live::guest_views::{GuestViews, SeenGuest};
use live::{Accounting, By, Interval, Limits};
use steal_viewer::{Format, Options, StealError, watch};

use crate::args::top::{TopArgs, TopByArg, TopFormatArg};
use crate::cmd::record::stop_at_signals;
use command::output::stdout_width;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for TopArgs {
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

fn run(args: &TopArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    if args.steal { steal(args, &is_over) } else { host(args, &is_over) }
}

/// Runs in a guest.
fn steal(args: &TopArgs, is_over: &Receiver<()>) -> anyhow::Result<()> {
    let options = Options {
        at: args.memory.clone(),
        interval: args.interval,
        time: if args.once { Some(args.interval) } else { args.time },
        format: match args.format {
            TopFormatArg::Table => Format::Table,
            TopFormatArg::Jsonl => Format::Jsonl,
        },
        record: args.record.clone(),
    };
    let mut wait = |timeout: Duration| is_over.recv_timeout(timeout).is_ok();
    match watch(&options, &mut io::stdout().lock(), &mut wait) {
        // A closed pipe is recognized by the error's cause.
        Err(StealError::Output(error)) => Err(error.into()),
        ended => Ok(ended?),
    }
}

/// Max tasks requested from a guest.
const MAX_TASKS: u16 = 40;
/// Timeout of guests' agents for their first reply, before the first interval begins.
const AGENTS: Duration = Duration::from_secs(2);
/// Max wait at an interval's end for guests' replies.
const ANSWERS: Duration = Duration::from_millis(500);

/// The state of a watched host.
struct Watched {
    accounting: Accounting,
    guests: GuestViews,
    by: By,
    answers: Duration,
}

impl Watched {
    /// The interval that ends now, and the guests' own views.
    fn interval(&mut self) -> anyhow::Result<(Interval, Vec<SeenGuest>)> {
        self.guests.ask();
        let interval = self.accounting.interval(self.by)?;
        Ok((interval, self.guests.answers(self.answers)))
    }
}

/// Runs on a host, interval by interval.
fn host(args: &TopArgs, is_over: &Receiver<()>) -> anyhow::Result<()> {
    let by = match args.by {
        TopByArg::Vm => By::Vm,
        TopByArg::Vcpu => By::Vcpu,
    };
    let guests = GuestViews::begin(&args.guests, MAX_TASKS)?;
    guests.wait_until_ready(AGENTS);
    let accounting = Accounting::begin(Limits { rows: args.rows, ..Limits::default() })?;
    let answers = ANSWERS.min(args.interval / 2);
    // Their views count from the begin of the first interval.
    guests.ask();
    let _ = guests.answers(ANSWERS);
    let mut watched = Watched { accounting, guests, by, answers };
    let time = if args.once { Some(args.interval) } else { args.time };
    if time.is_none() && args.format == TopFormatArg::Table && is_interactive() {
        watched.by = By::Vcpu;
        return terminal::show(&mut watched, args.interval, is_over);
    }
    let end = time.map(|time| Instant::now() + time);
    let mut is_first = true;
    let mut next = Instant::now();
    loop {
        // Waiting for guests does not lengthen intervals.
        next = (next + args.interval).max(Instant::now());
        let until = end.map_or(next, |end| end.min(next));
        let over = is_over.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok();
        let (interval, guests) = watched.interval()?;
        write(&interval, &guests, args.format, is_first)?;
        is_first = false;
        if over || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
    }
}

/// Whether input and output are a terminal.
fn is_interactive() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Writes an interval; a closed pipe is recognized by the error's cause.
fn write(
    interval: &Interval,
    guests: &[SeenGuest],
    format: TopFormatArg,
    is_first: bool,
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        TopFormatArg::Jsonl => writeln!(out, "{}", live::viewer::line(interval, guests))?,
        TopFormatArg::Table => {
            let gap = if is_first { "" } else { "\n" };
            write!(out, "{gap}{}", live::viewer::text(interval, guests, stdout_width()))?;
        }
    }
    Ok(out.flush()?)
}
