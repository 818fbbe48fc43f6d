/* SPDX-License-Identifier: GPL-2.0 */
/* Counts of what went wrong, each CPU for itself: COUNTS of them, which whoever includes this names. */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *counted = bpf_map_lookup_elem(&counts, &what);

	if (counted)
		*counted += 1;
}
