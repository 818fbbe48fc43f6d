//! The recordings of a session as tables, for a folder or for a lake.

mod needed;

use std::collections::HashMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analyses::align::GuestAlignment;
use anyhow::{Context, bail};
use lake::{
    Files, Ids, Origin, Pseudonyms, Question, SourceHash, Table, UnixClock, Written, hash_sources,
    identify, write_tables,
};
use report::events::Machine;
use sources::Recording;
use timeline::event_filter::Filter;

pub(crate) use self::needed::convert_needed_events;
use crate::aligned::{align_guests, report_unaligned};
use crate::args::MethodArg;
use crate::args::tables::TableArgs;
use crate::cmd::events::check_names;
use crate::inputs::open_all;
use crate::losses::say_losses;
use crate::machines::machines;
use crate::misuse::Misuse;
use crate::part::Part;
use crate::progress::Progress;
use crate::recorded::{Recorded, recorded};

/// Recordings of one host and its guests, and what is known of them.
#[derive(Debug)]
pub(crate) struct SessionTables {
    recordings: Vec<Recording>,
    guests: Vec<GuestAlignment>,
    machines: Vec<Machine>,
    /// Bytes of the files that were opened.
    source: SourceHash,
    source_uri: String,
    /// What was asked for that makes rows others.
    part: String,
    range_ns: Option<(u64, u64)>,
    /// When the host's first event happened, by its trace clock.
    first_ns: u64,
    /// What the recorder reported of the host.
    recorded: Recorded,
    /// By recording, the process of vCPU threads where the recorder knew it.
    processes: Vec<HashMap<u32, u32>>,
    /// Hashes in place of names.
    pseudonyms: Option<Arc<Pseudonyms>>,
    /// How its rows are named, where that was found before a part was left out.
    named: Option<Ids>,
}

impl SessionTables {
    /// Opens recordings, and brings guests to their host's clock.
    ///
    /// # Errors
    /// When they can't be read, or are of several hosts.
    pub(crate) fn open(
        paths: &[PathBuf],
        method: Option<MethodArg>,
        part: &Part,
    ) -> anyhow::Result<Self> {
        let mut recordings = open_all(paths)?;
        let files: Vec<&Path> = recordings.iter().map(Recording::path).collect();
        let source = hash_sources(&files).context("cannot read the recordings")?;
        let no_seconds = recordings.iter().find(|one| !one.is_nanoseconds());
        if let Some(recording) = no_seconds {
            let path = recording.path().display();
            bail!("{path}: its clock counts ticks of unknown length; tables have nanoseconds");
        }
        let mut guests = align_guests(&mut recordings, method)?;
        let ends_ns = recordings.first().and_then(Recording::first_and_last_ns).unwrap_or_default();
        let range = part.of_all(&recordings, &guests)?;
        part.set(&mut recordings, &mut guests)?;
        report_unaligned(&guests);
        let machines = machines(&recordings, &guests);
        let hosts = machines.iter().filter(|machine| machine.level == 0).count();
        if hosts > 1 {
            bail!(Misuse(
                "recordings of several hosts: a session is of one, with its guests".to_owned()
            ));
        }
        let mut reported: Vec<Recorded> =
            recordings.iter().map(|one| recorded(one.path())).collect();
        let processes = reported.iter_mut().map(|one| take(&mut one.processes)).collect();
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let method = method.map_or_else(String::new, |method| method.0.name().to_owned());
        Ok(Self {
            recordings,
            guests,
            machines,
            source,
            source_uri: names.join(" "),
            part: format!("{method} {}", part.description().unwrap_or_default()),
            range_ns: range.map(|range| (range.from_ns.max(ends_ns.0), range.to_ns.min(ends_ns.1))),
            first_ns: ends_ns.0,
            recorded: reported.into_iter().next().unwrap_or_default(),
            processes,
            pseudonyms: None,
            named: None,
        })
    }

    /// The same, with hashes in place of names.
    pub(crate) fn with_pseudonyms(self, pseudonyms: Option<Arc<Pseudonyms>>) -> Self {
        Self { pseudonyms, ..self }
    }

    /// Whether nothing says when it was recorded.
    pub(crate) fn clock_is_unknown(&self, args: &TableArgs) -> bool {
        self.origin(args).clock.offset_ns.is_none()
    }

    /// Places of the recordings that could not be read.
    fn damaged_places(&self) -> usize {
        self.recordings.iter().map(|one| one.damage().len()).sum()
    }

    /// Says what the recordings lost.
    pub(crate) fn say_losses(&self) {
        say_losses(&self.recordings);
    }

    fn origin(&self, args: &TableArgs) -> Origin {
        let recorded = &self.recorded;
        let cost = recorded.cost.as_ref();
        let begun_at = |begun| UnixClock::begun_at(begun, self.first_ns);
        let clock = match args.begun {
            Some(begun) => Some(begun_at(begun.ns())),
            None => UnixClock::of_pairs(&recorded.clock_pairs)
                .or_else(|| recorded.begun_unix_ns.map(begun_at)),
        };
        Origin {
            source_uri: self.source_uri.clone(),
            source: Some(self.source.clone()),
            part: self.part.clone(),
            host_id: args.host.clone().or_else(|| recorded.host_id.clone()),
            cpu_model: recorded.cpu_model.clone(),
            microcode: recorded.microcode.clone(),
            clock: clock.unwrap_or_default(),
            labels: args.labels.iter().map(|one| (one.0.clone(), one.1.clone())).collect(),
            recorder_cpu_ns: cost.map(|cost| cost.cpu_ns),
            available_cpu_ns: cost.map(|cost| cost.cpus.saturating_mul(cost.duration_ns)),
            sample_weight: 1.0,
            pseudonyms: self.pseudonyms.clone(),
        }
    }
}

impl SessionTables {
    /// Names the session and its rows, as [`convert`] will.
    ///
    /// # Errors
    /// When no event is called so.
    pub(crate) fn identify(&self, args: &TableArgs, events: &[String]) -> anyhow::Result<Ids> {
        let filter = self.filter(events)?;
        let origin = self.origin(args);
        let wanted = args.wanted(!events.is_empty());
        let question = self.question(&origin, &filter, &wanted);
        Ok(lake::identify(&question))
    }

    fn filter(&self, events: &[String]) -> anyhow::Result<Filter> {
        let filter = Filter {
            events: events.to_vec(),
            cpus: None,
            from_ns: self.range_ns.map(|range| range.0),
            to_ns: self.range_ns.map(|range| range.1),
            conditions: Vec::new(),
        };
        check_names(&filter, &self.recordings)?;
        Ok(filter)
    }

    /// What is to be written: all of these tables.
    fn question<'q>(
        &'q self,
        origin: &'q Origin,
        events: &'q Filter,
        tables: &'q [&'static Table],
    ) -> Question<'q> {
        let Self { recordings, guests, machines, processes, range_ns, .. } = self;
        let range_ns = *range_ns;
        let written = tables;
        Question {
            recordings,
            guests,
            machines,
            processes,
            origin,
            range_ns,
            tables,
            written,
            events,
        }
    }
}

/// Writes tables of them: `only` this one, or all that `args` ask for. `events`: patterns of those that the table of
/// events is to have.
///
/// # Errors
/// When a table can't be written, or no event is called so.
pub(crate) fn convert<F: Files>(
    tables: &SessionTables,
    args: &TableArgs,
    (only, events): (Option<&'static Table>, &[String]),
    files: &mut F,
) -> anyhow::Result<Written> {
    let recordings = &tables.recordings;
    let filter = tables.filter(events)?;
    let origin = tables.origin(args);
    let wanted = args.wanted(!events.is_empty());
    let question = tables.question(&origin, &filter, &wanted);
    let written = only.as_ref().map_or(wanted.as_slice(), std::slice::from_ref);
    let question = Question { written, ..question };
    // Read four times at most: who is who, exits, states, requests.
    let bytes: u64 = recordings.iter().map(Recording::stored_len).sum();
    let progress = Progress::new(bytes.saturating_mul(4));
    let ids = tables.named.clone().unwrap_or_else(|| identify(&question));
    let tick = |bytes| progress.advance(bytes);
    let written = write_tables(question, ids, files, &tick);
    progress.finish();
    sys::check_mapped_files()?;
    written.context("cannot write the tables")
}
