//! Function tracers: which functions, and the kernel's switch for them.
//!
//! An instance has its own `function` tracer. Before Linux 6.12, `function_graph` and its filters exist only at the top
//! level, and some filters still do. If an instance can't have a tracer, the top-level buffers are recorded and
//! restored afterwards (see [`crate::top_level`]).

use std::io;

use crate::error::{Result, TracefsError};
use crate::instance::Instance;
use crate::mounted::{Tracefs, append, read};
use crate::top_level;

/// Functions to trace. Patterns have the kernel's syntax: `kvm_*`, `*:mod:kvm`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionTracer {
    /// Traces returns with times: `function_graph` instead of `function`.
    pub returns: bool,
    /// Functions; empty: all that the kernel can trace.
    pub functions: Vec<String>,
    pub except: Vec<String>,
    /// With returns: trace only these functions and their callees.
    pub within: Vec<String>,
    /// With returns: max depth; 0: no limit.
    pub depth: u32,
}

/// Files of tracefs, and the values written to them.
const FUNCTIONS: &str = "set_ftrace_filter";
const EXCEPT: &str = "set_ftrace_notrace";
const WITHIN: &str = "set_graph_function";
const DEPTH: &str = "max_graph_depth";
const TRACER: &str = "current_tracer";

impl FunctionTracer {
    /// The kernel's name of the tracer.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        if self.returns { "function_graph" } else { "function" }
    }

    /// Makes an instance for the tracer, or borrows the top-level buffers if no instance can have it. Sets the
    /// functions. Nothing is traced until [`FunctionTracer::begin`].
    ///
    /// # Errors
    /// When the kernel has no such tracer or no such functions, or its buffers are in use.
    pub fn instance(&self, tracefs: &Tracefs) -> Result<Instance> {
        let known = read(&tracefs.root().join("available_tracers"))?;
        if !known.split_whitespace().any(|name| name == self.name()) {
            return Err(TracefsError::NoSuchTracer { name: self.name() });
        }
        let instance = Instance::make(tracefs)?;
        if self.can_be_in(&instance) {
            self.choose(&instance)?;
            // Kernels before 6.12 refuse function_graph here.
            if !self.returns || self.begin(&instance).and_then(|()| self.off(&instance)).is_ok() {
                return Ok(instance);
            }
        }
        drop(instance);
        let top = top_level::take(tracefs)?;
        self.choose(&top)?;
        Ok(top)
    }

    /// Whether an instance has all files that have to be set.
    fn can_be_in(&self, instance: &Instance) -> bool {
        let there = |name| instance.file(name).exists();
        there(FUNCTIONS)
            && (self.within.is_empty() || there(WITHIN))
            && (self.depth == 0 || there(DEPTH))
    }

    fn choose(&self, instance: &Instance) -> Result<()> {
        let lists = [(FUNCTIONS, &self.functions), (EXCEPT, &self.except), (WITHIN, &self.within)];
        for (file, patterns) in lists {
            for pattern in patterns {
                let failed = |source| TracefsError::Functions { pattern: pattern.clone(), source };
                if !names_functions(pattern) {
                    return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
                }
                append(&instance.file(file), &format!("{pattern}\n")).map_err(failed)?;
            }
        }
        if self.depth > 0 {
            instance.set(DEPTH, &self.depth.to_string())?;
        }
        Ok(())
    }

    /// Number of functions with the tracer's call, if the kernel lists them.
    #[must_use]
    pub fn traced(&self, tracefs: &Tracefs, instance: &Instance) -> Option<usize> {
        let lines = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
        let except = lines(&instance.get(EXCEPT).ok()?);
        let chosen = if self.functions.is_empty() {
            lines(&read(&tracefs.root().join("available_filter_functions")).ok()?)
        } else {
            lines(&instance.get(FUNCTIONS).ok()?)
        };
        Some(chosen.saturating_sub(except))
    }

    /// Limits tracing to these threads.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn only(&self, instance: &Instance, threads: &str) -> Result<()> {
        instance.set("set_ftrace_pid", threads)
    }

    /// Enables the tracer.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(&self, instance: &Instance) -> Result<()> {
        instance.set(TRACER, self.name())
    }

    /// Disables the tracer.
    ///
    /// # Errors
    /// When the instance is gone.
    pub fn off(&self, instance: &Instance) -> Result<()> {
        instance.set(TRACER, "nop")
    }
}

/// Whether the kernel reads this as functions only: the same files accept commands (`schedule:traceoff`), which would
/// persist, and `!` removes entries.
fn names_functions(pattern: &str) -> bool {
    let (functions, module) = pattern.split_once(":mod:").unwrap_or((pattern, "*"));
    let is_plain = |text: &str| !text.contains(|c: char| c == ':' || c.is_whitespace());
    let is_empty = pattern.is_empty() || module.is_empty();
    !is_empty && !pattern.starts_with('!') && is_plain(functions) && is_plain(module)
}

#[cfg(test)]
mod tests {
    use super::names_functions;

    #[test]
    fn commands_are_no_functions() {
        for known in ["vfs_read", "kvm_*", "*:mod:kvm_amd", ":mod:ext4", "*lock*"] {
            assert!(names_functions(known), "{known}");
        }
        for other in [
            "",
            "!vfs_read",
            "schedule:traceoff",
            "a b",
            "a\nb",
            "a:mod:b:dump",
            "a:mod:",
            "a:mod:b\nc",
        ] {
            assert!(!names_functions(other), "{other}");
        }
    }
}
