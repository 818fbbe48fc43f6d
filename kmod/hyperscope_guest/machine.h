/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between architectures: a counter that measures time, and a hypercall. */
#ifndef HYPERSCOPE_MACHINE_H
#define HYPERSCOPE_MACHINE_H

/*
 * Each has:
 *	hsg_counter()		the counter, the same one on all CPUs
 *	hsg_counter_khz()	how fast it goes; 0 where nobody knows
 *	hsg_find_host()		0 where a hypercall reaches a host that sees words, or an error
 *	hsg_hypercall()		makes one that no hypervisor knows, from any context but NMIs
 *	HSG_USUAL_WORDS		what a hypercall carries unless asked otherwise
 *	HSG_LEAST_SHIFT		bits of the counter that are noise, or not stored in shared memory
 *	HSG_HAS_MEMORY		whether a host can know what times in shared memory mean
 */
#if defined(CONFIG_X86_64)
#include "machine_x86.h"
#elif defined(CONFIG_ARM64)
#include "machine_arm64.h"
#else
#error "This module knows 64-bit x86 and Arm."
#endif

#endif
