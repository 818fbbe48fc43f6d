/* SPDX-License-Identifier: GPL-2.0 */
/* A stream of events for each CPU. */
#ifndef HYPERSCOPE_STREAM_H
#define HYPERSCOPE_STREAM_H

#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "machine.h"
#include "pack.h"
#include "send.h"

struct hsg_stream {
	struct ht_pack pack;
	/* The stream is in use: a nested event is counted as lost. */
	bool busy;
	call_single_data_t flush;
	/* Buffer for kallsyms' name of a function. */
	char symbol[KSYM_SYMBOL_LEN];
};

/* Probes return at once. */
DECLARE_STATIC_KEY_FALSE(hsg_idle);
DECLARE_PER_CPU(struct hsg_stream, hsg_stream);
DECLARE_PER_CPU(unsigned int, hsg_lost_nmi);
DECLARE_PER_CPU(unsigned int, hsg_lost_nested);

extern const struct hsg_channel *hsg_channel;

int hsg_streams_init(void);
void hsg_streams_exit(void);

/* Called before the first probe is enabled, and after the last one is disabled. */
int hsg_streams_start(void);
void hsg_streams_stop(void);
void hsg_streams_send_probes(unsigned int mask);

void hsg_send_lost(struct ht_pack *p, u64 now);
u32 hsg_symbol(struct ht_pack *p, unsigned long address, const char **name);

static __always_inline __u64 ht_now(const struct ht_pack *p)
{
	return hsg_counter() >> p->shift;
}

static __always_inline void ht_send(struct ht_pack *p)
{
	hsg_channel->send(p);
}

static __always_inline __u32 ht_symbol(struct ht_pack *p, __u64 address, const char **name)
{
	return hsg_symbol(p, address, name);
}

static __always_inline void hsg_task(struct ht_task *to, const struct task_struct *task)
{
	/* The task may be renamed meanwhile: other readers of comm see a mixed name as well. */
	__builtin_memcpy(to->comm, task->comm, HT_COMM_LEN);
	to->pid = task->pid;
	to->prio = (task->prio + 1) & 0xff;
}

/* State of a probe while it packs an event. */
struct hsg_hold {
	struct ht_pack *pack;
	unsigned long flags;
	u64 now;
};

/* Acquires this CPU's stream, or counts the event as lost. */
static __always_inline bool hsg_hold(struct hsg_hold *hold)
{
	struct hsg_stream *stream;

	if (static_branch_unlikely(&hsg_idle))
		return false;
	if (in_nmi()) {
		this_cpu_inc(hsg_lost_nmi);
		return false;
	}
	raw_local_irq_save(hold->flags);
	stream = this_cpu_ptr(&hsg_stream);
	if (stream->busy) {
		this_cpu_inc(hsg_lost_nested);
		raw_local_irq_restore(hold->flags);
		return false;
	}
	stream->busy = true;
	barrier();
	hold->pack = &stream->pack;
	hold->now = ht_now(hold->pack);
	if (unlikely(this_cpu_read(hsg_lost_nmi) | this_cpu_read(hsg_lost_nested)))
		hsg_send_lost(hold->pack, hold->now);
	return true;
}

static __always_inline void hsg_release(struct hsg_hold *hold)
{
	if (hsg_channel->update && !ht_is_empty(hold->pack))
		hsg_channel->update(hold->pack);
	barrier();
	this_cpu_ptr(&hsg_stream)->busy = false;
	raw_local_irq_restore(hold->flags);
}

#endif
