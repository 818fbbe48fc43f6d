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
        Column::text(("vm", "VM"), "Name of the VM.", vm)
            .null("The recording of the host was not given.")
            .shown_if_known(TABLE, 1),
        Column::text(("device", "device"), "Name of the device in the guest.", |row: &Row<'_>| {
            row.queue.device.clone()
        })
        .null("Not recorded: no buffer was handed over, or the guest's kernel has no type information.")
        .shown(TABLE, 0),
        Column::text(
            ("disk", "disk"),
            "Name of the queue's disk in the guest's kernel; all names if there are several.",
            |row: &Row<'_>| Some(row.queue.disks.join(", ")).filter(|disks| !disks.is_empty()),
        )
        .null("It does not belong to a disk, or block:block_rq_issue was not recorded.")
        .shown_if_known(TABLE, 0)
        .missing(""),
        Column::text(("queue", "queue"), "The driver's name for the queue.", |row: &Row<'_>| {
            row.queue.name.clone()
        })
        .null("See device.")
        .shown(TABLE, 0),
        Column::number(
            ("vq", "vq"),
            Unit::Hex,
            "Lower half of the queue's address in the guest, to distinguish queues without names.",
            |row: &Row<'_>| Some(row.queue.vq),
        )
        .shown_if(TABLE, 3, |row| row.queue.name.is_none()),
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
    let no_sizes = "Not recorded: the guest's kernel has no type information.";
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
        .shown(TABLE, 4),
        number(("in_bytes", "bytes in"), "Bytes that the device may write.", |queue| {
            queue.bytes.map(|bytes| bytes[1])
        })
        .null(no_sizes)
        .shown(TABLE, 4),
        number(
            ("written_bytes", "written"),
            "Bytes that the device reported as written in buffers taken back. Null: not recorded (kernels before 6.9), or no \
             buffer was taken back.",
            |queue| queue.written,
        )
        .null("Not recorded (kernels before 6.9), or no buffer was taken back.")
        .shown_if_known(TABLE, 1)
        .missing("-"),
        number(
            ("cut_buffers", "cut"),
            "Buffers for which some byte counts were not recorded: the bytes columns are lower bounds.",
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
            "Times that new buffers needed no notification: the host still worked on others, or polls.",
            |queue| Some(queue.kicks_avoided),
        )
        .shown(TABLE, 3),
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
        .shown(TABLE, 7),
        number(
            ("interrupts", "interrupts"),
            "Interrupts by which the device reported finished buffers.",
            |queue| Some(queue.interrupts),
        )
        .shown(TABLE, 3),
    ]
}

fn depth<'r>() -> Vec<Column<Row<'r>>> {
    let lost = "Events were lost.";
    vec![
        Column::ratio(
            ("depth_mean", "depth"),
            "Mean number of buffers that the device held over time, counting buffers that were taken back or seen being handed over.",
            |row: &Row<'_>| row.queue.depth.map(|depth| depth.mean),
        )
        .null(lost)
        .drawn_as(|row| row.queue.depth.map_or_else(|| "?".to_owned(), |depth| mean(depth.mean)))
        .shown(TABLE, 4),
        number(("depth_max", "max"), "Largest number of buffers that the device held.", |queue| {
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
                .null("No buffer was seen both handed over and taken back.")
                .shown(TABLE, rank)
                .missing("-")
        };
    let mean = |distribution: &Distribution| distribution.mean().map(|mean| mean.round() as u64);
    vec![
        number(
            ("timed", "timed"),
            "Buffers seen both handed over and taken back. Times cover only these.",
            |queue| Some(queue.latencies.count()),
        ),
        time(
            ("latency_mean", "mean"),
            "Mean time from handing a buffer over to taking it back. Null: no buffer was seen both handed over and taken back.",
            8,
            mean,
        ),
        time(
            ("latency_p50", "p50"),
            "Median of the same time. Null: no buffer was seen both handed over and taken back.",
            0,
            |distribution| distribution.percentiles(PER_MILLE)[0],
        ),
        time(
            ("latency_p90", "p90"),
            "90th percentile of the same time. Null: no buffer was seen both handed over and taken back.",
            1,
            |distribution| distribution.percentiles(PER_MILLE)[1],
        ),
        time(
            ("latency_p99", "p99"),
            "99th percentile of the same time. Null: no buffer was seen both handed over and taken back.",
            0,
            |distribution| distribution.percentiles(PER_MILLE)[2],
        ),
        time(
            ("latency_max", "longest"),
            "Longest such time. Null: no buffer was seen both handed over and taken back.",
            2,
            Distribution::max,
        ),
    ]
}
