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
const WAITING: Column = flag("waiting", "The exit by which a guest says that it has nothing to do");
const SLICE: Column =
    long("slice_ns", "Begin of a slice of 10 s; exits count in the slice in which they begin");

/// One row per exit.
pub static EXITS: Table = Table {
    name: "exits",
    about: "One row per exit. Times that were not recorded are null, so that sums over them match `exits`",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        long("ts_ns", "When it happened"),
        long("time_ns", "Exit to entry; null: the entry was not seen, or events were lost meanwhile").or_null(),
        long("cost_ns", "CPU time spent on handling the exit: before exit, kernel and user space; for an exit without an entry, \
                         only before exit; null: the recording cannot distinguish running from waiting").or_null(),
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
        flag("poll_unknown", "The guest halted, and the end of polling was not recorded: `kernel_ns` contains the polling time"),
    ],
};

/// Details of exits.
pub static EXIT_DETAILS: Table = Table {
    name: "exit_details",
    about: "One row per exit, in the order of `exits`: where the guest was, and details of the exit. Contains guest addresses, \
            so it is only written on request",
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
        long("msr", "Model-specific register; null: the exit has none").or_null(),
        long("port", "I/O port; null: the exit has none").or_null(),
        long("gpa", "Guest physical address, as a bit pattern; null: the exit has none").or_null(),
        long("hypercall", "Number of the hypercall, as a bit pattern; null: the exit has none")
            .or_null(),
        long("cpuid_leaf", "Leaf of `cpuid`; null: the exit has none").or_null(),
    ],
};

/// Sums of exits.
pub static EXIT_ROLLUP: Table = Table {
    name: "exit_rollup",
    about: "Exits of one kind in 10 s, in one row or in several rows to add: the sums of their columns in `exits`, null if all \
            are null",
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
            "Time of the slice that was recorded without a loss: the same in all rows of a machine's slice",
        ),
    ],
};

/// Histograms of exits.
pub static EXIT_HIST: Table = Table {
    name: "exit_hist",
    about: "Paired exits of one kind in 10 s with a time in one bucket, in one row or in several rows to add",
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
    about: "One row per bucket, the same for all recordings: a percentile is `hi_ns` of the bucket that contains its rank, as in `exits`",
    on_request: false,
    columns: &[
        int("bucket", "Its number"),
        long("lo_ns", "Smallest value of the bucket"),
        long("hi_ns", "Largest value of the bucket: at most 1/256 above the smallest"),
    ],
};

/// Nested exits.
pub static NESTED_ROLLUP: Table = Table {
    name: "nested_rollup",
    about: "Level-2 exits of one reason in 10 s (`ancillary_reason` null), and the level-1 exits of one reason that they caused, \
            in one row or in several rows to add",
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
        text("ancillary_code", "Its raw number; null: see `ancillary_reason`").or_null(),
        long("exits", "Exits"),
        long("reflected", "Level 2: exits handed to level 1; otherwise null").or_null(),
        long("time_ns", "Sum of the times of paired exits"),
        long(
            "round_trips",
            "Level 2: reflected exits after which level 2 was seen to run again; otherwise null",
        )
        .or_null(),
        long("round_trip_ns", "Level 2: sum of the times until it ran again; otherwise null")
            .or_null(),
    ],
};
