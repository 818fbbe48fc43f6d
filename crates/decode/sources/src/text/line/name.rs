//! Parses the text after a line's time: the event's name and its text.

use super::all_digits;

/// The form of an event name in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::text) enum Form {
    /// The name itself.
    #[default]
    Plain,
    /// Entry of a system call: `sys_enter_ioctl:`, or `sys_ioctl(fd: d)` as the kernel prints it.
    SyscallEnter,
    /// Return of a system call: `sys_exit_ioctl:`, or `sys_ioctl -> 0x0`.
    SyscallExit,
}

impl Form {
    /// Prefix of the event's name.
    pub(in crate::text) const fn prefix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::SyscallEnter => "sys_enter_",
            Self::SyscallExit => "sys_exit_",
        }
    }
}

/// An event's name and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'t> {
    pub(super) form: Form,
    pub(super) system: Option<&'t str>,
    /// Without the prefix of its form.
    pub(super) name: &'t str,
    pub(super) body: &'t str,
}

/// The content after a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterTime<'t> {
    Event(Named<'t>),
    /// Dropped events, with their number if the line has it.
    Lost(Option<u64>),
    /// A perf record that is not an event.
    Nothing,
    Unreadable,
}

/// Maximum length of the name of an event or a system, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Modifiers after a colon (`cycles:ppp`), which do not belong to the event's name.
const PERF_MODIFIERS: &str = "ukhGHpPSDIWeb";

/// Parses the text after a time.
pub(super) fn after_time(rest: &str) -> AfterTime<'_> {
    let rest = without_period(without_difference(rest.trim()));
    if rest.starts_with("PERF_RECORD_") {
        return perf_record(rest);
    }
    let named = if let Some(name) = stack(rest) {
        Some(Named { form: Form::Plain, system: None, name, body: rest })
    } else {
        let rest = without_place_in_buffer(rest);
        with_colon(rest).or_else(|| syscall(rest)).or_else(|| function(rest))
    };
    named.map_or(AfterTime::Unreadable, AfterTime::Event)
}

/// Whether a text can be the name of an event or a system.
fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b',' | b'=')
    };
    let begins =
        name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    begins && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_of_name)
}

/// Removes `(+36)` from trace-cmd's option `--ts-diff`.
fn without_difference(rest: &str) -> &str {
    let difference = rest.strip_prefix("(+").or_else(|| rest.strip_prefix("(-"));
    let behind = difference.and_then(|rest| rest.split_once(')'));
    match behind {
        Some((number, behind)) if all_digits(number) => behind.trim_start(),
        _ => rest,
    }
}

/// Removes perf script's field `period` before the name.
fn without_period(rest: &str) -> &str {
    match rest.split_once(char::is_whitespace) {
        Some((number, behind)) if all_digits(number) => behind.trim_start(),
        _ => rest,
    }
}

/// Removes `[152481:0x44:36]` at the end, which `trace-cmd report --debug` prints as the position
/// of the record.
fn without_place_in_buffer(rest: &str) -> &str {
    let Some((before, place)) = rest.strip_suffix(']').and_then(|rest| rest.rsplit_once('['))
    else {
        return rest;
    };
    let mut parts = place.split(':');
    let is_place = parts.next().is_some_and(all_digits)
        && parts.next().is_some_and(|offset| offset.starts_with("0x"))
        && parts.next().is_some_and(all_digits)
        && parts.next().is_none();
    if is_place { before.trim_end() } else { rest }
}

/// perf records that `perf script --show-…-events` prints.
fn perf_record(rest: &str) -> AfterTime<'_> {
    if !rest.starts_with("PERF_RECORD_LOST") {
        return AfterTime::Nothing;
    }
    AfterTime::Lost(rest.split_whitespace().find_map(|word| word.parse().ok()))
}

/// The heading of a stack in the kernel's `trace` file, where its event has no name.
fn stack(rest: &str) -> Option<&'static str> {
    match rest {
        "<stack trace>" => Some("kernel_stack"),
        "<user stack trace>" => Some("user_stack"),
        _ => None,
    }
}

/// `kvm_exit: …`, `kvm:kvm_exit: …`.
fn with_colon(rest: &str) -> Option<Named<'_>> {
    let (name, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.strip_suffix(':')?;
    let (system, name) = match name.rsplit_once(':') {
        Some((name, letters)) if letters.chars().all(|letter| PERF_MODIFIERS.contains(letter)) => {
            (None, name)
        }
        Some((system, name)) => (Some(system), name),
        None => (None, name),
    };
    if !is_name(name) || !system.is_none_or(is_name) {
        return None;
    }
    let is_syscall = system.is_none_or(|system| system == "syscalls");
    let (form, name) = match name {
        _ if !is_syscall => (Form::Plain, name),
        _ => without_form(name),
    };
    Some(Named { form, system, name, body: body.trim_start() })
}

/// The name of a system call without the prefix of its form.
fn without_form(name: &str) -> (Form, &str) {
    for form in [Form::SyscallEnter, Form::SyscallExit] {
        if let Some(call) = name.strip_prefix(form.prefix()).filter(|call| !call.is_empty()) {
            return (form, call);
        }
    }
    (Form::Plain, name)
}

/// System calls in the kernel's format: `sys_ioctl(fd: d, cmd: ae80, arg: 0)` and `sys_ioctl ->
/// 0x0`.
fn syscall(rest: &str) -> Option<Named<'_>> {
    let rest = rest.strip_prefix("sys_")?;
    let named = |form, name, body| Named { form, system: None, name, body };
    let found = match rest.split_once(" -> ") {
        Some((name, body)) if is_name(name) => named(Form::SyscallExit, name, body.trim()),
        _ => {
            let (name, body) = rest.split_once('(')?;
            named(Form::SyscallEnter, name, body.strip_suffix(')').unwrap_or(body))
        }
    };
    is_name(found.name).then_some(found)
}

/// Function calls in the kernel's format: `kvm_sched_in <-finish_task_switch`.
fn function(rest: &str) -> Option<Named<'_>> {
    let (called, caller) = rest.split_once(" <-")?;
    let is_call = !called.is_empty() && !called.contains(' ') && !caller.is_empty();
    let name = "function";
    is_call.then_some(Named { form: Form::Plain, system: None, name, body: rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rest: &str) -> (Form, Option<&str>, &str, &str) {
        match after_time(rest) {
            AfterTime::Event(Named { form, system, name, body }) => (form, system, name, body),
            other => panic!("{rest}: {other:?}"),
        }
    }

    #[test]
    fn events_are_named_in_every_form() {
        let plain = Form::Plain;
        for (rest, expected) in [
            (" kvm_exit:   reason HLT", (plain, None, "kvm_exit", "reason HLT")),
            (" (+36)    kvm_exit: x", (plain, None, "kvm_exit", "x")),
            ("          kvm_exit: x [45999:0x6c:48]", (plain, None, "kvm_exit", "x")),
            ("          1  kvm:kvm_exit: x", (plain, Some("kvm"), "kvm_exit", "x")),
            ("     250000 cpu-clock: ", (plain, None, "cpu-clock", "")),
            ("     250000 cycles:ppp: ", (plain, None, "cycles", "")),
            ("     250000 cpu/cycles/u: ", (plain, None, "cpu/cycles/u", "")),
            (
                " sys_ioctl(fd: d, cmd: ae80)",
                (Form::SyscallEnter, None, "ioctl", "fd: d, cmd: ae80"),
            ),
            (" sys_ioctl -> 0x0", (Form::SyscallExit, None, "ioctl", "0x0")),
            (" sys_enter_ioctl: fd: 0xd", (Form::SyscallEnter, None, "ioctl", "fd: 0xd")),
            (
                " syscalls:sys_exit_ioctl: 0x0",
                (Form::SyscallExit, Some("syscalls"), "ioctl", "0x0"),
            ),
            (" sys_enter: NR 16 (d)", (plain, None, "sys_enter", "NR 16 (d)")),
            (" a_call <-its_caller", (plain, None, "function", "a_call <-its_caller")),
            (" <stack trace>", (plain, None, "kernel_stack", "<stack trace>")),
        ] {
            assert_eq!(named(rest), expected, "{rest}");
        }
    }

    #[test]
    fn records_of_perf_are_losses_or_nothing() {
        assert_eq!(after_time(" PERF_RECORD_LOST lost 9"), AfterTime::Lost(Some(9)));
        assert_eq!(after_time(" PERF_RECORD_LOST_SAMPLES lost 9"), AfterTime::Lost(Some(9)));
        assert_eq!(after_time(" PERF_RECORD_COMM: init:1/1"), AfterTime::Nothing);
        for rest in ["", "kvm_exit x", "kvm\"exit: x", "[a:b]: x", "a b <-c"] {
            assert_eq!(after_time(rest), AfterTime::Unreadable, "{rest}");
        }
    }
}
