/*
 * A record is one directory: the number of its names, and their entries.  A directory's record
 * follows the records of its subdirectories, which stand in its order.  So one pass verifies them:
 * each directory must claim exactly the last unclaimed records.
 */
#include "snapshot/capture/signatures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/path.h"
#include "base/sys.h"
#include "snapshot/capture/signatures-i.h"

/* --- stat ------------------------------------------------------------------------------- */

enum {
	STAT_DEV = 0,
	STAT_INO = 8,
	STAT_SIZE = 16,
	STAT_MTIME_S = 24,
	STAT_CTIME_S = 32,
	STAT_RDEV = 40,
	STAT_MTIME_NS = 48,
	STAT_CTIME_NS = 52,
	STAT_MODE = 56,
	STAT_UID = 60,
	STAT_GID = 64,
	STAT_NLINK = 68,
};

/* A directory's size and link count follow from its content. */
void signature_stat_set(struct signature_stat *s, const struct stat *st, dev_t home)
{
	const bool dir = S_ISDIR(st->st_mode);
	const bool device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
	uint8_t *b = s->b;

	le64_store(b + STAT_DEV, st->st_dev == home ? 0 : (uint64_t)st->st_dev);
	le64_store(b + STAT_INO, (uint64_t)st->st_ino);
	le64_store(b + STAT_SIZE, dir ? 0 : (uint64_t)st->st_size);
	le64_store(b + STAT_MTIME_S, (uint64_t)SYS_ST_MTIM(st).tv_sec);
	le64_store(b + STAT_CTIME_S, (uint64_t)SYS_ST_CTIM(st).tv_sec);
	le64_store(b + STAT_RDEV, device ? (uint64_t)st->st_rdev : 0);
	le32_store(b + STAT_MTIME_NS, (uint32_t)SYS_ST_MTIM(st).tv_nsec);
	le32_store(b + STAT_CTIME_NS, (uint32_t)SYS_ST_CTIM(st).tv_nsec);
	le32_store(b + STAT_MODE, (uint32_t)st->st_mode);
	le32_store(b + STAT_UID, (uint32_t)st->st_uid);
	le32_store(b + STAT_GID, (uint32_t)st->st_gid);
	le32_store(b + STAT_NLINK, dir ? 0 : (uint32_t)st->st_nlink);
}

static void set_attributes(struct tree_entry *e, const uint8_t *stat)
{
	e->mode = le32_load(stat + STAT_MODE);
	e->uid = le32_load(stat + STAT_UID);
	e->gid = le32_load(stat + STAT_GID);
	e->ino = le64_load(stat + STAT_INO);
	e->mtime_s = (int64_t)le64_load(stat + STAT_MTIME_S);
	e->mtime_ns = le32_load(stat + STAT_MTIME_NS);
	e->ctime_s = (int64_t)le64_load(stat + STAT_CTIME_S);
	e->ctime_ns = le32_load(stat + STAT_CTIME_NS);
	e->rdev = le64_load(stat + STAT_RDEV);
	if (S_ISREG(e->mode))
		e->size = le64_load(stat + STAT_SIZE);
}

/* --- entries ---------------------------------------------------------------------------- */

/* The size of the part between the fixed fields and the name. */
static size_t optional_size(signature_at at)
{
	const uint8_t flags = at[ENTRY_FLAGS], form = at[ENTRY_FORM];
	size_t n = 0;

	if (flags & ENTRY_HAS_INO)
		n += 8;
	if (flags & ENTRY_HAS_XATTRS)
		n += OBJECT_ID_SIZE;
	if (form != TREE_NONE)
		n += OBJECT_ID_SIZE;
	if (form == TREE_RECIPE)
		n += 8;
	if (form == TREE_DIR)
		n += ENTRY_DIR_SIZE;
	return n;
}

size_t signature_size(signature_at at)
{
	return ENTRY_FIXED + optional_size(at) + at[ENTRY_NAME_LEN] +
	       le16_load(at + ENTRY_TARGET_LEN);
}

const char *signature_name(signature_at at, size_t *ret_len)
{
	*ret_len = at[ENTRY_NAME_LEN];
	return (const char *)at + ENTRY_FIXED + optional_size(at);
}

bool signature_holds(signature_at at, const struct signature_stat *stat)
{
	return memcmp(at, stat->b, SIGNATURE_STAT_SIZE) == 0 && !(at[ENTRY_FLAGS] & ENTRY_DOUBTED);
}

static const uint8_t *take_id(const uint8_t *p, struct object_id *ret)
{
	memcpy(ret->b, p, OBJECT_ID_SIZE);
	return p + OBJECT_ID_SIZE;
}

void signature_decode(signature_at at, struct signature *ret)
{
	const uint8_t flags = at[ENTRY_FLAGS], *p = at + ENTRY_FIXED;
	struct signature s = {
		.stat = (const struct signature_stat *)at,
		.trusted = !(flags & ENTRY_DOUBTED),
		.linked = flags & ENTRY_LINKED,
		.whole = flags & ENTRY_WHOLE,
	};
	struct tree_entry *e = &s.e;

	set_attributes(e, at);
	e->form = (enum tree_form)at[ENTRY_FORM];
	if (flags & ENTRY_HAS_INO) {
		e->ino = le64_load(p);
		p += 8;
	}
	if (flags & ENTRY_HAS_XATTRS)
		p = take_id(p, &e->xattrs);
	if (e->form != TREE_NONE)
		p = take_id(p, &e->id);
	if (e->form == TREE_CHUNK || e->form == TREE_LAZY)
		e->data = e->size;
	if (e->form == TREE_RECIPE) {
		e->data = le64_load(p);
		p += 8;
	}
	if (e->form == TREE_DIR) {
		e->below.files = le64_load(p + ENTRY_DIR_FILES);
		e->below.bytes = le64_load(p + ENTRY_DIR_BYTES);
		e->below.links = flags & ENTRY_LINKS_BELOW;
		e->nlink = le32_load(p + ENTRY_DIR_NLINK);
		s.record = le64_load(p + ENTRY_DIR_RECORD);
		p += ENTRY_DIR_SIZE;
	}
	e->name = (const char *)p;
	e->name_len = at[ENTRY_NAME_LEN];
	e->target_len = le16_load(at + ENTRY_TARGET_LEN);
	if (e->target_len > 0) {
		e->target = e->name + e->name_len;
		e->size = e->target_len;
	}
	*ret = s;
}

uint64_t signature_record(signature_at at)
{
	return le64_load(at + ENTRY_FIXED + optional_size(at) - ENTRY_DIR_SIZE + ENTRY_DIR_RECORD);
}

/* Two are at least as far apart as their fixed parts are long. */
size_t signature_number(const struct signatures *s, signature_at at)
{
	return (size_t)(at - s->bytes.data) / ENTRY_FIXED;
}

size_t signatures_numbers(const struct signatures *s)
{
	return s->bytes.len / ENTRY_FIXED + 1;
}

uint32_t signature_mode(signature_at at)
{
	return le32_load(at + STAT_MODE);
}

uint64_t signature_bytes(signature_at at)
{
	return le64_load(at + STAT_SIZE);
}

uint64_t signature_ino(signature_at at)
{
	return le64_load(at[ENTRY_FLAGS] & ENTRY_HAS_INO ? at + ENTRY_FIXED : at + STAT_INO);
}

bool signature_is_whole(signature_at at)
{
	return at[ENTRY_FLAGS] & ENTRY_WHOLE;
}

/* --- records ---------------------------------------------------------------------------- */

struct signature_iter signature_iter_at(const uint8_t *record)
{
	return (struct signature_iter){
		.next = record + RECORD_HEAD,
		.left = le32_load(record),
	};
}

struct signature_iter signatures_names(const struct signatures *s, uint64_t record)
{
	return signature_iter_at(s->bytes.data + record);
}

void signature_iter_step(struct signature_iter *it)
{
	it->next += signature_size(it->next);
	it->left--;
}

signature_at signatures_top(const struct signatures *s)
{
	return s->bytes.data + s->top;
}

void signatures_free(struct signatures *s)
{
	if (!s)
		return;
	buf_done(&s->bytes);
	free(s);
}

/* --- verifying -------------------------------------------------------------------------- */

struct verifier {
	const uint8_t *data;
	size_t end;         /* of what may be looked at */
	struct buf records; /* u64: those that no directory has claimed yet */
	uint64_t names;
};

static void verifier_done(struct verifier *v)
{
	buf_done(&v->records);
}

static int bad(struct err *err, const char *why)
{
	return err_set(err, -EBADMSG, "signatures: %s", why);
}

/* Is there an entry at `at` that is one, and all of it before the end? */
static int verify_entry(const struct verifier *v, size_t at, struct err *err)
{
	const size_t left = v->end - at;
	const uint8_t *p = v->data + at;
	struct signature s;
	const char *flaw;

	if (left < ENTRY_FIXED || left < signature_size(p))
		return bad(err, "an entry is cut off");
	if (p[ENTRY_FORM] > TREE_DIR || (p[ENTRY_FLAGS] & ~ENTRY_FLAGS_KNOWN) != 0 ||
	    p[ENTRY_ZERO] != 0 || le16_load(p + ENTRY_ZERO_2) != 0)
		return bad(err, "an entry has what nobody knows");
	signature_decode(p, &s);
	flaw = tree_entry_flaw(&s.e);
	if (flaw)
		return bad(err, flaw);
	if (p[ENTRY_FLAGS] & (S_ISDIR(s.e.mode) ? ENTRY_LINKED : ENTRY_LINKS_BELOW))
		return bad(err, "links where there can be none");
	if (s.whole && !S_ISDIR(s.e.mode))
		return bad(err, "names where there can be none");
	if ((p[ENTRY_FLAGS] & ENTRY_HAS_INO) && s.e.ino == le64_load(p + STAT_INO))
		return bad(err, "an inode number given twice");
	if ((p[ENTRY_FLAGS] & ENTRY_HAS_XATTRS) && object_id_is_zero(&s.e.xattrs))
		return bad(err, "attributes without an object");
	if (S_ISDIR(s.e.mode) && le32_load(p + STAT_NLINK) != 0)
		return bad(err, "a directory with links of its own");
	return 0;
}

/* `n` directories in one take the last `n` records, in order; give where the first of them is. */
static int claim(struct verifier *v, const struct buf *wanted, struct err *err)
{
	if (wanted->len > v->records.len ||
	    (wanted->len > 0 && memcmp(v->records.data + v->records.len - wanted->len, wanted->data,
				       wanted->len) != 0))
		return bad(err, "a directory has not the names that stand before it");
	v->records.len -= wanted->len;
	return 0;
}

/* One record, its end in *at. */
static int verify_record(struct verifier *v, struct buf *wanted, size_t *at, struct err *err)
{
	const size_t start = *at;
	const char *last = NULL, *name;
	size_t last_len = 0, len, p = start + RECORD_HEAD;
	uint32_t n;
	int r;

	if (v->end - start < RECORD_HEAD)
		return bad(err, "a directory is cut off");
	n = le32_load(v->data + start);
	buf_reset(wanted);
	for (uint32_t i = 0; i < n; i++) {
		r = verify_entry(v, p, err);
		if (r < 0)
			return r;
		name = signature_name(v->data + p, &len);
		if (last && tree_name_compare(last, last_len, name, len) >= 0)
			return bad(err, "names out of order");
		last = name;
		last_len = len;
		if (v->data[p + ENTRY_FORM] == TREE_DIR &&
		    buf_append_u64(wanted, signature_record(v->data + p)) < 0)
			return err_nomem(err);
		p += signature_size(v->data + p);
	}
	r = claim(v, wanted, err);
	if (r < 0)
		return r;
	if (buf_append_u64(&v->records, start) < 0)
		return err_nomem(err);
	v->names += n;
	*at = p;
	return r;
}

static int verify_top(struct verifier *v, const struct signatures *s, struct err *err)
{
	int r = verify_entry(v, s->top, err);

	if (r < 0)
		return r;
	if (signature_size(v->data + s->top) != v->end - s->top)
		return bad(err, "bytes behind the end");
	if (v->data[s->top + ENTRY_FORM] != TREE_DIR || v->records.len != sizeof(uint64_t) ||
	    le64_load(v->records.data) != signature_record(v->data + s->top))
		return bad(err, "the top is not the last directory");
	return v->names + 1 == s->names ? 0 : bad(err, "another number of names than is said");
}

static int verify_head(struct signatures *s, struct err *err)
{
	const uint8_t *p = s->bytes.data;
	uint64_t top;

	if (s->bytes.len < HEAD_SIZE || memcmp(p, SIGNATURES_MAGIC, 8) != 0)
		return bad(err, "not a file of signatures");
	if (le32_load(p + HEAD_VERSION) != SIGNATURES_VERSION)
		return bad(err, "of another version");
	top = le64_load(p + HEAD_TOP);
	if (le32_load(p + HEAD_FLAGS) > HEAD_RENUMBERED || top < HEAD_SIZE || top > s->bytes.len)
		return bad(err, "the beginning is damaged");
	s->top = (size_t)top;
	s->renumbered = le32_load(p + HEAD_FLAGS) == HEAD_RENUMBERED;
	s->names = le64_load(p + HEAD_NAMES);
	take_id(p + HEAD_ROOT, &s->root);
	return 0;
}

int signatures_verify(struct signatures *s, struct err *err)
{
	CLEANUP(verifier_done) struct verifier v = { .data = s->bytes.data };
	CLEANUP(buf_done) struct buf wanted = BUF_INIT;
	size_t at = HEAD_SIZE;
	int r = verify_head(s, err);

	v.end = s->top;
	while (r >= 0 && at < s->top)
		r = verify_record(&v, &wanted, &at, err);
	v.end = s->bytes.len;
	return r < 0 ? r : verify_top(&v, s, err);
}

struct object_id signatures_sum(const struct object_key *key, const struct buf *bytes)
{
	return object_id_of(key, OBJECT_CHUNK, bytes->data + HEAD_SUMMED, bytes->len - HEAD_SUMMED);
}

int signatures_decode(struct buf *bytes, const struct object_key *key, struct signatures **ret,
		      struct err *err)
{
	CLEANUP(signatures_free_p) struct signatures *s = calloc(1, sizeof(*s));
	struct object_id sum;
	int r;

	if (!s)
		return err_nomem(err);
	if (bytes->len < HEAD_SIZE || bytes->len > SIGNATURES_MAX)
		return bad(err, "not a file of signatures");
	sum = signatures_sum(key, bytes);
	buf_swap(&s->bytes, bytes);
	r = memcmp(sum.b, s->bytes.data + HEAD_SUM, OBJECT_ID_SIZE) == 0 ? signatures_verify(s, err)
									 : bad(err, "damaged");
	if (r < 0) {
		buf_swap(&s->bytes, bytes);
		return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}
