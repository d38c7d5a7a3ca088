#include "cowfs/fuse/ops.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cowfs/fuse/mount-i.h"

/* Programs ask for 32 KiB; what a rare one asks more it gets with the next request. */
#define LISTING_MAX ((size_t)256 << 10)

struct dir_listing {
	fuse_req_t req;
	bool plus;
	char *bytes; /* owned */
	size_t len, room;
};

static int add_name(void *ctx, const char *name, const struct layer_found *found, uint64_t next)
{
	struct dir_listing *list = ctx;
	char *at = list->bytes + list->len;
	const size_t room = list->room - list->len;
	struct mount *m = fuse_req_userdata(list->req);
	size_t n;

	if (list->plus) {
		struct fuse_entry_param e = reply_entry_of(found);

		/* The kernel takes the name, and the mount keeps the reference. */
		if (mount_hides(m, found->st.st_ino))
			e.ino = 0;

		n = fuse_add_direntry_plus(list->req, at, room, name, &e, (off_t)next);
	} else {
		n = fuse_add_direntry(list->req, at, room, name, &found->st, (off_t)next);
	}
	if (n > room)
		return 1;
	/* A name that comes without a node brings no reference. */
	if (list->plus && found->node != 0 && mount_know(m, found->node) < 0)
		return 1;
	list->len += n;
	return 0;
}

static void list(fuse_req_t req, fuse_ino_t dir, size_t size, off_t off, bool plus)
{
	const struct layer_call call = ops_call(req);
	AUTO_FREE char *bytes = NULL;
	struct dir_listing l = { .req = req, .plus = plus };
	struct err err = { 0 };
	int r;

	l.room = size < LISTING_MAX ? size : LISTING_MAX;
	l.bytes = bytes = malloc(l.room);
	if (bytes == NULL)
		r = -ENOMEM;
	else
		r = layer_readdir(ops_layer(req), &call, dir, (uint64_t)off, plus, add_name, &l,
				  &err);
	if (r < 0)
		reply_error(req, r, &err);
	else
		fuse_reply_buf(req, l.bytes, l.len);
}

void op_readdir(fuse_req_t req, fuse_ino_t dir, size_t size, off_t off, struct fuse_file_info *fi)
{
	list(req, dir, size, off, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t dir, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	list(req, dir, size, off, true);
}
