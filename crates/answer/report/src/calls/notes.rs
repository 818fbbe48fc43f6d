//! Notes for the tables: missing events, and the tracer's cost.

use analyses::calls::CallTracer;
use analyses::distribution::Distribution;

use super::{CallsReport, CallsSource};
use crate::losses;
use crate::units::{count, counted, plural, share, time};

impl CallsReport {
    /// Lines below the tables of a recording.
    pub(super) fn notes(&self, source: &CallsSource) -> Vec<String> {
        let calls = &source.calls;
        let mut notes = Vec::new();
        let (no_call, no_return) = (
            calls.sum(|function| function.without_call),
            calls.sum(|function| function.without_return),
        );
        if no_call + no_return > 0 {
            let lost = match calls.interrupted {
                0 => String::new(),
                lost => format!(" ({} of them because of losses)", count(lost)),
            };
            notes.push(format!(
                "left out of counts and times: {} without a recorded return{lost}, {} without a recorded call",
                plural(no_return, "call"),
                plural(no_call, "return")
            ));
        }
        let overrun: u64 =
            calls.threads.iter().map(|thread| thread.overrun).fold(0, u64::saturating_add);
        if overrun > 0 {
            let overrun = plural(overrun, "call");
            notes
                .push(format!("the kernel could not follow {overrun}: their stacks were too deep"));
        }
        if calls.tree.rest() > 0 {
            let rest = counted(calls.tree.rest(), "call was", "calls were");
            notes.push(format!("{rest} on stacks beyond the limit of distinct stacks"));
        }
        if source.has_times() && !calls.switches {
            notes.push(
                "times include time off the CPU: record sched_switch to separate it".to_owned(),
            );
        }
        if calls.tracer == Some(CallTracer::Function) {
            notes.push(
                "the function tracer records calls without times: use -p function_graph to record times"
                    .to_owned(),
            );
        }
        if calls.tracer == Some(CallTracer::Module { returns: false }) {
            notes.push(
                "the guest's kernel has no fprobes (CONFIG_FPROBE, Linux 6.6): its module sends \
                 calls without times"
                    .to_owned(),
            );
        }
        notes.extend(self.cost_notes(source));
        notes.extend(losses::notes(&calls.losses, 0));
        notes
    }

    /// Notes on the tracer's cost.
    fn cost_notes(&self, source: &CallsSource) -> Vec<String> {
        let (calls, ns) = (&source.calls, source.calls.nanoseconds);
        if let Some(per_call) = self.per_call.filter(|_| source.has_times()) {
            let tracer_ns = calls.sum(|function| function.tracer_ns(Some(per_call)));
            return vec![format!(
                "corrected: the tracer costs {} ns inside and {} ns outside each call, {} in total ({} of self time); total \
                 times are as recorded",
                per_call.inside_ns,
                per_call.outside_ns,
                time(tracer_ns, ns),
                share(tracer_ns, calls.sum(|function| function.self_ns)),
            )];
        }
        let fastest = |times: &Distribution| {
            let [low, middle] = times.percentiles([10, 500]);
            Some(format!("{} (half of them up to {})", time(low?, ns), time(middle?, ns)))
        };
        let fastest_calls = fastest(&calls.cost.leaves).zip(fastest(&calls.cost.between));
        let note = fastest_calls.map(|(leaves, between)| {
            format!(
                "all times include the tracer's own cost, which was not measured. The fastest 1% of calls without callees \
                 take\n{leaves}, and from a return to the next call {between}: the tracer's lowest cost is at most that"
            )
        });
        note.into_iter().collect()
    }
}
