/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between architectures: a clock counter, and a hypercall. */
#ifndef HYPERSCOPE_MACHINE_H
#define HYPERSCOPE_MACHINE_H

/*
 * Each architecture defines:
 *	hsg_counter()		reads the counter, which is the same on all CPUs
 *	hsg_counter_khz()	its frequency; 0 if unknown
 *	hsg_find_host()		0 if a hypercall reaches a host that sees its words, or an error
 *	hsg_hypercall()		makes an unassigned hypercall, from any context but NMIs
 *	HSG_USUAL_WORDS		default number of words per hypercall
 *	HSG_LEAST_SHIFT		bits of the counter that are noise, or not stored in shared memory
 *	HSG_HAS_MEMORY		whether a host can interpret times in shared memory
 */
#if defined(CONFIG_X86_64)
#include "machine_x86.h"
#elif defined(CONFIG_ARM64)
#include "machine_arm64.h"
#else
#error "This module knows 64-bit x86 and Arm."
#endif

#endif
