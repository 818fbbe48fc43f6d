//! Refuses event filters that match nothing in a recording; the error suggests similar names.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use ftrace::eventfmt::EventFormat;
use session::Misuse;
use sources::Recording;
use timeline::event_filter::{Condition, Filter, Unfit};

/// The error for a pattern that matches no event of these recordings, with similar names.
pub fn no_event(pattern: &str, recordings: &[Recording]) -> anyhow::Error {
    let formats = recordings.iter().flat_map(|recording| recording.formats().iter());
    let names = formats.map(|(_, format)| {
        if pattern.contains([':', '/']) {
            format!("{}:{}", format.system(), format.name())
        } else {
            format.name().to_owned()
        }
    });
    let names: BTreeSet<String> = names.collect();
    let similar = tracefs::similar(pattern, names.iter().map(String::as_str));
    let end = if similar.is_empty() { ";".to_owned() } else { tracefs::did_you_mean(&similar) };
    anyhow!("no event matches {pattern}{end} hyperscope info lists those recorded")
}

/// Refuses a filter that no event of any recording can pass: it is a typing error.
pub fn check_names(filter: &Filter, recordings: &[Recording]) -> anyhow::Result<()> {
    let formats = || recordings.iter().flat_map(|recording| recording.formats().iter());
    for pattern in &filter.events {
        if !formats().any(|(_, format)| format.is_named(pattern)) {
            return Err(no_event(pattern, recordings));
        }
    }
    filter
        .conditions
        .iter()
        .try_for_each(|condition| check_condition(condition, filter, recordings))
}

/// Whether any requested event may meet the condition.
fn check_condition(
    condition: &Condition,
    filter: &Filter,
    recordings: &[Recording],
) -> anyhow::Result<()> {
    let is_named = |format: &EventFormat| {
        filter.events.is_empty() || filter.events.iter().any(|pattern| format.is_named(pattern))
    };
    let mut unfit: Option<Unfit> = None;
    for recording in recordings {
        let formats = recording.formats().iter().map(|(_, format)| format);
        for format in formats.filter(|format| is_named(format)) {
            match condition.compile(format, recording.abi()) {
                Ok(_) => return Ok(()),
                Err(Unfit::NoField(_)) => {}
                Err(error) => unfit = Some(merged(unfit, error)),
            }
        }
    }
    let text = condition.text();
    match unfit {
        None => {
            bail!("\"{text}\": no event has this field; hyperscope events --raw shows all fields")
        }
        Some(Unfit::NoSuchName { field, wanted, names }) => {
            let similar = tracefs::similar(&wanted, names.iter().map(String::as_str));
            let all = names.join(", ");
            let end = if similar.is_empty() {
                format!("; its printed values are {all}")
            } else {
                tracefs::did_you_mean(&similar)
            };
            bail!(Misuse(format!("\"{text}\": {field} is never printed as {wanted}{end}")))
        }
        Some(unfit) => bail!(Misuse(format!("\"{text}\": {unfit}"))),
    }
}

/// Collects the names of all events that have the field.
fn merged(before: Option<Unfit>, next: Unfit) -> Unfit {
    match (before, next) {
        (
            Some(Unfit::NoSuchName { field, wanted, mut names }),
            Unfit::NoSuchName { names: more, .. },
        ) => {
            let new: Vec<String> = more.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(new);
            Unfit::NoSuchName { field, wanted, names }
        }
        (Some(before @ Unfit::NoSuchName { .. }), _) => before,
        (_, next) => next,
    }
}
