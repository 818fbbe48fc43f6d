// SPDX-License-Identifier: GPL-2.0
/* Probes on the kernel's tracepoints. */
#include <asm/syscall.h>
#include <linux/interrupt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "probes.h"
#include "stream.h"

/* The state of the previous task, as sched_switch shows it. */
static __always_inline u32 state_of(bool preempt, unsigned int state, struct task_struct *task)
{
	return preempt ? HT_STATE_PREEMPTED : __task_state_index(state, task->exit_state);
}

static void on_switch(void *unused, bool preempt, struct task_struct *prev,
		      struct task_struct *next, unsigned int prev_state)
{
	struct ht_task from, to;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&from, prev);
	hsg_task(&to, next);
	ht_pack_switch(hold.pack, hold.now, &from, state_of(preempt, prev_state, prev), &to);
	hsg_release(&hold);
}

static __always_inline void wake(enum ht_wake what, struct task_struct *task)
{
	struct ht_task running, woken;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	hsg_task(&woken, task);
	ht_pack_wake(hold.pack, hold.now, &running, what, &woken, task_cpu(task));
	hsg_release(&hold);
}

static void on_waking(void *unused, struct task_struct *task)
{
	wake(HT_WAKING, task);
}

static void on_wakeup(void *unused, struct task_struct *task)
{
	wake(HT_WAKEUP, task);
}

static void on_wakeup_new(void *unused, struct task_struct *task)
{
	wake(HT_WAKEUP_NEW, task);
}

static void on_irq_entry(void *unused, int irq, struct irqaction *action)
{
	u64 name[HT_COMM_WORDS] = {};
	struct ht_task running;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	if (action->name)
		strscpy((char *)name, action->name, sizeof(name));
	ht_pack_irq_entry(hold.pack, hold.now, &running, irq, name);
	hsg_release(&hold);
}

static void on_irq_exit(void *unused, int irq, struct irqaction *action, int ret)
{
	struct ht_task running;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	ht_pack_irq_exit(hold.pack, hold.now, &running, irq, ret != IRQ_NONE);
	hsg_release(&hold);
}

static void on_sys_enter(void *unused, struct pt_regs *regs, long number)
{
	struct ht_task running;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	ht_pack_sys_enter(hold.pack, hold.now, &running, number);
	hsg_release(&hold);
}

static void on_sys_exit(void *unused, struct pt_regs *regs, long ret)
{
	struct ht_task running;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	ht_pack_sys_exit(hold.pack, hold.now, &running, syscall_get_nr(current, regs), ret);
	hsg_release(&hold);
}

static struct {
	const char *name;
	unsigned int probe;
	void *function;
	struct tracepoint *tracepoint;
	bool on;
} points[] = {
	{ "sched_switch", HSG_SWITCH, on_switch },
	{ "sched_waking", HSG_WAKING, on_waking },
	{ "sched_wakeup", HSG_WAKEUP, on_wakeup },
	{ "sched_wakeup_new", HSG_WAKEUP, on_wakeup_new },
	{ "irq_handler_entry", HSG_IRQ, on_irq_entry },
	{ "irq_handler_exit", HSG_IRQ, on_irq_exit },
	{ "sys_enter", HSG_SYSCALLS, on_sys_enter },
	{ "sys_exit", HSG_SYSCALLS, on_sys_exit },
};

/* Tracepoints are not exported to modules, but modules can iterate over them. */
static void find(struct tracepoint *tracepoint, void *unused)
{
	int at;

	for (at = 0; at < ARRAY_SIZE(points); at++)
		if (!strcmp(tracepoint->name, points[at].name))
			points[at].tracepoint = tracepoint;
}

int hsg_probes_init(void)
{
	for_each_kernel_tracepoint(find, NULL);
	return 0;
}

int hsg_probe_on(unsigned int probe)
{
	int at, error;

	if (probe == HSG_FUNCTIONS)
		return hsg_functions_on();
	for (at = 0; at < ARRAY_SIZE(points); at++) {
		if (points[at].probe != probe)
			continue;
		error = -ENOENT;
		if (points[at].tracepoint)
			error = tracepoint_probe_register(points[at].tracepoint,
							  points[at].function, NULL);
		if (error) {
			hsg_probe_off(probe);
			return error;
		}
		points[at].on = true;
	}
	return 0;
}

void hsg_probe_off(unsigned int probe)
{
	int at;

	if (probe == HSG_FUNCTIONS) {
		hsg_functions_off();
		return;
	}
	for (at = 0; at < ARRAY_SIZE(points); at++) {
		if (points[at].probe != probe || !points[at].on)
			continue;
		tracepoint_probe_unregister(points[at].tracepoint, points[at].function, NULL);
		points[at].on = false;
	}
}

void hsg_probes_wait(void)
{
	tracepoint_synchronize_unregister();
}
