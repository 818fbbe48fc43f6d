/* SPDX-License-Identifier: GPL-2.0 */
/* What is used of a thread, and what architectures say of an exit. */

#define NAME_BYTES 16

struct task_struct {
	int pid;
	unsigned int __state;
	char comm[NAME_BYTES];
} __attribute__((preserve_access_index));

/* Before Linux 5.14. */
struct task_struct___with_state {
	long state;
} __attribute__((preserve_access_index));

struct exit_reason {
	__u64 code;
	__u8 isa;
};

static __always_inline unsigned int state_of_task(struct task_struct *task)
{
	struct task_struct___with_state *older = (struct task_struct___with_state *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(older, state);
}
