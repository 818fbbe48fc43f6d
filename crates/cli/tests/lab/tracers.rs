//! Function tracers on a real host: the recorded calls, and that earlier settings are restored, at
//! the end and by the guard of a killed recorder.

use serde_json::Value;

use crate::hangs::Machines;
use crate::hypertrace::{build_module, lines};
use crate::recorded::{Recorded, hyperscope, json};
use crate::tool::{TestLab, can_run_all};

/// Shell functions that show settings in tracefs, and compare them with the earlier ones.
const SHOW: &str = "
    cd /sys/kernel/tracing
    show() {
        for name in current_tracer set_ftrace_filter set_graph_function max_graph_depth \
            set_event_pid trace_clock buffer_size_kb tracing_on; do
            echo $name $(head -n 3 $name)
        done
    }
    same() { show > /tmp/after; diff /tmp/before /tmp/after && ! ls /run/hyperscope-* 2>/dev/null; }
";

const SET: &str = "
    echo vfs_read > set_ftrace_filter; echo schedule > set_graph_function
    echo 3 > max_graph_depth; echo global > trace_clock; echo 2000 > buffer_size_kb
    show > /tmp/before
";

/// Traces the functions that handle exits, of either vendor's module.
const GRAPH: &str = "
    handle_exit=$(grep -o -E -m 1 '^(svm|vmx)_handle_exit' available_filter_functions)
    hyperscope record --tracer function_graph --graph-function $handle_exit \
        --max-depth 6 --for 2s -o /tmp/graph && same &&
    hyperscope calls --format json /tmp/graph";

const FUNCTION: &str = "
    hyperscope record --tracer function --function 'kvm_*' --for 1s -o /tmp/function && same &&
    hyperscope calls --format json /tmp/function";

/// The kernel enables more than a hundred further events after the tracer, which takes a while.
const KILLED: &str = "
    hyperscope record --tracer function_graph --function 'kvm_*' -e sched_switch -o /tmp/killed \
        2> /tmp/said & recorder=$!
    for try in $(seq 200); do
        grep -q graph current_tracer && grep -q 1 tracing_on && break
        sleep 0.1
    done
    sleep 3; kill -9 $recorder
    for try in $(seq 200); do same > /dev/null && break; sleep 0.1; done
    same && hyperscope calls --format json /tmp/killed/host.pages";

#[test]
fn calls_are_recorded_and_what_was_set_is_set_again() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("tracers");
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    for (tracer, script) in
        [("function_graph", GRAPH), ("function", FUNCTION), ("function_graph", KILLED)]
    {
        let ran = lab.shell(1, &format!("{SHOW}{SET}{script}")).done();
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let source = &report["sources"][0];
        assert_eq!(source["tracer"], tracer, "{}", ran.stderr);
        assert!(source["count"].as_u64().unwrap() > 20, "{source}");
        let named = |function: &Value| {
            function["name"].as_str().is_some_and(|name| name.starts_with("kvm_"))
        };
        assert!(source["functions"].as_array().unwrap().iter().any(named));
        if script != KILLED {
            assert!(ran.stderr.contains(" calls; all times include its cost"), "{}", ran.stderr);
        }
    }
}

/// The agent records as many calls in a guest as a program there made.
#[test]
fn calls_in_a_guest_are_recorded_by_its_agent() {
    if !can_run_all() {
        return;
    }
    Machines::new(|| Recorded::up("guest-calls")).work(2, record_calls_of_guest);
}

fn record_calls_of_guest(recorded: &Recorded) {
    const READS: u64 = 3000;
    recorded.lab.shell(2, &format!("{SHOW}{SET}")).done();
    recorded.start_agent("shm");
    for tracer in ["function_graph", "function"] {
        let what = format!(
            "--guest-tracer {tracer} --guest-function vfs_read --guest-function vfs_write \
             --guest-event sched_switch -e kvm"
        );
        let recorder = recorded.begin_with("shm:/run/lab/l2/memory", &what);
        let copy = format!("dd if=/dev/zero of=/dev/null bs=64 count={READS}");
        recorded.lab.shell(2, &copy).done();
        let (ended_well, log) = recorded.end(recorder);
        assert!(ended_well, "{log}");
        let counted = format!("guest l2: {tracer} recorded ");
        assert!(log.contains(&counted), "{log}");
        let session = recorded.session();
        let file = session.join("guest-l2.dat");
        let report = json(&["calls", "--format", "json", "--top", "0", file.to_str().unwrap()]);
        let source = &report["sources"][0];
        assert_eq!(source["tracer"], tracer, "{report}");
        for name in ["vfs_read", "vfs_write"] {
            let is_match = |function: &&Value| function["name"] == name;
            let found = source["functions"].as_array().unwrap().iter().find(is_match);
            let count = found.and_then(|function| function["count"].as_u64()).unwrap_or(0);
            // The shell and the agent read and write as well.
            assert!((READS..READS + 500).contains(&count), "{name} {count}: {source}");
        }
        let stored = std::fs::read_to_string(session.join("session.json")).unwrap();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        let tracer = &stored["recorded"]["guests"][0]["tracer"];
        assert_eq!((&tracer["functions"], &tracer["only"][0]), (&2.into(), &"vfs_read".into()));
        // Calls that did not return before the end are reported, but not counted.
        let counts = [&tracer["calls"], &source["count"]].map(|count| count.as_u64().unwrap());
        assert!((counts[1]..counts[1] + 20).contains(&counts[0]), "{counts:?}");
    }
    recorded.lab.shell(2, &format!("{SHOW}same")).done();
}

/// A guest's module sends calls; each one that `hypertrace` prints is counted, by either channel to
/// the host.
#[test]
fn calls_that_a_module_sent_are_all_counted() {
    if !can_run_all() || !build_module() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let (scenario, session) = (temporary.path().join("run.toml"), temporary.path().join("out"));
    let load = "insmod /lab/hyperscope_guest.ko probes=sched_switch functions=vfs_* && \
                echo sched_switch,functions > /sys/module/hyperscope_guest/parameters/probes && \
                for i in 1 2 3 4 5 6 7 8 9; do cat /proc/uptime; done && rmmod hyperscope_guest";
    let text = format!(
        "summary = 'calls'\nlevels = 2\n[guest]\nmodule = true\n[record]\n\
         events = ['kvm:kvm_hypercall']\nguest_events = ['sched:sched_switch']\n\
         hypercalls = true\n[[step]]\ndo = 'run'\nlevel = 2\nargv = ['sh', '-c', '{load}']\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let lab = TestLab::new("sent-calls");
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    let session = session.to_str().unwrap();
    let sent = lines(&["hypertrace", "--format", "jsonl", session]);
    let sent =
        sent.iter().filter(|line| line["event"].as_str().unwrap().contains("function")).count();
    let report = hyperscope(&["calls", "--format", "json", session]).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let [source] = report["sources"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert!(sent > 20, "{sent}");
    assert_eq!((&source["tracer"], &source["count"]), (&"hyperscope_guest".into(), &sent.into()));
}
