//! Requests, and their steps.

use std::io::{self, Write};

use analyses::path::{DoneRequest, DoneRequestSink, done_requests};
use lake_store::tables::{HOPS, REQUESTS};
use lake_store::{Files, TableWriter};

use crate::lake::convert::{Context, Output};

pub(crate) fn write<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut begin = |table| output.begin_wanted(context, table);
    let (requests, hops) = (begin(&REQUESTS)?, begin(&HOPS)?);
    let mut sink = Sink { context, requests, hops, number: 0, result: Ok(()) };
    done_requests(context.question.view, &mut sink, context.tick);
    sink.result?;
    if let Some(requests) = sink.requests {
        output.end(&REQUESTS, requests)?;
    }
    if let Some(hops) = sink.hops {
        output.end(&HOPS, hops)?;
    }
    Ok(())
}

struct Sink<'c, W: Write + Send> {
    context: &'c Context<'c>,
    requests: Option<TableWriter<W>>,
    hops: Option<TableWriter<W>>,
    number: i64,
    result: io::Result<()>,
}

impl<W: Write + Send> Sink<'_, W> {
    fn rows(&mut self, request: &DoneRequest<'_>) -> io::Result<()> {
        let [first, .., last] = &*request.steps else { return Ok(()) };
        let ids = &self.context.ids;
        self.number += 1;
        if let Some(table) = &mut self.requests {
            let mut row = table.row();
            row.text(&ids.session).text(&ids.ingest).long(self.number);
            row.long(self.context.clock.unix_ns(first.ts_ns));
            row.count(last.ts_ns.saturating_sub(first.ts_ns));
            row.text_or_null(request.vm).text(&request.path).flag(request.returns);
            row.int(i32::try_from(request.steps.len()).unwrap_or(i32::MAX));
            table.end_row()?;
        }
        let Some(table) = &mut self.hops else { return Ok(()) };
        for (at, two) in request.steps.windows(2).enumerate() {
            let [from, to] = two else { continue };
            let mut row = table.row();
            row.text(&ids.session).text(&ids.ingest).long(self.number);
            row.int(i32::try_from(at + 1).unwrap_or(i32::MAX));
            row.long(self.context.clock.unix_ns(from.ts_ns));
            row.count(to.ts_ns.saturating_sub(from.ts_ns));
            row.text(from.what).text(to.what).text(to.on.name());
            row.text(self.context.machine(to.place.recording.into()));
            row.int(i32::from(to.place.cpu)).int(to.place.thread.cast_signed());
            table.end_row()?;
        }
        Ok(())
    }
}

impl<W: Write + Send> DoneRequestSink for Sink<'_, W> {
    fn request(&mut self, request: &DoneRequest<'_>) {
        if self.result.is_ok() {
            self.result = self.rows(request);
        }
    }
}
