/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames in memory that is shared with the host; docs/formats/shared-streams.md specifies the
 * format. The guest uses plain stores, never waits for the host, and does not trust its writes.
 *
 * Like pack.h, this file does not depend on the kernel. A file that includes it defines
 * ht_ordered(), a store barrier for any memory type.
 */
#ifndef HYPERSCOPE_RING_H
#define HYPERSCOPE_RING_H

#include "pack.h"

/* HSCTRACE as a little-endian word */
#define HT_REGION_MAGIC		0x4543415254435348ULL
#define HT_REGION_VERSION	1

/* Words of the region's header, by their index. */
enum ht_region {
	HT_REGION_IS		= 0,
	HT_REGION_FORMAT	= 1,
	HT_REGION_BYTES		= 2,
	HT_REGION_CPUS		= 3,
	HT_REGION_SLOTS		= 4,
	HT_REGION_STARTS	= 5,
};

#define HT_HEADER_BYTES		4096
#define HT_SLOT_WORDS		16
#define HT_SLOT_BYTES		(8 * HT_SLOT_WORDS)
#define HT_LEAST_SLOTS		32

/* Words of a slot; the frame's own follow. */
#define HT_SLOT_SEQUENCE	0
#define HT_SLOT_FILLED		1
#define HT_SLOT_FRAME		2

/* Times in a slot omit this many low bits of the TSC, at most HSG_LEAST_SHIFT ... */
#define HT_FILLED_SHIFT		4
/* ... and have this many bits below them for the number of filled bits in the frame. */
#define HT_FILLED_BITS		10

static void ht_ordered(void);

/* The ring of one CPU: its writer's side. */
struct ht_ring {
	/* a separate block whose first word is the position; the slots follow */
	volatile __u64 *head;
	__u64 slots;
	/* of the next frame; continues after a restart */
	__u64 position;
	/* number of its complete words that are stored already */
	__u32 stored;
	__u8 is_open;
};

/* Size of a CPU's ring in bytes. */
static inline __u64 ht_ring_bytes(__u64 slots)
{
	return HT_SLOT_BYTES * (slots + 1);
}

/* Slots of each CPU's ring if CPUs share a number of bytes: a power of two, or 0. */
static inline __u64 ht_region_slots(__u64 bytes, __u32 cpus)
{
	__u64 slots = HT_LEAST_SLOTS;

	if (bytes < HT_HEADER_BYTES + cpus * ht_ring_bytes(slots))
		return 0;
	while (HT_HEADER_BYTES + cpus * ht_ring_bytes(2 * slots) <= bytes)
		slots *= 2;
	return slots;
}

static inline volatile __u64 *ht_ring_head(volatile __u64 *region, __u64 slots, __u32 cpu)
{
	return region + (HT_HEADER_BYTES + cpu * ht_ring_bytes(slots)) / 8;
}

/*
 * Initialises the region. A region of the same shape keeps its frames, so that a host that attaches
 * late finds them.
 */
static inline void ht_region_start(volatile __u64 *region, __u64 bytes, __u32 cpus, __u64 slots)
{
	__u64 at;
	__u32 cpu;

	if (region[HT_REGION_IS] != HT_REGION_MAGIC ||
	    region[HT_REGION_FORMAT] != HT_REGION_VERSION || region[HT_REGION_BYTES] != bytes ||
	    region[HT_REGION_CPUS] != cpus || region[HT_REGION_SLOTS] != slots) {
		region[HT_REGION_IS] = 0;
		ht_ordered();
		for (cpu = 0; cpu < cpus; cpu++) {
			volatile __u64 *head = ht_ring_head(region, slots, cpu);

			for (at = 0; at <= slots; at++)
				head[HT_SLOT_WORDS * at] = 0;
		}
		region[HT_REGION_FORMAT] = HT_REGION_VERSION;
		region[HT_REGION_BYTES] = bytes;
		region[HT_REGION_CPUS] = cpus;
		region[HT_REGION_SLOTS] = slots;
	}
	region[HT_REGION_STARTS] += 1;
	ht_ordered();
	region[HT_REGION_IS] = HT_REGION_MAGIC;
	ht_ordered();
}

static inline volatile __u64 *ht_ring_slot(const struct ht_ring *ring)
{
	return ring->head + HT_SLOT_WORDS * (1 + (ring->position & (ring->slots - 1)));
}

static inline void ht_ring_start(struct ht_ring *ring, volatile __u64 *region, __u64 slots,
				 __u32 cpu)
{
	ring->head = ht_ring_head(region, slots, cpu);
	ring->slots = slots;
	ring->position = ring->head[0];
	/* Keeps the unfinished frame of a kernel that died: it has the last events. */
	if (ht_ring_slot(ring)[HT_SLOT_SEQUENCE] == 2 * ring->position + 1)
		ring->head[0] = ++ring->position;
	ring->stored = 0;
	ring->is_open = 0;
}

/* Stores the frame's content so far, which the host can read even if nothing follows. */
static inline volatile __u64 *ht_ring_store(struct ht_ring *ring, const struct ht_pack *p)
{
	volatile __u64 *slot = ht_ring_slot(ring);
	__u32 at;

	if (!ring->is_open) {
		slot[HT_SLOT_SEQUENCE] = 2 * ring->position + 1;
		slot[HT_SLOT_FILLED] = 0;
		ht_ordered();
		ring->is_open = 1;
	}
	for (at = ring->stored; 64 * at < p->used_bits; at++)
		slot[HT_SLOT_FRAME + at] = p->word[at];
	ring->stored = p->used_bits / 64;
	/*
	 * The compiler keeps the order of volatile stores, and so do x86 processors in write-back
	 * memory. In other memory types, an exit or the end of the frame orders them.
	 */
	slot[HT_SLOT_FILLED] = p->last << p->shift >> HT_FILLED_SHIFT << HT_FILLED_BITS |
			       p->used_bits;
	return slot;
}

/* Ends the frame. */
static inline void ht_ring_send(struct ht_ring *ring, const struct ht_pack *p)
{
	volatile __u64 *slot = ht_ring_store(ring, p);

	ht_ordered();
	slot[HT_SLOT_SEQUENCE] = 2 * ring->position + 2;
	ring->position++;
	ht_ordered();
	ring->head[0] = ring->position;
	ring->stored = 0;
	ring->is_open = 0;
}

#endif
