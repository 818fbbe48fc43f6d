//! Text formats of events whose fields reports use, and systems of events by name.
//!
//! Other events are parsed as `name=value` pairs. The formats come from the kernel's `TP_printk` in
//! `arch/x86/kvm/trace.h`, `arch/arm64/kvm/trace_arm.h`, `include/trace/events/{kvm,sched}.h`, and
//! from the output of trace-cmd's plugins.

/// The field with the exit reason: a number for a reason's name in the text.
pub const TEXT_REASON: &str = "text_reason";

/// Fields of ftrace events with function names, each with the field for its synthetic address.
const FUNCTIONS: [(&str, &str); 3] =
    [("func", "text_func"), ("ip", "text_ip"), ("parent_ip", "text_parent_ip")];

/// The field for the synthetic address of a function name, in an event of this system.
pub(super) fn address_field(system: &str, name: &str) -> Option<&'static str> {
    let of_name = || FUNCTIONS.iter().find(|(function, _)| *function == name);
    (system == "ftrace").then(of_name)?.map(|(_, address)| *address)
}

/// Templates by event, tried in order.
const TEMPLATES: &[(&str, &[&str])] = &[
    (
        "kvm_exit",
        &[
            "vcpu {vcpu_id} reason {text_reason:r} rip {guest_rip}",
            "reason {text_reason:r} rip {guest_rip}",
            "vcpu {vcpu_id} reason {text_reason:r} info1",
            "vcpu {vcpu_id} reason {text_reason:r} intr_info",
            "vcpu {vcpu_id} reason {text_reason:w}",
            "reason {text_reason:r} info",
            "reason {text_reason:w}",
            "TRAP: HSR_EC: {esr_ec} ({text_reason:r}), PC: {vcpu_pc}",
            "{text_reason:r}: HSR_EC: {esr_ec} ({esr_name:c}), PC: {vcpu_pc}",
            "{text_reason:r}: HSR_EC: {esr_ec}",
            "SEPC:{sepc}, SCAUSE:{scause}",
        ],
    ),
    ("kvm_entry", &["vcpu {vcpu_id}", "PC: {vcpu_pc}"]),
    (
        "kvm_nested_vmexit",
        &[
            "vcpu {vcpu_id} reason {text_reason:r} rip {guest_rip}",
            "vcpu {vcpu_id} reason {text_reason:w}",
            "reason {text_reason:w}",
        ],
    ),
    (
        "kvm_nested_vmexit_inject",
        &[
            "vcpu {vcpu_id} reason {text_reason:r} rip {guest_rip}",
            "reason: {text_reason:r} ext_inf1",
            "reason {text_reason:r} ext_inf1",
            "reason {text_reason:r} info1",
            "reason {text_reason:w}",
        ],
    ),
    ("kvm_userspace_exit", &["reason {reason_name:c} ({reason})"]),
    ("kvm_fpu", &["load{load=1}", "unload{load=0}"]),
    ("kvm_vcpu_wakeup", &["wait time {ns} ns{waited=1}", "poll time {ns} ns{waited=0}"]),
    ("kvm_msr", &["msr_write {ecx:x} = {data}{write=1}", "msr_read {ecx:x} = {data}{write=0}"]),
    (
        "kvm_pio",
        &[
            "pio_write at {port} size {size} count {count}{rw=1}",
            "pio_read at {port} size {size} count {count}{rw=0}",
        ],
    ),
    (
        "kvm_page_fault",
        &[
            "vcpu {vcpu_id} rip {guest_rip} address {fault_address} error_code {error_code}",
            "address {fault_address} error_code {error_code:x}",
        ],
    ),
    ("kvm_guest_fault", &["ipa {ipa}, hsr {hsr}, hxfar {hxfar}, pc {vcpu_pc}"]),
    ("kvm_fast_mmio", &["fast mmio at gpa {gpa}"]),
    (
        "kvm_mmio",
        &[
            "mmio unsatisfied-read len {len} gpa {gpa} val {val}{type=0}",
            "mmio read len {len} gpa {gpa} val {val}{type=1}",
            "mmio write len {len} gpa {gpa} val {val}{type=2}",
        ],
    ),
    ("kvm_hypercall", &["nr {nr} a0 {a0} a1 {a1} a2 {a2} a3 {a3}"]),
    (
        "kvm_cpuid",
        &[
            "func {function:x} idx {index:x} rax {rax:x} rbx {rbx:x} rcx {rcx:x} rdx {rdx:x}",
            "func {function:x} idx {index:x}",
            "func {function:x}",
        ],
    ),
    ("kvm_set_irq", &["gsi {gsi} level {level}"]),
    ("kvm_apic_accept_irq", &["apicid {apicid:x} vec {vec}"]),
    ("vgic_update_irq_pending", &["VCPU: {vcpu_id}, IRQ {irq}, level: {level}"]),
    ("sys_enter", &["NR {id} ("]),
    ("sys_exit", &["NR {id} = {ret}"]),
    ("function", &["{ip:c} <-- {parent_ip:c}", "{ip:c} <-{parent_ip:c}", "{ip:c}"]),
    ("funcgraph_entry", &["--> {func:c} ({depth})"]),
    ("funcgraph_retaddr_entry", &["--> {func:c} ({depth})"]),
    (
        "funcgraph_exit",
        &[
            // The kernel prints the depth again here instead of the overrun.
            "<-- {func:c} ({depth}) (start: {calltime:x} end: {rettime:x}) over: {over}",
            "<-- {func:c} ({depth}) (start: {calltime:x} end: {rettime:x})",
        ],
    ),
    (
        "sched_switch",
        &[
            "prev_comm={prev_comm:c} prev_pid={prev_pid} prev_prio={prev_prio} \
             prev_state={prev_state:s} ==> next_comm={next_comm:c} next_pid={next_pid} \
             next_prio={next_prio}",
            "{prev_comm:c}:{prev_pid} [{prev_prio}] {prev_state:s} ==> \
             {next_comm:c}:{next_pid} [{next_prio}]",
        ],
    ),
    ("sched_wakeup", WAKEUP),
    ("sched_wakeup_new", WAKEUP),
    ("sched_waking", WAKEUP),
];

const WAKEUP: &[&str] = &[
    "comm={comm:c} pid={pid} prio={prio}",
    "{comm:c}:{pid} [{prio}] success={success}",
    "{comm:c}:{pid} [{prio}]",
];

/// The return value of system calls.
pub(super) const SYSCALL_EXIT: &[&str] = &["{ret:x}"];

/// The templates of an event; empty if its lines have pairs.
pub(super) fn templates(name: &str) -> &'static [&'static str] {
    TEMPLATES.iter().find(|(event, _)| *event == name).map_or(&[], |(_, templates)| templates)
}

/// The system of the events of individual system calls.
pub(super) const SYSCALLS: &str = "syscalls";

/// Systems by prefix of the event name; the first match counts.
const PREFIXES: &[(&str, &str)] = &[
    ("kvm_", "kvm"),
    ("vgic_", "kvm"),
    ("vcpu_", "kvm"),
    ("sched_", "sched"),
    ("sys_enter_", "syscalls"),
    ("sys_exit_", "syscalls"),
    ("sys_enter", "raw_syscalls"),
    ("sys_exit", "raw_syscalls"),
    ("irq_handler_", "irq"),
    ("softirq_", "irq"),
    ("tasklet_", "irq"),
    ("timer_", "timer"),
    ("hrtimer_", "timer"),
    ("itimer_", "timer"),
    ("tick_", "timer"),
    ("ipi_", "ipi"),
    ("workqueue_", "workqueue"),
    ("rcu_", "rcu"),
    ("napi_", "napi"),
    ("net_", "net"),
    ("netif_", "net"),
    ("cpu_", "power"),
    ("power_", "power"),
    ("clock_", "power"),
    ("pm_", "power"),
    ("dev_pm_", "power"),
    ("suspend_", "power"),
    ("wakeup_source_", "power"),
    ("psci_", "power"),
    ("guest_halt_", "power"),
    ("function", "ftrace"),
    ("func_repeats", "ftrace"),
    ("funcgraph_", "ftrace"),
    ("kernel_stack", "ftrace"),
    ("user_stack", "ftrace"),
    ("bprint", "ftrace"),
    ("bputs", "ftrace"),
];

/// x86's own interrupt vectors, as named in events of the system `irq_vectors` before `_entry` and
/// `_exit` (arch/x86/include/asm/trace/irq_vectors.h).
pub const X86_VECTORS: &[&str] = &[
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "x86_platform_ipi",
    "irq_work",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
    "error_apic",
    "spurious_apic",
];

/// The system of events whose names match no prefix.
pub(super) const UNKNOWN: &str = "unknown";

/// The system of an event if a line does not have it; `unknown` if its name does not show it
/// either.
pub(crate) fn system_of(name: &str) -> &'static str {
    let vector = name.strip_suffix("_entry").or_else(|| name.strip_suffix("_exit"));
    if vector.is_some_and(|vector| X86_VECTORS.contains(&vector)) || name.starts_with("vector_") {
        return "irq_vectors";
    }
    PREFIXES
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map_or(UNKNOWN, |(_, system)| system)
}

/// Names of reasons of waiting exits.
pub(super) fn waits(reason: &str) -> bool {
    let name = reason.strip_prefix("EXIT_").unwrap_or(reason).to_ascii_lowercase();
    matches!(name.as_str(), "hlt" | "mwait" | "mwait_instruction" | "mwait_cond" | "wfx" | "wfi")
}
