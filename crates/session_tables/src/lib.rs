//! The recordings of a session as tables, for a folder or for a lake.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "only programs of this repository link it")]

pub mod args;
mod folder;
mod needed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analyses::align::Method;
use anyhow::{Context, bail};
use fleet::lake::{
    Files, Ids, Origin, Pseudonyms, Question, SourceHash, Table, UnixClock, Written, hash_sources,
    identify, write_tables,
};
use report::events::Machine;
use session::{Misuse, Selection, Session, VmNames};
use sources::Recording;
use timeline::event_filter::Filter;

pub use self::folder::{TableFolder, refuse_source};
pub use self::needed::convert_needed_events;
use crate::args::TableArgs;
use command::event_names::check_names;
use command::progress::reading;

/// Recordings are read at most four times: for machines, exits, states and requests.
const PASSES: u64 = 4;

/// Recordings of one host and its guests, with their metadata.
#[derive(Debug)]
pub struct SessionTables {
    session: Session,
    machines: Vec<Machine>,
    /// Bytes of the files that were opened.
    source: SourceHash,
    source_uri: String,
    /// The options that change rows, as text.
    part: String,
    range_ns: Option<(u64, u64)>,
    /// The time of the host's first event, on its trace clock.
    first_ns: u64,
    /// By recording, the process of each vCPU thread, if the recorder reported it.
    processes: Vec<HashMap<u32, u32>>,
    /// Replaces names with hashes.
    pseudonyms: Option<Arc<Pseudonyms>>,
    /// The ids of its rows, if they were determined before a selection.
    named: Option<Ids>,
}

impl SessionTables {
    /// Opens recordings, and aligns guests to their host's clock.
    ///
    /// # Errors
    /// When they can't be read, or come from several hosts.
    pub fn open(
        paths: &[PathBuf],
        names: &VmNames,
        method: Option<Method>,
        selection: &Selection,
    ) -> anyhow::Result<Self> {
        let mut session = Session::open(paths, names)?;
        let files: Vec<&Path> = session.recordings().iter().map(Recording::path).collect();
        let source = hash_sources(&files).context("cannot read the recordings")?;
        refuse_ticks(&session)?;
        session.align(method)?;
        let first = session.recordings().first();
        let ends_ns = first.and_then(Recording::first_and_last_ns).unwrap_or_default();
        let range = selection.range_of(session.view())?;
        session.select(selection)?;
        session.say_unaligned();
        let machines = Machine::of_all(session.view());
        refuse_several_hosts(&machines)?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let method = method.map_or("", Method::name);
        Ok(Self {
            processes: session.processes(),
            session,
            machines,
            source,
            source_uri: names.join(" "),
            part: format!("{method} {}", selection.description().unwrap_or_default()),
            range_ns: range.map(|range| (range.from_ns.max(ends_ns.0), range.to_ns.min(ends_ns.1))),
            first_ns: ends_ns.0,
            pseudonyms: None,
            named: None,
        })
    }

    /// The same, with hashes instead of names.
    pub fn with_pseudonyms(self, pseudonyms: Option<Arc<Pseudonyms>>) -> Self {
        Self { pseudonyms, ..self }
    }

    /// Whether the start of the recording in Unix time is unknown.
    pub fn clock_is_unknown(&self, args: &TableArgs) -> bool {
        self.origin(args).clock.offset_ns.is_none()
    }

    /// Number of places in the recordings that could not be read.
    fn damaged_places(&self) -> usize {
        self.session.recordings().iter().map(|recording| recording.damage().len()).sum()
    }

    /// Prints the losses of the recordings.
    pub fn say_losses(&self) {
        self.session.say_losses();
    }

    fn origin(&self, args: &TableArgs) -> Origin {
        let recorded = self.session.reported().first().cloned().unwrap_or_default();
        let cost = recorded.cost.as_ref();
        let begun_at = |unix_ns| UnixClock::begun_at(unix_ns, self.first_ns);
        let clock = match args.begun {
            Some(time) => Some(begun_at(time.ns())),
            None => UnixClock::of_pairs(&recorded.clock_pairs)
                .or_else(|| recorded.begun_unix_ns.map(begun_at)),
        };
        Origin {
            source_uri: self.source_uri.clone(),
            source: Some(self.source.clone()),
            part: self.part.clone(),
            host_id: args.host.clone().or(recorded.host_id),
            cpu_model: recorded.cpu_model,
            microcode: recorded.microcode,
            clock: clock.unwrap_or_default(),
            labels: args.labels.iter().map(|label| (label.0.clone(), label.1.clone())).collect(),
            recorder_cpu_ns: cost.map(|cost| cost.cpu_ns),
            available_cpu_ns: cost.map(|cost| cost.cpus.saturating_mul(cost.duration_ns)),
            sample_weight: 1.0,
            pseudonyms: self.pseudonyms.clone(),
        }
    }
}

impl SessionTables {
    /// Determines the ids of the session and its rows, as [`convert`] does.
    ///
    /// # Errors
    /// When no event has such a name.
    pub fn identify(&self, args: &TableArgs, events: &[String]) -> anyhow::Result<Ids> {
        let filter = self.filter(events)?;
        let origin = self.origin(args);
        let wanted = args.wanted(!events.is_empty());
        let question = self.question(&origin, &filter, &wanted);
        Ok(fleet::lake::identify(&question))
    }

    fn filter(&self, events: &[String]) -> anyhow::Result<Filter> {
        let filter = Filter {
            events: events.to_vec(),
            cpus: None,
            from_ns: self.range_ns.map(|range| range.0),
            to_ns: self.range_ns.map(|range| range.1),
            conditions: Vec::new(),
        };
        check_names(&filter, self.session.recordings())?;
        Ok(filter)
    }

    /// The question for these tables.
    fn question<'q>(
        &'q self,
        origin: &'q Origin,
        events: &'q Filter,
        tables: &'q [&'static Table],
    ) -> Question<'q> {
        let Self { session, machines, processes, range_ns, .. } = self;
        let (view, range_ns, written) = (session.view(), *range_ns, tables);
        Question { view, machines, processes, origin, range_ns, tables, written, events }
    }
}

/// Refuses recordings whose clock counts ticks: tables hold nanoseconds.
fn refuse_ticks(session: &Session) -> anyhow::Result<()> {
    match session.recordings().iter().find(|recording| !recording.is_nanoseconds()) {
        None => Ok(()),
        Some(recording) => {
            let path = recording.path().display();
            bail!("{path}: the clock counts ticks of unknown length; tables need nanoseconds")
        }
    }
}

fn refuse_several_hosts(machines: &[Machine]) -> anyhow::Result<()> {
    if machines.iter().filter(|machine| machine.level == 0).count() > 1 {
        bail!(Misuse(
            "these recordings come from several hosts: a session has one host and its guests"
                .to_owned()
        ));
    }
    Ok(())
}

/// Writes tables: `only` this one, or all that `args` request. `events`: patterns for the table of events.
///
/// # Errors
/// When a table can't be written, or no event matches a pattern.
pub fn convert<F: Files>(
    tables: &SessionTables,
    args: &TableArgs,
    (only, events): (Option<&'static Table>, &[String]),
    files: &mut F,
) -> anyhow::Result<Written> {
    let filter = tables.filter(events)?;
    let origin = tables.origin(args);
    let wanted = args.wanted(!events.is_empty());
    let question = tables.question(&origin, &filter, &wanted);
    let written = only.as_ref().map_or(wanted.as_slice(), std::slice::from_ref);
    let question = Question { written, ..question };
    let ids = tables.named.clone().unwrap_or_else(|| identify(&question));
    let written =
        reading(&tables.session, PASSES, |progress| write_tables(question, ids, files, progress));
    sys::check_mapped_files()?;
    written.context("cannot write the tables")
}
