//! Writes recordings as trace.dat files: a single file, or a folder with one each.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use export::{TraceDatExport, Written};
use printable::messages;
use report::events::Machine;
use session::Session;
use sources::Recording;
use timeline::event_filter::Filter;

use crate::args::export::ExportArgs;
use command::output;
use command::progress::Progress;

/// Names of clocks in the file: for nanoseconds, and for a clock that counts something else.
const NANOSECONDS: &str = "local";

pub(super) fn write(args: &ExportArgs, session: &Session, filter: &Filter) -> anyhow::Result<()> {
    let (view, recordings) = (session.view(), session.recordings());
    let Some(to) = args.output.as_deref() else { bail!("--format tracedat needs -o") };
    let paths = match recordings {
        [_] => vec![to.to_owned()],
        _ => {
            let names = names(&Machine::of_all(view))?;
            fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
            names.iter().map(|name| to.join(name)).collect()
        }
    };
    let progress = Progress::new(view.stored_len());
    let mut all = Written::default();
    for (at, (recording, path)) in recordings.iter().zip(&paths).enumerate() {
        let aligned = view.alignment(at).filter(|guest| guest.chosen.is_some());
        let host = aligned.and_then(|guest| recordings.get(guest.host));
        let on_clock = host.map(clock);
        let export = TraceDatExport { recording, filter, on_clock };
        let written = write_one(&export, path, recordings, &|bytes| progress.advance(bytes))?;
        all.events += written.events;
        all.losses_at_end += written.losses_at_end;
    }
    progress.finish();
    session.say_losses();
    report(&all);
    Ok(())
}

fn write_one(
    export: &TraceDatExport<'_>,
    path: &Path,
    recordings: &[Recording],
    on_progress: &dyn Fn(u64),
) -> anyhow::Result<Written> {
    let mut out = output::create(path, recordings)?;
    let to = BufWriter::with_capacity(super::BUFFER_BYTES, &mut out);
    let written = export
        .write(to, on_progress)
        .with_context(|| format!("cannot write {}", path.display()))?;
    out.complete()?;
    Ok(written)
}

/// The name of the clock for a host's corrected times.
fn clock(host: &Recording) -> &str {
    match host.info().clock.as_deref() {
        // The conversion that its recorder noted turned them into nanoseconds.
        Some(_) if host.is_of_tsc() && host.is_nanoseconds() => NANOSECONDS,
        Some(clock) => clock,
        None => NANOSECONDS,
    }
}

/// The files of a session, one for each machine.
fn names(machines: &[Machine]) -> anyhow::Result<Vec<PathBuf>> {
    let mut names: Vec<String> = Vec::new();
    for machine in machines {
        let name = match machine.level {
            0 => "host".to_owned(),
            _ => format!("guest-{}", in_a_path(&machine.name)),
        };
        let mut free = name.clone();
        let mut number = 2;
        while names.contains(&free) {
            if machine.level == 0 {
                bail!(
                    "these recordings come from several hosts: export each host separately, with its guests"
                );
            }
            free = format!("{name}-{number}");
            number += 1;
        }
        names.push(free);
    }
    Ok(names.iter().map(|name| PathBuf::from(format!("{name}.dat"))).collect())
}

/// A guest's name as part of a file name: it comes from the recording, and may contain anything.
fn in_a_path(name: &str) -> String {
    let safe =
        |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
    let safe_name: String = name
        .chars()
        .map(|character| if safe(character) { character } else { '_' })
        .take(100)
        .collect();
    if safe_name.is_empty() { "guest".to_owned() } else { safe_name }
}

/// Reports on standard error what the files do not show.
fn report(written: &Written) {
    let mut err = messages();
    if written.losses_at_end > 0 {
        let _ = writeln!(
            err,
            "hyperscope: events lost at the end of CPUs, which the files can't show: {}",
            written.losses_at_end
        );
    }
    if written.events == 0 {
        let _ = writeln!(err, "hyperscope: no event was written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, level: u32) -> Machine {
        Machine { name: name.to_owned(), level, threads: None }
    }

    #[test]
    fn names_from_recordings_stay_in_their_folder() {
        let all = [machine("host", 0), machine("../../etc/x", 1), machine("a", 1), machine("a", 1)];
        let names = names(&all).unwrap();
        let expected = ["host.dat", "guest-.._.._etc_x.dat", "guest-a.dat", "guest-a-2.dat"];
        assert!(names.iter().eq(expected.map(Path::new)), "{names:?}");
        assert!(super::names(&[machine("host", 0), machine("host", 0)]).is_err());
        assert_eq!(in_a_path(""), "guest");
    }
}
