#include "snapshot/capture/lease.h"

#include <assert.h>
#include <errno.h>

int leases_open(const struct leases_options *options, struct leases **ret, struct err *err)
{
	(void)options, (void)ret;
	return err_set(err, -ENOTSUP, "this system has no file leases");
}

void leases_close(struct leases *l)
{
	assert(!l);
}

int leases_add(struct leases *l, uint64_t key, int fd)
{
	(void)l, (void)key, (void)fd;
	return -ENOTSUP;
}

bool leases_own(struct leases *l, uint64_t key, int fd)
{
	(void)l, (void)key, (void)fd;
	return false;
}

int leases_drop(struct leases *l, uint64_t key)
{
	(void)l, (void)key;
	return -ENOENT;
}

int leases_dup(struct leases *l, uint64_t key)
{
	(void)l, (void)key;
	return -ENOENT;
}

struct leases_count leases_count(struct leases *l)
{
	(void)l;
	return (struct leases_count){ 0 };
}

size_t leases_room(const struct leases *l)
{
	(void)l;
	return 0;
}

int lease_held(int fd)
{
	(void)fd;
	return 0;
}

bool lease_possible(int fd)
{
	(void)fd;
	return false;
}
