#include "cowfs/fuse/meter.h"

#include <stdatomic.h>

const uint64_t meter_bounds[METER_BUCKETS - 1] = { 10000,    100000,    1000000,
						   10000000, 100000000, 1000000000 };

/* By the kernel's numbers (linux/fuse.h); 0 is any other. */
static const char *const names[METER_ROWS_MAX] = {
	[0] = "other",         [1] = "lookup",
	[2] = "forget",        [3] = "getattr",
	[4] = "setattr",       [5] = "readlink",
	[6] = "symlink",       [8] = "mknod",
	[9] = "mkdir",         [10] = "unlink",
	[11] = "rmdir",        [12] = "rename",
	[13] = "link",         [14] = "open",
	[15] = "read",         [16] = "write",
	[17] = "statfs",       [18] = "release",
	[20] = "fsync",        [21] = "setxattr",
	[22] = "getxattr",     [23] = "listxattr",
	[24] = "removexattr",  [25] = "flush",
	[26] = "init",         [27] = "opendir",
	[28] = "readdir",      [29] = "releasedir",
	[30] = "fsyncdir",     [34] = "access",
	[35] = "create",       [39] = "ioctl",
	[42] = "forget_multi", [43] = "fallocate",
	[44] = "readdirplus",  [45] = "rename2",
	[46] = "lseek",        [47] = "copy_file_range",
	[51] = "tmpfile",      [52] = "statx",
};

static struct {
	_Atomic uint64_t sum_ns;
	_Atomic uint64_t buckets[METER_BUCKETS];
} counts[METER_ROWS_MAX];

static _Atomic uint64_t total;

static size_t bucket_of(uint64_t ns)
{
	size_t i = 0;

	while (i < METER_BUCKETS - 1 && ns > meter_bounds[i])
		i++;
	return i;
}

void meter_count(uint32_t op, uint64_t ns)
{
	const size_t row = op < METER_ROWS_MAX && names[op] ? op : 0;

	atomic_fetch_add_explicit(&counts[row].buckets[bucket_of(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counts[row].sum_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
}

uint64_t meter_total(void)
{
	return atomic_load_explicit(&total, memory_order_relaxed);
}

size_t meter_read(struct meter_row ret[METER_ROWS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < METER_ROWS_MAX; i++) {
		struct meter_row row = { .op = names[i] };

		for (size_t k = 0; k < METER_BUCKETS; k++) {
			row.buckets[k] =
			    atomic_load_explicit(&counts[i].buckets[k], memory_order_relaxed);
			row.count += row.buckets[k];
		}
		row.sum_ns = atomic_load_explicit(&counts[i].sum_ns, memory_order_relaxed);
		if (row.count > 0)
			ret[n++] = row;
	}
	return n;
}
