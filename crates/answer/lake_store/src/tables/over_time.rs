//! Tables over time: states of vCPUs, requests, functions, and events.

use super::{INGEST, MACHINE, SESSION};
use crate::column::{Column, Names, Table, flag, int, long, text};

const VM: Column = text("vm", "The VM").with(Names::Name);
const LEVEL: Column = int("level", "1: the guest itself; 2: a guest inside it");
const STATE: Column = text("state", "The state, as in `cpu`");
const REASON: Column = text("reason", "The exit being handled; null: none").or_null();

/// States of vCPUs.
pub static VCPU_STATES: Table = Table {
    name: "vcpu_states",
    about: "One row per stretch of time in which a vCPU was in one state, without gaps from its first event to its last",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        long("ts_ns", "When it began"),
        long("dur_ns", "How long it lasted"),
        VM,
        int("vcpu", "The vCPU's number"),
        int("cpu", "The host's CPU where its thread ran, or ran last"),
        LEVEL,
        STATE,
        REASON,
        text("code", "The exit's raw number; null: no exit").or_null(),
        long("exit_ts_ns", "When that exit happened, as in `exits`; null: no exit").or_null(),
        flag("paired", "Its entry was seen; null: no exit").or_null(),
    ],
};

/// Sums of states.
pub static STATE_ROLLUP: Table = Table {
    name: "state_rollup",
    about: "States of a VM's vCPUs in 10 s, in one row or in several rows to add: stretches are cut at slice boundaries",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        long("slice_ns", "Begin of the slice"),
        VM,
        LEVEL,
        STATE,
        REASON,
        long("time_ns", "For how long"),
        long("begun", "Stretches that began in the slice"),
    ],
};

/// Requests.
pub static REQUESTS: Table = Table {
    name: "requests",
    about: "One row per completed request, as `path` follows them",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        long("request", "Its number in the session"),
        long("ts_ns", "When it began"),
        long("dur_ns", "From its first step to its last"),
        text("vm", "Its VM; null: no VM's").or_null().with(Names::Name),
        text("path", "First step, and what performs the other steps").with(Names::Path),
        flag("returns", "The request returned to the guest; otherwise it ended on the host"),
        int("steps", "Its steps"),
    ],
};

/// Steps of requests.
pub static HOPS: Table = Table {
    name: "hops",
    about: "One row per step of a request except the first: `dur_ns` of the hops adds up to the request's",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        long("request", "The request's number in the session"),
        int("hop", "Its place, from 1"),
        long("ts_ns", "When the step before it was taken"),
        long("dur_ns", "How long it took from there"),
        text("from_step", "The step before").with(Names::Step),
        text("to_step", "The step").with(Names::Step),
        text(
            "actor",
            "What performed the step: `guest`, `vcpu`, `iothread`, `vhost`, `interrupt`, `host`, `recorder`",
        ),
        MACHINE,
        int("cpu", "The CPU"),
        int("thread", "The thread, or the one that was interrupted"),
    ],
};

/// Spans of functions and of boots.
pub static SPANS: Table = Table {
    name: "spans",
    about: "One row per call of a traced kernel function, boot phase, or initcall",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        long("ts_ns", "When it began"),
        long("dur_ns", "How long it lasted"),
        MACHINE,
        text("track", "What it is on: a thread's name and id; `boot`, `initcalls`")
            .with(Names::Track),
        text("name", "The function, or the phase"),
        text("parent", "The phase that it is in; null: none, or a call").or_null(),
        int("depth", "Calls around it; null: no call").or_null(),
    ],
};

/// Events.
pub static EVENTS: Table = Table {
    name: "events",
    about: "One row per event selected by `-e`, sorted by time",
    on_request: true,
    columns: &[
        SESSION,
        INGEST,
        long("ts_ns", "When it happened"),
        MACHINE,
        int("level", "0: the host; 1: a guest"),
        int("cpu", "The CPU it was recorded on"),
        int("pid", "The thread that ran"),
        text("comm", "Its name; null: not recorded").or_null(),
        text("event", "`SYSTEM:NAME`"),
        text("fields", "Its fields with their values, as JSON"),
    ],
};
