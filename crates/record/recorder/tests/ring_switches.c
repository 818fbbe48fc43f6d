// SPDX-License-Identifier: GPL-2.0
/*
 * Stores switches in memory as the guest's module does, with its own code:
 * FILE BYTES CPUS CPU FIRST COUNT END
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/types.h>

static void ht_ordered(void);

#include "ring.h"

static struct ht_pack pack;
static struct ht_ring ring;

static void ht_ordered(void)
{
	__sync_synchronize();
}

static __u64 ht_now(const struct ht_pack *p)
{
	return p->last;
}

static void ht_send(struct ht_pack *p)
{
	ht_ring_send(&ring, p);
}

static __u32 ht_symbol(struct ht_pack *p, __u64 address, const char **name)
{
	(void)p;
	(void)address;
	(void)name;
	return 0;
}

static struct ht_task task(__u64 number)
{
	struct ht_task task = { .pid = 1 + number % 50, .prio = 121 };

	snprintf((char *)task.comm, sizeof(task.comm), "task-%u", task.pid);
	return task;
}

int main(int argc, char **argv)
{
	__u64 bytes = atoll(argv[2]), ours = bytes / 4 * 3;
	__u32 cpus = atoi(argv[3]), cpu = atoi(argv[4]);
	__u64 first = atoll(argv[5]), count = atoll(argv[6]), at;
	__u64 slots = ht_region_slots(bytes - ours, cpus);
	int file = open(argv[1], O_RDWR);
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (argc != 8 || memory == MAP_FAILED || !slots)
		return 1;
	ht_region_start((void *)(memory + ours), bytes - ours, cpus, slots);
	ht_ring_start(&ring, (void *)(memory + ours), slots, cpu);
	pack.words = HT_MOST_WORDS;
	pack.shift = 5;
	pack.counter_khz = 2000000;
	pack.cpu = cpu;
	ht_restart(&pack);
	for (at = first; at < first + count; at++) {
		struct ht_task from = task(at), to = task(at + 1);

		ht_pack_switch(&pack, 1000 * (at + 1), &from, 1, &to);
		if (!ht_is_empty(&pack))
			ht_ring_store(&ring, &pack);
	}
	if (!strcmp(argv[7], "end"))
		ht_finish(&pack);
	printf("%llu\n", slots);
	return 0;
}
