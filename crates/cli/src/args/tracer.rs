//! Options for the tracer of kernel functions, and for the traced functions, on a host or in guests.

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
    /// Also record calls of kernel functions; tracing slows down each call, often by more than the
    /// function itself takes
    ///
    /// Before Linux 6.12, tracefs instances have no function_graph; the kernel's own buffers are
    /// used, and their settings are restored.
    #[arg(long, value_name = "TRACER")]
    pub(crate) tracer: Option<TracerArg>,
    /// Trace only these functions, in the kernel's pattern syntax: 'kvm_*', '*:mod:kvm_amd'
    #[arg(long = "function", value_name = "PATTERN", requires = "tracer")]
    functions: Vec<String>,
    /// Do not trace these functions
    #[arg(long = "no-function", value_name = "PATTERN", requires = "tracer")]
    no_functions: Vec<String>,
    /// With function_graph: trace only these functions and their callees
    #[arg(long = "graph-function", value_name = "PATTERN", requires = "tracer")]
    graph_functions: Vec<String>,
    /// With function_graph: maximum call depth
    #[arg(long, value_name = "N", requires = "tracer", value_parser = clap::value_parser!(u32).range(1..))]
    max_depth: Option<u32>,
}

/// The same options, of guests that are recorded together with their host.
#[derive(Clone, Debug, Args)]
pub(crate) struct GuestTracerArgs {
    /// Also record calls of functions in guests' kernels; tracing slows down each call
    #[arg(long, value_name = "TRACER", requires = "guests")]
    guest_tracer: Option<TracerArg>,
    /// Trace only these functions in guests
    #[arg(long = "guest-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_functions: Vec<String>,
    /// Do not trace these functions in guests
    #[arg(long = "guest-no-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_no_functions: Vec<String>,
    /// With function_graph: trace only these functions and their callees in guests
    #[arg(long = "guest-graph-function", value_name = "PATTERN", requires = "guest_tracer")]
    guest_graph_functions: Vec<String>,
    /// With function_graph: maximum call depth in guests
    #[arg(long, value_name = "N", requires = "guest_tracer",
        value_parser = clap::value_parser!(u32).range(1..))]
    guest_max_depth: Option<u32>,
}

impl TracerArgs {
    /// The requested tracer.
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
                "{prefix}graph-function and {prefix}max-depth need {prefix}tracer function_graph"
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
    /// The requested tracer.
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
