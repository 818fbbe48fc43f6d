// SPDX-License-Identifier: GPL-2.0
/*
 * Frames in memory that is shared with the host: the last quarter of an ivshmem device's memory.
 * The host maps the same memory and polls; nothing causes an exit.
 *
 * The module is the device's driver, so that it is notified before the device is removed. It claims
 * only its quarter: the kernel refuses to map a PCI resource into a program if its first page is
 * claimed (CONFIG_IO_STRICT_DEVMEM), and the agent maps the rest of this resource.
 */
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/module.h>
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

/* The agent uses the rest of the memory: docs/formats/shared-memory.md. */
#define AGENT_MAGIC	0x4d454d4853435348ULL
#define AGENT_BYTES	2

static char device[32];
module_param_string(device, device, sizeof(device), 0444);
MODULE_PARM_DESC(device, "PCI address of the ivshmem device for channel=shm (the first that is there)");

static DEFINE_PER_CPU(struct ht_ring, ring);
/* Protected by the module's parameter lock. */
static struct pci_dev *pci;
static void *memory;
static resource_size_t claimed_at, claimed_bytes;

static void ht_ordered(void)
{
	/* The memory may be mapped write-combining, where x86 orders stores only with sfence. */
	wmb();
}

/* An older agent, which does not know this module, uses all of the memory. */
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

static int map(resource_size_t at, resource_size_t bytes)
{
	u64 slots = ht_region_slots(bytes, nr_cpu_ids);
	int cpu;

	if (!slots)
		return -ENOSPC;
	if (!request_mem_region(at, bytes, KBUILD_MODNAME))
		return -EBUSY;
	memory = memremap(at, bytes, MEMREMAP_WC);
	if (!memory) {
		release_mem_region(at, bytes);
		return -ENOMEM;
	}
	claimed_at = at;
	claimed_bytes = bytes;
	ht_region_start(memory, bytes, nr_cpu_ids, slots);
	for_each_possible_cpu(cpu)
		ht_ring_start(per_cpu_ptr(&ring, cpu), memory, slots, cpu);
	return 0;
}

static int memory_start(void)
{
	resource_size_t at, bytes, ours;

	if (!pci)
		return -ENODEV;
	at = pci_resource_start(pci, IVSHMEM_BAR);
	bytes = pci_resource_len(pci, IVSHMEM_BAR);
	ours = bytes / 4 * 3;
	if (bytes % SZ_16K)
		return -ENOSPC;
	if (is_taken(at, ours))
		return -EBUSY;
	return map(at + ours, bytes - ours);
}

static void memory_stop(void)
{
	memunmap(memory);
	memory = NULL;
	release_mem_region(claimed_at, claimed_bytes);
}

/* Binds the named device, or the first one. Refuses others with -ENODEV, which is not logged. */
static int memory_probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	int error;

	if (device[0] && strcmp(pci_name(dev), device))
		return -ENODEV;
	/* The agent can't enable the device while it has a driver. */
	error = pci_enable_device(dev);
	if (error)
		return error;
	kernel_param_lock(THIS_MODULE);
	if (pci) {
		error = -ENODEV;
	} else {
		pci = dev;
		hsg_channel_is_back();
	}
	kernel_param_unlock(THIS_MODULE);
	if (error)
		pci_disable_device(dev);
	return error;
}

/* The device is unplugged or unbound: nothing writes to it after this returns. */
static void memory_remove(struct pci_dev *dev)
{
	kernel_param_lock(THIS_MODULE);
	hsg_channel_is_gone();
	pci = NULL;
	kernel_param_unlock(THIS_MODULE);
	/* The memory stays decoded: the agent continues if the device still exists. */
	pci_disable_device(dev);
}

/* No MODULE_DEVICE_TABLE: the module must not be loaded automatically. */
static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, IVSHMEM_DEVICE) },
	{ }
};

static struct pci_driver driver = {
	.name = KBUILD_MODNAME,
	.id_table = ids,
	.probe = memory_probe,
	.remove = memory_remove,
	/* Probes requested at load need the device at once. */
	.driver.probe_type = PROBE_FORCE_SYNCHRONOUS,
};

static int memory_init(void)
{
	return pci_register_driver(&driver);
}

static void memory_exit(void)
{
	pci_unregister_driver(&driver);
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
	.init = memory_init,
	.exit = memory_exit,
	.start = memory_start,
	.update = memory_update,
	.send = memory_send,
	.stop = memory_stop,
};
