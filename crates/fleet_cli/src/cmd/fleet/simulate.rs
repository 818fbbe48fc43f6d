//! `hyperscope fleet simulate`: makes a lake of simulated hosts.

use std::fs::File;

use anyhow::{Context, bail};
use fleet::lake::tables::{EXIT_HIST, EXIT_ROLLUP, SESSIONS};
use fleet::{Simulation, Template};
use report::plural;
use session::{Selection, VmNames};

use crate::args::fleet::SimulateArgs;
use crate::args::tables::{TableArg, TableArgs};
use crate::lake_place;
use command::notice::say;
use session_tables::TableFolder;
use session_tables::{SessionTables, convert};

pub(super) fn run(args: &SimulateArgs) -> anyhow::Result<()> {
    let sources = SessionTables::open(
        std::slice::from_ref(&args.file),
        &VmNames::default(),
        None,
        &Selection::default(),
    )?;
    let folder = tempfile::tempdir().context("cannot create a folder for tables")?;
    let needed = [&SESSIONS, &EXIT_ROLLUP, &EXIT_HIST];
    let tables = TableArgs { tables: needed.map(TableArg).to_vec(), ..TableArgs::default() };
    let mut files = TableFolder::new(folder.path(), std::slice::from_ref(&args.file));
    convert(&sources, &tables, (None, &[]), &mut files)?;
    files.complete()?;
    let open = |name: &str| File::open(folder.path().join(format!("{name}.parquet")));
    let template =
        Template::read([open(SESSIONS.name)?, open(EXIT_ROLLUP.name)?, open(EXIT_HIST.name)?])?;
    if template.is_empty() {
        bail!("{}: it has no exits to simulate", args.file.display());
    }
    let storage = lake_place::change(&args.lake)?;
    let simulation = Simulation {
        hosts: args.hosts,
        days: args.days,
        from_day_ns: printable::calendar::begin_of(&args.from_day.0)
            .context("the day is out of range")?,
        slices: args.slices,
        effects: &args.effect,
        seed: args.seed,
    };
    let sessions = simulation.write(&template, &storage);
    let sessions = sessions.with_context(|| format!("cannot write {}", args.lake.display()))?;
    say(&format!("{} of {}", plural(sessions, "session"), plural(u64::from(args.hosts), "host")));
    Ok(())
}
