#include "cowfs/fuse/wire.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/fuse.h>
#include <string.h>

#include "cowfs/core/acl.h"
#include "cowfs/core/layer.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/shift.h"

#if FUSE_KERNEL_MINOR_VERSION < 38
#error "linux/fuse.h is older than Linux 6.2"
#endif

/* Of linux/fuse.h 7.40 (Linux 6.10). */
#define WIRE_NO_EXPORT_SUPPORT (1ull << 38)
#define WIRE_ALLOW_IDMAP       (1ull << 40)

static enum fuse_opcode opcode(const void *bytes)
{
	const struct fuse_in_header *in = bytes;

	return in->opcode;
}

bool wire_is_init(const void *bytes)
{
	return opcode(bytes) == FUSE_INIT;
}

bool wire_always_waits(const void *bytes)
{
	return opcode(bytes) == FUSE_FSYNC || opcode(bytes) == FUSE_FSYNCDIR;
}

enum pool_lane wire_lane(const void *bytes)
{
	switch ((unsigned)opcode(bytes)) {
	case FUSE_LOOKUP:
	case FUSE_GETATTR:
	case FUSE_READLINK:
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
	case FUSE_LSEEK:
	case FUSE_STATFS:
	case FUSE_ACCESS:
		return POOL_SHORT;
	default: /* it changes something: it may wait until older changes are stored */
		return POOL_PATIENT;
	}
}

bool wire_write_kills_priv(const struct request *rq)
{
	const struct fuse_in_header *in = rq->bytes;
	const struct fuse_write_in *arg = (const void *)(in + 1);

	assert(in->opcode == FUSE_WRITE);
	return (arg->write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
}

bool wire_write_meets(const void *bytes, uint64_t node, uint64_t off)
{
	const struct fuse_in_header *in = bytes;
	const struct fuse_write_in *arg = (const void *)(in + 1);

	return in->opcode == FUSE_WRITE && in->nodeid == node &&
	       (arg->offset == off || arg->offset + arg->size == off);
}

uint32_t wire_thread(const void *bytes)
{
	return ((const struct fuse_in_header *)bytes)->pid;
}

uint32_t wire_op(const void *bytes)
{
	return ((const struct fuse_in_header *)bytes)->opcode;
}

struct wire_setxattr wire_setxattr(const struct request *rq)
{
	const struct fuse_in_header *in = rq->bytes;
	const struct fuse_setxattr_in *arg = (const void *)(in + 1);
	const bool is_long = rq->mount->wire.long_setxattr;
	struct wire_setxattr ret;

	assert(in->opcode == FUSE_SETXATTR);
	ret.name = (const char *)arg + (is_long ? sizeof(*arg) : FUSE_COMPAT_SETXATTR_IN_SIZE);
	ret.value = ret.name + strlen(ret.name) + 1;
	ret.kills_sgid = is_long && (arg->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID);
	return ret;
}

/* --- answers ---------------------------------------------------------------------------- */

static int send_out(struct mount *m, uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + len),
		.error = error,
		.unique = unique,
	};
	const struct iovec iov[] = {
		{ .iov_base = &out, .iov_len = sizeof(out) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};

	return writev(m->fd, iov, len > 0 ? 2 : 1) < 0 ? -errno : 0;
}

void wire_refuse(struct mount *m, const void *bytes, int errnum)
{
	const struct fuse_in_header *in = bytes;

	IGNORE_RESULT(send_out(m, in->unique, -errnum, NULL, 0),
		      "it fails when the connection is gone, and the caller with it");
}

static uint64_t offered(const struct fuse_in_header *in)
{
	const struct fuse_init_in *arg = (const void *)(in + 1);
	const uint64_t more = arg->flags & FUSE_INIT_EXT ? arg->flags2 : 0;

	return arg->flags | more << 32;
}

bool wire_offers_idmap(const void *bytes)
{
	return (offered(bytes) & WIRE_ALLOW_IDMAP) != 0;
}

static void note_init(struct wire *w, const struct fuse_in_header *in)
{
	w->init = in->unique;
	w->offered = offered(in);
}

void wire_amend(struct wire *w, const struct iovec *iov, int n)
{
	const uint64_t want = FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | WIRE_NO_EXPORT_SUPPORT |
			      (w->maps_ids ? WIRE_ALLOW_IDMAP : 0);
	const struct fuse_out_header *out = iov[0].iov_base;
	struct fuse_init_out *arg;
	uint64_t flags;

	if (w->init == 0 || out->unique != w->init)
		return;
	w->init = 0;
	if (out->error != 0 || n != 2 || iov[1].iov_len < sizeof(*arg))
		return;
	arg = iov[1].iov_base;
	flags = want & w->offered;
	arg->flags |= (uint32_t)flags;
	if (w->offered & FUSE_INIT_EXT) {
		arg->flags |= FUSE_INIT_EXT;
		arg->flags2 |= (uint32_t)(flags >> 32);
	}
	w->maps_ids = (flags & WIRE_ALLOW_IDMAP) != 0;
	w->kills_priv = (arg->flags & FUSE_HANDLE_KILLPRIV_V2) != 0;
	w->long_setxattr = (arg->flags & FUSE_SETXATTR_EXT) != 0;
}

/* --- what a request changes ------------------------------------------------------------- */

static size_t add_name(struct wire_change *ret, uint64_t dir, const void *name)
{
	ret[0] = (struct wire_change){ .node = dir, .name = name };
	ret[1] = (struct wire_change){ .node = dir, .name = "" };
	return 2;
}

static size_t add_node(struct wire_change *ret, uint64_t node)
{
	ret[0] = (struct wire_change){ .node = node, .name = "" };
	return 1;
}

static size_t add_rename(struct wire_change *ret, uint64_t dir, uint64_t new_dir, const char *name)
{
	size_t n = add_name(ret, dir, name);

	return n + add_name(ret + n, new_dir, name + strlen(name) + 1);
}

size_t wire_changes(const void *bytes, struct wire_change ret[static WIRE_CHANGES_MAX])
{
	const struct fuse_in_header *in = bytes;
	const char *body = (const char *)(in + 1);
	const union {
		struct fuse_rename_in rename;
		struct fuse_link_in link;
		struct fuse_copy_file_range_in copy;
	} *arg = (const void *)body;

	switch ((unsigned)in->opcode) {
	case FUSE_MKNOD:
		return add_name(ret, in->nodeid, body + sizeof(struct fuse_mknod_in));
	case FUSE_MKDIR:
		return add_name(ret, in->nodeid, body + sizeof(struct fuse_mkdir_in));
	case FUSE_SYMLINK:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return add_name(ret, in->nodeid, body);
	case FUSE_LINK:
		return add_name(ret, in->nodeid, body + sizeof(arg->link)) +
		       add_node(ret + 2, arg->link.oldnodeid);
	case FUSE_RENAME:
		return add_rename(ret, in->nodeid, arg->rename.newdir, body + sizeof(arg->rename));
	case FUSE_RENAME2:
		return add_rename(ret, in->nodeid, arg->rename.newdir,
				  body + sizeof(struct fuse_rename2_in));
	case FUSE_SETATTR:
	case FUSE_WRITE:
	case FUSE_FALLOCATE:
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		return add_node(ret, in->nodeid);
	case FUSE_COPY_FILE_RANGE:
		return add_node(ret, arg->copy.nodeid_out);
	default:
		return 0;
	}
}

bool wire_is_no_echo(const void *bytes)
{
	struct wire_change unused[WIRE_CHANGES_MAX];

	switch ((unsigned)opcode(bytes)) {
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_SETATTR:
		return false;
	case FUSE_TMPFILE:
		return true;
	default:
		return wire_changes(bytes, unused) > 0;
	}
}

/* --- ids -------------------------------------------------------------------------------- */

/* The request makes something that its sender will own. */
static bool makes_something(enum fuse_opcode code)
{
	switch ((unsigned)code) {
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_CREATE:
	case FUSE_TMPFILE:
		return true;
	default:
		return false;
	}
}

static int unshift_xattr(const struct mount *m, struct fuse_in_header *in, size_t len)
{
	const struct fuse_setxattr_in *arg = (const void *)(in + 1);
	char *end = (char *)in + len, *value;
	char *name = (char *)(in + 1) +
		     (m->wire.long_setxattr ? sizeof(*arg) : FUSE_COMPAT_SETXATTR_IN_SIZE);

	value = name < end ? memchr(name, '\0', (size_t)(end - name)) : NULL;
	if (value == NULL || (size_t)(end - ++value) < arg->size)
		return EINVAL;
	return acl_is_name(name) ? shift_acl_in(&m->shift, value, arg->size) : 0;
}

int wire_unshift(const struct mount *m, void *bytes, size_t len)
{
	const struct mount_shift *shift = &m->shift;
	struct fuse_in_header *in = bytes;
	struct fuse_setattr_in *set = (struct fuse_setattr_in *)(in + 1);
	bool ours = shift_in(shift, &in->uid);

	ours &= shift_in(shift, &in->gid); /* both, whether or not the first was */
	if (!ours && makes_something(in->opcode))
		return EOVERFLOW;
	if (in->opcode == FUSE_SETXATTR)
		return unshift_xattr(m, in, len);
	if (in->opcode != FUSE_SETATTR)
		return 0;
	ours = !(set->valid & FATTR_UID) || shift_in(shift, &set->uid);
	ours &= !(set->valid & FATTR_GID) || shift_in(shift, &set->gid);
	return ours ? 0 : EOVERFLOW;
}

/* --- O_TMPFILE -------------------------------------------------------------------------- */

static struct fuse_attr attr_of(const struct stat *st)
{
	return (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = (uint32_t)st->st_rdev,
		.blksize = OPS_BLOCK_SIZE,
	};
}

static void make_nameless(struct request *rq)
{
	const struct fuse_in_header *in = rq->bytes;
	const struct fuse_create_in *arg = (const void *)(in + 1);
	const struct layer_call call = {
		.uid = in->uid,
		.gid = in->gid,
		.umask = arg->umask,
		.may_wait = rq->may_wait,
	};
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { 0 };
	struct mount *m = rq->mount;
	struct layer_found found;
	struct err err = { 0 };
	int r = layer_make_nameless(m->layer, &call, in->nodeid, S_IFREG | (arg->mode & 07777),
				    &found, &err);

	if (r == -EAGAIN && !rq->may_wait) {
		rq->later = true;
		return;
	}
	if (r == 0) {
		r = mount_know(m, found.node);
		if (r < 0)
			layer_forget(m->layer, found.node, 1);
	}
	if (r < 0) {
		wire_refuse(m, rq->bytes, reply_errno(r, &err));
		return;
	}
	out.entry.nodeid = found.node;
	ops_show(&found.st);
	out.entry.attr = attr_of(&found.st);
	out.entry.attr_valid = (uint64_t)OPS_TIMEOUT_S;
	out.open.open_flags = FOPEN_KEEP_CACHE;
	if (send_out(m, in->unique, 0, &out, sizeof(out)) < 0)
		mount_forget(m, found.node, 1); /* the kernel never took it */
}

bool wire_handle(struct request *rq)
{
	const struct fuse_in_header *in = rq->bytes;

	switch ((unsigned)in->opcode) {
	case FUSE_INIT:
		note_init(&rq->mount->wire, in);
		return false;
	case FUSE_TMPFILE:
		make_nameless(rq);
		return true;
	case FUSE_INTERRUPT:
		/* Nothing here can be interrupted; told so, the kernel asks no more. */
		wire_refuse(rq->mount, rq->bytes, ENOSYS);
		return true;
	default:
		return false;
	}
}

/* --- notifications ---------------------------------------------------------------------- */

/* By hand: libfuse's functions for it change their arguments from one release to the next. */
static int notify(struct mount *m, enum fuse_notify_code code, struct iovec *iov, int n)
{
	struct fuse_out_header out = { .len = sizeof(out), .error = (int)code };
	int r;

	iov[0] = (struct iovec){ .iov_base = &out, .iov_len = sizeof(out) };
	for (int i = 1; i < n; i++)
		out.len += (uint32_t)iov[i].iov_len;
	r = writev(m->fd, iov, n) < 0 && errno != ENOENT ? -errno : 0;
	iov[0] = (struct iovec){ 0 };
	return r;
}

int wire_expire(struct mount *m, uint64_t dir, const char *name)
{
	struct fuse_notify_inval_entry_out arg = {
		.parent = dir,
		.namelen = (uint32_t)strlen(name),
		.flags = FUSE_EXPIRE_ONLY,
	};
	struct iovec iov[] = {
		{ 0 },
		{ .iov_base = &arg, .iov_len = sizeof(arg) },
		{ .iov_base = (void *)(uintptr_t)name, .iov_len = arg.namelen + 1 },
	};

	return notify(m, FUSE_NOTIFY_INVAL_ENTRY, iov, ARRAY_LEN(iov));
}

int wire_invalidate(struct mount *m, uint64_t node, bool attributes_only)
{
	struct fuse_notify_inval_inode_out arg = { .ino = node, .off = attributes_only ? -1 : 0 };
	struct iovec iov[] = {
		{ 0 },
		{ .iov_base = &arg, .iov_len = sizeof(arg) },
	};

	return notify(m, FUSE_NOTIFY_INVAL_INODE, iov, ARRAY_LEN(iov));
}
