// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on kernel functions: entry and exit if the kernel has fprobes, else only entry.
 */
#include <linux/ftrace.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "kernels.h"
#include "probes.h"
#include "stream.h"

static char functions[128];
module_param_string(functions, functions, sizeof(functions), 0644);
MODULE_PARM_DESC(functions, "which kernel functions to trace, with * and ?; read when probes go on");

static char functions_except[128];
module_param_string(functions_except, functions_except, sizeof(functions_except), 0644);
MODULE_PARM_DESC(functions_except, "which of these not");

static void pack_call(u32 exit, unsigned long address)
{
	struct ht_task running;
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	hsg_task(&running, current);
	ht_pack_call(hold.pack, hold.now, &running, exit, address);
	hsg_release(&hold);
}

#ifdef HSG_FPROBE

static int on_entry(struct fprobe *fprobe, unsigned long address, unsigned long ret_ip,
		    struct hsg_fprobe_regs *regs, void *data)
{
	pack_call(0, address);
	return 0;
}

static void on_exit(struct fprobe *fprobe, unsigned long address, unsigned long ret_ip,
		    struct hsg_fprobe_regs *regs, void *data)
{
	pack_call(1, address);
}

static struct fprobe fprobe;

static int set(char *which, char *except)
{
	/* Clears the state of an earlier registration. */
	memset(&fprobe, 0, sizeof(fprobe));
	fprobe.entry_handler = on_entry;
	fprobe.exit_handler = on_exit;
	return register_fprobe(&fprobe, which, except);
}

void hsg_functions_off(void)
{
	unregister_fprobe(&fprobe);
}

#else

static void on_entry(unsigned long address, unsigned long parent, struct ftrace_ops *ops,
		     struct ftrace_regs *regs)
{
	pack_call(0, address);
}

static struct ftrace_ops ops;

static int set(char *which, char *except)
{
	int error;

	/* ftrace_free_filter() leaves pointers to what it freed. */
	memset(&ops, 0, sizeof(ops));
	ops.func = on_entry;
	error = ftrace_set_filter(&ops, which, strlen(which), 1);

	if (!error && except)
		error = ftrace_set_notrace(&ops, except, strlen(except), 1);
	if (!error)
		error = register_ftrace_function(&ops);
	if (error)
		ftrace_free_filter(&ops);
	return error;
}

void hsg_functions_off(void)
{
	unregister_ftrace_function(&ops);
	ftrace_free_filter(&ops);
}

#endif

int hsg_functions_on(void)
{
	/* Copies: parsing modifies the patterns, which are needed again later. */
	char which[sizeof(functions)], except[sizeof(functions_except)];

	strscpy(which, functions, sizeof(which));
	strscpy(except, functions_except, sizeof(except));
	/* Text written to a parameter ends with a newline. */
	strim(which);
	strim(except);
	return which[0] ? set(which, except[0] ? except : NULL) : -EINVAL;
}
