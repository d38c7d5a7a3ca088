#include "snapshot/capture/lease.h"

#include <assert.h>
#include <errno.h>

int leases_open(const struct leases_options *options, struct leases **ret, struct err *err)
{
	return err_set(err, -ENOTSUP, "this system has no file leases");
}

void leases_close(struct leases *l)
{
	assert(!l);
}

int leases_try(struct leases *l, int fd, bool likely, struct lease_trial *ret)
{
	*ret = (struct lease_trial){ 0 };
	return -ENOTSUP;
}

void lease_give_up(int fd, struct lease_trial *t)
{
}

int leases_add(struct leases *l, uint64_t key, int fd, const struct lease_trial *t)
{
	return -ENOTSUP;
}

int leases_drop(struct leases *l, uint64_t key)
{
	return -ENOENT;
}

int leases_dup(struct leases *l, uint64_t key)
{
	return -ENOENT;
}

struct leases_count leases_count(struct leases *l)
{
	return (struct leases_count){ 0 };
}

size_t leases_room(const struct leases *l)
{
	return 0;
}

int lease_held(int fd)
{
	return 0;
}

bool lease_possible(int fd)
{
	return false;
}
