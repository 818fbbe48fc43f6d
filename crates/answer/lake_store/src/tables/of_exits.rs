//! Exits: one by one, summed up by time, and as histograms.

use super::{INGEST, MACHINE, SESSION};
use crate::column::{Column, Names, Table, flag, int, long, text};

const VM: Column = text("vm", "The VM").with(Names::Name);
const LEVEL: Column = int("level", "1: guests of the recorded machine; 2: guests inside those");
const ISA: Column =
    text("isa", "Architecture of the exit: `svm`, `vmx`, `arm64`, `s390`, `riscv` …");
const REASON: Column = text("reason", "Why it happened: the kernel's symbol");
const CODE: Column =
    text("code", "The raw number; arm64 and POWER: two, as `2:36`; empty: not recorded");
const WAITING: Column = flag("waiting", "By it a guest says that it has nothing to do");
const SLICE: Column =
    long("slice_ns", "Begin of 10 s of time: exits count in the slice in which they begin");

/// One row an exit.
pub static EXITS: Table = Table {
    name: "exits",
    about: "One row an exit. Times that were not recorded are null, so that sums over them are those of `exits`",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        long("ts_ns", "When it happened"),
        long("time_ns", "Exit to entry; null: the entry was not seen, or events were lost meanwhile").or_null(),
        long("cost_ns", "What handling it took on a CPU: before exit, kernel and user space; of an exit without an entry, \
                         before exit alone; null: the recording can't distinguish running from waiting").or_null(),
        long("kernel_ns", "In the host's kernel; null: no entry, or see `not_split_ns`").or_null(),
        long("not_split_ns", "Time that the recording can't split into kernel, user space and waiting; null: no entry").or_null(),
        long("user_ns", "In the VMM; null: not recorded, or see `user_and_return_ns`").or_null(),
        long("user_and_return_ns", "In the VMM and back in the kernel, where the return was not recorded; else null").or_null(),
        long("off_cpu_ns", "Off the CPU; null: not recorded").or_null(),
        long("runnable_ns", "Of that, waiting for a CPU; null: not recorded").or_null(),
        long("blocked_ns", "Of that, sleeping; null: not recorded").or_null(),
        long("halt_poll_ns", "Polling for work; null: not recorded").or_null(),
        long("before_exit_ns", "Host work before the exit event, on top of `time_ns`; null: not recorded").or_null(),
        long("guest_ns", "In the guest before it, since the last entry"),
        VM,
        int("vcpu", "The vCPU's number"),
        LEVEL,
        ISA,
        REASON,
        CODE,
        text("handled", "Who handled it: `kernel`, `user`, `l1`; null: no entry, or exits to user space were not recorded").or_null(),
        WAITING,
        text("state", "`paired`: with an entry; `dropped`: events were lost meanwhile; `open`: without an entry"),
        flag("poll_unknown", "The guest halted and when polling ended was not recorded: it is in `kernel_ns`"),
    ],
};

/// What exits were about.
pub static EXIT_DETAILS: Table = Table {
    name: "exit_details",
    about: "One row an exit, in the order of `exits`: where the guest was, and what the exit was about. It shows \
            addresses of guests: written only when asked for",
    on_request: true,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        long("ts_ns", "When it happened"),
        VM,
        int("vcpu", "The vCPU's number"),
        long("rip", "The guest's program counter, as a bit pattern; null: not recorded").or_null(),
        text("symbol", "The guest's function there; null: not known").or_null(),
        long("msr", "Model-specific register; null: not about one").or_null(),
        long("port", "I/O port; null: not about one").or_null(),
        long("gpa", "Guest physical address, as a bit pattern; null: not about one").or_null(),
        long("hypercall", "Number of the hypercall, as a bit pattern; null: not about one")
            .or_null(),
        long("cpuid_leaf", "Leaf asked of `cpuid`; null: not about one").or_null(),
    ],
};

/// Sums of exits.
pub static EXIT_ROLLUP: Table = Table {
    name: "exit_rollup",
    about: "One row, or several to be added, for the exits of one kind in 10 s: the sums of their columns in `exits`, null \
            where all are null",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        SLICE,
        VM,
        LEVEL,
        ISA,
        REASON,
        CODE,
        WAITING,
        long("exits", "Exits"),
        long("paired", "Those with a time"),
        long("dropped", "Those during which events were lost"),
        long("time_ns", "Sum; null: none has a time").or_null(),
        crate::column::double("time_sq", "Sum of the squares of times in ns²"),
        long("min_ns", "The shortest time; null: none has one").or_null(),
        long("max_ns", "The longest; null: none has one").or_null(),
        long("cost_ns", "Sum").or_null(),
        long("kernel_ns", "Sum").or_null(),
        long("not_split_ns", "Sum").or_null(),
        long("user_ns", "Sum").or_null(),
        long("user_and_return_ns", "Sum").or_null(),
        long("off_cpu_ns", "Sum").or_null(),
        long("runnable_ns", "Sum").or_null(),
        long("blocked_ns", "Sum").or_null(),
        long("halt_poll_ns", "Sum").or_null(),
        long("before_exit_ns", "Sum").or_null(),
        long("guest_ns", "Sum"),
        long("handled_kernel", "Paired exits that the host's kernel handled; null: not recorded")
            .or_null(),
        long("handled_user", "Paired exits that went to the VMM; null: not recorded").or_null(),
        long(
            "handled_l1",
            "Paired exits that went to the hypervisor in the guest; null: not recorded",
        )
        .or_null(),
        long("poll_unknown", "Exits with `poll_unknown`"),
        long(
            "covered_ns",
            "How much of the slice was recorded without a loss: the same in all rows of a machine's slice",
        ),
    ],
};

/// Histograms of exits.
pub static EXIT_HIST: Table = Table {
    name: "exit_hist",
    about: "One row, or several to be added, for the paired exits of one kind in 10 s of which a time lies in one bucket",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        SLICE,
        VM,
        LEVEL,
        ISA,
        REASON,
        CODE,
        WAITING,
        text("metric", "Which column of `exits`: `time`, `cost`, `kernel`, `user`"),
        int("bucket", "The bucket, as in `buckets`"),
        long("n", "Exits"),
    ],
};

/// The buckets of all histograms.
pub static BUCKETS: Table = Table {
    name: "buckets",
    about: "One row a bucket, the same for all recordings: a percentile is `hi_ns` of the bucket that its rank falls into, as in `exits`",
    on_request: false,
    columns: &[
        int("bucket", "Its number"),
        long("lo_ns", "Its least value"),
        long("hi_ns", "Its greatest value: at most 1/256 above the least"),
    ],
};

/// Nested exits.
pub static NESTED_ROLLUP: Table = Table {
    name: "nested_rollup",
    about: "One row, or several to be added, for level-2 exits of one reason in 10 s (`ancillary_reason` null), and for the \
            level-1 exits of one reason that they brought about",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        SLICE,
        VM,
        ISA,
        text("reason", "Why level 2 exited"),
        CODE,
        text(
            "ancillary_reason",
            "Why level 1 exited; null: the row is of the level-2 exits themselves",
        )
        .or_null(),
        text("ancillary_code", "Its raw number; null: as before").or_null(),
        long("exits", "Exits"),
        long("reflected", "Of level 2: those handed to level 1; else null").or_null(),
        long("time_ns", "Sum of the times of paired exits"),
        long(
            "round_trips",
            "Of level 2: reflected exits after which it was seen to run again; else null",
        )
        .or_null(),
        long("round_trip_ns", "Sum of their times until it ran; else null").or_null(),
    ],
};
