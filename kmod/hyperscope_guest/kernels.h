/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions, from 5.18 on. */
#ifndef HYPERSCOPE_KERNELS_H
#define HYPERSCOPE_KERNELS_H

#include <linux/fprobe.h>
#include <linux/timer.h>
#include <linux/version.h>

/* Handlers of fprobes have had four signatures; kernels with the older ones use ftrace_ops. */
#if IS_ENABLED(CONFIG_FPROBE) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define HSG_FPROBE
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define hsg_fprobe_regs ftrace_regs
#else
#define hsg_fprobe_regs pt_regs
#endif

static inline void hsg_delete_timer(struct timer_list *timer)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	timer_delete_sync(timer);
#else
	del_timer_sync(timer);
#endif
}

#endif
