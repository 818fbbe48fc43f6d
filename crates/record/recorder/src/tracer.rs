//! Function tracers: the requests to agents, and their part of the summary.

use channel::wire::TracedFunctions;
use session_json::TracerSummary;
use tracefs::FunctionTracer;

/// A tracer's part of the summary, with its number of functions.
pub(crate) fn summary(tracer: &FunctionTracer, functions: Option<usize>) -> TracerSummary {
    let plan = tracer.clone();
    TracerSummary {
        name: tracer.name().to_owned(),
        functions,
        only: plan.functions,
        except: plan.except,
        within: plan.within,
        depth: plan.depth,
        calls: None,
    }
}

/// The request to hyperscope-agent.
pub(crate) fn for_agent(tracer: &FunctionTracer) -> TracedFunctions {
    let FunctionTracer { returns, functions, except, within, depth } = tracer.clone();
    TracedFunctions { returns, functions, except, within, depth }
}

/// The request to trace-cmd's agent: arguments of `trace-cmd record`.
pub(crate) fn for_trace_cmd(tracer: &FunctionTracer) -> Vec<String> {
    let mut arguments = vec!["-p".to_owned(), tracer.name().to_owned()];
    let lists = [("-l", &tracer.functions), ("-n", &tracer.except), ("-g", &tracer.within)];
    for (option, patterns) in lists {
        arguments.extend(patterns.iter().flat_map(|pattern| [option.to_owned(), pattern.clone()]));
    }
    if tracer.depth > 0 {
        arguments.extend(["--max-graph-depth".to_owned(), tracer.depth.to_string()]);
    }
    arguments
}
