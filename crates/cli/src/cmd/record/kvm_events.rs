//! Detects a kernel without KVM's events, and explains which module to load.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;

use recorder::{Profile, RecordPlan};

use command::notice::say;

/// Event systems of KVM, on all architectures.
const SYSTEMS: [&str; 3] = ["kvm:", "kvm-s390:", "kvm_hv:"];

/// Warns if exits are requested but the kernel has no events for them.
pub(super) fn warn_of_none(plan: &RecordPlan, events: &[String]) {
    let wants_exits = plan.profile.is_some_and(|profile| profile != Profile::Sched);
    if !wants_exits || has_any(events) {
        return;
    }
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_loaded = Path::new("/sys/module/kvm").exists();
    say(&format!(
        "this kernel has no KVM events, so the recording will have no exits. {}",
        remedy(ARCH, &cpu, is_loaded)
    ));
}

fn has_any(events: &[String]) -> bool {
    events.iter().any(|event| SYSTEMS.iter().any(|system| event.starts_with(system)))
}

/// How to make these events available.
fn remedy(architecture: &str, cpu: &str, is_loaded: bool) -> String {
    let has_flag = |flag| cpu.lines().any(|line| line.split_whitespace().any(|word| word == flag));
    let load = |module| format!("Load KVM and record again: modprobe {module}");
    match architecture {
        _ if is_loaded => {
            "KVM was built without tracepoints: use a kernel with CONFIG_TRACEPOINTS"
                .to_owned()
        }
        "x86_64" | "x86" if has_flag("svm") => load("kvm_amd"),
        "x86_64" | "x86" if has_flag("vmx") => load("kvm_intel"),
        "x86_64" | "x86" => {
            "The CPUs offer no virtualization (neither vmx nor svm): enable it in the firmware, or, in a VM, enable nested virtualization on its host"
                .to_owned()
        }
        "aarch64" => "On arm64, KVM is part of the kernel: it needs CONFIG_KVM, and a machine that starts the kernel at EL2"
            .to_owned(),
        "powerpc64" => load("kvm_hv"),
        _ => load("kvm"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_of_these_cpus_is_named() {
        let flags = |flags: &str| format!("processor : 0\nflags : fpu {flags} nx\n");
        assert!(remedy("x86_64", &flags("svm"), false).ends_with("modprobe kvm_amd"));
        assert!(remedy("x86_64", &flags("vmx"), false).ends_with("modprobe kvm_intel"));
        assert!(remedy("x86_64", &flags("svm_lock"), false).contains("nested virtualization"));
        assert!(remedy("s390x", "", false).ends_with("modprobe kvm"));
        assert!(remedy("x86_64", &flags("svm"), true).contains("CONFIG_TRACEPOINTS"));
    }

    #[test]
    fn events_of_kvm_are_recognised() {
        let events = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert!(has_any(&events(&["sched:sched_switch", "kvm:kvm_exit"])));
        assert!(!has_any(&events(&["sched:sched_switch", "kvmmmu:kvm_mmu_zap"])));
    }
}
