// SPDX-License-Identifier: GPL-2.0
/*
 * Frames in memory that is shared with the host: the last quarter of an ivshmem device's. The host
 * maps the same memory and looks; nothing makes an exit.
 */
#include <linux/io.h>
#include <linux/moduleparam.h>
#include <linux/pci.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/string.h>

static void ht_ordered(void);

#include "ring.h"
#include "stream.h"

#define IVSHMEM_DEVICE	0x1110
#define IVSHMEM_BAR	2

/* The agent has the rest of the memory: docs/formats/shared-memory.md. */
#define AGENT_MAGIC	0x4d454d4853435348ULL
#define AGENT_BYTES	2

static char device[32];
module_param_string(device, device, sizeof(device), 0444);
MODULE_PARM_DESC(device, "PCI address of the ivshmem device for channel=shm (the first that is there)");

static DEFINE_PER_CPU(struct ht_ring, ring);
static struct pci_dev *pci;
static void *memory;

static void ht_ordered(void)
{
	/* Memory may be mapped write-combining, where x86 orders stores by sfence only. */
	wmb();
}

static struct pci_dev *find(void)
{
	struct pci_dev *one = NULL;

	while ((one = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, IVSHMEM_DEVICE, one)))
		if (!device[0] || !strcmp(pci_name(one), device))
			break;
	return one;
}

/* An agent that doesn't know of this module takes all of the memory. */
static bool is_taken(resource_size_t at, resource_size_t ours)
{
	u64 *head = memremap(at, PAGE_SIZE, MEMREMAP_WC);
	bool taken;

	if (!head)
		return true;
	taken = READ_ONCE(head[0]) == AGENT_MAGIC && READ_ONCE(head[AGENT_BYTES]) > ours;
	memunmap(head);
	return taken;
}

static int map(void)
{
	resource_size_t at = pci_resource_start(pci, IVSHMEM_BAR);
	resource_size_t bytes = pci_resource_len(pci, IVSHMEM_BAR);
	resource_size_t ours = bytes / 4 * 3;
	u64 slots = ht_region_slots(bytes - ours, nr_cpu_ids);
	int cpu;

	if (bytes % SZ_16K || !slots)
		return -ENOSPC;
	if (is_taken(at, ours))
		return -EBUSY;
	memory = memremap(at + ours, bytes - ours, MEMREMAP_WC);
	if (!memory)
		return -ENOMEM;
	ht_region_start(memory, bytes - ours, nr_cpu_ids, slots);
	for_each_possible_cpu(cpu)
		ht_ring_start(per_cpu_ptr(&ring, cpu), memory, slots, cpu);
	return 0;
}

static void memory_stop(void)
{
	if (memory)
		memunmap(memory);
	memory = NULL;
	pci_disable_device(pci);
	pci_dev_put(pci);
	pci = NULL;
}

static int memory_start(void)
{
	int error;

	pci = find();
	if (!pci)
		return -ENODEV;
	error = pci_enable_device(pci);
	if (error) {
		pci_dev_put(pci);
		return error;
	}
	error = map();
	if (error)
		memory_stop();
	return error;
}

static void notrace memory_update(const struct ht_pack *p)
{
	ht_ring_store(this_cpu_ptr(&ring), p);
}

static void notrace memory_send(const struct ht_pack *p)
{
	ht_ring_send(this_cpu_ptr(&ring), p);
}

struct hsg_channel hsg_memory = {
	.words = HT_MOST_WORDS,
	.start = memory_start,
	.update = memory_update,
	.send = memory_send,
	.stop = memory_stop,
};
