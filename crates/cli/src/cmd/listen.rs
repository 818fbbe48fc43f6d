//! `hyperscope listen`: records guests as their agents connect, until a signal ends it.

use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use printable::messages;
use recorder::{InGuests, ListenEvent, ListenPlan, Listening, Profile, Sampling};
use session_json::GuestSummary;

use crate::args::listen::ListenArgs;
use crate::cmd::record::{conclude_guest, stop_at_signals};
use command::notice::say;
use command::verb::{Memory, Range, VerbArgs};

/// Interval between checks for the end.
const LOOK: Duration = Duration::from_millis(200);

impl VerbArgs for ListenArgs {
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

fn run(args: &ListenArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    let (listening, event) = Listening::begin(plan(args)?)?;
    listening.confine_caller()?;
    let places: Vec<String> = args.at.iter().map(ToString::to_string).collect();
    say(&format!("waiting for agents on {}", places.join(", ")));
    let end = args.time.map(|time| Instant::now() + time);
    loop {
        match event.recv_timeout(LOOK) {
            Ok(what) => print(&what)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let is_late = end.is_some_and(|end| Instant::now() >= end);
        if is_late || is_over.try_recv().is_ok() {
            break;
        }
    }
    if listening.guests() > 0 {
        say("stopping the recordings of guests");
    }
    listening.end();
    event.try_iter().try_for_each(|what| print(&what))
}

fn plan(args: &ListenArgs) -> anyhow::Result<ListenPlan> {
    let usual = args.events.is_empty().then_some(Profile::Exits);
    Ok(ListenPlan {
        at: args.at.clone(),
        in_guests: InGuests {
            events: args.events.clone(),
            profile: args.profile.map(|profile| Profile::from(profile).in_guests()).or(usual),
            tracer: args.tracer.function_tracer()?,
            sampling: args
                .sample_hz
                .map(|hz| Sampling { hz, event: args.sample_event.map(Into::into) }),
            buffer_kib: args.buffer,
            quota_bytes: Some(args.quota),
            wait: args.guest_wait,
            ..InGuests::default()
        },
        most_guests: args.guests,
        modes: args.mode.unwrap_or_default(),
        to: args.output.clone(),
    })
}

fn print(event: &ListenEvent) -> anyhow::Result<()> {
    match event {
        ListenEvent::Joined { name, from, label, doubt } => {
            say(&format!("recording guest {name} ({from}, calls itself {label})"));
            if let Some(doubt) = doubt {
                say(&format!("guest {name}: the VM's name is not used: {doubt}"));
            }
        }
        ListenEvent::Refused { from, why } => say(&format!("{from}: {why}")),
        ListenEvent::Left { session, summary } => {
            let summary: &GuestSummary = summary;
            conclude_guest(summary, None, &mut messages())?;
            say(&format!("session: {}", session.display()));
        }
    }
    Ok(())
}
