//! Steps of a shutdown, from probes on the kernel's functions or from its system calls.

/// Kernel functions of a shutdown, with the step that each begins.
const STEPS: [(&str, &str); 8] = [
    ("__do_sys_reboot", "reboot"),
    ("sys_enter_reboot", "reboot"),
    ("kernel_restart_prepare", "restart"),
    ("kernel_shutdown_prepare", "power off"),
    ("device_shutdown", "devices"),
    ("migrate_to_reboot_cpu", "other CPUs"),
    ("syscore_shutdown", "syscore"),
    ("native_machine_shutdown", "machine"),
];

/// The step that an event with this name begins: names of probe events contain the function's name.
pub(super) fn step(event: &str) -> Option<&'static str> {
    let is_its = |function: &str| {
        let rest = event.split_once(function);
        // `p_device_shutdown_0` is an automatic probe name; `kp_device_shutdown` is someone else's.
        rest.is_some_and(|(before, after)| {
            (before.is_empty() || before.ends_with('_'))
                && (after.is_empty() || after.starts_with('_'))
        })
    };
    STEPS.iter().find(|(function, _)| is_its(function)).map(|(_, step)| *step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_known_by_the_function_in_their_names() {
        for (event, expected) in [
            ("sys_enter_reboot", Some("reboot")),
            ("device_shutdown", Some("devices")),
            ("p_device_shutdown_0", Some("devices")),
            ("kp_syscore_shutdown", Some("syscore")),
            ("sched_switch", None),
            ("mydevice_shutdown", None),
            ("sys_exit_reboot", None),
        ] {
            assert_eq!(step(event), expected, "{event}");
        }
    }
}
