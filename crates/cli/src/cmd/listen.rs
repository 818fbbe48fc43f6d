//! `hyperscope listen`: records guests as their agents connect, until told to stop.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use printable::messages;
use recorder::{GuestSummary, InGuests, ListenPlan, Listening, Profile, Told};

use crate::args::listen::ListenArgs;
use crate::cmd::record::{conclude_guest, stop_at_signals};

/// How long one waits at a time.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &ListenArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    let (listening, told) = Listening::begin(plan(args)?)?;
    let places: Vec<String> = args.at.iter().map(ToString::to_string).collect();
    say(&format!("waiting for agents on {}", places.join(", ")));
    let end = args.time.map(|time| Instant::now() + time);
    loop {
        match told.recv_timeout(LOOK) {
            Ok(what) => tell(&what)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let is_late = end.is_some_and(|end| Instant::now() >= end);
        if is_late || is_over.try_recv().is_ok() {
            break;
        }
    }
    if listening.guests() > 0 {
        say("ending the recordings of guests");
    }
    listening.end();
    told.try_iter().try_for_each(|what| tell(&what))
}

fn plan(args: &ListenArgs) -> anyhow::Result<ListenPlan> {
    let usual = args.events.is_empty().then_some(Profile::Exits);
    Ok(ListenPlan {
        at: args.at.clone(),
        in_guests: InGuests {
            events: args.events.clone(),
            profile: args.profile.map(Profile::from).or(usual),
            tracer: args.tracer.asked()?,
            buffer_kib: args.buffer,
            quota_bytes: Some(args.quota),
            ..InGuests::default()
        },
        most_guests: args.guests,
        to: args.output.clone(),
    })
}

fn say(text: &str) {
    let _ = writeln!(messages(), "hyperscope: {text}");
}

fn tell(told: &Told) -> anyhow::Result<()> {
    match told {
        Told::Joined { name, from, label, doubt } => {
            say(&format!("guest {name} ({from}, calls itself {label}) is recorded"));
            if let Some(doubt) = doubt {
                say(&format!("guest {name}: its VM's name is not used: {doubt}"));
            }
        }
        Told::Refused { from, why } => say(&format!("{from}: {why}")),
        Told::Left { session, summary } => {
            let summary: &GuestSummary = summary;
            conclude_guest(summary, &mut messages())?;
            say(&format!("session: {}", session.display()));
        }
    }
    Ok(())
}
