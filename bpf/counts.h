/* SPDX-License-Identifier: GPL-2.0 */
/* Sums, each CPU's for itself: COUNTS of them, which whoever includes this names. */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline void add(__u32 what, __u64 more)
{
	__u64 *sum = bpf_map_lookup_elem(&counts, &what);

	if (sum)
		*sum += more;
}

static __always_inline void count(__u32 what)
{
	add(what, 1);
}
