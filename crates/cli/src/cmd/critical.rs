//! `hyperscope critical`: what a task or a request really waited for.

use analyses::align::GuestAlignment;
use analyses::critical::{Critical, CriticalOf, CriticalTask, NoSuchTask, busiest, critical};
use analyses::path::{PathEnds, Paths, paths};
use anyhow::anyhow;
use report::{BusiestReport, CriticalReport, align_summary};
use sources::Recording;

use crate::aligned::align_guests;
use crate::args::critical::CriticalArgs;
use crate::inputs::{note_guests_alone, open_all};
use crate::output;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::recorded;

pub(crate) fn run(args: &CriticalArgs) -> anyhow::Result<()> {
    let mut recordings = open_all(&args.files)?;
    note_guests_alone(&recordings);
    let out = output::open(args.output.output.as_deref(), &recordings)?;
    let mut guests = align_guests(&mut recordings, args.method.method)?;
    let part = Part::from(&args.part).set(&mut recordings, &mut guests)?;
    let (task, of) = match (&args.task, &args.request) {
        (Some(task), _) => (task.clone(), CriticalOf::Task(CriticalTask(task.clone()))),
        (None, Some(id)) => (format!("request {id}"), request(id, &recordings, &guests)?),
        (None, None) => {
            let report = busiest_threads(args, &recordings, &guests)?;
            return output::write_part(&report, &part, &args.output, out);
        }
    };
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let found = critical(&recordings, &guests, &of, &|bytes| progress.advance(bytes));
    progress.finish();
    let report = CriticalReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        critical: found.map_err(|none| no_task(&task, &none))?,
        task,
        top: if args.top == 0 { usize::MAX } else { args.top },
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    };
    output::write_part(&report, &part, &args.output, out)
}

/// The threads that there are, where nobody says whose time is asked about.
fn busiest_threads(
    args: &CriticalArgs,
    recordings: &[Recording],
    guests: &[GuestAlignment],
) -> anyhow::Result<BusiestReport> {
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let busiest = busiest(recordings, guests, &|bytes| progress.advance(bytes));
    progress.finish();
    if busiest.threads.is_empty() {
        return Err(no_threads());
    }
    Ok(BusiestReport {
        sources: recordings.iter().map(|one| one.path().display().to_string()).collect(),
        alignment: guests.iter().map(align_summary).collect(),
        busiest,
        top: if args.top == 0 { usize::MAX } else { args.top },
        recorder_cost: recordings.iter().find_map(|one| recorded(one.path()).cost),
    })
}

/// The request of that id among those that `path` shows.
fn request(
    id: &str,
    recordings: &[Recording],
    guests: &[GuestAlignment],
) -> anyhow::Result<CriticalOf> {
    let progress = Progress::new(recordings.iter().map(Recording::stored_len).sum());
    let found = paths(recordings, guests, &PathEnds::default(), &|bytes| progress.advance(bytes));
    progress.finish();
    let steps = found.ok().and_then(|paths| ends(id, &paths));
    steps.ok_or_else(|| {
        anyhow!("there is no request {id}: path --format json has ids, such as 1:p50")
    })
}

fn ends(id: &str, paths: &Paths) -> Option<CriticalOf> {
    let (path, example) = id.split_once(':')?;
    let path = paths.paths.get(path.parse::<usize>().ok()?.checked_sub(1)?)?;
    let example = path.examples.iter().find(|one| one.of.name() == example)?;
    let (first, last) = (example.steps.first()?, example.steps.last()?);
    Some(CriticalOf::Request(first.clone(), last.clone()))
}

/// What the threads of that name or number waited for.
pub(super) fn critical_of_task(
    task: &str,
    recordings: &[Recording],
    guests: &[GuestAlignment],
    tick: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Critical> {
    let of = CriticalOf::Task(CriticalTask(task.to_owned()));
    critical(recordings, guests, &of, tick).map_err(|none| no_task(task, &none))
}

/// Says which threads there are instead.
fn no_task(task: &str, none: &NoSuchTask) -> anyhow::Error {
    if none.known.is_empty() {
        return no_threads();
    }
    let known = none.known.iter().map(|(machine, thread)| format!("{machine}/{thread}"));
    let known = known.collect::<Vec<_>>().join(", ");
    anyhow!("no thread is called {task}; the busiest are {known}")
}

fn no_threads() -> anyhow::Error {
    anyhow!("no thread is known: record sched_switch and sched_waking")
}
