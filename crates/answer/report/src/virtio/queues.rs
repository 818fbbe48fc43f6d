//! The columns of queues.

use analyses::distribution::Distribution;
use analyses::virtio::{VirtQueue, Virtio};

use super::mean;
use crate::column::{self, Column, Described, Unit};

pub(super) const TABLE: &str = "queues";
const PER_MILLE: [u64; 3] = [500, 900, 990];

/// A queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    pub(super) virtio: &'r Virtio,
    pub(super) queue: &'r VirtQueue,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.virtio.nanoseconds
    }
}

impl<'r> Described for Row<'r> {
    fn all_columns() -> Vec<Column<Self>> {
        columns()
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'r>() -> Vec<Column<Row<'r>>> {
    let mut columns = names();
    columns.extend(buffers());
    columns.extend(notifications());
    columns.extend(depth());
    columns.extend(latencies());
    columns
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    let vm = |row: &Row<'_>| row.virtio.vms.get(row.queue.recording).cloned().flatten();
    vec![
        Column::text(("vm", "VM"), "Name of its VM.", vm)
            .null("The recording of its host was not given.")
            .shown_if_known(TABLE, 1),
        Column::text(("device", "device"), "Name of its device in the guest.", |row: &Row<'_>| {
            row.queue.device.clone()
        })
        .null("Not recorded: no buffer was handed over, or the guest's kernel doesn't describe its types.")
        .shown(TABLE, 0),
        Column::text(
            ("disk", "disk"),
            "The disk that it is of, as the guest's kernel calls it; of several, all of them.",
            |row: &Row<'_>| Some(row.queue.disks.join(", ")).filter(|disks| !disks.is_empty()),
        )
        .null("It is of no disk, or block:block_rq_issue was not recorded.")
        .shown_if_known(TABLE, 0)
        .missing(""),
        Column::text(("queue", "queue"), "The name that the driver gave it.", |row: &Row<'_>| {
            row.queue.name.clone()
        })
        .null("As of device.")
        .shown(TABLE, 0),
        Column::number(
            ("vq", "vq"),
            Unit::Hex,
            "Lower half of its address in the guest: tells queues apart that have no names.",
            |row: &Row<'_>| Some(row.queue.vq),
        )
        .shown_if(TABLE, 1, |row| row.queue.name.is_none()),
    ]
}

fn number<'r>(
    names: (&str, &str),
    help: &str,
    value_of: impl Fn(&VirtQueue) -> Option<u64> + 'static,
) -> Column<Row<'r>> {
    Column::number(names, Unit::Count, help, move |row: &Row<'_>| value_of(row.queue))
}

fn buffers<'r>() -> Vec<Column<Row<'r>>> {
    let no_sizes = "Not recorded: the guest's kernel doesn't describe its types.";
    vec![
        number(
            ("buffers", "buffers"),
            "Buffers handed to the device: each a chain of one or more lists.",
            |queue| Some(queue.added),
        )
        .shown(TABLE, 0),
        number(("out_buffers", "lists out"), "Lists of parts that the device reads.", |queue| {
            Some(queue.lists[0])
        })
        .shown(TABLE, 6),
        number(("in_buffers", "lists in"), "Lists of parts that the device writes.", |queue| {
            Some(queue.lists[1])
        })
        .shown(TABLE, 6),
        number(("out_bytes", "bytes out"), "Bytes that the device may read.", |queue| {
            queue.bytes.map(|bytes| bytes[0])
        })
        .null(no_sizes)
        .shown(TABLE, 2),
        number(("in_bytes", "bytes in"), "Bytes that the device may write.", |queue| {
            queue.bytes.map(|bytes| bytes[1])
        })
        .null(no_sizes)
        .shown(TABLE, 2),
        number(
            ("written_bytes", "written"),
            "Bytes that the device says it wrote, of buffers taken back. Null: not recorded, as by kernels before 6.9, or no buffer was taken back.",
            |queue| queue.written,
        )
        .null("Not recorded, as by kernels before 6.9, or no buffer was taken back.")
        .shown_if_known(TABLE, 1)
        .missing("-"),
        number(
            ("cut_buffers", "cut"),
            "Buffers some of whose bytes were not recorded: bytes are at least as many as said.",
            |queue| Some(queue.cut),
        )
        .shown_if(TABLE, 3, |row| row.queue.cut > 0),
        number(("taken", "taken back"), "Buffers taken back from the device.", |queue| {
            Some(queue.taken_back)
        })
        .shown(TABLE, 5),
    ]
}

fn notifications<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        number(("kicks", "kicks"), "Notifications of the host.", |queue| Some(queue.kicks))
            .shown(TABLE, 0),
        number(
            ("kicks_avoided", "avoided"),
            "Times that the host had not to be notified of new buffers: it still worked on others, or looks by itself.",
            |queue| Some(queue.kicks_avoided),
        )
        .shown(TABLE, 1),
        Column::ratio(
            ("buffers_per_kick", "per kick"),
            "Buffers handed over for each notification.",
            |row: &Row<'_>| column::ratio(row.queue.added, row.queue.kicks),
        )
        .null("There was no notification.")
        .drawn_as(|row| match column::ratio(row.queue.added, row.queue.kicks) {
            Some(ratio) => mean(ratio),
            None => "-".to_owned(),
        })
        .shown(TABLE, 3),
        number(
            ("interrupts", "interrupts"),
            "Interrupts by which the device said that it was done with some.",
            |queue| Some(queue.interrupts),
        )
        .shown(TABLE, 1),
    ]
}

fn depth<'r>() -> Vec<Column<Row<'r>>> {
    let lost = "Events were lost.";
    vec![
        Column::ratio(
            ("depth_mean", "depth"),
            "Buffers that the device had, on average over time, as far as they came back or were seen going.",
            |row: &Row<'_>| row.queue.depth.map(|depth| depth.mean),
        )
        .null(lost)
        .drawn_as(|row| row.queue.depth.map_or_else(|| "?".to_owned(), |depth| mean(depth.mean)))
        .shown(TABLE, 4),
        number(("depth_max", "max"), "Buffers that it had at most.", |queue| {
            queue.depth.map(|depth| depth.max)
        })
        .null(lost)
        .shown(TABLE, 4),
    ]
}

fn latencies<'r>() -> Vec<Column<Row<'r>>> {
    let time =
        |names: (&str, &str), help: &str, rank: u8, time_of: fn(&Distribution) -> Option<u64>| {
            Column::time(names, help, move |row: &Row<'_>| time_of(&row.queue.latencies))
                .null("No buffer came back that was seen going.")
                .shown(TABLE, rank)
                .missing("-")
        };
    let mean = |distribution: &Distribution| distribution.mean().map(|mean| mean.round() as u64);
    vec![
        number(
            ("timed", "timed"),
            "Buffers that were seen going and coming back: those of the times.",
            |queue| Some(queue.latencies.count()),
        ),
        time(
            ("latency_mean", "mean"),
            "From handing a buffer over to taking it back, on average. Null: no buffer came back that was seen going.",
            5,
            mean,
        ),
        time(
            ("latency_p50", "p50"),
            "The same of the median one. Null: no buffer came back that was seen going.",
            0,
            |distribution| distribution.percentiles(PER_MILLE)[0],
        ),
        time(
            ("latency_p90", "p90"),
            "The same that 90% don't exceed. Null: no buffer came back that was seen going.",
            7,
            |distribution| distribution.percentiles(PER_MILLE)[1],
        ),
        time(
            ("latency_p99", "p99"),
            "The same that 99% don't exceed. Null: no buffer came back that was seen going.",
            0,
            |distribution| distribution.percentiles(PER_MILLE)[2],
        ),
        time(
            ("latency_max", "longest"),
            "The same of the longest one. Null: no buffer came back that was seen going.",
            3,
            Distribution::max,
        ),
    ]
}
