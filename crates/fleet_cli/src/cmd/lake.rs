//! `hyperscope lake`: the tables of many recordings in one place.

mod key_file;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use fleet::lake::store::{
    Added, Addition, Collected, Compacted, KeyFault, Lake, Retention, Storage, check_key, compact,
    gc, list, reject, unreject, verify,
};
use fleet::lake::{Pseudonyms, hash_sources};
use printable::calendar::date_of;
use printable::{messages, without_error_numbers};
use report::plural;
use session::{Misuse, Selection};
use sources::OpenError;

use crate::args::lake::{AddArgs, CompactArgs, GcArgs, LakeArgs, LakeVerb, ListArgs, VerifyArgs};
use crate::cmd::lake::key_file::pseudonyms;
use crate::lake_place;
use command::notice::say;
use command::output;
use command::verb::{Memory, Range, VerbArgs};
use session_tables::{SessionTables, convert};

impl VerbArgs for LakeArgs {
    fn memory(&self) -> Memory {
        match &self.verb {
            LakeVerb::Add(args) => Memory::Limits(args.memory),
            LakeVerb::Compact(args) => Memory::Limits(args.memory),
            LakeVerb::Verify(args) => Memory::Limits(args.memory),
            LakeVerb::Gc(_) | LakeVerb::List(_) => Memory::Unbounded,
        }
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &LakeArgs) -> anyhow::Result<()> {
    match &args.verb {
        LakeVerb::Add(args) => add(args),
        LakeVerb::Compact(args) => compact_days(args),
        LakeVerb::Gc(args) => collect(args),
        LakeVerb::List(args) => show(args),
        LakeVerb::Verify(args) => check(args),
    }
}

fn change_known(lake: &Path) -> anyhow::Result<Lake> {
    match lake_place::open(lake)? {
        // Locks it.
        Lake::Folder(_) => lake_place::change(lake),
        store => Ok(store),
    }
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let pseudonyms = args.pseudonymize.as_deref().map(|key| pseudonyms(key, &args.lake));
    let pseudonyms = pseudonyms.transpose()?.map(Arc::new);
    let storage = lake_place::change(&args.lake)?;
    let checked = check_key(&storage, pseudonyms.as_deref());
    if let Err(fault) = checked.with_context(|| format!("cannot read {}", args.lake.display()))? {
        bail!(Misuse(fault_of_key(fault, &args.lake)));
    }
    let mut rejected = 0;
    for file in &args.files {
        let shown = file.display().to_string();
        let noted = pseudonyms
            .as_deref()
            .map_or_else(|| shown.clone(), |pseudonyms| pseudonyms.name(&shown));
        match add_one(args, file, &storage, pseudonyms.clone()) {
            Ok(added) => {
                unreject(&storage, &noted)?;
                let what = match added {
                    Added::New => "added",
                    Added::Replaced => "replaced",
                    Added::There => "there already",
                    Added::Dated => {
                        "skipped: its rows already have a date; pass it with --begun to replace them"
                    }
                    Added::Newer => "skipped: a newer version of hyperscope wrote its rows",
                };
                say(&format!("{shown}: {what}"));
            }
            Err(error) => {
                // A full disk is not a fault of the recording.
                if let Some(fault) = storage.write_fault() {
                    bail!("{shown}: not added: cannot write to {}: {fault}", args.lake.display());
                }
                let hash = hash_sources(&[file]).ok().map(|hash| hash.sha256);
                let why = without_error_numbers(&format!("{error:#}")).into_owned();
                let noted_why = if pseudonyms.is_some() { WHY_NOT_NOTED } else { &why };
                reject(&storage, &noted, hash.as_deref(), noted_why)?;
                say(&format!("{shown}: rejected: {}", without_path(&error, file)));
                rejected += 1;
            }
        }
    }
    match rejected {
        0 => Ok(()),
        _ => bail!(
            "{rejected} of {} could not be added; the table rejected lists them",
            args.files.len()
        ),
    }
}

/// Why a recording was rejected, for a message that already includes its path.
fn without_path(error: &anyhow::Error, path: &Path) -> String {
    let why = match error.downcast_ref::<OpenError>() {
        Some(unopened) => unopened.after(path),
        None => format!("{error:#}"),
    };
    without_error_numbers(&why).into_owned()
}

/// Replaces an error message that may contain names.
const WHY_NOT_NOTED: &str =
    "omitted because it may contain names; add the recording again to see it";

fn fault_of_key(fault: KeyFault, lake: &Path) -> String {
    let what = match fault {
        KeyFault::Missing => "this lake has hashed names: use --pseudonymize with its key",
        KeyFault::Other => "this lake has names hashed with another key",
        KeyFault::Named => "this lake already has plain names: --pseudonymize needs a new lake",
    };
    format!("{}: {what}", lake.display())
}

fn add_one(
    args: &AddArgs,
    file: &Path,
    storage: &Lake,
    pseudonyms: Option<Arc<Pseudonyms>>,
) -> anyhow::Result<Added> {
    let all = Selection::default();
    let tables = SessionTables::open(
        &[file.to_owned()],
        &args.names.of_each_session(),
        args.method.method(),
        &all,
    )?;
    let tables = tables.with_pseudonyms(pseudonyms);
    let ids = tables.identify(&args.tables, &args.events)?;
    let mut addition = Addition::new(storage, ids)?;
    let outcome = addition.outcome();
    if matches!(outcome, Added::New | Added::Replaced) {
        convert(&tables, &args.tables, (None, &args.events), &mut addition)?;
        tables.say_losses();
        if tables.clock_is_unknown(&args.tables) {
            say(&format!(
                "{}: its date is unknown, so its trace clock puts it on 1970-01-01: add trace-cmd recordings with --begun",
                file.display()
            ));
        }
    }
    Ok(outcome)
}

fn compact_days(args: &CompactArgs) -> anyhow::Result<()> {
    let storage = change_known(&args.lake)?;
    let before = args.before.as_ref().map_or_else(|| day_before(0), |date| date.0.clone());
    let done =
        compact(&storage, &|date| date < before.as_str()).context("cannot compact the lake")?;
    let Compacted { sessions, parts, files_before, files, changed } = done;
    say(&format!(
        "{} in {}: {} instead of {files_before}",
        plural(sessions, "session"),
        plural(parts, "part"),
        plural(files, "file")
    ));
    if changed > 0 {
        say(&format!("{} skipped: another run changed them meanwhile", plural(changed, "session")));
    }
    Ok(())
}

fn collect(args: &GcArgs) -> anyhow::Result<()> {
    let storage = change_known(&args.lake)?;
    let retention = |keep: &crate::args::lake::Keep| Retention {
        table: keep.table,
        before: day_before(u64::from(keep.days)),
    };
    let retentions: Vec<Retention> = args.keep.iter().map(retention).collect();
    let done = gc(&storage, args.grace(), &retentions, SystemTime::now());
    let Collected { orphans, unfinished, expired, bytes } =
        done.context("cannot clean up the lake")?;
    say(&format!(
        "removed {}: {orphans} without a session, {unfinished} unfinished, {expired} older than --keep",
        plural(bytes, "byte")
    ));
    Ok(())
}

/// The day `days` ago, in UTC.
fn day_before(days: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let then = now.saturating_sub(Duration::from_secs(days.saturating_mul(86_400)));
    date_of(i64::try_from(then.as_nanos()).unwrap_or(i64::MAX))
}

fn show(args: &ListArgs) -> anyhow::Result<()> {
    let storage = lake_place::open(&args.lake)?;
    let out = output::open(args.output.output.as_deref(), [])?;
    output::write(&list(&storage).context("cannot read the lake")?, &args.output, out)
}

fn check(args: &VerifyArgs) -> anyhow::Result<()> {
    let storage = lake_place::open(&args.lake)?;
    let expired: Vec<_> = args.expired.iter().map(|table| table.0).collect();
    let found = verify(&storage, &expired).context("cannot read the lake")?;
    let mut err = messages();
    for fault in &found.faults {
        let _ = writeln!(err, "hyperscope: {fault}");
    }
    let rows: u64 = found.rows.values().sum();
    let _ = writeln!(
        err,
        "hyperscope: {}, {}; files without a session: {}",
        plural(found.sessions as u64, "session"),
        plural(rows, "row"),
        found.orphans
    );
    match found.faults.len() {
        0 => Ok(()),
        faults => bail!("{}: faults: {faults}", args.lake.display()),
    }
}
