//! `hyperscope top`: on a host, what its VMs exit for; in a guest, what its host does with its vCPUs.

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

/// In a guest.
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
        // Whoever read it has seen enough: the cause shows that.
        Err(StealError::Output(error)) => Err(error.into()),
        ended => Ok(ended?),
    }
}

/// Tasks of a guest that are asked for.
const MAX_TASKS: u16 = 40;
/// How long guests' agents may take to answer for the first time before the first interval begins.
const AGENTS: Duration = Duration::from_secs(2);
/// How long an interval's end waits for what guests say of it, at most.
const ANSWERS: Duration = Duration::from_millis(500);

/// What is shown of a host.
struct Watched {
    accounting: Accounting,
    guests: GuestViews,
    by: By,
    answers: Duration,
}

impl Watched {
    /// The interval that ends now, and what guests say of it.
    fn interval(&mut self) -> anyhow::Result<(Interval, Vec<SeenGuest>)> {
        self.guests.ask();
        let interval = self.accounting.interval(self.by)?;
        Ok((interval, self.guests.answers(self.answers)))
    }
}

/// On a host, interval by interval.
fn host(args: &TopArgs, is_over: &Receiver<()>) -> anyhow::Result<()> {
    let by = match args.by {
        TopByArg::Vm => By::Vm,
        TopByArg::Vcpu => By::Vcpu,
    };
    let guests = GuestViews::begin(&args.guests, MAX_TASKS)?;
    guests.wait_until_ready(AGENTS);
    let accounting = Accounting::begin(Limits { rows: args.rows, ..Limits::default() })?;
    let answers = ANSWERS.min(args.interval / 2);
    // They count from where the first interval begins.
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
        // Waiting for guests makes no interval longer.
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

/// Somebody sees it, and has keys.
fn is_interactive() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Whoever reads it may have seen enough: the error's cause shows that.
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
