//! Constants that print fmts refer to by name and whose values never change.

/// Values that an architecture or the user-space ABI fixes.
///
/// Kernel-internal enums are excluded: their values differ between kernels.
const CONSTANTS: &[(&str, i64)] = &[
    ("NULL", 0),
    ("false", 0),
    ("true", 1),
    // Softirq numbers, in the order of /proc/softirqs.
    ("HI_SOFTIRQ", 0),
    ("TIMER_SOFTIRQ", 1),
    ("NET_TX_SOFTIRQ", 2),
    ("NET_RX_SOFTIRQ", 3),
    ("BLOCK_SOFTIRQ", 4),
    ("IRQ_POLL_SOFTIRQ", 5),
    ("TASKLET_SOFTIRQ", 6),
    ("SCHED_SOFTIRQ", 7),
    ("HRTIMER_SOFTIRQ", 8),
    ("RCU_SOFTIRQ", 9),
    ("HRTIMER_NORESTART", 0),
    ("HRTIMER_RESTART", 1),
    // VM-instruction errors of Intel's VMX.
    ("VMXERR_VMCALL_IN_VMX_ROOT_OPERATION", 1),
    ("VMXERR_VMCLEAR_INVALID_ADDRESS", 2),
    ("VMXERR_VMCLEAR_VMXON_POINTER", 3),
    ("VMXERR_VMLAUNCH_NONCLEAR_VMCS", 4),
    ("VMXERR_VMRESUME_NONLAUNCHED_VMCS", 5),
    ("VMXERR_VMRESUME_AFTER_VMXOFF", 6),
    ("VMXERR_ENTRY_INVALID_CONTROL_FIELD", 7),
    ("VMXERR_ENTRY_INVALID_HOST_STATE_FIELD", 8),
    ("VMXERR_VMPTRLD_INVALID_ADDRESS", 9),
    ("VMXERR_VMPTRLD_VMXON_POINTER", 10),
    ("VMXERR_VMPTRLD_INCORRECT_VMCS_REVISION_ID", 11),
    ("VMXERR_UNSUPPORTED_VMCS_COMPONENT", 12),
    ("VMXERR_VMWRITE_READ_ONLY_VMCS_COMPONENT", 13),
    ("VMXERR_VMXON_IN_VMX_ROOT_OPERATION", 15),
    ("VMXERR_ENTRY_INVALID_EXECUTIVE_VMCS_POINTER", 16),
    ("VMXERR_ENTRY_NONLAUNCHED_EXECUTIVE_VMCS", 17),
    ("VMXERR_ENTRY_EXECUTIVE_VMCS_POINTER_NOT_VMXON_POINTER", 18),
    ("VMXERR_VMCALL_NONCLEAR_VMCS", 19),
    ("VMXERR_VMCALL_INVALID_VM_EXIT_CONTROL_FIELDS", 20),
    ("VMXERR_VMCALL_INCORRECT_MSEG_REVISION_ID", 22),
    ("VMXERR_VMXOFF_UNDER_DUAL_MONITOR_TREATMENT_OF_SMIS_AND_SMM", 23),
    ("VMXERR_VMCALL_INVALID_SMM_MONITOR_FEATURES", 24),
    ("VMXERR_ENTRY_INVALID_VM_EXECUTION_CONTROL_FIELDS_IN_EXECUTIVE_VMCS", 25),
    ("VMXERR_ENTRY_EVENTS_BLOCKED_BY_MOV_SS", 26),
    ("VMXERR_INVALID_OPERAND_TO_INVEPT_INVVPID", 28),
];

/// The value of a well-known constant.
pub(super) fn value(name: &str) -> Option<i64> {
    CONSTANTS.iter().find(|constant| constant.0 == name).map(|constant| constant.1)
}
