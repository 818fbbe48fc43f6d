// SPDX-License-Identifier: GPL-2.0
/* Packs the events on its standard input with the guest module's own code; prints frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

static struct ht_pack pack;
static __u64 clock_units;

static __u64 ht_now(const struct ht_pack *p)
{
	(void)p;
	return clock_units;
}

static void ht_send(struct ht_pack *p)
{
	printf("%llu", clock_units);
	for (__u32 at = 0; at < p->words; at++)
		printf(" %llx", p->word[at]);
	printf("\n");
}

/* Every third function has no name; the others have long ones and short ones. */
static __u32 ht_symbol(struct ht_pack *p, __u64 address, const char **name)
{
	static char text[HT_NAME_LEN + 1];
	__u64 at = address % 1000000007;
	__u32 length;

	(void)p;
	*name = text;
	if (at % 3 == 0)
		return 0;
	length = snprintf(text, sizeof(text), "f_%llu", at);
	memset(text + length, 'x', sizeof(text) - length);
	return length + at % 97;
}

static __u64 number(void)
{
	return strtoull(strtok(NULL, " \n"), NULL, 0);
}

static void text(__u64 *to)
{
	memset(to, 0, HT_COMM_LEN);
	strncpy((char *)to, strtok(NULL, " \n"), HT_COMM_LEN - 1);
}

static struct ht_task task(void)
{
	struct ht_task task;

	task.pid = number();
	task.prio = number();
	text(task.comm);
	return task;
}

static void start(void)
{
	pack.words = number();
	pack.shift = number();
	pack.counter_khz = number();
	pack.cpu = number();
	pack.preempted_bit = 8;
	pack.probes = 0x3f;
	ht_restart(&pack);
}

static void line(const char *what)
{
	struct ht_task running, other;
	__u64 now, a, name[HT_COMM_WORDS];

	if (!strcmp(what, "start")) {
		start();
		return;
	}
	now = clock_units = number();
	if (!strcmp(what, "flush")) {
		ht_flush(&pack);
		return;
	} else if (!strcmp(what, "finish")) {
		ht_finish(&pack);
		return;
	} else if (!strcmp(what, "lost")) {
		a = number();
		ht_pack_lost(&pack, now, a, number());
		return;
	}
	running = task();
	a = number();
	if (!strcmp(what, "switch")) {
		other = task();
		ht_pack_switch(&pack, now, &running, a, &other);
	} else if (!strcmp(what, "wake")) {
		other = task();
		ht_pack_wake(&pack, now, &running, a, &other, number());
	} else if (!strcmp(what, "irq_entry")) {
		text(name);
		ht_pack_irq_entry(&pack, now, &running, a, name);
	} else if (!strcmp(what, "irq_exit")) {
		ht_pack_irq_exit(&pack, now, &running, a, number());
	} else if (!strcmp(what, "sys_enter")) {
		ht_pack_sys_enter(&pack, now, &running, a);
	} else if (!strcmp(what, "sys_exit")) {
		ht_pack_sys_exit(&pack, now, &running, a, number());
	} else if (!strcmp(what, "call")) {
		ht_pack_call(&pack, now, &running, a, number());
	} else {
		fprintf(stderr, "unknown: %s\n", what);
		exit(1);
	}
}

int main(void)
{
	char buffer[512];

	while (fgets(buffer, sizeof(buffer), stdin))
		line(strtok(buffer, " \n"));
	return 0;
}
