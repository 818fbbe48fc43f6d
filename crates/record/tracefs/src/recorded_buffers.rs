//! Buffers of this kernel with a running recording, where a mark is visible.

use std::path::PathBuf;

use crate::error::Result;
use crate::instance::{self, Instance};
use crate::mounted::{self, Tracefs};
use crate::owner;

/// A buffer that events are recorded into: an instance of tracefs, or the kernel's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBuffer {
    /// The instance's name; none: the kernel's own.
    instance: Option<String>,
    marker: PathBuf,
}

impl RecordedBuffer {
    /// All of them.
    ///
    /// # Errors
    /// When tracefs can't be read.
    pub fn all(tracefs: &Tracefs) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        if is_recorded(&Instance::top(tracefs)) {
            all.push(Self::kernels_own(tracefs));
        }
        let instances = tracefs.root().join("instances");
        for name in mounted::folders(&instances)? {
            let instance = Instance::at(instances.join(&name));
            if is_recorded(&instance) || is_of_recorder(&name) && is_on(&instance) {
                all.push(Self { instance: Some(name), marker: instance.file("trace_marker") });
            }
        }
        Ok(all)
    }

    /// The kernel's own, whether or not anybody records it.
    #[must_use]
    pub fn kernels_own(tracefs: &Tracefs) -> Self {
        Self { instance: None, marker: Instance::top(tracefs).file("trace_marker") }
    }

    /// The name of its instance; none: it is the kernel's own.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// The session that it is recorded into, and by which process, where a recorder says so.
    #[must_use]
    pub fn session(&self) -> Option<(u32, PathBuf)> {
        let pid = instance::recorder_of(self.instance()?)?;
        Some((pid, owner::session_of(pid)?.path))
    }

    /// Writes a text among its events.
    ///
    /// # Errors
    /// When the kernel refuses, or the buffer is gone.
    pub fn mark(&self, text: &str) -> Result<()> {
        mounted::write(&self.marker, text)
    }
}

fn is_on(instance: &Instance) -> bool {
    instance.get("tracing_on").is_ok_and(|on| on.trim() == "1")
}

/// Whether it is on, and something is recorded into it. Both are so of no buffer that nobody has set up.
fn is_recorded(instance: &Instance) -> bool {
    let has_tracer = || instance.get("current_tracer").is_ok_and(|tracer| tracer.trim() != "nop");
    let has_events = || instance.enabled().is_ok_and(|events| !events.is_empty());
    is_on(instance) && (has_tracer() || has_events())
}

/// Whether a recorder of ours makes instances of this name: such a one may record hypercalls alone.
fn is_of_recorder(name: &str) -> bool {
    instance::recorder_of(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_without_events_is_not_recorded() {
        let made =
            Tracefs::find().and_then(|tracefs| Ok((Instance::make_another(&tracefs)?, tracefs)));
        let (instance, tracefs) = match made {
            Ok(made) => made,
            Err(error) => return testkit::skip!("{error}"),
        };
        let is_listed = || {
            let all = RecordedBuffer::all(&tracefs).unwrap();
            all.iter().any(|buffer| buffer.marker == instance.file("trace_marker"))
        };
        instance.set("tracing_on", "1").unwrap();
        assert!(!is_listed());
        instance.enable("sched:sched_switch").unwrap();
        assert!(is_listed());
        instance.set("tracing_on", "0").unwrap();
        assert!(!is_listed());
    }
}
