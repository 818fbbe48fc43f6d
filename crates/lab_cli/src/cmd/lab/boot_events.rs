//! Events that a scenario's guest kernel records from boot on. A kernel that lacks one of them logs this and boots
//! anyway: the recording just lacks the event.

use std::collections::HashSet;

use sources::Recording;

/// Events that a kernel command line names individually, as `SYSTEM:NAME`.
fn named(command_line: &str) -> Vec<String> {
    let value = |key: &str| {
        let word = command_line.split_whitespace().find_map(|word| word.strip_prefix(key));
        word.unwrap_or_default()
    };
    let events = value("trace_event=").split(',').filter(|event| event.contains(':'));
    let events = events.filter(|event| !event.contains('*')).map(str::to_owned);
    let probes = value("kprobe_event=").split(';').filter_map(|probe| {
        let (kind, _) = probe.split_once(',')?;
        let (_, name) = kind.split_once(':')?;
        Some(match name.split_once('/') {
            Some((group, name)) => format!("{group}:{name}"),
            None => format!("kprobes:{name}"),
        })
    });
    events.chain(probes).collect()
}

/// Events that are in none of the recordings.
pub(super) fn missing(command_line: &str, recordings: &[Recording]) -> Vec<String> {
    let formats = recordings.iter().flat_map(|recording| recording.formats().iter());
    let known: HashSet<String> = formats.map(|(_, format)| format.full_name()).collect();
    named(command_line).into_iter().filter(|event| !known.contains(event)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LINE: &str = "quiet trace_event=initcall:*,sched:sched_process_exec \
        kprobe_event=p:device_shutdown,device_shutdown;r:mine/back,vprintk panic=1";

    #[test]
    fn a_command_line_names_events_and_probes() {
        let expected = ["sched:sched_process_exec", "kprobes:device_shutdown", "mine:back"];
        assert_eq!(named(LINE), expected);
        assert!(named("quiet").is_empty());
    }

    #[test]
    fn events_that_the_kernel_lacks_are_named() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/x86-svm/boot.guest.dat");
        let recordings = [sources::open(Path::new(file)).unwrap()];
        // That kernel has both events, but not the probe `mine:back`.
        assert_eq!(missing(LINE, &recordings), ["mine:back"]);
    }
}
