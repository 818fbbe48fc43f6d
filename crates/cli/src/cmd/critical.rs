//! `hyperscope critical`: the causes of a task's or a request's waits.

use std::process::ExitCode;

use analyses::critical::{Critical, CriticalOf, CriticalTask, NoSuchTask, busiest, critical};
use analyses::path::{PathEnds, Paths, paths};
use analyses::view::View;
use anyhow::anyhow;
use report::{BusiestReport, CriticalReport};
use session::{Selection, Session};

use crate::args::critical::CriticalArgs;
use crate::args::unless_zero;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for CriticalArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &CriticalArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.say_guests_alone();
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    let (task, subject) = match (&args.task, &args.request) {
        (Some(task), _) => (task.clone(), CriticalOf::Task(CriticalTask(task.clone()))),
        (None, Some(id)) => (format!("request {id}"), request(id, &session)?),
        (None, None) => {
            let report = busiest_threads(args, &session)?;
            return output::write_part(&report, session.part(), &args.output, out);
        }
    };
    let found = reading(&session, 1, |progress| critical(session.view(), &subject, progress));
    let report = CriticalReport {
        sources: session.paths(),
        alignment: session.alignment(),
        critical: found.map_err(|none| no_task(&task, &none))?,
        task,
        top: unless_zero(args.top),
        recorder_cost: session.recorder_cost(),
    };
    output::write_part(&report, session.part(), &args.output, out)
}

/// The list of threads, for a call without --task or --request.
fn busiest_threads(args: &CriticalArgs, session: &Session) -> anyhow::Result<BusiestReport> {
    let busiest = reading(session, 1, |progress| busiest(session.view(), progress));
    if busiest.threads.is_empty() {
        return Err(no_threads());
    }
    Ok(BusiestReport {
        sources: session.paths(),
        alignment: session.alignment(),
        busiest,
        top: unless_zero(args.top),
        recorder_cost: session.recorder_cost(),
    })
}

/// The request with this id among those that `path` shows.
fn request(id: &str, session: &Session) -> anyhow::Result<CriticalOf> {
    let found =
        reading(session, 1, |progress| paths(session.view(), &PathEnds::default(), progress));
    let steps = found.ok().and_then(|paths| ends(id, &paths));
    steps
        .ok_or_else(|| anyhow!("unknown request {id}: path --format json lists ids, such as 1:p50"))
}

fn ends(id: &str, paths: &Paths) -> Option<CriticalOf> {
    let (path, example) = id.split_once(':')?;
    let path = paths.paths.get(path.parse::<usize>().ok()?.checked_sub(1)?)?;
    let example = path.examples.iter().find(|candidate| candidate.kind.name() == example)?;
    let (first, last) = (example.steps.first()?, example.steps.last()?);
    Some(CriticalOf::Request(first.clone(), last.clone()))
}

/// The waits of the threads with this name or number.
pub(super) fn critical_of_task(
    task: &str,
    view: View<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Critical> {
    let subject = CriticalOf::Task(CriticalTask(task.to_owned()));
    critical(view, &subject, progress).map_err(|none| no_task(task, &none))
}

/// The error for an unknown task, with the threads that exist.
fn no_task(task: &str, none: &NoSuchTask) -> anyhow::Error {
    if none.known.is_empty() {
        return no_threads();
    }
    let known = none.known.iter().map(|(machine, thread)| format!("{machine}/{thread}"));
    let known = known.collect::<Vec<_>>().join(", ");
    anyhow!("no thread has the name {task}; the busiest are {known}")
}

fn no_threads() -> anyhow::Error {
    anyhow!("the recording shows no threads: record sched_switch and sched_waking")
}
