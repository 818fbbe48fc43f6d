/* SPDX-License-Identifier: GPL-2.0 */
/* Exits of an Arm host's vCPUs. */

/* Once on each way back: the vCPU's timer is loaded again. */
#define USER_RETURN "kvm_timer_restore_state"

/* ARM_EXCEPTION_TRAP; above it the kernel marks an SError that came with the exit. */
#define TRAP 2
#define CODE_MASK 0x7fffffff

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct preempt_notifier {
	struct hlist_node link;
} __attribute__((preserve_access_index));

struct kvm_vcpu {
	struct preempt_notifier preempt_notifier;
	int vcpu_id;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	unsigned int __state;
	struct hlist_head preempt_notifiers;
} __attribute__((preserve_access_index));

/* Before Linux 5.14. */
struct task_struct___with_state {
	long state;
} __attribute__((preserve_access_index));

struct exit_reason {
	__u64 code;
	__u8 isa;
};

static __always_inline struct exit_reason reason_of(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ret = ctx->args[0] & CODE_MASK;
	struct exit_reason reason = { .code = ret << 32, .isa = 0 };

	if (ret == TRAP)
		reason.code |= (__u32)ctx->args[1];
	return reason;
}

/*
 * No event of KVM's has it here. While KVM has a vCPU loaded the thread calls it at each switch:
 * the vCPU's is the last one that asked for that, and nobody but KVM does.
 */
static __always_inline struct kvm_vcpu *vcpu_here(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct hlist_node *link = BPF_CORE_READ(task, preempt_notifiers.first);

	if (!link)
		return 0;
	return (struct kvm_vcpu *)((__u64)link -
				   bpf_core_field_offset(struct kvm_vcpu, preempt_notifier.link));
}

static __always_inline int has_returned(struct bpf_raw_tracepoint_args *ctx)
{
	return 1;
}

static __always_inline unsigned int state_of_task(struct task_struct *task)
{
	struct task_struct___with_state *older = (struct task_struct___with_state *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(older, state);
}
