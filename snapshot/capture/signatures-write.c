/*
 * A draft holds the records of changed directories, in the order in which threads finished them. At
 * the end everything below the top is copied, from the draft and from the old signatures, in the
 * order of a walk.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/lock.h"
#include "cowfs/store/root.h"
#include "snapshot/capture/signatures-i.h"

struct signatures_draft {
	const struct signatures *old;
	pthread_mutex_t lock; /* guards what follows; a leaf */
	struct buf records;
	bool full;
};

int signatures_draft_new(const struct signatures *old, struct signatures_draft **ret,
			 struct err *err)
{
	struct signatures_draft *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(err);
	d->old = old;
	pthread_mutex_init(&d->lock, NULL);
	*ret = d;
	return 0;
}

void signatures_draft_free(struct signatures_draft *d)
{
	if (!d)
		return;
	pthread_mutex_destroy(&d->lock);
	buf_done(&d->records);
	free(d);
}

int signatures_draft_add(struct signatures_draft *d, const struct buf *record, uint64_t *ret_record)
{
	int r = 0;

	LOCKED(&d->lock);
	*ret_record = d->records.len;
	d->full |= record->len > SIGNATURES_MAX - d->records.len;
	if (!d->full)
		r = buf_append(&d->records, record->data, record->len);
	return r;
}

/* --- entries ---------------------------------------------------------------------------- */

static uint8_t flags_of(const struct signature *s)
{
	const struct tree_entry *e = &s->e;
	uint8_t flags = 0;

	if (!s->trusted)
		flags |= ENTRY_DOUBTED;
	if (s->linked)
		flags |= ENTRY_LINKED;
	if (e->ino != le64_load(s->stat->b + 8))
		flags |= ENTRY_HAS_INO;
	if (!object_id_is_zero(&e->xattrs))
		flags |= ENTRY_HAS_XATTRS;
	if (e->below.links)
		flags |= ENTRY_LINKS_BELOW;
	if (s->whole)
		flags |= ENTRY_WHOLE;
	return flags;
}

static int append_dir(struct buf *out, const struct signature *s)
{
	const struct tree_entry *e = &s->e;

	if (buf_append_u64(out, e->below.files) < 0 || buf_append_u64(out, e->below.bytes) < 0 ||
	    buf_append_u64(out, s->record) < 0)
		return -ENOMEM;
	return buf_append_u32(out, e->nlink);
}

int signature_append(struct buf *out, const struct signature *s)
{
	const struct tree_entry *e = &s->e;
	const uint8_t flags = flags_of(s);
	uint8_t fixed[ENTRY_FIXED - SIGNATURE_STAT_SIZE] = { 0 };

	assert(e->form != TREE_LINK && e->name_len <= UINT8_MAX && e->target_len <= UINT16_MAX);
	fixed[ENTRY_FORM - SIGNATURE_STAT_SIZE] = (uint8_t)e->form;
	fixed[ENTRY_FLAGS - SIGNATURE_STAT_SIZE] = flags;
	fixed[ENTRY_NAME_LEN - SIGNATURE_STAT_SIZE] = (uint8_t)e->name_len;
	le16_store(fixed + (ENTRY_TARGET_LEN - SIGNATURE_STAT_SIZE), (uint16_t)e->target_len);
	if (buf_append(out, s->stat->b, SIGNATURE_STAT_SIZE) < 0 ||
	    buf_append(out, fixed, sizeof(fixed)) < 0 ||
	    ((flags & ENTRY_HAS_INO) && buf_append_u64(out, e->ino) < 0) ||
	    ((flags & ENTRY_HAS_XATTRS) && buf_append(out, e->xattrs.b, OBJECT_ID_SIZE) < 0) ||
	    (e->form != TREE_NONE && buf_append(out, e->id.b, OBJECT_ID_SIZE) < 0) ||
	    (e->form == TREE_RECIPE && buf_append_u64(out, e->data) < 0) ||
	    (e->form == TREE_DIR && append_dir(out, s) < 0) ||
	    buf_append(out, e->name, e->name_len) < 0)
		return -ENOMEM;
	return buf_append(out, e->target, e->target_len);
}

static void set_record(uint8_t *entry, uint64_t record)
{
	size_t len;
	const char *name = signature_name(entry, &len);

	le64_store(entry + (name - (const char *)entry) - ENTRY_DIR_SIZE + ENTRY_DIR_RECORD,
		   record);
}

int signature_append_old(struct buf *out, signature_at at, uint64_t record)
{
	const size_t start = out->len;
	int r = buf_append(out, at, signature_size(at));

	if (r < 0)
		return r;
	if (at[ENTRY_FORM] == TREE_DIR)
		set_record(out->data + start, record);
	return r;
}

int signature_append_count(struct buf *out, uint32_t n)
{
	return buf_append_u32(out, n);
}

/* --- the whole -------------------------------------------------------------------------- */

/* A directory on the way to be copied. */
struct frame {
	const uint8_t *record;
	struct signature_iter it; /* at the next that may be a directory */
	bool old;                 /* the records that it names are old ones */
};

struct copying {
	const struct signatures_draft *draft;
	struct buf *out;
	struct buf frames; /* struct frame */
	struct buf placed; /* u64: records that were copied and whose directory was not */
	uint64_t names;
};

static void copying_done(struct copying *c)
{
	buf_done(&c->frames);
	buf_done(&c->placed);
}

/* Old signatures name records as they are; in a draft a number says where to look. */
static int push(struct copying *c, uint64_t record, bool old)
{
	const struct signatures_draft *d = c->draft;
	struct frame f = { .old = old || (record & SIGNATURES_OLD) };

	record &= ~SIGNATURES_OLD;
	f.record = (f.old ? d->old->bytes.data : d->records.data) + record;
	f.it = signature_iter_at(f.record);
	return buf_append(&c->frames, &f, sizeof(f));
}

/* All that is below it stands in `out` already. */
static int copy_record(struct copying *c, const struct frame *f)
{
	const size_t start = c->out->len;
	const uint32_t n = le32_load(f->record);
	size_t dirs = 0, at;
	int r = buf_append(c->out, f->record, (size_t)(f->it.next - f->record));

	if (r < 0)
		return r;
	for (struct signature_iter it = signature_iter_at(f->record); it.left > 0;
	     signature_iter_step(&it))
		dirs += it.next[ENTRY_FORM] == TREE_DIR;
	c->placed.len -= dirs * sizeof(uint64_t);
	at = c->placed.len;
	for (struct signature_iter it = signature_iter_at(c->out->data + start); it.left > 0;
	     signature_iter_step(&it)) {
		if (it.next[ENTRY_FORM] != TREE_DIR)
			continue;
		set_record(c->out->data + (it.next - c->out->data), le64_load(c->placed.data + at));
		at += sizeof(uint64_t);
	}
	c->names += n;
	return buf_append_u64(&c->placed, start);
}

/* Copy the record at the top of the stack, once those below it are; 0 when it is gone. */
static int copy_on(struct copying *c)
{
	struct frame *f = (struct frame *)(void *)(c->frames.data + c->frames.len) - 1;
	signature_at at;

	for (; f->it.left > 0; signature_iter_step(&f->it)) {
		if (f->it.next[ENTRY_FORM] != TREE_DIR)
			continue;
		at = f->it.next;
		signature_iter_step(&f->it);
		return push(c, signature_record(at), f->old);
	}
	c->frames.len -= sizeof(*f);
	return c->out->len > SIGNATURES_MAX ? -EFBIG : copy_record(c, f);
}

static int copy_all(struct copying *c, uint64_t top)
{
	int r = push(c, top, false);

	while (r >= 0 && c->frames.len > 0)
		r = copy_on(c);
	return r;
}

static void set_head(struct signatures *s, const struct object_key *key)
{
	uint8_t *p = s->bytes.data;
	struct object_id sum;

	memcpy(p, SIGNATURES_MAGIC, 8);
	le32_store(p + HEAD_VERSION, SIGNATURES_VERSION);
	le32_store(p + HEAD_FLAGS, s->renumbered ? HEAD_RENUMBERED : 0);
	memcpy(p + HEAD_ROOT, s->root.b, OBJECT_ID_SIZE);
	le64_store(p + HEAD_NAMES, s->names);
	le64_store(p + HEAD_TOP, s->top);
	sum = signatures_sum(key, &s->bytes);
	memcpy(p + HEAD_SUM, sum.b, OBJECT_ID_SIZE);
}

static int write_all(struct copying *c, const struct signature *top, size_t *ret_top)
{
	struct signature own = *top;
	int r = buf_reserve(c->out, HEAD_SIZE + c->draft->records.len);

	r = r < 0 ? r : buf_append_zero(c->out, HEAD_SIZE);

	if (r < 0)
		return r;
	r = copy_all(c, top->record);
	if (r < 0)
		return r;
	*ret_top = c->out->len;
	own.e.name = ROOT_TOP;
	own.e.name_len = strlen(ROOT_TOP);
	own.record = le64_load(c->placed.data);
	return signature_append(c->out, &own);
}

int signatures_finish(struct signatures_draft *d, const struct signature *top,
		      const struct object_id *root, bool renumbered, const struct object_key *key,
		      struct signatures **ret, struct err *err)
{
	CLEANUP(signatures_free_p) struct signatures *s = calloc(1, sizeof(*s));
	CLEANUP(copying_done) struct copying c = { .draft = d };
	int r;

	if (!s)
		return err_nomem(err);
	if (d->full)
		return err_set(err, -EFBIG, "there are too many names for signatures");
	c.out = &s->bytes;
	r = write_all(&c, top, &s->top);
	if (r == -EFBIG || s->bytes.len > SIGNATURES_MAX)
		return err_set(err, -EFBIG, "there are too many names for signatures");
	if (r < 0)
		return err_nomem(err);
	s->root = *root;
	s->names = c.names + 1;
	s->renumbered = renumbered;
	set_head(s, key);
	*ret = TAKE_PTR(s);
	return 0;
}
