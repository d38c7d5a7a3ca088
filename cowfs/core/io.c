/*
 * io.c - the bytes of files: reading, writing, holes, copying.
 *
 * A read finds its bytes under the lock and takes references. It fetches chunks without the lock,
 * and the answer points into the referenced memory, uncopied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/halves-i.h"
#include "cowfs/core/layer-i.h"

/* For so many directories it is expected that a program that lists them reads the files. */
#define READING_DIRS 8

/* --- reading ---------------------------------------------------------------------------- */

/* Never written; not const, so that it takes no space in the program. */
static uint8_t zeros[LAYER_IO_MAX];

/* What an answer points into. */
struct lent {
	size_t n;
	struct piece *pieces;          /* in the same memory */
	const struct cached **objects; /* by piece; NULL where none is needed */
	struct iovec *iov;
	uint8_t *peeked; /* owned; promised bytes, where they are in the answer; or NULL */
	bool whole;      /* promised bytes cannot be had but with the whole file */
};

static struct lent *lent_new(size_t max)
{
	const size_t each = sizeof(struct piece) + sizeof(struct cached *) + sizeof(struct iovec);
	struct lent *h = calloc(1, sizeof(*h) + max * each);

	if (!h)
		return NULL;
	h->pieces = (struct piece *)(h + 1);
	h->objects = (const struct cached **)(h->pieces + max);
	h->iov = (struct iovec *)(h->objects + max);
	return h;
}

static void lent_reset(struct lent *h)
{
	for (size_t i = 0; i < h->n; i++) {
		block_unref(h->pieces[i].block);
		cached_unref(h->objects[i]);
		h->objects[i] = NULL;
	}
	h->n = 0;
}

static void lent_free(struct lent *h)
{
	if (!h)
		return;
	lent_reset(h);
	free(h->peeked);
	free(h);
}
DEFINE_CLEANUP(struct lent *, lent_free)

void layer_bytes_done(struct layer_bytes *b)
{
	lent_free(b->held);
	*b = (struct layer_bytes){ 0 };
}

static int map_bytes(struct op *op, uint64_t id, uint64_t off, size_t len, struct lent *h)
{
	struct node *n;
	int r = node_get_file(op->l, id, &n);

	if (r >= 0 && (h->whole || !node_is_partly(n)))
		r = node_get_bytes(op, id, &n);
	if (r < 0)
		return r;
	n->told = false; /* for its access time */
	return file_map(&n->file, op->l->cache, off, len, h->pieces, &h->n, &op->need);
}

static int find_bytes(struct layer *l, const struct layer_call *call, uint64_t id, uint64_t off,
		      size_t len, struct lent *h, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = map_bytes(&op, id, off, len, h);
	while (op_again(&op, &r));
	return r;
}

static int check_chunk(const struct piece *p, const struct cached *o, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];

	if (o->len == p->chunk_len)
		return 0;
	return err_set(err, -EBADMSG, "chunk %s has %zu bytes where %zu belong",
		       object_id_hex(&p->chunk, hex), o->len, p->chunk_len);
}

/* Without the lock. */
static int fetch_chunk(struct layer *l, const struct layer_call *call, const struct piece *p,
		       const struct cached **ret, struct err *err)
{
	int r = 0;

	*ret = cache_find(l->cache, OBJECT_CHUNK, &p->chunk);
	if (!*ret && !call->may_wait && !layers_load_quickly(l->all))
		return -EAGAIN;
	if (!*ret) {
		l->reading = READING_DIRS;
		r = layers_load(l->all, OBJECT_CHUNK, &p->chunk, ret, err);
	}
	return r < 0 ? r : check_chunk(p, *ret, err);
}

/* Without the lock.  -ENODATA: the whole file must be kept. */
static int fetch_promised(struct layer *l, const struct layer_call *call, const struct piece *p,
			  uint8_t *to)
{
	if (!call->may_wait)
		return -EAGAIN;
	return layers_peek_promise(l->all, &p->chunk, p->off, to, p->len) == (ssize_t)p->len
		   ? 0
		   : -ENODATA;
}

/* Memory for all of the answer, if promised bytes are among it. */
static int prepare_promised(struct lent *h)
{
	bool any = false;
	size_t len = 0;

	for (size_t i = 0; i < h->n; i++) {
		any |= h->pieces[i].promised;
		len += h->pieces[i].len;
	}
	free(TAKE_PTR(h->peeked));
	h->peeked = any ? malloc(len) : NULL;
	return any && !h->peeked ? -ENOMEM : 0;
}

static int fetch_bytes(struct layer *l, const struct layer_call *call, struct lent *h,
		       struct layer_bytes *ret, struct err *err)
{
	int r = prepare_promised(h);

	ret->len = 0;
	for (size_t i = 0; i < h->n && r >= 0; i++) {
		const struct piece *p = &h->pieces[i];
		const uint8_t *at = zeros;

		if (p->block) {
			at = p->block->data + p->at;
		} else if (p->promised) {
			at = h->peeked + ret->len;
			r = fetch_promised(l, call, p, h->peeked + ret->len);
		} else if (!object_id_is_zero(&p->chunk)) {
			r = fetch_chunk(l, call, p, &h->objects[i], err);
			if (r < 0)
				return r;
			at = h->objects[i]->data + p->at;
		}
		memcpy(&h->iov[i].iov_base, &at, sizeof(at));
		h->iov[i].iov_len = p->len;
		ret->len += p->len;
	}
	ret->iov = h->iov;
	ret->n = (int)h->n;
	return r;
}

/* 1 and its promise, if it is large and promised from end to end; 0 if not. */
static int find_promise(struct layer *l, uint64_t id, uint64_t off, struct object_id *ret)
{
	struct node *n;
	int r;

	LOCKED(&l->lock);
	r = node_get_file(l, id, &n);
	if (r >= 0)
		r = n->file.base.form == CONTENT_LAZY && !node_is_partly(n) &&
		    n->file.size >= PROMISE_PEEK_MIN && off < n->file.size;
	if (r > 0) {
		*ret = n->file.base.id;
		n->told = false; /* for its access time */
	}
	return r > 0;
}

/*
 * 1 if the bytes are there.  A write that changes the file meanwhile does so beside this read, for
 * which the file was as it is promised.
 */
static int peek_bytes(struct layer *l, const struct layer_call *call, uint64_t id, uint64_t off,
		      size_t len, struct lent *h, struct layer_bytes *ret)
{
	struct object_id promise;
	ssize_t n;

	if (len == 0 || !find_promise(l, id, off, &promise))
		return 0;
	if (!call->may_wait)
		return -EAGAIN;
	h->peeked = malloc(len);
	if (!h->peeked)
		return -ENOMEM;
	n = layers_peek_promise(l->all, &promise, off, h->peeked, len);
	if (n <= 0)
		return 0;
	h->iov[0] = (struct iovec){ .iov_base = h->peeked, .iov_len = (size_t)n };
	*ret = (struct layer_bytes){ .iov = h->iov, .n = 1, .len = (size_t)n };
	return 1;
}

int layer_read(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
	       size_t len, struct layer_bytes *ret, struct err *err)
{
	CLEANUP(lent_free_p) struct lent *h = NULL;
	int r;

	if (len > LAYER_IO_MAX)
		len = LAYER_IO_MAX;
	h = lent_new(FILE_PIECES(len));
	if (!h)
		return -ENOMEM;
	r = peek_bytes(l, call, node, off, len, h, ret);
	if (r > 0) {
		traffic_read(l, ret->len);
		ret->held = TAKE_PTR(h);
	}
	if (r != 0)
		return r < 0 ? r : 0;
	/* Twice: a chunk may have been replaced and swept between looking and fetching. */
	for (int tries = 0; tries < 2;) {
		lent_reset(h);
		r = find_bytes(l, call, node, off, len, h, err);
		if (r < 0)
			return r;
		r = fetch_bytes(l, call, h, ret, err);
		if (r != -EBADMSG && (r != -ENODATA || h->whole))
			break;
		if (r == -ENODATA)
			h->whole = true;
		else
			tries++;
	}
	if (r < 0)
		return r;
	traffic_read(l, ret->len);
	ret->held = TAKE_PTR(h);
	return r;
}

/* --- writing ---------------------------------------------------------------------------- */

/* Would `len` more bytes from `off` on go beyond what the clone may grow by? */
static bool over_quota(struct layer *l, const struct file *f, uint64_t off, uint64_t len)
{
	const uint64_t quota = layer_limit(l), end = off + len;
	uint64_t more = len, used;
	bool over;

	if (quota == 0)
		return false;
	if (f->data >= f->size)
		more = end > f->size ? end - f->size : 0;
	if (more > len)
		more = len;
	used = layer_charged(l);
	over = more > 0 && (used > quota || more > quota - used);
	l->refused += over;
	return over;
}

static int write_bytes(struct op *op, uint64_t id, uint64_t off, const void *data, size_t len,
		       bool kill_priv)
{
	struct layer *l = op->l;
	int64_t grown = 0;
	uint64_t before;
	uint32_t mode;
	struct node *n;
	int r = node_get_partly(op, id, &n);

	if (r < 0)
		return r;
	r = op_may_write(op, id, off);
	if (r < 0)
		return r;
	r = layers_room(l, len, &op->need);
	if (r < 0)
		return r;
	if (over_quota(l, &n->file, off, len))
		return -ENOSPC;
	r = off <= INT64_MAX && len <= INT64_MAX - off ? partly_own(op, n, off, len) : 0;
	if (r < 0)
		return r;
	before = n->file.data;
	r = file_write(&n->file, l->cache, off, data, len, &grown, &op->need);
	layer_count(l, grown);
	node_count_data(l, n, before);
	if (r < 0)
		return r;
	partly_note(l, n);
	mode = n->mode;
	if (kill_priv)
		node_kill_priv(op->call, n);
	node_touch(l, n, true);
	halves_note(l, op->call, id, off, len);
	return n->mode != mode;
}

int layer_write(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		const void *data, size_t len, bool kill_priv, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = write_bytes(&op, node, off, data, len, kill_priv);
	while (op_again(&op, &r));
	if (r >= 0)
		traffic_written(l, len);
	return r;
}

/* --- holes ------------------------------------------------------------------------------ */

/* Space for all of it, as far as that is known now: nothing is taken before there are bytes. */
static int may_allocate(struct op *op, const struct file *f, uint64_t off, uint64_t len)
{
	struct statvfs st;
	int r = layers_room(op->l, 0, &op->need);

	if (r < 0)
		return r;
	if (over_quota(op->l, f, off, len))
		return -ENOSPC;
	/* What the file has already lies within; what is beyond that must find room. */
	if (len > f->data && layers_statvfs(op->l->all, &st) >= 0 &&
	    len - f->data > (uint64_t)st.f_bavail * st.f_frsize)
		return -ENOSPC;
	return 0;
}

/* Sets *grown also if it fails half way. */
static int change_blocks(struct op *op, struct file *f, unsigned flags, uint64_t off, uint64_t len,
			 int64_t *grown)
{
	int64_t more = 0;
	int r = 0;

	if (flags & (LAYER_ALLOC_PUNCH | LAYER_ALLOC_ZERO))
		r = file_punch(f, op->l->cache, off, len, grown, &op->need);
	if (r < 0)
		return r;
	if (!(flags & LAYER_ALLOC_KEEP_SIZE) && off + len > f->size) {
		r = file_truncate(f, off + len, &more);
		*grown += more;
	}
	if (r < 0 || (flags & LAYER_ALLOC_PUNCH))
		return r;
	return file_allocate(f, op->l->cache, off, len, &op->need);
}

static int allocate(struct op *op, uint64_t id, unsigned flags, uint64_t off, uint64_t len)
{
	struct layer *l = op->l;
	int64_t grown = 0;
	uint64_t before;
	struct node *n;
	int r;

	/* Holes are known only of a file that was read. */
	r = flags & LAYER_ALLOC_PUNCH ? node_get_partly(op, id, &n) : node_get_bytes(op, id, &n);
	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (!(flags & LAYER_ALLOC_PUNCH))
		r = may_allocate(op, &n->file, off, len);
	else
		r = partly_own(op, n, off, len);
	if (r < 0)
		return r;
	before = n->file.data;
	r = change_blocks(op, &n->file, flags, off, len, &grown);
	layer_count(l, grown);
	node_count_data(l, n, before);
	if (r < 0)
		return r;
	partly_note(l, n);
	node_touch(l, n, true);
	return r;
}

int layer_allocate(struct layer *l, const struct layer_call *call, uint64_t node, unsigned flags,
		   uint64_t off, uint64_t len, struct err *err)
{
	const unsigned known = LAYER_ALLOC_KEEP_SIZE | LAYER_ALLOC_PUNCH | LAYER_ALLOC_ZERO;
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	if ((flags & ~known) || (flags & LAYER_ALLOC_PUNCH && !(flags & LAYER_ALLOC_KEEP_SIZE)))
		return -EOPNOTSUPP;
	if (len == 0)
		return -EINVAL;
	if (off > INT64_MAX || len > INT64_MAX - off)
		return -EFBIG;
	do
		r = allocate(&op, node, flags, off, len);
	while (op_again(&op, &r));
	return r;
}

static int seek(struct op *op, uint64_t id, uint64_t off, bool hole, uint64_t *ret)
{
	struct node *n;
	int r = node_get_bytes(op, id, &n);

	return r < 0 ? r : file_seek(&n->file, op->l->cache, off, hole, ret, &op->need);
}

int layer_seek(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
	       bool hole, uint64_t *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = seek(&op, node, off, hole, ret);
	while (op_again(&op, &r));
	return r;
}

/* --- copying ---------------------------------------------------------------------------- */

/* A whole file into an empty one shares everything.  1 if that was done, 0 if it is not the case. */
static int share(struct op *op, uint64_t from_id, uint64_t from_off, uint64_t to_id,
		 uint64_t to_off, size_t len, uint64_t *ret_size)
{
	struct layer *l = op->l;
	struct file copy = { 0 };
	struct node *from, *to;
	int r = node_get_bytes(op, from_id, &from);

	if (r < 0)
		return r;
	r = node_get_file(l, to_id, &to);
	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	/* What is kept for `to` already may be needed by a persist that is under way. */
	if (from == to || from_off > 0 || to_off > 0 || to->file.size > 0 || to->kept ||
	    len < from->file.size || from->file.size == 0)
		return 0;
	r = layers_room(l, 0, &op->need);
	if (r < 0)
		return r;
	if (over_quota(l, &to->file, 0, from->file.data))
		return -ENOSPC;
	r = file_share(&from->file, &copy);
	if (r < 0)
		return r;
	layer_count(l, (int64_t)file_memory(&copy) - (int64_t)file_memory(&to->file));
	file_done(&to->file);
	to->file = copy;
	node_keep(l, to); /* `from` may have no name, and end before this is persisted */
	node_count_data(l, to, 0);
	node_kill_priv(op->call, to);
	node_touch(l, to, true);
	*ret_size = copy.size;
	return 1;
}

static ssize_t copy_some(struct layer *l, const struct layer_call *call, uint64_t from,
			 uint64_t from_off, uint64_t to, uint64_t to_off, size_t len,
			 struct err *err)
{
	CLEANUP(layer_bytes_done) struct layer_bytes bytes = { 0 };
	size_t done = 0;
	int r = layer_read(l, call, from, from_off, len, &bytes, err);

	for (int i = 0; r >= 0 && i < bytes.n; i++) {
		r = layer_write(l, call, to, to_off + done, bytes.iov[i].iov_base,
				bytes.iov[i].iov_len, true, err);
		done += r >= 0 ? bytes.iov[i].iov_len : 0;
	}
	return r < 0 && done == 0 ? r : (ssize_t)done;
}

ssize_t layer_copy(struct layer *l, const struct layer_call *call, uint64_t from, uint64_t from_off,
		   uint64_t to, uint64_t to_off, size_t len, struct err *err)
{
	uint64_t size = 0;
	ssize_t n, done = 0;
	int r;

	if (from_off > INT64_MAX || to_off > INT64_MAX || len > INT64_MAX - to_off)
		return -EFBIG;
	{
		CLEANUP(op_end) struct op op = op_begin(l, call, err);

		do
			r = share(&op, from, from_off, to, to_off, len, &size);
		while (op_again(&op, &r));
	}
	if (r != 0)
		return r < 0 ? r : (ssize_t)size;
	if (!call->may_wait)
		return -EAGAIN;
	/* Bounded, so that nobody waits long for one answer. */
	while (len > 0 && done < (ssize_t)(16 * LAYER_IO_MAX)) {
		n = copy_some(l, call, from, from_off + (uint64_t)done, to, to_off + (uint64_t)done,
			      len < LAYER_IO_MAX ? len : LAYER_IO_MAX, err);
		if (n <= 0)
			return done > 0 ? done : n;
		done += n;
		len -= (size_t)n;
	}
	return done;
}
