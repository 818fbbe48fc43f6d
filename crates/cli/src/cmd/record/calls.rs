//! Traced function calls in a recording: the effect of tracing them, and their number.

use std::io::{self, Write};

use recorder::SessionFolder;
use report::count;
use session_json::{Recorded, TracerSummary};

/// Reports the effect of a tracer on the traced machine.
pub(super) fn report(name: &str, functions: Option<usize>, err: &mut impl Write) {
    let functions = functions.map_or_else(|| "all".to_owned(), |many| count(many as u64));
    let _ = writeln!(
        err,
        "hyperscope: {name} traces {functions} functions: this slows down each of their calls, on all CPUs, and makes short ones many times slower; restrict it with --function and --no-function, measure it with hyperscope bench tracers"
    );
}

/// Counts the recorded calls, and rewrites `session.json` with the counts.
///
/// # Errors
/// When the session can't be written.
pub(super) fn count_them(recorded: &mut Recorded, session: &SessionFolder) -> anyhow::Result<()> {
    let of_host = recorded.tracer.iter_mut().map(|tracer| ("host.dat", tracer));
    let guests = recorded.guests.iter_mut();
    let of_guests = guests.filter_map(|guest| Some((guest.file.as_str(), guest.tracer.as_mut()?)));
    let mut any = false;
    for (file, tracer) in of_host.chain(of_guests) {
        if let Ok(recording) = sources::open(&session.path().join(file)) {
            tracer.calls = Some(calls_in(&recording));
            any = true;
        }
    }
    if any { Ok(recorder::write_session(recorded, session)?) } else { Ok(()) }
}

/// Number of calls in a recording: each had the tracer's cost.
fn calls_in(recording: &sources::Recording) -> u64 {
    let events = analyses::contents::contents(recording, &|_| ()).events;
    let count_of = |name| events.get(name).copied().unwrap_or(0);
    ["ftrace:function", "ftrace:funcgraph_entry", "ftrace:funcgraph_retaddr_entry"]
        .into_iter()
        .map(count_of)
        .sum()
}

/// Reports the number of calls.
pub(super) fn conclude(recorded: &Recorded, err: &mut impl Write) -> io::Result<()> {
    let of_host = recorded.tracer.iter().map(|tracer| (String::new(), tracer));
    let guests = recorded.guests.iter();
    let of_guests = guests
        .filter_map(|guest| Some((format!("guest {}: ", guest.name), guest.tracer.as_ref()?)));
    for (whose, tracer) in of_host.chain(of_guests) {
        let TracerSummary { name, calls: Some(calls), .. } = tracer else { continue };
        writeln!(
            err,
            "hyperscope: {whose}{name} recorded {} calls; all times include its cost, which calls --correct subtracts",
            count(*calls)
        )?;
    }
    Ok(())
}
