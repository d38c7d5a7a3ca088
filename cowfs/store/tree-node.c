/*
 * tree-node.c - the bytes of a leaf or a branch, and every rule they obey.
 *
 *   header | n records of one size | heap
 *
 * A record owns the part of the heap between the end that the record before it names and its own
 * end: its name, then the target if it is a symlink.
 *
 * A record is decoded together with all rules that concern it alone, so even a node that was never
 * verified gives entries in canonical form or -EBADMSG. tree_node_verify() adds the rules between
 * records: their order.
 */
#include "cowfs/store/tree-node.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/le.h"
#include "base/path.h"

#define MAGIC      'T'
#define VERSION    1
#define FLAG_LINKS 0x01

enum { H_MAGIC = 0, H_VERSION = 1, H_LEVEL = 2, H_ZERO = 3, H_COUNT = 4, H_HEAP_LEN = 8 };
enum { H_RESERVED = 12, HEADER_SIZE = 16 };

/* Where a record of either sort says what part of the heap is its own. */
enum { R_HEAP_END = 0, R_NAME_LEN = 4 };

enum { E_FORM = 6, E_FLAGS = 7, E_MODE = 8, E_UID = 12, E_GID = 16, E_NLINK = 20, E_INO = 24 };
enum { E_SIZE = 32, E_MTIME_S = 40, E_CTIME_S = 48, E_MTIME_NS = 56, E_CTIME_NS = 60 };
enum {
	E_ID = 64,
	E_XATTRS = 80,
	E_BY_TYPE = 96,
	E_BYTES = 104,
	E_RESERVED = 112,
	ENTRY_SIZE = 128
};

enum { C_ZERO = 6, C_FLAGS = 7, C_ENTRIES = 8, C_FILES = 16, C_BYTES = 24, C_ID = 32 };
enum { C_RESERVED = 48, CHILD_SIZE = 64 };

static bool all_zero(const uint8_t *p, size_t len)
{
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return any == 0;
}

static size_t record_size(unsigned level)
{
	return level == 0 ? ENTRY_SIZE : CHILD_SIZE;
}

static const uint8_t *record_at(const struct tree_node *node, uint32_t i)
{
	return node->data + HEADER_SIZE + i * record_size(node->level);
}

static int record_err(struct err *err, uint32_t i, const char *flaw)
{
	return err_set(err, -EBADMSG, "tree record %u: %s", i, flaw);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void tree_node_count(uint64_t *entries, struct tree_summary *below, uint64_t more_entries,
		     const struct tree_summary *more_below)
{
	*entries = add_saturated(*entries, more_entries);
	below->files = add_saturated(below->files, more_below->files);
	below->bytes = add_saturated(below->bytes, more_below->bytes);
	below->links = below->links || more_below->links;
}

int tree_node_open(const void *data, size_t len, struct tree_node *ret, struct err *err)
{
	const uint8_t *h = data;
	struct tree_node node = { .data = data, .len = len };
	uint32_t heap_len, heap_end;

	if (len < HEADER_SIZE)
		return err_set(err, -EBADMSG, "%zu bytes are too few for a tree node", len);
	if (h[H_MAGIC] != MAGIC || h[H_VERSION] != VERSION)
		return err_set(err, -EBADMSG, "not a tree node of a known version");
	if (h[H_LEVEL] > TREE_LEVEL_MAX)
		return err_set(err, -EBADMSG, "a tree node of level %u", h[H_LEVEL]);
	if (h[H_ZERO] != 0 || !all_zero(h + H_RESERVED, HEADER_SIZE - H_RESERVED))
		return err_set(err, -EBADMSG, "reserved bytes of the header are not zero");

	node.level = h[H_LEVEL];
	node.n = le32_load(h + H_COUNT);
	heap_len = le32_load(h + H_HEAP_LEN);
	if (len - HEADER_SIZE != (uint64_t)node.n * record_size(node.level) + heap_len)
		return err_set(err, -EBADMSG, "%u records and %u bytes of names do not make %zu",
			       node.n, heap_len, len);
	if (node.level > 0 && node.n < 2)
		return err_set(err, -EBADMSG, "a branch of fewer than two nodes");

	heap_end = node.n > 0 ? le32_load(record_at(&node, node.n - 1) + R_HEAP_END) : 0;
	if (heap_end != heap_len)
		return err_set(err, -EBADMSG, "records own %u of %u bytes of names", heap_end,
			       heap_len);

	*ret = node;
	return 0;
}

/* What a record owns of the heap. */
struct part {
	const char *name;
	size_t name_len;
	const char *rest;
	size_t rest_len;
};

static const char *record_part(const struct tree_node *node, uint32_t i, struct part *ret)
{
	const uint8_t *rec = record_at(node, i), *heap = record_at(node, node->n);
	size_t heap_len = (size_t)(node->data + node->len - heap);
	size_t start = i > 0 ? le32_load(record_at(node, i - 1) + R_HEAP_END) : 0;
	size_t end = le32_load(rec + R_HEAP_END);
	size_t name_len = le16_load(rec + R_NAME_LEN);

	if (start > end || end > heap_len)
		return "its part of the names lies outside them";
	if (name_len > end - start)
		return "its name is longer than its part of the names";

	ret->name = (const char *)heap + start;
	ret->name_len = name_len;
	ret->rest = ret->name + name_len;
	ret->rest_len = end - start - name_len;
	return NULL;
}

static const char *entry_decode(const uint8_t *rec, const struct part *part, struct tree_entry *e)
{
	if (rec[E_FORM] > TREE_LAZY)
		return "an unknown form";
	if ((rec[E_FLAGS] & ~FLAG_LINKS) != 0)
		return "unknown flags";
	if (!all_zero(rec + E_RESERVED, ENTRY_SIZE - E_RESERVED))
		return "reserved bytes are not zero";

	*e = (struct tree_entry){
		.name = part->name,
		.name_len = part->name_len,
		.form = (enum tree_form)rec[E_FORM],
		.mode = le32_load(rec + E_MODE),
		.uid = le32_load(rec + E_UID),
		.gid = le32_load(rec + E_GID),
		.nlink = le32_load(rec + E_NLINK),
		.ino = le64_load(rec + E_INO),
		.size = le64_load(rec + E_SIZE),
		.mtime_s = (int64_t)le64_load(rec + E_MTIME_S),
		.ctime_s = (int64_t)le64_load(rec + E_CTIME_S),
		.mtime_ns = le32_load(rec + E_MTIME_NS),
		.ctime_ns = le32_load(rec + E_CTIME_NS),
		.target = part->rest_len > 0 ? part->rest : NULL,
		.target_len = part->rest_len,
		.below.bytes = le64_load(rec + E_BYTES),
		.below.links = (rec[E_FLAGS] & FLAG_LINKS) != 0,
	};
	memcpy(e->id.b, rec + E_ID, OBJECT_ID_SIZE);
	memcpy(e->xattrs.b, rec + E_XATTRS, OBJECT_ID_SIZE);
	if (S_ISDIR(e->mode))
		e->below.files = le64_load(rec + E_BY_TYPE);
	else if (S_ISCHR(e->mode) || S_ISBLK(e->mode))
		e->rdev = le64_load(rec + E_BY_TYPE);
	else
		e->data = le64_load(rec + E_BY_TYPE);
	return NULL;
}

int tree_node_entry(const struct tree_node *node, uint32_t i, struct tree_entry *ret,
		    struct err *err)
{
	struct tree_entry e;
	struct part part;
	const char *flaw;

	assert(node->level == 0 && i < node->n);

	flaw = record_part(node, i, &part);
	if (!flaw)
		flaw = entry_decode(record_at(node, i), &part, &e);
	if (!flaw)
		flaw = tree_entry_flaw(&e);
	if (flaw)
		return record_err(err, i, flaw);

	*ret = e;
	return 0;
}

int tree_node_record(const struct tree_node *node, uint32_t i, struct tree_record *ret,
		     struct err *err)
{
	const uint8_t *rec = record_at(node, i);
	struct part part;
	const char *flaw;
	bool dir;

	assert(node->level == 0 && i < node->n);

	flaw = record_part(node, i, &part);
	if (flaw)
		return record_err(err, i, flaw);
	dir = rec[E_FORM] == TREE_DIR;
	*ret = (struct tree_record){
		.bytes = rec,
		.name = part.name,
		.name_len = part.name_len,
		.size = ENTRY_SIZE + part.name_len + part.rest_len,
		.counts.files = dir ? le64_load(rec + E_BY_TYPE) : 1,
		.counts.bytes = le64_load(rec + (dir ? E_BYTES : E_SIZE)),
		.counts.links = dir ? (rec[E_FLAGS] & FLAG_LINKS) : rec[E_FORM] == TREE_LINK,
	};
	return 0;
}

static const char *child_flaw(const struct tree_child *c)
{
	if (!path_name_valid(c->name, c->name_len))
		return "its name cannot stand in a directory";
	if (object_id_is_zero(&c->id))
		return "a branch without a node";
	if (c->entries == 0)
		return "a node without entries";
	return NULL;
}

int tree_node_child(const struct tree_node *node, uint32_t i, struct tree_child *ret,
		    struct err *err)
{
	const uint8_t *rec = record_at(node, i);
	struct tree_child c;
	struct part part;
	const char *flaw;

	assert(node->level > 0 && i < node->n);

	flaw = record_part(node, i, &part);
	if (!flaw && part.rest_len > 0)
		flaw = "bytes behind its name";
	if (!flaw && (rec[C_FLAGS] & ~FLAG_LINKS) != 0)
		flaw = "unknown flags";
	if (!flaw && (rec[C_ZERO] != 0 || !all_zero(rec + C_RESERVED, CHILD_SIZE - C_RESERVED)))
		flaw = "reserved bytes are not zero";
	if (flaw)
		return record_err(err, i, flaw);

	c = (struct tree_child){
		.name = part.name,
		.name_len = part.name_len,
		.entries = le64_load(rec + C_ENTRIES),
		.below.files = le64_load(rec + C_FILES),
		.below.bytes = le64_load(rec + C_BYTES),
		.below.links = (rec[C_FLAGS] & FLAG_LINKS) != 0,
	};
	memcpy(c.id.b, rec + C_ID, OBJECT_ID_SIZE);
	flaw = child_flaw(&c);
	if (flaw)
		return record_err(err, i, flaw);

	*ret = c;
	return 0;
}

int tree_node_verify(const struct tree_node *node, struct err *err)
{
	struct tree_entry e = { 0 };
	struct tree_child c = { 0 };
	const char *name, *before = NULL;
	size_t name_len, before_len = 0;
	int r;

	for (uint32_t i = 0; i < node->n; i++) {
		if (node->level == 0)
			r = tree_node_entry(node, i, &e, err);
		else
			r = tree_node_child(node, i, &c, err);
		if (r < 0)
			return r;

		name = node->level == 0 ? e.name : c.name;
		name_len = node->level == 0 ? e.name_len : c.name_len;
		if (before && tree_name_compare(before, before_len, name, name_len) >= 0)
			return record_err(err, i, "its name does not follow the one before");
		before = name;
		before_len = name_len;
	}
	return 0;
}

int tree_node_find(const struct tree_node *node, const char *name, size_t name_len, uint32_t *ret_i,
		   bool *ret_equal, struct err *err)
{
	uint32_t low = 0, high = node->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		struct part part;
		const char *flaw;
		int order;

		flaw = record_part(node, mid, &part);
		if (flaw)
			return record_err(err, mid, flaw);
		order = tree_name_compare(part.name, part.name_len, name, name_len);
		if (order == 0) {
			*ret_i = mid;
			*ret_equal = true;
			return 0;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*ret_i = low;
	*ret_equal = false;
	return 0;
}

bool tree_node_same(const struct tree_node *a, uint32_t i, const struct tree_node *b, uint32_t k)
{
	const uint8_t *x = record_at(a, i), *y = record_at(b, k);
	struct part p, q;

	assert(i < a->n && k < b->n);
	/* Where the names end depends on what stands before; all else must be the same. */
	return a->level == b->level &&
	       memcmp(x + R_NAME_LEN, y + R_NAME_LEN, record_size(a->level) - R_NAME_LEN) == 0 &&
	       !record_part(a, i, &p) && !record_part(b, k, &q) && p.rest_len == q.rest_len &&
	       memcmp(p.name, q.name, p.name_len + p.rest_len) == 0;
}

void tree_node_writer_done(struct tree_node_writer *w)
{
	buf_done(&w->records);
	buf_done(&w->heap);
	w->n = 0;
}

/* Append a zeroed record that owns `name` and `rest`; NULL, and nothing changed, without memory. */
static uint8_t *writer_record(struct tree_node_writer *w, const struct part *part)
{
	size_t part_len = part->name_len + part->rest_len;
	uint8_t *rec, *text;

	if (buf_reserve(&w->records, record_size(w->level)) < 0)
		return NULL;
	text = buf_extend(&w->heap, part_len);
	if (!text)
		return NULL;
	memcpy(text, part->name, part->name_len);
	if (part->rest_len > 0)
		memcpy(text + part->name_len, part->rest, part->rest_len);

	rec = buf_extend(&w->records, record_size(w->level));
	assert(rec && w->heap.len <= UINT32_MAX);
	memset(rec, 0, record_size(w->level));
	le32_store(rec + R_HEAP_END, (uint32_t)w->heap.len);
	le16_store(rec + R_NAME_LEN, (uint16_t)part->name_len);
	w->n++;
	return rec;
}

int tree_node_add_entry(struct tree_node_writer *w, const struct tree_entry *e)
{
	struct part part = { e->name, e->name_len, e->target, e->target_len };
	uint8_t *rec;

	assert(w->level == 0);
	assert(!tree_entry_flaw(e));

	rec = writer_record(w, &part);
	if (!rec)
		return -ENOMEM;
	rec[E_FORM] = (uint8_t)e->form;
	rec[E_FLAGS] = e->below.links ? FLAG_LINKS : 0;
	le32_store(rec + E_MODE, e->mode);
	le32_store(rec + E_UID, e->uid);
	le32_store(rec + E_GID, e->gid);
	le32_store(rec + E_NLINK, e->nlink);
	le64_store(rec + E_INO, e->ino);
	le64_store(rec + E_SIZE, e->size);
	le64_store(rec + E_MTIME_S, (uint64_t)e->mtime_s);
	le64_store(rec + E_CTIME_S, (uint64_t)e->ctime_s);
	le32_store(rec + E_MTIME_NS, e->mtime_ns);
	le32_store(rec + E_CTIME_NS, e->ctime_ns);
	memcpy(rec + E_ID, e->id.b, OBJECT_ID_SIZE);
	memcpy(rec + E_XATTRS, e->xattrs.b, OBJECT_ID_SIZE);
	/* Only one of the three is not zero: the entry is canonical. */
	le64_store(rec + E_BY_TYPE, e->data | e->rdev | e->below.files);
	le64_store(rec + E_BYTES, e->below.bytes);
	return 0;
}

int tree_node_add_record(struct tree_node_writer *w, const struct tree_record *r)
{
	const size_t target_len = r->size - ENTRY_SIZE - r->name_len;
	struct part part = { r->name, r->name_len, r->name + r->name_len, target_len };
	uint8_t *rec;

	assert(w->level == 0);

	rec = writer_record(w, &part);
	if (!rec)
		return -ENOMEM;
	/* Where the names end depends on what stands before. */
	memcpy(rec + R_NAME_LEN, r->bytes + R_NAME_LEN, ENTRY_SIZE - R_NAME_LEN);
	return 0;
}

int tree_node_add_child(struct tree_node_writer *w, const struct tree_child *c)
{
	struct part part = { c->name, c->name_len, NULL, 0 };
	uint8_t *rec;

	assert(w->level > 0 && w->level <= TREE_LEVEL_MAX);
	assert(!child_flaw(c));

	rec = writer_record(w, &part);
	if (!rec)
		return -ENOMEM;
	rec[C_FLAGS] = c->below.links ? FLAG_LINKS : 0;
	le64_store(rec + C_ENTRIES, c->entries);
	le64_store(rec + C_FILES, c->below.files);
	le64_store(rec + C_BYTES, c->below.bytes);
	memcpy(rec + C_ID, c->id.b, OBJECT_ID_SIZE);
	return 0;
}

size_t tree_node_entry_size(const struct tree_entry *e)
{
	return ENTRY_SIZE + e->name_len + e->target_len;
}

size_t tree_node_writer_size(const struct tree_node_writer *w)
{
	return HEADER_SIZE + w->records.len + w->heap.len;
}

int tree_node_finish(struct tree_node_writer *w, struct buf *out)
{
	size_t len = tree_node_writer_size(w);
	uint8_t *h = buf_extend(out, len);

	if (!h)
		return -ENOMEM;
	assert(w->level == 0 || w->n >= 2);

	memset(h, 0, HEADER_SIZE);
	h[H_MAGIC] = MAGIC;
	h[H_VERSION] = VERSION;
	h[H_LEVEL] = (uint8_t)w->level;
	le32_store(h + H_COUNT, w->n);
	le32_store(h + H_HEAP_LEN, (uint32_t)w->heap.len);
	if (w->n > 0) {
		memcpy(h + HEADER_SIZE, w->records.data, w->records.len);
		memcpy(h + HEADER_SIZE + w->records.len, w->heap.data, w->heap.len);
	}

	buf_reset(&w->records);
	buf_reset(&w->heap);
	w->n = 0;
	return 0;
}
