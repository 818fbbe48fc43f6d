// SPDX-License-Identifier: GPL-2.0
/*
 * Sends events of a guest's kernel to its host, many per hypercall. The host records them as
 * arguments of kvm:kvm_hypercall, with host timestamps: docs/formats/hypertrace.md.
 *
 * The parameter "probes" selects what is traced, at load and at any later time. While it is empty,
 * the module has no probes in the kernel.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "probes.h"
#include "stream.h"

static const struct {
	const char *name;
	unsigned int probe;
} names[] = {
	{ "sched_switch", HSG_SWITCH },
	{ "sched_waking", HSG_WAKING },
	{ "sched_wakeup", HSG_WAKEUP },
	{ "irq", HSG_IRQ },
	{ "syscalls", HSG_SYSCALLS },
	{ "functions", HSG_FUNCTIONS },
};

/* Protected by the module's parameter lock. */
static unsigned int asked;
static unsigned int on;
static bool ready;

static void switch_off(unsigned int mask)
{
	int at;

	for (at = 0; at < ARRAY_SIZE(names); at++)
		if (mask & names[at].probe)
			hsg_probe_off(names[at].probe);
	on &= ~mask;
	hsg_streams_send_probes(on);
	if (on)
		return;
	hsg_probes_wait();
	hsg_streams_stop();
}

static int switch_on(unsigned int mask)
{
	int at, error = 0;

	if (!on) {
		error = hsg_streams_start();
		if (error)
			return error;
	}
	hsg_streams_send_probes(on | mask);
	for (at = 0; at < ARRAY_SIZE(names) && !error; at++) {
		if (!(mask & names[at].probe))
			continue;
		error = hsg_probe_on(names[at].probe);
		if (!error)
			on |= names[at].probe;
	}
	if (error)
		switch_off(on & mask);
	return error;
}

/* Switches probes until the requested ones are on. */
static int apply(void)
{
	unsigned int less = on & ~asked;
	unsigned int more = asked & ~on;
	int error = 0;

	/* In this order, streams continue when the last probe is replaced by another one. */
	if (more)
		error = switch_on(more);
	if (less && !error)
		switch_off(less);
	return error;
}

void hsg_channel_is_gone(void)
{
	if (on)
		switch_off(on);
}

void hsg_channel_is_back(void)
{
	/* During load, the init function applies the parameter. */
	if (ready && apply())
		pr_warn("probes are off: the channel came back, and can't be used\n");
}

static int parse(const char *text, unsigned int *mask)
{
	char copy[128], *rest = copy, *word;
	int at;

	if (strscpy(copy, text, sizeof(copy)) < 0)
		return -EINVAL;
	*mask = 0;
	while ((word = strsep(&rest, ",\n"))) {
		if (!*word)
			continue;
		for (at = 0; at < ARRAY_SIZE(names); at++)
			if (!strcmp(word, names[at].name))
				break;
		if (at == ARRAY_SIZE(names))
			return -EINVAL;
		*mask |= names[at].probe;
	}
	return 0;
}

static int set_probes(const char *text, const struct kernel_param *param)
{
	unsigned int mask, before = asked;
	int error = parse(text, &mask);

	if (error)
		return error;
	asked = mask;
	/* During load, the init function applies the parameter. */
	if (!ready)
		return 0;
	error = apply();
	if (error)
		asked = before;
	return error;
}

static int get_probes(char *text, const struct kernel_param *param)
{
	int at, length = 0;

	for (at = 0; at < ARRAY_SIZE(names); at++)
		if (on & names[at].probe)
			length += scnprintf(text + length, PAGE_SIZE - length, "%s%s",
					    length ? "," : "", names[at].name);
	return length + scnprintf(text + length, PAGE_SIZE - length, "\n");
}

static const struct kernel_param_ops probes_ops = { .set = set_probes, .get = get_probes };
module_param_cb(probes, &probes_ops, NULL, 0644);
MODULE_PARM_DESC(probes,
		 "what to trace: sched_switch,sched_waking,sched_wakeup,irq,syscalls,functions");

static int __init hyperscope_guest_init(void)
{
	int error = hsg_probes_init();

	if (!error)
		error = hsg_streams_init();
	if (error)
		return error;
	kernel_param_lock(THIS_MODULE);
	error = apply();
	ready = !error;
	kernel_param_unlock(THIS_MODULE);
	if (error)
		hsg_streams_exit();
	return error;
}

static void __exit hyperscope_guest_exit(void)
{
	kernel_param_lock(THIS_MODULE);
	/* From here on the parameter has no effect. */
	ready = false;
	asked = 0;
	apply();
	kernel_param_unlock(THIS_MODULE);
	hsg_streams_exit();
}

module_init(hyperscope_guest_init);
module_exit(hyperscope_guest_exit);
MODULE_DESCRIPTION("Sends a guest's events to its host by hypercall");
MODULE_LICENSE("GPL");
