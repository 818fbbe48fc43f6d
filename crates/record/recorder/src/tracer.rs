//! Tracers of functions: what agents are asked for, and what the summary says about it.

use channel::wire::TracedFunctions;
use serde::Serialize;
use tracefs::FunctionTracer;

/// Which calls of functions were recorded.
#[derive(Clone, Debug, Serialize)]
pub struct TracerSummary {
    /// The kernel's name for the tracer.
    pub name: &'static str,
    /// Functions that got its call, as far as the kernel lists them.
    pub functions: Option<usize>,
    /// Patterns of functions that were asked for; none: all.
    pub only: Vec<String>,
    /// Of these not.
    pub except: Vec<String>,
    /// Only what was called from these.
    pub within: Vec<String>,
    /// So deep at most; 0: however deep.
    pub depth: u32,
    /// Calls in the recording; none: they were not counted.
    pub calls: Option<u64>,
}

impl TracerSummary {
    pub(crate) fn new(tracer: &FunctionTracer, functions: Option<usize>) -> Self {
        let asked = tracer.clone();
        Self {
            name: tracer.name(),
            functions,
            only: asked.functions,
            except: asked.except,
            within: asked.within,
            depth: asked.depth,
            calls: None,
        }
    }
}

/// The same for hyperscope-agent.
pub(crate) fn for_agent(tracer: &FunctionTracer) -> TracedFunctions {
    let FunctionTracer { returns, functions, except, within, depth } = tracer.clone();
    TracedFunctions { returns, functions, except, within, depth }
}

/// The same for trace-cmd's agent: arguments of `trace-cmd record`.
pub(crate) fn for_trace_cmd(tracer: &FunctionTracer) -> Vec<String> {
    let mut arguments = vec!["-p".to_owned(), tracer.name().to_owned()];
    let lists = [("-l", &tracer.functions), ("-n", &tracer.except), ("-g", &tracer.within)];
    for (option, patterns) in lists {
        arguments.extend(patterns.iter().flat_map(|one| [option.to_owned(), one.clone()]));
    }
    if tracer.depth > 0 {
        arguments.extend(["--max-graph-depth".to_owned(), tracer.depth.to_string()]);
    }
    arguments
}
