// SPDX-License-Identifier: GPL-2.0
/* Streams of CPUs: starts them, limits the age of their events, ends them; handles CPU hotplug. */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "kernels.h"
#include "stream.h"

/* An age has 28 bits: 858 ms in units of 16 cycles at 5 GHz. */
#define MOST_AGE_MS	500
#define MOST_SHIFT	16
/* The default unit is at most 20 ns, unless a counter tick is longer. */
#define USUAL_KHZ	50000

static uint max_age_ms = 100;
module_param(max_age_ms, uint, 0644);
MODULE_PARM_DESC(max_age_ms, "events wait so long at most to be sent: 1 to 500");

static int shift = -1;
module_param(shift, int, 0444);
MODULE_PARM_DESC(shift,
		 "times are in units of 2^shift cycles of the processor's counter; -1: 10 to 20 ns");

static uint events_per_frame;
module_param(events_per_frame, uint, 0444);
MODULE_PARM_DESC(events_per_frame, "events of a frame at most; 0: as many as there is room for");

static char channel[16] = "hypercall";
module_param_string(channel, channel, sizeof(channel), 0444);
MODULE_PARM_DESC(channel, "how events leave: hypercall, shm for memory shared by ivshmem, or none");

static bool idle;
module_param(idle, bool, 0444);
MODULE_PARM_DESC(idle, "probes do nothing, so that what they cost by themselves can be measured");

DEFINE_STATIC_KEY_FALSE(hsg_idle);
DEFINE_PER_CPU(struct hsg_stream, hsg_stream);
DEFINE_PER_CPU(unsigned int, hsg_lost_nmi);
DEFINE_PER_CPU(unsigned int, hsg_lost_nested);

const struct hsg_channel *hsg_channel __read_mostly = &hsg_hypercalls;

static struct timer_list age_timer;
static enum cpuhp_state hotplug_state;
static bool running;

/* Reports this CPU's losses so far. */
void notrace hsg_send_lost(struct ht_pack *p, u64 now)
{
	unsigned int nmi = this_cpu_xchg(hsg_lost_nmi, 0);
	unsigned int nested = this_cpu_xchg(hsg_lost_nested, 0);

	if (nmi)
		ht_pack_lost(p, now, HT_LOST_NMI, nmi);
	if (nested)
		ht_pack_lost(p, now, HT_LOST_NESTED, nested);
}

/* A function's name without its module; empty if the kernel knows only the address. */
u32 notrace hsg_symbol(struct ht_pack *p, unsigned long address, const char **name)
{
	struct hsg_stream *stream = container_of(p, struct hsg_stream, pack);
	char *text = stream->symbol;

	sprint_symbol_no_offset(text, address);
	*name = text;
	return strncmp(text, "0x", 2) ? strcspn(text, " ") : 0;
}

static int choose_shift(void)
{
	u32 khz = hsg_counter_khz();

	if (!khz)
		return -EINVAL;
	if (shift < 0) {
		shift = HSG_LEAST_SHIFT;
		while (khz >> (shift + 1) >= USUAL_KHZ)
			shift++;
	}
	return shift < HSG_LEAST_SHIFT || shift > MOST_SHIFT ? -EINVAL : 0;
}

/* Call it only while no probe is on. */
static void start(int cpu)
{
	struct ht_pack *p = &per_cpu_ptr(&hsg_stream, cpu)->pack;

	per_cpu(hsg_lost_nmi, cpu) = 0;
	per_cpu(hsg_lost_nested, cpu) = 0;
	p->words = hsg_channel->words;
	p->shift = shift;
	p->counter_khz = hsg_counter_khz();
	p->cpu = cpu;
	p->most_events = events_per_frame;
	p->preempted_bit = ilog2(TASK_REPORT_MAX);
	ht_restart(p);
}

static void flush_here(void *unused)
{
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	if (hold.pack->events)
		ht_flush(hold.pack);
	hsg_release(&hold);
}

static void finish_here(void *unused)
{
	struct hsg_hold hold;

	if (!hsg_hold(&hold))
		return;
	ht_finish(hold.pack);
	hsg_release(&hold);
}

/* Sends waiting events. Skips CPUs without events, so that idle CPUs stay asleep. */
static void send_aged(struct timer_list *timer)
{
	uint ms = clamp(READ_ONCE(max_age_ms), 1U, (uint)MOST_AGE_MS);
	int cpu;

	for_each_online_cpu(cpu) {
		struct hsg_stream *stream = per_cpu_ptr(&hsg_stream, cpu);

		/* Fails if a call is pending already, which is sufficient. */
		if (READ_ONCE(stream->pack.events))
			smp_call_function_single_async(cpu, &stream->flush);
	}
	if (READ_ONCE(running))
		mod_timer(timer, jiffies + msecs_to_jiffies(ms));
}

/*
 * Ends the stream of a CPU that goes offline. Later events on this CPU begin another stream, which
 * is sent when the CPU comes back.
 */
static int cpu_offline(unsigned int cpu)
{
	/* Once streams have stopped, the channel has stopped, too: nothing can be sent. */
	if (READ_ONCE(running))
		finish_here(NULL);
	return 0;
}

static int choose_channel(void)
{
	if (HSG_HAS_MEMORY && !strcmp(channel, "shm"))
		hsg_channel = &hsg_memory;
	else if (!strcmp(channel, "none"))
		hsg_channel = &hsg_nowhere;
	else if (strcmp(channel, "hypercall"))
		return -EINVAL;
	return 0;
}

int hsg_streams_init(void)
{
	int cpu, error = choose_channel();

	if (!error)
		error = choose_shift();
	if (error)
		return error;
	if (idle)
		static_branch_enable(&hsg_idle);
	for_each_possible_cpu(cpu)
		INIT_CSD(&per_cpu_ptr(&hsg_stream, cpu)->flush, flush_here, NULL);
	timer_setup(&age_timer, send_aged, 0);
	error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "hyperscope/guest:online", NULL,
				  cpu_offline);
	if (error < 0)
		return error;
	hotplug_state = error;
	error = hsg_channel->init ? hsg_channel->init() : 0;
	if (error)
		cpuhp_remove_state(hotplug_state);
	return error;
}

void hsg_streams_exit(void)
{
	if (hsg_channel->exit)
		hsg_channel->exit();
	cpuhp_remove_state(hotplug_state);
}

void hsg_streams_send_probes(unsigned int mask)
{
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(&hsg_stream, cpu)->pack.probes, mask);
}

int hsg_streams_start(void)
{
	int cpu, error = hsg_channel->start();

	if (error)
		return error;
	for_each_possible_cpu(cpu)
		start(cpu);
	WRITE_ONCE(running, true);
	/* Shared memory needs no timer: a timer and a call of another CPU would cause exits. */
	if (!hsg_channel->update)
		mod_timer(&age_timer, jiffies + 1);
	return 0;
}

void hsg_streams_stop(void)
{
	WRITE_ONCE(running, false);
	hsg_delete_timer(&age_timer);
	on_each_cpu(finish_here, NULL, 1);
	hsg_channel->stop();
}
