//! Compares recordings of a real kernel with `NAME.truth.json`, made from the output of `trace-cmd report`: calls,
//! returns, and durations between the kernel's clock readings, by function.

use std::collections::BTreeMap;
use std::path::PathBuf;

use analyses::calls::{CallNodeKind, CallQuestion, CallTracer, RecordedCalls, calls};
use serde_json::Value;

fn read(name: &str) -> (RecordedCalls, BTreeMap<String, Value>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name);
    let recording = sources::open(&path).unwrap();
    let calls = calls(&recording, &CallQuestion::default(), &mut (), &|_| ());
    let truth = std::fs::read(path.with_extension("truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let by_name = truth["calls"].as_object().unwrap().clone();
    (calls, by_name.into_iter().collect())
}

#[test]
fn every_call_and_every_nanosecond_is_found() {
    let (calls, truth) = read("x86-svm/calls.dat");
    assert_eq!(calls.tracer, Some(CallTracer::Graph));
    // Totals count recursive calls once; the tree has all of them.
    let mut all_ns = vec![0; calls.functions.len()];
    for node in calls.tree.nodes() {
        if let CallNodeKind::Function(number) = node.kind {
            all_ns[number as usize] += node.total_ns;
        }
    }
    let mut complete_count = 0;
    assert_eq!(calls.functions.len(), truth.len());
    for (function, all_ns) in calls.functions.iter().zip(all_ns) {
        let name = function.name.as_deref().unwrap();
        let expected = &truth[name];
        assert_eq!(
            Some(function.count + function.without_return),
            expected["entries"].as_u64(),
            "{name}"
        );
        assert_eq!(
            Some(function.count + function.without_call),
            expected["exits"].as_u64(),
            "{name}"
        );
        assert_eq!(
            Some(function.events),
            expected["entries"]
                .as_u64()
                .zip(expected["exits"].as_u64())
                .map(|(entries, exits)| entries + exits),
            "{name}"
        );
        if function.without_call + function.without_return == 0 {
            complete_count += 1;
            assert_eq!(Some(all_ns), expected["exit_ns"].as_u64(), "{name}");
        }
    }
    assert_eq!(complete_count, truth.len());
}

#[test]
fn parts_of_a_thread_add_up() {
    let (calls, _) = read("x86-svm/calls.dat");
    assert!(calls.switches);
    let self_ns = calls.sum(|function| function.self_ns);
    assert_eq!(self_ns, calls.threads.iter().map(|thread| thread.self_ns).sum::<u64>());
    for thread in calls.threads.iter().filter(|thread| thread.count > 0) {
        let known_ns = thread.self_ns + thread.off_cpu_ns;
        assert_eq!(known_ns + thread.unaccounted_ns(), thread.traced_ns);
        assert!(thread.unaccounted_ns() > 0, "{thread:?}");
    }
}

#[test]
fn calls_of_the_function_tracer_are_counted() {
    let (calls, truth) = read("x86-svm/functions.dat");
    assert_eq!(calls.tracer, Some(CallTracer::Function));
    let found: BTreeMap<&str, u64> = calls
        .functions
        .iter()
        .filter(|function| function.events > 0)
        .map(|function| (function.name.as_deref().unwrap(), function.count))
        .collect();
    let expected: BTreeMap<&str, u64> = truth
        .iter()
        .map(|(name, counts)| (name.as_str(), counts["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, expected);
    for function in calls.functions.iter().filter(|function| function.events > 0) {
        assert_eq!(function.callers.iter().map(|(_, count)| count).sum::<u64>(), function.count);
    }
}
