//! Writes recordings as tables: a folder with one Parquet file each.

use std::fs;
use std::io::Write;

use anyhow::{Context, bail};
use fleet::lake::tables::EVENTS;
use printable::messages;
use report::plural;

use crate::args::export::ExportArgs;
use command::notice::say;
use session_tables::{SessionTables, TableFolder, convert, convert_needed_events, refuse_source};

pub(super) fn write(args: &ExportArgs) -> anyhow::Result<()> {
    let Some(folder) = args.output.as_deref() else { bail!("--format parquet needs -o") };
    refuse_source(folder, &args.files)?;
    let selection = args.selection();
    let mut sources = SessionTables::open(
        &args.files,
        &args.vms.names.of_one_session(),
        args.method.method(),
        &selection,
    )?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let only = args.only.map(|table| table.0);
    let mut files = TableFolder::new(folder, &args.files);
    if only == Some(&EVENTS) && args.events.is_empty() && !args.needed.is_all_events() {
        convert_needed_events(sources, &args.tables, &args.needed, &mut files)?;
        return files.complete();
    }
    // A recording has a single selection: the user's must stay.
    if selection.has_all_vcpus() {
        sources.leave_out_other_vms(&args.tables, &args.events, &args.needed.needed_vm)?;
    }
    let written = convert(&sources, &args.tables, (only, &args.events), &mut files)?;
    files.complete()?;
    if only.is_some() {
        // The caller that requests a single table prints its own messages.
        return Ok(());
    }
    let mut err = messages();
    let rows = plural(written.rows.iter().map(|(_, rows)| rows).sum(), "row");
    let tables = plural(written.rows.len() as u64, "table");
    let _ = writeln!(err, "hyperscope: {rows} in {tables}, in {}", folder.display());
    sources.say_losses();
    if sources.clock_is_unknown(&args.tables) {
        say("its date is unknown, so times are those of the trace clock; set it with --begun");
    }
    Ok(())
}
