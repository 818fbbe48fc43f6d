//! The request to an agent: arguments of `trace-cmd record`.

use crate::in_guests::InGuests;
use crate::tracer;

/// The arguments. The guest uses the host's trace clock.
///
/// # Errors
/// When trace-cmd does not support the request.
pub(super) fn arguments(what: &InGuests, clock: &str) -> Result<Vec<String>, String> {
    if !what.probes.is_empty() {
        return Err("trace-cmd's agent can't set probes; use hyperscope-agent".into());
    }
    let mut arguments = vec!["-C".to_owned(), clock.to_owned()];
    if let Some(kib) = what.buffer_kib {
        arguments.extend(["-b".to_owned(), kib.to_string()]);
    }
    let optional = what.profile.map(tracefs::Profile::patterns).unwrap_or_default();
    if !optional.is_empty() {
        // The guest skips missing events; those requested by name are later compared with the agent's answer.
        arguments.push("-i".into());
    }
    arguments.extend(what.tracer.iter().flat_map(tracer::for_trace_cmd));
    let patterns = what.events.iter().map(String::as_str).chain(optional);
    let before = arguments.len();
    arguments.extend(patterns.flat_map(|pattern| ["-e".to_owned(), pattern.to_owned()]));
    if arguments.len() == before && what.tracer.is_none() {
        return Err("no event was selected for guests".into());
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use tracefs::Profile;

    use super::*;

    #[test]
    fn arguments_are_those_of_trace_cmd_record() {
        let what = InGuests {
            events: vec!["irq:irq_handler_entry".into()],
            buffer_kib: Some(512),
            ..InGuests::default()
        };
        let line = arguments(&what, "x86-tsc").unwrap().join(" ");
        assert_eq!(line, "-C x86-tsc -b 512 -e irq:irq_handler_entry");
        let usual = InGuests { profile: Some(Profile::Net), ..InGuests::default() };
        let line = arguments(&usual, "mono").unwrap().join(" ");
        assert!(line.starts_with("-C mono -i -e kvm ") && line.ends_with(" -e vhost"), "{line}");
        assert!(arguments(&InGuests::default(), "mono").is_err());
        let calls = tracefs::FunctionTracer {
            returns: true,
            functions: vec!["kvm_*".into()],
            except: vec!["*lock*".into()],
            within: vec!["do_idle".into()],
            depth: 3,
        };
        let calls = InGuests { tracer: Some(calls), ..InGuests::default() };
        let line = arguments(&calls, "mono").unwrap().join(" ");
        assert_eq!(
            line,
            "-C mono -p function_graph -l kvm_* -n *lock* -g do_idle --max-graph-depth 3"
        );
        let probes = InGuests { probes: vec!["f".into()], ..what };
        assert!(arguments(&probes, "mono").unwrap_err().contains("hyperscope-agent"));
    }
}
