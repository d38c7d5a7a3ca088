/*
 * mount.h where nothing can be mounted: every call that could do so gives the reason.
 */
#include "cowfs/fuse/mount.h"

#include <errno.h>

#include "cowfs/fuse/mount-none-i.h"

struct mounts {
	char none; /* it can be made and freed like any other */
};

int mounts_new(struct mounts **ret, struct err *err)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret != NULL ? 0 : err_nomem(err);
}

void mounts_free(struct mounts *ms)
{
	free(ms);
}

int mount_open(struct mounts *ms, struct layer *l, const struct mount_options *options,
	       struct mount **ret, struct err *err)
{
	return mount_refuse(err);
}

int mount_adopt(struct mounts *ms, struct layer *l, int fd, const struct mount_options *options,
		struct mount **ret, struct err *err)
{
	return mount_refuse(err);
}

int mount_fd(const struct mount *m)
{
	return -1;
}

int mount_top(const struct mount *m)
{
	return -ENOTSUP;
}

const char *mount_place(const struct mount *m)
{
	return NULL;
}

int mount_moved(struct mount *m, const char *path, struct err *err)
{
	return mount_refuse(err);
}

int mount_attach(struct mount *m, const struct mount_options *options, struct err *err)
{
	return mount_refuse(err);
}

int mount_close(struct mount *m, bool force, struct err *err)
{
	return mount_refuse(err);
}

bool mount_maps_ids(const struct mount *m)
{
	return false;
}

int mount_probe_ids(struct err *err)
{
	return mount_refuse(err);
}

bool mount_ended(const struct mount *m)
{
	return true;
}

int mount_is_shown(struct mount *m, struct err *err)
{
	return mount_refuse(err);
}

int mount_announce(struct mount *m, const struct layer_changes *changes, struct err *err)
{
	return mount_refuse(err);
}

int mount_echo_begin(struct mount *m, const struct layer_replaced *list, size_t n,
		     char token[static MOUNT_ECHO_SIZE], struct err *err)
{
	return mount_refuse(err);
}

void mount_echo_end(struct mount *m, const char *token)
{
}

void mount_stats(const struct mount *m, struct mount_stats *ret)
{
	*ret = (struct mount_stats){ 0 };
}

/* A build that cannot mount has left no mount behind. */
int mount_clear(const char *path, struct err *err)
{
	return 0;
}
