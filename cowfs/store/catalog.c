/*
 * Every kind is one row of a table: which ref it is, what the ref is called after,
 * and the fields of its record in their order on disk.  Writing, reading and freeing
 * follow the table, so a new field is one line in it.
 *
 * A record is a version byte and the fields, nothing between or behind them.  A field that
 * came with a later version of its kind stands behind the older ones; in a record of an
 * older version it is not there, and reads as zero.
 */
#include "cowfs/store/catalog.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/le.h"
#include "base/path.h"
#include "base/sys.h"

#define TEXT_MAX ((size_t)64 << 10)
#define NO_ROOT  SIZE_MAX

/* One more than the longest row of the table has. */
#define FIELDS_MAX 14

enum field_type {
	FIELD_END,
	FIELD_ID,         /* struct catalog_id: its bytes */
	FIELD_NUMBER,     /* int64_t or uint64_t: eight bytes, little-endian */
	FIELD_TEXT,       /* char *: length in four bytes, then that many bytes without NUL */
	FIELD_MAYBE_TEXT, /* the same; NULL is stored as the empty text */
};

struct field {
	enum field_type type;
	size_t offset;   /* in the struct of its kind */
	uint8_t version; /* the first that has it; 0: all */
};

struct kind {
	uint8_t version;   /* of the records that are written */
	size_t size;       /* of the struct */
	struct field name; /* what the ref is called: FIELD_ID in hex, or FIELD_TEXT */
	size_t root;       /* offset of a struct object_id, or NO_ROOT */
	struct field fields[FIELDS_MAX];
};

static const struct kind kinds[REF_KINDS + 1] = {
	[REF_PROJECT] = {
		.version = 1,
		.size = sizeof(struct project),
		.name = { FIELD_ID, offsetof(struct project, id) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_TEXT, offsetof(struct project, path) },
			{ FIELD_NUMBER, offsetof(struct project, created) },
		},
	},
	[REF_SNAPSHOT] = {
		.version = 3,
		.size = sizeof(struct snapshot),
		.name = { FIELD_ID, offsetof(struct snapshot, id) },
		.root = offsetof(struct snapshot, root),
		.fields = {
			{ FIELD_ID, offsetof(struct snapshot, parent) },
			{ FIELD_ID, offsetof(struct snapshot, project) },
			{ FIELD_MAYBE_TEXT, offsetof(struct snapshot, clone) },
			{ FIELD_TEXT, offsetof(struct snapshot, message) },
			{ FIELD_NUMBER, offsetof(struct snapshot, created) },
			{ FIELD_NUMBER, offsetof(struct snapshot, files) },
			{ FIELD_NUMBER, offsetof(struct snapshot, bytes) },
			{ FIELD_MAYBE_TEXT, offsetof(struct snapshot, lacks), 2 },
			{ FIELD_ID, offsetof(struct snapshot, base), 3 },
		},
	},
	[REF_TAG] = {
		.version = 1,
		.size = sizeof(struct tag),
		.name = { FIELD_TEXT, offsetof(struct tag, name) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_ID, offsetof(struct tag, snapshot) },
		},
	},
	[REF_CLONE] = {
		.version = 2,
		.size = sizeof(struct clone),
		.name = { FIELD_TEXT, offsetof(struct clone, name) },
		.root = offsetof(struct clone, root),
		.fields = {
			{ FIELD_ID, offsetof(struct clone, base) },
			{ FIELD_ID, offsetof(struct clone, project) },
			{ FIELD_NUMBER, offsetof(struct clone, created) },
			{ FIELD_NUMBER, offsetof(struct clone, expires) },
			{ FIELD_NUMBER, offsetof(struct clone, quota) },
			{ FIELD_NUMBER, offsetof(struct clone, next_ino), 2 },
			{ FIELD_NUMBER, offsetof(struct clone, grown), 2 },
			{ FIELD_NUMBER, offsetof(struct clone, strict), 2 },
		},
	},
	[REF_RECEIPT] = {
		.version = 1,
		.size = sizeof(struct receipt),
		.name = { FIELD_ID, offsetof(struct receipt, id) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_NUMBER, offsetof(struct receipt, kind) },
			{ FIELD_NUMBER, offsetof(struct receipt, state) },
			{ FIELD_ID, offsetof(struct receipt, project) },
			{ FIELD_ID, offsetof(struct receipt, before) },
			{ FIELD_ID, offsetof(struct receipt, after) },
			{ FIELD_ID, offsetof(struct receipt, base) },
			{ FIELD_ID, offsetof(struct receipt, undoes) },
			{ FIELD_MAYBE_TEXT, offsetof(struct receipt, clone) },
			{ FIELD_TEXT, offsetof(struct receipt, who) },
			{ FIELD_NUMBER, offsetof(struct receipt, uid) },
			{ FIELD_NUMBER, offsetof(struct receipt, created) },
			{ FIELD_MAYBE_TEXT, offsetof(struct receipt, sha256) },
			{ FIELD_MAYBE_TEXT, offsetof(struct receipt, checks) },
		},
	},
};

/* Room for a struct of any kind. */
union record {
	struct project project;
	struct snapshot snapshot;
	struct tag tag;
	struct clone clone;
	struct receipt receipt;
};

int catalog_id_new(struct catalog_id *ret, struct err *err)
{
	struct catalog_id id;
	int r;

	do {
		r = sys_random(id.b, sizeof(id.b));
		if (r < 0)
			return err_wrap(err, r, "drawing a random id");
	} while (catalog_id_is_zero(&id));
	*ret = id;
	return 0;
}

bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

bool catalog_id_is_zero(const struct catalog_id *id)
{
	static const struct catalog_id zero;

	return catalog_id_same(id, &zero);
}

char *catalog_id_hex(const struct catalog_id *id, char hex[CATALOG_HEX_SIZE])
{
	return hex_encode(id->b, sizeof(id->b), hex);
}

static void field_done(const struct field *f, void *record)
{
	void *at = (char *)record + f->offset;
	char **text = at;

	if (f->type != FIELD_TEXT && f->type != FIELD_MAYBE_TEXT)
		return;
	free(*text);
	*text = NULL;
}

static void record_done(enum ref_kind kind, void *record)
{
	const struct kind *k = &kinds[kind];

	field_done(&k->name, record);
	for (const struct field *f = k->fields; f->type != FIELD_END; f++)
		field_done(f, record);
}

/* --- writing ---------------------------------------------------------------------------- */

static int write_text(struct buf *out, const char *text, struct err *err)
{
	size_t len = text ? strlen(text) : 0;

	if (len > TEXT_MAX)
		return err_set(err, -EINVAL, "a text of %zu bytes, above %zu", len, TEXT_MAX);
	if (buf_append_u32(out, (uint32_t)len) < 0 || buf_append(out, text, len) < 0)
		return err_nomem(err);
	return 0;
}

static int write_field(struct buf *out, const struct field *f, const void *record, struct err *err)
{
	const void *at = (const char *)record + f->offset;
	const uint64_t *number = at;
	char *const *text = at;

	switch (f->type) {
	case FIELD_ID:
		return buf_append(out, at, CATALOG_ID_SIZE) < 0 ? err_nomem(err) : 0;
	case FIELD_NUMBER:
		return buf_append_u64(out, *number) < 0 ? err_nomem(err) : 0;
	case FIELD_TEXT:
		assert(*text);
		return write_text(out, *text, err);
	case FIELD_MAYBE_TEXT:
		assert(!*text || **text);
		return write_text(out, *text, err);
	case FIELD_END:
		break;
	}
	assert(!"a field of no type");
	return -EINVAL;
}

static const char *ref_name_of(const struct kind *k, const void *record, char hex[CATALOG_HEX_SIZE])
{
	const void *at = (const char *)record + k->name.offset;
	char *const *text = at;

	if (k->name.type == FIELD_TEXT)
		return *text;
	assert(!catalog_id_is_zero(at));
	return catalog_id_hex(at, hex);
}

static int record_put(struct batch *b, enum ref_kind kind, const void *record, enum ref_mode mode,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;
	const struct kind *k = &kinds[kind];
	struct ref ref = { .kind = kind };
	char hex[CATALOG_HEX_SIZE];
	int r;

	ref.name = ref_name_of(k, record, hex);
	ref.name_len = strlen(ref.name);
	if (ref.name_len < 1 || ref.name_len > REF_NAME_MAX)
		return err_set(err, -EINVAL, "the name of a %s has 1 to %d bytes",
			       ref_kind_name(kind), REF_NAME_MAX);
	if (k->root != NO_ROOT) {
		memcpy(&ref.root, (const char *)record + k->root, sizeof(ref.root));
		assert(!object_id_is_zero(&ref.root));
	}
	if (buf_append_u8(&value, k->version) < 0)
		return err_nomem(err);
	for (const struct field *f = k->fields; f->type != FIELD_END; f++) {
		r = write_field(&value, f, record, err);
		if (r < 0)
			return err_wrap(err, r, "%s", ref_kind_name(kind));
	}
	ref.value = value.data;
	ref.value_len = value.len;
	return ref_put(b, &ref, mode, err);
}

/* --- reading ---------------------------------------------------------------------------- */

struct cursor {
	const uint8_t *at;
	size_t left;
};

/* The next `n` bytes; NULL if fewer are left. */
static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *p = c->at;

	if (n > c->left)
		return NULL;
	c->at += n;
	c->left -= n;
	return p;
}

static int cut_off(struct err *err)
{
	return err_set(err, -EBADMSG, "the record is cut off");
}

static int copy_text(const void *bytes, size_t len, char **ret, struct err *err)
{
	char *text;

	if (memchr(bytes, '\0', len))
		return err_set(err, -EBADMSG, "a text with a NUL in it");
	text = malloc(len + 1);
	if (!text)
		return err_nomem(err);
	memcpy(text, bytes, len);
	text[len] = '\0';
	*ret = text;
	return 0;
}

static int read_text(struct cursor *c, bool may_be_null, char **ret, struct err *err)
{
	const uint8_t *p = take(c, 4);
	uint32_t len;

	if (!p)
		return cut_off(err);
	len = le32_load(p);
	if (len > TEXT_MAX)
		return err_set(err, -EBADMSG, "a text of %u bytes, above %zu", len, TEXT_MAX);
	p = take(c, len);
	if (!p)
		return cut_off(err);
	if (len == 0 && may_be_null)
		return 0;
	return copy_text(p, len, ret, err);
}

static int read_field(struct cursor *c, const struct field *f, void *record, struct err *err)
{
	void *at = (char *)record + f->offset;
	const uint8_t *p;

	if (f->type == FIELD_TEXT || f->type == FIELD_MAYBE_TEXT)
		return read_text(c, f->type == FIELD_MAYBE_TEXT, at, err);

	_Static_assert(CATALOG_ID_SIZE == sizeof(uint64_t), "ids and numbers are as long");
	p = take(c, CATALOG_ID_SIZE);
	if (!p)
		return cut_off(err);
	if (f->type == FIELD_ID)
		memcpy(at, p, CATALOG_ID_SIZE);
	else
		*(uint64_t *)at = le64_load(p);
	return 0;
}

static int read_name(const struct ref *ref, const struct field *f, void *record, struct err *err)
{
	void *at = (char *)record + f->offset;
	struct catalog_id *id = at;
	char hex[CATALOG_HEX_SIZE];

	if (f->type == FIELD_TEXT)
		return copy_text(ref->name, ref->name_len, at, err);
	if (hex_decode(ref->name, ref->name_len, id->b, sizeof(id->b)) < 0 ||
	    memcmp(ref->name, catalog_id_hex(id, hex), ref->name_len) != 0)
		return err_set(err, -EBADMSG, "its name is no id");
	return 0;
}

static int read_root(const struct ref *ref, const struct kind *k, void *record, struct err *err)
{
	if (object_id_is_zero(&ref->root) != (k->root == NO_ROOT))
		return err_set(err, -EBADMSG, "%s",
			       k->root == NO_ROOT ? "it has a tree" : "it has no tree");
	if (k->root != NO_ROOT)
		memcpy((char *)record + k->root, &ref->root, sizeof(ref->root));
	return 0;
}

static int read_value(const struct ref *ref, const struct kind *k, void *record, struct err *err)
{
	struct cursor c = { .at = ref->value, .left = ref->value_len };
	const uint8_t *version = take(&c, 1);
	int r;

	if (!version)
		return cut_off(err);
	if (*version > k->version)
		return err_set(err, -EBADMSG, "record of a later version");
	if (*version < 1)
		return err_set(err, -EBADMSG, "record of no version");
	for (const struct field *f = k->fields; f->type != FIELD_END; f++) {
		if (f->version > *version)
			continue;
		r = read_field(&c, f, record, err);
		if (r < 0)
			return r;
	}
	if (c.left > 0)
		return err_set(err, -EBADMSG, "%zu bytes follow the record", c.left);
	return 0;
}

static int wrap(struct err *err, int code, const struct ref *ref)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	const char *name = NULL;

	if (path_append_shown(&shown, ref->name, ref->name_len) == 0)
		name = buf_str(&shown);
	return err_wrap(err, code, "%s '%.120s'", ref_kind_name(ref->kind), name ? name : "?");
}

/* *ret is a struct of the ref's kind. */
static int record_read(const struct ref *ref, void *ret, struct err *err)
{
	const struct kind *k = &kinds[ref->kind];
	union record record;
	int r;

	memset(&record, 0, sizeof(record));
	r = read_name(ref, &k->name, &record, err);
	if (r >= 0)
		r = read_root(ref, k, &record, err);
	if (r >= 0)
		r = read_value(ref, k, &record, err);
	if (r < 0) {
		record_done(ref->kind, &record);
		return wrap(err, r, ref);
	}
	memcpy(ret, &record, k->size);
	return 0;
}

static int record_get(struct store *s, enum ref_kind kind, const char *name, void *ret,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct ref ref;
	int r;

	r = ref_get(s, kind, name, strlen(name), &ref, &hold, err);
	if (r < 0)
		return r;
	return record_read(&ref, ret, err);
}

struct visit {
	union {
		project_fn project;
		snapshot_fn snapshot;
		tag_fn tag;
		clone_fn clone;
		receipt_fn receipt;
	} fn;
	void *ctx;
};

static int call(const struct visit *v, enum ref_kind kind, const union record *record,
		struct err *err)
{
	switch (kind) {
	case REF_PROJECT:
		return v->fn.project(&record->project, v->ctx, err);
	case REF_SNAPSHOT:
		return v->fn.snapshot(&record->snapshot, v->ctx, err);
	case REF_TAG:
		return v->fn.tag(&record->tag, v->ctx, err);
	case REF_CLONE:
		return v->fn.clone(&record->clone, v->ctx, err);
	case REF_RECEIPT:
		return v->fn.receipt(&record->receipt, v->ctx, err);
	}
	assert(!"a ref of no kind");
	return -EINVAL;
}

static int visit_ref(const struct ref *ref, void *ctx, struct err *err)
{
	union record record;
	int r;

	r = record_read(ref, &record, err);
	if (r < 0)
		return r;
	r = call(ctx, ref->kind, &record, err);
	record_done(ref->kind, &record);
	return r;
}

static int record_each(struct store *s, enum ref_kind kind, struct visit visit, struct err *err)
{
	return ref_each(s, kind, "", 0, visit_ref, &visit, err);
}

/* --- by kind ---------------------------------------------------------------------------- */

void project_done(struct project *p)
{
	record_done(REF_PROJECT, p);
}

void snapshot_done(struct snapshot *s)
{
	record_done(REF_SNAPSHOT, s);
}

void tag_done(struct tag *t)
{
	record_done(REF_TAG, t);
}

void clone_done(struct clone *c)
{
	record_done(REF_CLONE, c);
}

void receipt_done(struct receipt *r)
{
	record_done(REF_RECEIPT, r);
}

int project_put(struct batch *b, const struct project *p, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_PROJECT, p, mode, err);
}

int snapshot_put(struct batch *b, const struct snapshot *s, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_SNAPSHOT, s, mode, err);
}

int tag_put(struct batch *b, const struct tag *t, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_TAG, t, mode, err);
}

int clone_put(struct batch *b, const struct clone *c, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_CLONE, c, mode, err);
}

int receipt_put(struct batch *b, const struct receipt *r, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_RECEIPT, r, mode, err);
}

int project_get(struct store *s, const struct catalog_id *id, struct project *ret, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return record_get(s, REF_PROJECT, catalog_id_hex(id, hex), ret, err);
}

int snapshot_get(struct store *s, const struct catalog_id *id, struct snapshot *ret,
		 struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return record_get(s, REF_SNAPSHOT, catalog_id_hex(id, hex), ret, err);
}

int tag_get(struct store *s, const char *name, struct tag *ret, struct err *err)
{
	return record_get(s, REF_TAG, name, ret, err);
}

int clone_get(struct store *s, const char *name, struct clone *ret, struct err *err)
{
	return record_get(s, REF_CLONE, name, ret, err);
}

int receipt_get(struct store *s, const struct catalog_id *id, struct receipt *ret, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return record_get(s, REF_RECEIPT, catalog_id_hex(id, hex), ret, err);
}

int project_each(struct store *s, project_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_PROJECT, (struct visit){ { .project = fn }, ctx }, err);
}

int snapshot_each(struct store *s, snapshot_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_SNAPSHOT, (struct visit){ { .snapshot = fn }, ctx }, err);
}

int tag_each(struct store *s, tag_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_TAG, (struct visit){ { .tag = fn }, ctx }, err);
}

int clone_each(struct store *s, clone_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_CLONE, (struct visit){ { .clone = fn }, ctx }, err);
}

int receipt_each(struct store *s, receipt_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_RECEIPT, (struct visit){ { .receipt = fn }, ctx }, err);
}

/* The one snapshot whose name begins as wanted. */
struct match {
	const char *prefix;
	struct snapshot snapshot;
	bool found;
};

static void match_done(struct match *m)
{
	snapshot_done(&m->snapshot);
}

static int match_ref(const struct ref *ref, void *ctx, struct err *err)
{
	struct match *m = ctx;
	int r;

	if (m->found)
		return err_set(err, -EINVAL, "several snapshots begin with '%s'", m->prefix);
	r = record_read(ref, &m->snapshot, err);
	if (r < 0)
		return r;
	m->found = true;
	return 0;
}

int snapshot_find(struct store *s, const char *prefix, struct snapshot *ret, struct err *err)
{
	char digits[CATALOG_HEX_SIZE];
	CLEANUP(match_done) struct match m = { .prefix = digits };
	size_t len = strlen(prefix);
	int r;

	if (len == 0 || strspn(prefix, "0123456789abcdefABCDEF") != len)
		return err_set(err, -EINVAL, "'%.64s' is no id of a snapshot", prefix);
	if (len >= sizeof(digits))
		return -ENOENT;
	for (size_t i = 0; i <= len; i++)
		digits[i] = (char)tolower((unsigned char)prefix[i]);
	r = ref_each(s, REF_SNAPSHOT, digits, len, match_ref, &m, err);
	if (r < 0)
		return r;
	if (!m.found)
		return -ENOENT;
	*ret = m.snapshot;
	m.snapshot = (struct snapshot){ 0 };
	return 0;
}
