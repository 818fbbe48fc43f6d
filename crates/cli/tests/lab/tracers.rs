//! Tracers of functions in a real host: what is recorded, and that what was set before is set again,
//! at the end and by the guard of a recorder that is killed.

use serde_json::Value;

use crate::hypertrace::{build_module, lines};
use crate::recorded::hyperscope;
use crate::tool::{TestLab, can_run_all};

/// Shell functions: what is set in tracefs, and that of before.
const SETTINGS: &str = "
    cd /sys/kernel/tracing
    show() {
        for name in current_tracer set_ftrace_filter set_graph_function max_graph_depth \
            set_event_pid trace_clock buffer_size_kb tracing_on; do
            echo $name $(head -n 3 $name)
        done
    }
    echo vfs_read > set_ftrace_filter; echo schedule > set_graph_function
    echo 3 > max_graph_depth; echo global > trace_clock; echo 2000 > buffer_size_kb
    show > /tmp/before
    same() { show > /tmp/after; diff /tmp/before /tmp/after && ! ls /run/hyperscope-* 2>/dev/null; }
";

const GRAPH: &str = "
    hyperscope record --tracer function_graph --graph-function svm_handle_exit \
        --graph-function vmx_handle_exit --max-depth 6 --for 2s -o /tmp/graph && same &&
    hyperscope calls --format json /tmp/graph";

const FUNCTION: &str = "
    hyperscope record --tracer function --function 'kvm_*' --for 1s -o /tmp/function && same &&
    hyperscope calls --format json /tmp/function";

/// The kernel switches a hundred and more events on after the tracer, which takes a while.
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
    lab.run(&["put", "1", env!("CARGO_BIN_EXE_hyperscope"), "/bin/hyperscope"]).done();
    for (tracer, script) in
        [("function_graph", GRAPH), ("function", FUNCTION), ("function_graph", KILLED)]
    {
        let ran = lab.shell(1, &format!("{SETTINGS}{script}")).done();
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let source = &report["sources"][0];
        assert_eq!(source["tracer"], tracer, "{}", ran.stderr);
        assert!(source["count"].as_u64().unwrap() > 20, "{source}");
        let named = |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("kvm_"));
        assert!(source["functions"].as_array().unwrap().iter().any(named));
        if script != KILLED {
            assert!(ran.stderr.contains(" calls; what it costs is in all times"), "{}", ran.stderr);
        }
    }
}

/// A guest's module tells of calls; each that `hypertrace` prints is counted, by either way to the host.
#[test]
fn calls_that_a_module_told_of_are_all_counted() {
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
    let lab = TestLab::new("told-calls");
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    let session = session.to_str().unwrap();
    let told = lines(&["hypertrace", "--format", "jsonl", session]);
    let told =
        told.iter().filter(|line| line["event"].as_str().unwrap().contains("function")).count();
    let report = hyperscope(&["calls", "--format", "json", session]).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let [source] = report["sources"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert!(told > 20, "{told}");
    assert_eq!((&source["tracer"], &source["count"]), (&"hyperscope_guest".into(), &told.into()));
}
