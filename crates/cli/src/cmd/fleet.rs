//! `hyperscope fleet`: whether hosts of a lake differ, and a lake to try that on.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use analyses::diff::Condition;
use anyhow::{Context, bail};
use fleet::{
    FleetDiff, FleetReport, Metric, Question, Row, SelectionError, Simulation, Template, fleet_diff,
};
use lake::store::LocalFolder;
use lake::tables::{EXIT_HIST, EXIT_ROLLUP, SESSIONS};
use printable::messages;
use report::plural;

use crate::args::fleet::{FleetArgs, FleetDiffArgs, FleetVerb, SimulateArgs};
use crate::args::tables::{TableArg, TableArgs};
use crate::cmd::export::TableFolder;
use crate::exit_codes::CONDITION_HOLDS;
use crate::misuse::Misuse;
use crate::notice::say;
use crate::output;
use crate::part::Part;
use crate::session_tables::{SessionTables, convert};

pub(crate) fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    match &args.verb {
        FleetVerb::Diff(args) => diff(args),
        FleetVerb::Simulate(args) => simulate(args).map(|()| ExitCode::SUCCESS),
    }
}

fn diff(args: &FleetDiffArgs) -> anyhow::Result<ExitCode> {
    let conditions: Vec<(&Condition, Metric)> =
        args.fail_if.iter().map(|one| Ok((one, metric_of(one)?))).collect::<Result<_, Misuse>>()?;
    let mut metrics = match args.metric.as_slice() {
        [] => Metric::ALL.to_vec(),
        some => some.to_vec(),
    };
    metrics.extend(conditions.iter().map(|one| one.1));
    metrics.sort_unstable();
    metrics.dedup();
    let question = Question {
        sides: [args.a.clone(), args.b.clone()],
        control: args.control.clone(),
        strata: args.strata.clone(),
        metrics,
        most_lost: args.most_lost,
        alpha: args.alpha,
        seed: args.seed,
    };
    let storage = LocalFolder::open(&args.lake)?;
    let out = output::open(args.output.output.as_deref(), [])?;
    let diff = match fleet_diff(&storage, question) {
        Err(error) if is_misuse(&error) => bail!(Misuse(error.to_string())),
        done => done.context("cannot read the lake")?,
    };
    for (side, name) in diff.sides.iter().zip(["--a", "--b"]) {
        if side.hosts == 0 {
            bail!("{name}: no session of a known host is so");
        }
    }
    let report = FleetReport { diff, all: args.all };
    output::write(&report, &args.output, out)?;
    conclude(&report.diff, &conditions)
}

fn is_misuse(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<SelectionError>())
}

fn metric_of(condition: &Condition) -> Result<Metric, Misuse> {
    let names = || Metric::ALL.map(Metric::short).join(", ");
    Metric::named(condition.metric()).ok_or_else(|| {
        Misuse(format!("--fail-if {}: no such metric; there are: {}", condition.text, names()))
    })
}

/// Reports which conditions hold, and for what.
fn conclude(diff: &FleetDiff, conditions: &[(&Condition, Metric)]) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut err = messages();
    for (condition, metric) in conditions {
        let is_about = |row: &&Row| {
            let reason = condition.reason.as_deref();
            row.metric == *metric
                && reason.is_none_or(|reason| row.reason_shown().eq_ignore_ascii_case(reason))
        };
        let rows = diff.rows.iter().filter(is_about).filter(|row| row.change.is_some());
        let rows: Vec<&Row> = rows.collect();
        if rows.is_empty() {
            // A slip in a name must not pass for a good result.
            bail!("--fail-if '{}': no row with numbers to hold it against", condition.text);
        }
        let beyond: Vec<&Row> =
            rows.into_iter().filter(|row| is_beyond(condition, row) == Some(true)).collect();
        for row in beyond.iter().filter(|row| row.is_finding()) {
            let _ = writeln!(err, "hyperscope: {}: {}", condition.text, verdict(row));
            code = ExitCode::from(CONDITION_HOLDS);
        }
        let others = beyond.iter().filter(|row| !row.is_finding()).count();
        if others > 0 {
            let rows = plural(others as u64, "row");
            let _ = writeln!(
                err,
                "hyperscope: {}: {rows} beyond it by chance, for a while or for another reason",
                condition.text
            );
        }
    }
    Ok(code)
}

/// Whether the typical host is beyond a condition's limit.
fn is_beyond(condition: &Condition, row: &Row) -> Option<bool> {
    let (a, change) = (row.means[0]?, row.change?);
    condition.is_beyond_values((a, a * change.ratio), row.metric.is_time())
}

fn verdict(row: &Row) -> String {
    let ratio = row.change.map_or(1.0, |change| change.ratio);
    let kind = row.stratum.as_ref().map_or_else(String::new, |kind| format!(" on {kind}"));
    let carried = plural(row.carried_by.len() as u64, "host");
    format!(
        "{} {} is {ratio:.3}x{kind}, carried by {carried}",
        row.reason_shown(),
        row.metric.name()
    )
}

fn simulate(args: &SimulateArgs) -> anyhow::Result<()> {
    let sources = SessionTables::open(std::slice::from_ref(&args.file), None, &Part::default())?;
    let folder = tempfile::tempdir().context("cannot make a folder for tables")?;
    let needed = [&SESSIONS, &EXIT_ROLLUP, &EXIT_HIST];
    let tables = TableArgs { tables: needed.map(TableArg).to_vec(), ..TableArgs::default() };
    let mut files = TableFolder::new(folder.path(), std::slice::from_ref(&args.file));
    convert(&sources, &tables, (None, &[]), &mut files)?;
    files.complete()?;
    let open = |name: &str| File::open(folder.path().join(format!("{name}.parquet")));
    let template =
        Template::read([open(SESSIONS.name)?, open(EXIT_ROLLUP.name)?, open(EXIT_HIST.name)?])?;
    if template.is_empty() {
        bail!("{}: it has no exits that hosts could have", args.file.display());
    }
    let storage = LocalFolder::change(&args.lake)
        .with_context(|| format!("cannot change {}", args.lake.display()))?;
    let simulation = Simulation {
        hosts: args.hosts,
        days: args.days,
        from_day_ns: calendar::begin_of(&args.from_day.0).context("no such day")?,
        slices: args.slices,
        effects: &args.effect,
        seed: args.seed,
    };
    let sessions = simulation.write(&template, &storage).context("cannot write the lake")?;
    say(&format!("{} of {}", plural(sessions, "session"), plural(u64::from(args.hosts), "host")));
    Ok(())
}
