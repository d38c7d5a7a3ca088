/*
 * current.c - the request that the calling thread is handling, and its caller.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/ops.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/shift.h"

static _Thread_local struct request *current;

struct request *request_current(void)
{
	assert(current != NULL);
	return current;
}

void request_set_current(struct request *rq)
{
	current = rq;
}

struct layer *ops_layer(fuse_req_t req)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->layer;
}

bool ops_hides_acls(fuse_req_t req)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->one_id;
}

bool mount_hides(const struct mount *m, uint64_t ino)
{
	return m->n_hidden > 0 &&
	       bsearch(&ino, m->hidden, m->n_hidden, sizeof(ino), vec_by_u64) != NULL;
}

bool ops_hides_xattrs(fuse_req_t req)
{
	const struct mount *m = fuse_req_userdata(req);

	return m->no_xattrs;
}

void mount_keep_dirs(struct mount *m, bool keep)
{
	atomic_store(&m->keeps_dirs, keep);
}

struct layer_call ops_call(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	const struct mount *m = fuse_req_userdata(req);

	return (struct layer_call){
		.keeps_dirs = atomic_load_explicit(&m->keeps_dirs, memory_order_relaxed),
		.uid = ctx->uid,
		.gid = ctx->gid,
		.umask = ctx->umask,
		.may_wait = request_current()->may_wait,
	};
}

void ops_show(struct stat *st)
{
	const struct mount *m = request_current()->mount;
	const struct mount_shift *shift = &m->shift;

	if (m->one_id) {
		st->st_uid = m->one_uid;
		st->st_gid = m->one_gid;
		return;
	}
	st->st_uid = shift_out(shift, st->st_uid);
	st->st_gid = shift_out(shift, st->st_gid);
}

/* On a mount that may map ids, the kernel sends ids only with requests that make something. */
bool ops_from_root(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	const struct mount *m = fuse_req_userdata(req);

	/* Whose ids are shifted is root at most where those are. */
	if (m->shift.n > 0)
		return false;
	return ctx->uid == 0 || (ctx->uid == (uid_t)-1 && sys_task_is_root(ctx->pid));
}

/* --- references ------------------------------------------------------------------------- */

/*
 * When a mount ends the kernel forgets all nodes and does not say so.  Where the layer lives on, what
 * it forgot must be known.
 */
struct known_node {
	uint64_t node;
	uint64_t n;
};

static int know(struct mount *m, uint64_t node)
{
	struct known_node *k;
	void *other;

	if (m->known.hash == NULL)
		m->known = MAP_INIT(map_hash_u64, map_equal_u64);
	k = map_get(&m->known, &node);
	if (k != NULL) {
		k->n++;
		return 0;
	}
	k = malloc(sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	*k = (struct known_node){ .node = node, .n = 1 };
	if (map_add(&m->known, &k->node, k, &other) == 0)
		return 0;
	free(k);
	return -ENOMEM;
}

int mount_know(struct mount *m, uint64_t node)
{
	if (!m->counts)
		return 0;
	LOCKED(&m->lock);
	return know(m, node);
}

void mount_forget(struct mount *m, uint64_t node, uint64_t n)
{
	struct known_node *k;

	if (m->counts) {
		pthread_mutex_lock(&m->lock);
		k = map_get(&m->known, &node);
		n = k == NULL ? 0 : n < k->n ? n : k->n;
		if (k != NULL)
			k->n -= n;
		if (k != NULL && k->n == 0)
			free(map_remove(&m->known, &node));
		pthread_mutex_unlock(&m->lock);
	}
	if (n > 0)
		layer_forget(m->layer, node, n);
}

void mount_forget_all(struct mount *m)
{
	struct known_node *k;
	size_t pos = 0;

	if (m->known.hash == NULL)
		return;
	while ((k = map_next(&m->known, &pos)) != NULL) {
		layer_forget(m->layer, k->node, k->n);
		map_remove(&m->known, &k->node);
		free(k);
	}
	map_done(&m->known);
}
