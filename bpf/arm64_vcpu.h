/* SPDX-License-Identifier: GPL-2.0 */
/* The vCPU that an Arm host's thread is, which no event of KVM's has. */

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct preempt_notifier {
	struct hlist_node link;
} __attribute__((preserve_access_index));

struct kvm_vcpu___notified {
	struct preempt_notifier preempt_notifier;
} __attribute__((preserve_access_index));

struct task_struct___notifying {
	struct hlist_head preempt_notifiers;
} __attribute__((preserve_access_index));

/*
 * While KVM has a vCPU loaded the thread calls it at each switch: the vCPU's is the last one that
 * asked for that, and nobody but KVM does.
 */
static __always_inline void *loaded_vcpu(void)
{
	struct task_struct___notifying *task =
		(struct task_struct___notifying *)bpf_get_current_task();
	struct hlist_node *link = BPF_CORE_READ(task, preempt_notifiers.first);

	if (!link)
		return 0;
	return (void *)((__u64)link -
			bpf_core_field_offset(struct kvm_vcpu___notified, preempt_notifier.link));
}
