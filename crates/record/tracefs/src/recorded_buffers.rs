//! Buffers of this kernel with a running recording: a mark in them reaches the recording.

use std::path::PathBuf;

use crate::error::Result;
use crate::instance::{self, Instance};
use crate::mounted::{self, Tracefs};
use crate::owner;

/// A buffer that receives events: an instance of tracefs, or the top-level one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBuffer {
    /// The instance's name; `None`: the top-level buffer.
    instance: Option<String>,
    marker: PathBuf,
}

impl RecordedBuffer {
    /// All recorded buffers.
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

    /// The top-level buffer, recorded or not.
    #[must_use]
    pub fn kernels_own(tracefs: &Tracefs) -> Self {
        Self { instance: None, marker: Instance::top(tracefs).file("trace_marker") }
    }

    /// The instance's name; `None`: the top-level buffer.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// The process id of the recorder, and its session, if the recorder's note has it.
    #[must_use]
    pub fn session(&self) -> Option<(u32, PathBuf)> {
        let pid = instance::recorder_of(self.instance()?)?;
        Some((pid, owner::session_of(pid)?.path))
    }

    /// Writes a mark.
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

/// Whether the buffer is on and has an enabled event or a tracer. A buffer that nobody set up has neither.
fn is_recorded(instance: &Instance) -> bool {
    let has_tracer = || instance.get("current_tracer").is_ok_and(|tracer| tracer.trim() != "nop");
    let has_events = || instance.enabled().is_ok_and(|events| !events.is_empty());
    is_on(instance) && (has_tracer() || has_events())
}

/// Whether the name is that of our recorder's instance, which may record only hypercalls.
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
