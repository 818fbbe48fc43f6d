//! `hyperscope top --steal`: in a guest, what its host does with its vCPUs.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use steal_viewer::{Format, Options, StealError, watch};

use crate::args::top::{TopArgs, TopFormatArg};
use crate::cmd::record::stop_at_signals;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    let options = Options {
        at: args.memory.clone(),
        interval: args.interval,
        time: args.time,
        format: match args.format {
            TopFormatArg::Table => Format::Table,
            TopFormatArg::Jsonl => Format::Jsonl,
        },
        record: args.record.clone(),
    };
    let mut wait = |most: Duration| is_over.recv_timeout(most).is_ok();
    match watch(&options, &mut io::stdout().lock(), &mut wait) {
        // Whoever read it has seen enough: the cause shows that.
        Err(StealError::Output(error)) => Err(error.into()),
        ended => Ok(ended?),
    }
}
