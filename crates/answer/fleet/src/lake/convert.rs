//! Converts recordings to tables: one pass after the other, and each row is written as soon as it is known.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use analyses::view::View;
use lake_store::tables::{self, SCHEMA_VERSION};
use lake_store::{
    CONVERTER, Files, Ids, Pseudonyms, SourceHash, Table, TableWriter, TextId, name_of,
};
use report::events::Machine;
use sources::Recording;
use timeline::event_filter::Filter;

use crate::lake::clock::UnixClock;
use crate::lake::exit_tables::{ExitTables, Rows};
use crate::lake::gaps::{Coverage, gaps};
use crate::lake::survey::{Survey, ends_of};
use crate::lake::{buckets, events, requests, session, spans, states};

/// Properties of a session besides its recordings.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The path of the recordings.
    pub source_uri: String,
    /// The hash of their bytes.
    pub source: Option<SourceHash>,
    /// Options that change its rows: a range, VMs.
    pub part: String,
    /// The host's name in the fleet.
    pub host_id: Option<String>,
    /// The model of its CPUs.
    pub cpu_model: Option<String>,
    pub microcode: Option<String>,
    /// The relation of its trace clock to Unix time.
    pub clock: UnixClock,
    pub labels: Vec<(String, String)>,
    /// CPU time of the recorder.
    pub recorder_cpu_ns: Option<u64>,
    /// Total CPU time of the host's CPUs.
    pub available_cpu_ns: Option<u64>,
    /// Number of hosts that it represents.
    pub sample_weight: f64,
    /// Hashes that replace names.
    pub pseudonyms: Option<Arc<Pseudonyms>>,
}

/// The tables to write, and the recordings.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The recordings, the host's first, with guests on their hosts' clock.
    pub view: View<'q>,
    /// By recording, its machine.
    pub machines: &'q [Machine],
    /// By recording, processes of VMs by their vCPUs' threads.
    pub processes: &'q [HashMap<u32, u32>],
    /// Other facts about the session.
    pub origin: &'q Origin,
    /// The range that recordings were limited to, within the host's recording.
    pub range_ns: Option<(u64, u64)>,
    /// The tables of the complete conversion; they determine its ingest id.
    pub tables: &'q [&'static Table],
    /// The tables to write; those of the session are always written.
    pub written: &'q [&'static Table],
    /// The events of the table of events.
    pub events: &'q Filter,
}

#[derive(Clone, Debug)]
pub struct Written {
    /// The session.
    pub ids: Ids,
    /// Rows by table, in the order written.
    pub rows: Vec<(&'static Table, u64)>,
}

/// Shared data of all tables.
pub(crate) struct Context<'q> {
    pub(crate) question: Question<'q>,
    pub(crate) surveys: Vec<Survey>,
    pub(crate) ids: Ids,
    pub(crate) clock: UnixClock,
    pub(crate) tick: &'q (dyn Fn(u64) + Sync),
}

/// The texts at the beginning of a session's rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) session: TextId,
    pub(crate) ingest: TextId,
}

impl Context<'_> {
    pub(crate) fn machine(&self, at: usize) -> &str {
        self.question.machines.get(at).map_or("host", |machine| machine.name.as_str())
    }

    pub(crate) fn owner<W: Write + Send>(&self, table: &mut TableWriter<W>) -> Owner {
        Owner { session: table.keep(&self.ids.session), ingest: table.keep(&self.ids.ingest) }
    }
}

/// The files, and the rows written to them.
pub(crate) struct Output<'o, F> {
    files: &'o mut F,
    ids: Ids,
    rows: Vec<(&'static Table, u64)>,
    pseudonyms: Option<Arc<Pseudonyms>>,
}

impl<'o, F: Files> Output<'o, F> {
    pub(crate) fn new(files: &'o mut F, question: &Question<'_>, ids: Ids) -> Self {
        let pseudonyms = question.origin.pseudonyms.clone();
        Self { files, ids, rows: Vec::new(), pseudonyms }
    }

    pub(crate) fn written(self) -> Written {
        Written { ids: self.ids, rows: self.rows }
    }

    /// Begins a table, if the question includes it.
    pub(crate) fn begin_wanted(
        &mut self,
        context: &Context<'_>,
        table: &'static Table,
    ) -> io::Result<Option<TableWriter<F::File>>> {
        let is_wanted = context.question.written.contains(&table);
        is_wanted.then(|| self.begin(table)).transpose()
    }

    pub(crate) fn begin(&mut self, table: &'static Table) -> io::Result<TableWriter<F::File>> {
        let writer = TableWriter::new(table, self.files.begin(&self.ids, table)?)?;
        Ok(writer.with_pseudonyms(self.pseudonyms.clone()))
    }

    pub(crate) fn end(
        &mut self,
        table: &'static Table,
        mut writer: TableWriter<F::File>,
    ) -> io::Result<()> {
        for (key, value) in self.files.metadata(table) {
            writer.set_metadata(key, value);
        }
        let rows = writer.rows();
        self.files.end(table, writer.finish()?, rows)?;
        self.rows.push((table, rows));
        Ok(())
    }
}

/// Determines the ids of a session; reads little.
#[must_use]
pub fn identify(question: &Question<'_>) -> Ids {
    let host = question.view.recordings.first();
    let ends_ns = host.and_then(|host| ends_of(host, question.range_ns));
    let first_ns = ends_ns.map_or(0, |ends| ends.0);
    let origin = question.origin;
    let begun_ns = origin.clock.unix_ns(first_ns);
    let source = origin.source.as_ref().map_or("", |source| source.sha256.as_str());
    let trace_id = host.and_then(Recording::trace_id);
    let identity = trace_id.map_or_else(|| source.to_owned(), |id| format!("{id:x}"));
    let pseudonyms = origin.pseudonyms.as_deref();
    let host = match (origin.host_id.as_deref(), pseudonyms) {
        (Some(host), Some(pseudonyms)) => pseudonyms.name(host),
        (host, _) => host.unwrap_or_default().to_owned(),
    };
    let session =
        name_of(&[b"session", identity.as_bytes(), &first_ns.to_le_bytes(), host.as_bytes()]);
    let labels: Vec<String> =
        origin.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let tables: Vec<&str> = question.tables.iter().map(|table| table.name).collect();
    let (labels, tables) = (labels.join("\n"), tables.join(" "));
    let events = question.events.events.join(" ");
    // Without a key the ids are as if there were no pseudonyms.
    let check = pseudonyms.map(Pseudonyms::check);
    let (converter, schema) = (CONVERTER.to_le_bytes(), SCHEMA_VERSION.to_le_bytes());
    let begin_bytes = begun_ns.to_le_bytes();
    let mut parts: Vec<&[u8]> = vec![
        b"ingest",
        &converter,
        &schema,
        source.as_bytes(),
        origin.part.as_bytes(),
        &begin_bytes,
        host.as_bytes(),
        labels.as_bytes(),
        tables.as_bytes(),
        events.as_bytes(),
    ];
    parts.extend(check.as_ref().map(|check| check.as_bytes()));
    let ingest = name_of(&parts);
    Ids { session, ingest, begun_ns, is_dated: origin.clock.offset_ns.is_some() }
}

/// Writes the tables of recordings, that of the session last. `ids` is the result of [`identify`], even if a part has
/// been left out since. `tick` receives the number of bytes read.
///
/// # Errors
/// When a table can't be written, or the recordings hold more than one host.
pub fn write_tables<F: Files>(
    question: Question<'_>,
    ids: Ids,
    files: &mut F,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Written> {
    let survey = |recording| Survey::read(recording, question.range_ns, progress);
    let surveys: Vec<Survey> = question.view.recordings.iter().map(survey).collect();
    let clock = question.origin.clock;
    let mut output = Output::new(files, &question, ids.clone());
    let context = Context { question, surveys, ids, clock, tick: progress };
    let lost = gaps(&context);
    session::write_small(&context, &lost, &mut output)?;
    let wants = |table: &'static Table| question.written.contains(&table);
    if wants(&tables::BUCKETS) {
        buckets::write(&mut output)?;
    }
    write_exits(&context, &lost, &mut output)?;
    if wants(&tables::VCPU_STATES) || wants(&tables::STATE_ROLLUP) || wants(&tables::SPANS) {
        let pass = states::write(&context, &mut output)?;
        if wants(&tables::SPANS) {
            spans::write(&context, &pass, &mut output)?;
        }
    }
    if wants(&tables::REQUESTS) || wants(&tables::HOPS) {
        requests::write(&context, &mut output)?;
    }
    if wants(&tables::EVENTS) {
        events::write(&context, &mut output)?;
    }
    session::write_session(&context, &mut output)?;
    Ok(output.written())
}

fn write_exits<F: Files>(
    context: &Context<'_>,
    lost: &[Coverage],
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let mut tables = ExitTables::begin(context, output)?;
    if tables.is_empty() {
        return Ok(());
    }
    for (at, recording) in context.question.view.recordings.iter().enumerate() {
        let (Some(survey), Some(coverage)) = (context.surveys.get(at), lost.get(at)) else {
            continue;
        };
        if !survey.homes.is_empty() {
            Rows { context, at, recording, survey, coverage }.write(&mut tables)?;
        }
    }
    tables.end(output)
}
