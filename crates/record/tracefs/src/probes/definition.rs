//! Checks the definition of a probe (`FUNCTION [ARGUMENTS]`) before any of it reaches the kernel.
//!
//! The kernel reads one command per line, cuts lines at `#`, and has commands that remove other users' probes
//! (`trace_parse_run_command()`, `create_or_delete_trace_kprobe()`). A request for a probe may come from another
//! machine, so the checks let no text pass that could begin a second command.

use crate::error::{Result, TracefsError};

/// Max size of a probe. The kernel accepts lines of less than 4096 bytes (`WRITE_BUFSIZE`), which include our group and
/// the event's name.
const MAX_BYTES: usize = 2048;
/// Max size of a function's name (`KSYM_NAME_LEN`) with its module.
const MAX_FUNCTION_BYTES: usize = 512;

/// Suffix of a function whose return is probed (Linux 5.10).
pub(super) const RETURN: &str = "%return";

/// The function of a probe: `[MODULE:]FUNCTION[+OFFSET]`, or `[MODULE:]FUNCTION%return`.
///
/// # Errors
/// [`TracefsError::NotAProbe`] if the text is anything but one probe.
pub(super) fn function(probe: &str) -> Result<&str> {
    let refused = |why| TracefsError::NotAProbe { probe: shortened(probe), why };
    if probe.len() > MAX_BYTES {
        return Err(refused("it exceeds 2048 bytes"));
    }
    if !probe.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return Err(refused("it must be one line of printable ASCII characters"));
    }
    if probe.contains('#') {
        return Err(refused("# starts a comment for the kernel"));
    }
    let function = probe.split(' ').next().unwrap_or_default();
    if !is_function(function.strip_suffix(RETURN).unwrap_or(function)) {
        return Err(refused(
            "it must start with [MODULE:]FUNCTION[+OFFSET] or [MODULE:]FUNCTION%return",
        ));
    }
    Ok(function)
}

/// Shortens a probe for messages: the text may have megabytes.
fn shortened(probe: &str) -> String {
    probe.chars().take(200).collect()
}

fn is_function(text: &str) -> bool {
    let (module, rest) = text.split_once(':').map_or((None, text), |(a, b)| (Some(a), b));
    let (name, offset) = rest.split_once('+').map_or((rest, None), |(a, b)| (a, Some(b)));
    text.len() <= MAX_FUNCTION_BYTES
        && is_name(name)
        && module.is_none_or(is_name)
        && offset.is_none_or(is_number)
}

/// Whether the text is a kernel symbol: compilers add only suffixes like `.isra.0`.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
}

fn is_number(text: &str) -> bool {
    let hexadecimal = text.strip_prefix("0x").filter(|digits| !digits.is_empty());
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_takes_for_a_probe_is_let_through() {
        let known = [
            ("vfs_read", "vfs_read"),
            ("vfs_read+0x10", "vfs_read+0x10"),
            ("kvm_amd:svm_handle_exit", "kvm_amd:svm_handle_exit"),
            ("vfs_read%return got=$retval:s64", "vfs_read%return"),
            ("copy_process.isra.0 flags=%di:x64", "copy_process.isra.0"),
            ("do_sys_openat2 dfd=%ax filename=+0(%si):string $stack0", "do_sys_openat2"),
            (r#"f a=\"text" b=@jiffies c=-u8($stack2):b4@2/8 d=$arg* e=p->x"#, "f"),
        ];
        for (probe, expected) in known {
            assert_eq!(function(probe).unwrap(), expected);
        }
    }

    #[test]
    fn a_probe_is_one_line_and_no_other_command() {
        let others = [
            "",
            " vfs_read",
            "vfs_read\n-:theirs/probe",
            "vfs_read a=%di\n-:theirs/probe",
            "vfs_read\n",
            "vfs_read\r-:theirs/probe",
            "vfs_read\tx=%di",
            "vfs_read\0",
            "vfs_read # comment",
            "vfs_read \u{2028}x",
            "-:theirs/probe",
            "!vfs_read",
            "p:theirs/probe vfs_read",
            "vfs_read%returned",
            "vfs_read%return%return",
            "%return",
            "0xffffffff81000000",
            "vfs_read+",
            "vfs_read+0x",
            "vfs_read+x",
            "vfs_read-8",
            "a:b:c",
            ":vfs_read",
            "@virtio",
        ];
        for probe in others {
            let error = function(probe).unwrap_err().to_string();
            assert!(
                error.contains("is not a probe") && !error.contains('\n'),
                "{probe:?}: {error}"
            );
        }
        assert!(function(&"x".repeat(513)).is_err());
        assert!(function(&format!("x {}", "y".repeat(MAX_BYTES))).is_err());
    }
}
