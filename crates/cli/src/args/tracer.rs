//! Which tracer records calls of kernel functions, and of which: on a host, or in guests.

use anyhow::bail;
use clap::{Args, ValueEnum};
use recorder::FunctionTracer;

/// A tracer of functions on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracerArg {
    /// Calls
    Function,
    /// Calls and returns, with times
    #[value(name = "function_graph")]
    FunctionGraph,
}

/// Options of a tracer of functions.
#[derive(Clone, Debug, Args)]
pub(crate) struct TracerArgs {
    /// Record calls of the kernel's functions, too; each traced call is slower, often by more than
    /// the function takes
    ///
    /// Where an instance of tracefs can't have function_graph (before Linux 6.12), the kernel's own
    /// buffers are used, and get back what was set.
    #[arg(long, value_name = "TRACER")]
    pub(crate) tracer: Option<TracerArg>,
    /// Trace only these functions, as the kernel matches them: 'kvm_*', '*:mod:kvm_amd'
    #[arg(long = "function", value_name = "PATTERN", requires = "tracer")]
    functions: Vec<String>,
    /// Do not trace these functions
    #[arg(long = "no-function", value_name = "PATTERN", requires = "tracer")]
    no_functions: Vec<String>,
    /// With function_graph: trace these functions and what they call, and nothing else
    #[arg(long = "graph-function", value_name = "PATTERN", requires = "tracer")]
    graph_functions: Vec<String>,
    /// With function_graph: follow calls so deep at most
    #[arg(long, value_name = "N", requires = "tracer", value_parser = clap::value_parser!(u32).range(1..))]
    max_depth: Option<u32>,
}

/// The same options, of guests that are recorded together with their host.
#[derive(Clone, Debug, Args)]
pub(crate) struct GuestTracerArgs {
    /// Record calls of functions of guests' kernels, too; each traced call is slower there
    #[arg(long, value_name = "TRACER", requires = "guests")]
    guest_tracer: Option<TracerArg>,
    /// Trace only these functions in guests
    #[arg(long = "guest-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_functions: Vec<String>,
    /// Do not trace these functions in guests
    #[arg(long = "guest-no-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_no_functions: Vec<String>,
    /// With function_graph: trace these functions and what they call in guests, and nothing else
    #[arg(long = "guest-graph-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_graph_functions: Vec<String>,
    /// With function_graph: follow calls in guests so deep at most
    #[arg(long, value_name = "N", requires = "guest_tracer",
        value_parser = clap::value_parser!(u32).range(1..))]
    guest_max_depth: Option<u32>,
}

impl TracerArgs {
    /// The tracer that is asked for.
    ///
    /// # Errors
    /// When options don't go together.
    pub(crate) fn function_tracer(&self) -> anyhow::Result<Option<FunctionTracer>> {
        self.clone().asked_with("--")
    }

    /// The same by options whose names begin with `prefix`.
    fn asked_with(self, prefix: &str) -> anyhow::Result<Option<FunctionTracer>> {
        let Some(tracer) = self.tracer else { return Ok(None) };
        let returns = tracer == TracerArg::FunctionGraph;
        if !returns && (!self.graph_functions.is_empty() || self.max_depth.is_some()) {
            bail!(
                "{prefix}graph-function and {prefix}max-depth are of {prefix}tracer function_graph alone"
            );
        }
        Ok(Some(FunctionTracer {
            returns,
            functions: self.functions,
            except: self.no_functions,
            within: self.graph_functions,
            depth: self.max_depth.unwrap_or(0),
        }))
    }
}

impl GuestTracerArgs {
    /// The tracer that is asked for.
    ///
    /// # Errors
    /// When options don't go together.
    pub(crate) fn function_tracer(&self) -> anyhow::Result<Option<FunctionTracer>> {
        let of_guests = self.clone();
        let same = TracerArgs {
            tracer: of_guests.guest_tracer,
            functions: of_guests.guest_functions,
            no_functions: of_guests.guest_no_functions,
            graph_functions: of_guests.guest_graph_functions,
            max_depth: of_guests.guest_max_depth,
        };
        same.asked_with("--guest-")
    }
}
