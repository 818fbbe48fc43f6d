//! The report of `hyperscope virtio`: the load of guests' queues, and the time that buffers spend at the
//! device.

mod queues;

use analyses::virtio::{VirtQueue, Virtio};
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use self::queues::{Row, TABLE, columns};
use crate::column::{self, Rows};
use crate::greatest::greatest;
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::units::{count, plural, time};
use crate::{Legend, RecorderCost, Report, losses};

/// The queues of guests.
#[derive(Debug)]
pub struct VirtioReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// The numbers.
    pub virtio: Virtio,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for VirtioReport {
    fn headline(&self) -> String {
        format!("{}: {}.", line(&self.sources.join(", ")), self.result())
    }

    fn tables(&self, width: Option<usize>) -> String {
        if self.virtio.queues.is_empty() {
            return self.losses();
        }
        let mut out = format!("{}\n", self.disks());
        let mut table = Table::default();
        column::draw(&columns(), &mut table, TABLE, &self.rows());
        let (drawn, left_out) = table.draw(width);
        out += &format!("{drawn}\n");
        let cost = self.recorder_cost.as_ref().map(RecorderCost::note);
        for note in self.notes().into_iter().chain(cost) {
            out += &format!("{note}\n");
        }
        if !left_out.is_empty() {
            out += &format!(
                "hidden to fit the width: {}; csv and json show all\n",
                left_out.join(", ")
            );
        }
        out + &self.losses()
    }

    fn legend(&self) -> Legend {
        vec![
            ("avoided", "new buffers that needed no kick"),
            ("vq", "address of the queue in the guest"),
            ("p50", "from handing a buffer over to taking it back"),
            ("depth", "buffers that the device held on average"),
        ]
    }

    fn document(&self) -> impl Serialize {
        Document {
            schema: "hyperscope.virtio/1",
            sources: &self.sources,
            span_ns: self.span_ns(),
            losses: LossSums::new(self.virtio.losses.iter(), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            queues: Rows { columns: columns(), rows: self.rows() },
        }
    }

    fn csv(&self) -> Table {
        column::csv(&columns(), &self.rows(), &[self.virtio.nanoseconds])
    }
}

/// Output of `hyperscope virtio --format json`: guests' virtqueues. See docs/virtio.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: &'r [String],
    /// Duration of the longest recording of a guest with queues. Nanoseconds. Null: there is none.
    span_ns: Option<u64>,
    /// Losses of all sources.
    losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// The active queues, by recording, device and name.
    queues: Rows<Row<'r>>,
}

/// Max disks named in the first line.
const MAX_DISKS: usize = 8;

impl VirtioReport {
    /// How many buffers queues carried, and how long these were away.
    fn result(&self) -> String {
        let queues = &self.virtio.queues;
        if queues.is_empty() {
            return if self.virtio.is_recorded {
                "no virtio queue was active".to_owned()
            } else {
                "no virtio queue events: record them in the guest with record --guest NAME --guest-kprobe @virtio"
                    .to_owned()
            };
        }
        let ns = |time_ns| time(time_ns, self.virtio.nanoseconds);
        let buffers = queues.iter().map(|queue| queue.added).fold(0, u64::saturating_add);
        let mut out = format!(
            "{} of virtio carried {}",
            plural(queues.len() as u64, "queue"),
            plural(buffers, "buffer")
        );
        out += &self.span_ns().map_or_else(String::new, |span_ns| format!(" in {}", ns(span_ns)));
        let p99 = |queue: &VirtQueue| queue.latencies.percentiles([990])[0];
        let timed = queues.iter().filter_map(|queue| Some((p99(queue)?, queue)));
        out + &greatest(timed).map_or_else(
            || "; how long buffers were away is unknown".to_owned(),
            |(p99_ns, queue)| {
                let [device, name] =
                    [&queue.device, &queue.name].map(|name| name.as_deref().unwrap_or("?"));
                format!("; {} took longest (p99 {})", line(&format!("{device} {name}")), ns(p99_ns))
            },
        )
    }

    /// The disks, each with its device, in a line: `disks: vda (virtio3)`.
    fn disks(&self) -> String {
        let mut named: Vec<String> = Vec::new();
        for queue in &self.virtio.queues {
            let device = queue.device.as_deref().unwrap_or("?");
            for disk in &queue.disks {
                let disk = line(&format!("{disk} ({device})")).into_owned();
                if named.len() <= MAX_DISKS && !named.contains(&disk) {
                    named.push(disk);
                }
            }
        }
        let more = if named.len() > MAX_DISKS { ", …" } else { "" };
        named.truncate(MAX_DISKS);
        match named.len() {
            0 => String::new(),
            1 => format!("disk: {}\n", named.concat()),
            _ => format!("disks: {}{more}\n", named.join(", ")),
        }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        self.virtio.queues.iter().map(|queue| Row { virtio: &self.virtio, queue }).collect()
    }

    /// Duration of the longest recording of a guest with queues.
    fn span_ns(&self) -> Option<u64> {
        let span_of = |recording: usize| self.virtio.spans_ns.get(recording).copied().flatten();
        let spans = self.virtio.queues.iter().filter_map(|queue| span_of(queue.recording));
        spans.map(|(from_ns, to_ns)| to_ns.saturating_sub(from_ns)).max()
    }

    fn notes(&self) -> Vec<String> {
        let queues = &self.virtio.queues;
        let mut notes = Vec::new();
        let cut = queues.iter().filter(|queue| queue.bytes.is_some()).map(|queue| queue.cut);
        let cut = cut.fold(0, u64::saturating_add);
        if cut > 0 {
            notes.push(format!(
                "some parts of {} have no recorded size: byte counts are lower bounds",
                plural(cut, "buffer")
            ));
        }
        if queues.iter().any(|queue| queue.added > 0 && queue.bytes.is_none()) {
            notes.push(
                "bytes and names were not recorded: the guest's kernel has no type information (BTF)"
                    .to_owned(),
            );
        }
        let began: u64 =
            queues.iter().map(|queue| queue.taken_back - queue.latencies.count()).sum();
        if began > 0 {
            notes.push(format!(
                "{} without a time: handed to devices before the recording or in a loss",
                plural(began, "buffer")
            ));
        }
        notes
    }

    fn losses(&self) -> String {
        let notes = self.virtio.losses.iter().flat_map(|loss| losses::notes(loss, 0));
        notes.map(|note| format!("{note}\n")).collect()
    }
}

/// A mean to one digit.
fn mean(value: f64) -> String {
    match value {
        value if value >= 99.95 => count(value.round() as u64),
        value => format!("{value:.1}"),
    }
}
