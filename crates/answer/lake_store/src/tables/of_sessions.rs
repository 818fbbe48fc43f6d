//! Tables about a recording as a whole.

use super::{INGEST, MACHINE, SESSION};
use crate::column::{Names, Table, double, flag, int, long, text};

/// One row per recording.
pub static SESSIONS: Table = Table {
    name: "sessions",
    about: "One row per recording of a host and its guests. It is written last: rows of other tables are valid once it exists",
    on_request: false,
    columns: &[
        text("session_id", "Identity of the recorded data: the recording's identity, and its beginning"),
        text("ingest_id", "Identity of the set of rows: the bytes read, the options, and the converter"),
        int("schema_version", "Number of this schema"),
        text("tier", "`hot`: files of its own; `cold`: in the files of its day"),
        text("host_id", "The host: the value of `--host`, otherwise the recorder's name for it (a hash of its machine id), \
                         otherwise `host_name`; null: not known").or_null().with(Names::Name),
        text("host_name", "The host's name for itself; null: not recorded").or_null().with(Names::Name),
        text("kernel_release", "The host's kernel; null: not recorded").or_null(),
        text("arch", "The host's architecture, as the kernel calls it; null: not recorded").or_null(),
        text("isa", "Architecture of the exits: `svm`, `vmx`, `arm64` …; null: no exits").or_null(),
        text("cpu_model", "The host's processor; null: not recorded").or_null(),
        text("microcode", "Its microcode; null: not recorded").or_null(),
        int("cpus", "CPUs of the host"),
        text("vmm", "The name of the VMM's threads where all VMs share it; null: they don't, or it was not recorded").or_null().with(Names::Name),
        long("begun_unix_ns", "When the first event was recorded, in Unix time; null: not known").or_null(),
        long("span_ns", "From the first event to the last"),
        text("clock", "The trace clock; null: not recorded").or_null(),
        long("clock_to_unix_ns", "Offset added to the trace clock for the times of all tables; null: none, times are on the trace clock").or_null(),
        long("unix_error_ns", "Error when comparing times with other hosts; null: not known").or_null(),
        long("events", "Events that were read"),
        long("events_lost", "Events that the kernel dropped and counted"),
        long("uncounted_losses", "Places where it dropped events without a count"),
        long("pages_damaged", "Parts of the files that could not be read"),
        long("pairs_dropped", "Exits during which events were lost"),
        flag("knows_user", "Exits to user space were recorded: `user_ns` is known"),
        flag("knows_off_cpu", "Switches of threads were recorded: costs and waiting are known"),
        flag("knows_halt_poll", "Halt polling was recorded: `halt_poll_ns` is known"),
        long("recorder_cpu_ns", "CPU time of the recorder; null: not recorded").or_null(),
        long("available_cpu_ns", "CPU time that all CPUs had while it recorded; null: not recorded").or_null(),
        double("sample_weight", "Number of hosts that this one represents"),
        text("source_uri", "Where the recording was read from").with(Names::Name),
        long("source_bytes", "Its size"),
        int("converter", "Number of the converter: rows of a higher one replace those of a lower one"),
    ],
};

/// Labels that a user gave a session.
pub static LABELS: Table = Table {
    name: "labels",
    about: "One row per label (`--label KEY=VALUE`): rack, pool, canary",
    on_request: false,
    columns: &[SESSION, INGEST, text("key", "Its key"), text("value", "Its value")],
};

/// The recorded machines.
pub static MACHINES: Table = Table {
    name: "machines",
    about: "One row per recorded machine: the host, and each guest with its own recording",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        int("level", "0: the host; 1: a guest"),
        text("role", "`host` or `guest`"),
        text("kernel_release", "Its kernel; null: not recorded").or_null(),
        text("align_method", "Alignment method of the guest; null: a host, or not aligned")
            .or_null(),
        long("align_bound_ns", "Largest possible error of its times; null: a host, or not known")
            .or_null(),
    ],
};

/// The VMs that a host's recording shows.
pub static VMS: Table = Table {
    name: "vms",
    about: "One row per VM in a machine's recording",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        text("vm", "Its name, as in `exits`").with(Names::Name),
        long("pid", "Process of its VMM; null: not recorded").or_null(),
        text("comm", "Name of its first vCPU's thread; null: not recorded")
            .or_null()
            .with(Names::Name),
        int("vcpus", "Its vCPUs that were seen"),
    ],
};

/// The relation of guests' clocks to their host's.
pub static ALIGNMENT: Table = Table {
    name: "alignment",
    about: "One row per guest, method, CPU and stretch of time: the relation of the guest's clock to its host's, as in `align`",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        text("vm", "The guest").with(Names::Name),
        int("vcpu", "Its vCPU"),
        int("guest_cpu", "The guest's number of it"),
        long("from_ns", "Begin of the stretch"),
        long("to_ns", "Its end"),
        text("method", "`tsc_offset`, `time_shift` or `windows`"),
        flag("chosen", "Times of the guest were corrected by this method"),
        long("offset_ns", "Host's trace clock minus guest's, in the middle of the stretch"),
        long("bound_ns", "Largest possible error; null: the method gives no bound").or_null(),
        double("drift_ppb", "Change of the offset, in nanoseconds per second"),
        long("events", "Events checked against the windows of the vCPU"),
        long("violations", "Events outside the windows by more than the bound"),
    ],
};

/// Losses of events.
pub static LOSSES: Table = Table {
    name: "losses",
    about: "One row per stretch of time of one CPU in which events were lost or could not be read",
    on_request: false,
    columns: &[
        SESSION,
        INGEST,
        MACHINE,
        int("cpu", "The CPU"),
        long("from_ns", "Last known time before the loss; null: the recording's beginning")
            .or_null(),
        long("to_ns", "First known time after the loss; null: none").or_null(),
        long("events", "Number of lost events; null: the kernel does not count single losses")
            .or_null(),
    ],
};

/// Recordings that could not be added to a lake.
pub static REJECTED: Table = Table {
    name: "rejected",
    about: "One row per recording that could not be added to the lake; removed once it is added",
    on_request: false,
    columns: &[
        text("source_uri", "Where it was"),
        text("source_sha256", "Hash of its bytes; null: they could not be read").or_null(),
        text("error", "Why it was rejected"),
    ],
};
