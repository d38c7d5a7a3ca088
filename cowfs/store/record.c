/*
 * Every kind is one row of a table: its ref kind, the source of the ref's name, and the fields of
 * its record in their order on disk. Writing, reading and freeing follow the table, so a new field
 * is one line in it.
 *
 * A record is a version byte and the fields, nothing between or after them. A field that came with
 * a later version of its kind follows the older ones; in a record of an older version it is absent,
 * and reads as zero.
 */
#include "cowfs/store/record-i.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/le.h"
#include "base/path.h"

#define TEXT_MAX ((size_t)64 << 10)
#define NO_ROOT  SIZE_MAX

/* One more than the longest row of the table has. */
#define FIELDS_MAX 17

enum field_type {
	FIELD_END,
	FIELD_ID,         /* struct catalog_id: its bytes */
	FIELD_NUMBER,     /* int64_t or uint64_t: eight bytes, little-endian */
	FIELD_TEXT,       /* char *: length in four bytes, then that many bytes without NUL */
	FIELD_MAYBE_TEXT, /* the same; NULL is stored as the empty text */
	FIELD_NUMBERS,    /* struct record_numbers: how many in four bytes, then each in eight */
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
		.version = 4,
		.size = sizeof(struct project),
		.name = { FIELD_ID, offsetof(struct project, id) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_TEXT, offsetof(struct project, path) },
			{ FIELD_NUMBER, offsetof(struct project, created) },
			{ FIELD_NUMBER, offsetof(struct project, hidden), 2 },
			{ FIELD_NUMBER, offsetof(struct project, ino), 3 },
			{ FIELD_NUMBER, offsetof(struct project, born), 3 },
			{ FIELD_NUMBER, offsetof(struct project, fs), 3 },
			{ FIELD_MAYBE_TEXT, offsetof(struct project, former), 4 },
		},
	},
	[REF_SNAPSHOT] = {
		.version = 7,
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
			{ FIELD_NUMBER, offsetof(struct snapshot, made), 4 },
			{ FIELD_MAYBE_TEXT, offsetof(struct snapshot, meta), 5 },
			{ FIELD_MAYBE_TEXT, offsetof(struct snapshot, image), 6 },
			{ FIELD_MAYBE_TEXT, offsetof(struct snapshot, part), 7 },
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
		.version = 7,
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
			{ FIELD_NUMBER, offsetof(struct clone, private), 3 },
			{ FIELD_NUMBER, offsetof(struct clone, no_xattrs), 3 },
			{ FIELD_NUMBER, offsetof(struct clone, run), 3 },
			{ FIELD_NUMBER, offsetof(struct clone, meta), 4 },
			{ FIELD_ID, offsetof(struct clone, start), 5 },
			{ FIELD_NUMBER, offsetof(struct clone, owner), 6 },
			{ FIELD_MAYBE_TEXT, offsetof(struct clone, who), 7 },
			{ FIELD_MAYBE_TEXT, offsetof(struct clone, via), 7 },
		},
	},
	[REF_RECEIPT] = {
		.version = 3,
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
			{ FIELD_ID, offsetof(struct receipt, next_base), 2 },
			{ FIELD_NUMBER, offsetof(struct receipt, base_due), 2 },
			{ FIELD_ID, offsetof(struct receipt, target), 3 },
		},
	},
	[REF_RESOLUTIONS] = {
		.version = 1,
		.size = sizeof(struct resolutions),
		.name = { FIELD_TEXT, offsetof(struct resolutions, clone) },
		.root = offsetof(struct resolutions, root),
		.fields = {
			{ FIELD_NUMBER, offsetof(struct resolutions, created) },
		},
	},
	[REF_ALLOWANCE] = {
		.version = 1,
		.size = sizeof(struct allowance),
		.name = { FIELD_TEXT, offsetof(struct allowance, clone) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_NUMBER, offsetof(struct allowance, created) },
			{ FIELD_TEXT, offsetof(struct allowance, rules) },
		},
	},
	[REF_AUDIT] = {
		.version = 1,
		.size = sizeof(struct audit),
		.name = { FIELD_TEXT, offsetof(struct audit, name) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_NUMBER, offsetof(struct audit, number) },
			{ FIELD_NUMBER, offsetof(struct audit, time) },
			{ FIELD_NUMBER, offsetof(struct audit, first) },
			{ FIELD_NUMBER, offsetof(struct audit, kind) },
			{ FIELD_NUMBER, offsetof(struct audit, gone) },
			{ FIELD_TEXT, offsetof(struct audit, subject) },
			{ FIELD_MAYBE_TEXT, offsetof(struct audit, sha256) },
			{ FIELD_MAYBE_TEXT, offsetof(struct audit, before) },
			{ FIELD_TEXT, offsetof(struct audit, digest) },
		},
	},
	[REF_ARTIFACT] = {
		.version = 1,
		.size = sizeof(struct artifact),
		.name = { FIELD_ID, offsetof(struct artifact, id) },
		.root = offsetof(struct artifact, root),
		.fields = {
			{ FIELD_ID, offsetof(struct artifact, project) },
			{ FIELD_TEXT, offsetof(struct artifact, clone) },
			{ FIELD_MAYBE_TEXT, offsetof(struct artifact, run) },
			{ FIELD_TEXT, offsetof(struct artifact, paths) },
			{ FIELD_TEXT, offsetof(struct artifact, sha256) },
			{ FIELD_NUMBER, offsetof(struct artifact, created) },
			{ FIELD_NUMBER, offsetof(struct artifact, files) },
			{ FIELD_NUMBER, offsetof(struct artifact, bytes) },
			{ FIELD_MAYBE_TEXT, offsetof(struct artifact, meta) },
		},
	},
	[REF_LAZY] = {
		.version = 3,
		.size = sizeof(struct lazy),
		.name = { FIELD_ID, offsetof(struct lazy, id) },
		.root = offsetof(struct lazy, root),
		.fields = {
			{ FIELD_ID, offsetof(struct lazy, project) },
			{ FIELD_ID, offsetof(struct lazy, snapshot) },
			{ FIELD_NUMBER, offsetof(struct lazy, created) },
			{ FIELD_NUMBER, offsetof(struct lazy, files) },
			{ FIELD_NUMBER, offsetof(struct lazy, bytes) },
			{ FIELD_NUMBER, offsetof(struct lazy, ended) },
			{ FIELD_NUMBER, offsetof(struct lazy, passing), 2 },
			{ FIELD_NUMBER, offsetof(struct lazy, remote), 3 },
		},
	},
	[REF_HIDDEN] = {
		.version = 2,
		.size = sizeof(struct hidden),
		.name = { FIELD_TEXT, offsetof(struct hidden, clone) },
		.root = NO_ROOT,
		.fields = {
			{ FIELD_NUMBER, offsetof(struct hidden, created) },
			{ FIELD_NUMBERS, offsetof(struct hidden, numbers) },
			{ FIELD_NUMBERS, offsetof(struct hidden, dirs), 2 },
		},
	},
};

static void field_done(const struct field *f, void *record)
{
	void *at = (char *)record + f->offset;
	struct record_numbers *numbers = at;
	char **text = at;

	if (f->type == FIELD_NUMBERS) {
		free(numbers->list);
		*numbers = (struct record_numbers){ 0 };
	}
	if (f->type != FIELD_TEXT && f->type != FIELD_MAYBE_TEXT)
		return;
	free(*text);
	*text = NULL;
}

void record_done(enum ref_kind kind, void *record)
{
	const struct kind *k = &kinds[kind];

	field_done(&k->name, record);
	for (const struct field *f = k->fields; f->type != FIELD_END; f++)
		field_done(f, record);
}

void project_done(struct project *p)
{
	record_done(REF_PROJECT, p);
}

int project_copy(const struct project *from, struct project *ret)
{
	struct project copy = *from;

	copy.path = strdup(from->path);
	copy.former = from->former ? strdup(from->former) : NULL;
	if (!copy.path || (from->former && !copy.former)) {
		project_done(&copy);
		return -ENOMEM;
	}
	*ret = copy;
	return 0;
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

void resolutions_done(struct resolutions *r)
{
	record_done(REF_RESOLUTIONS, r);
}

void allowance_done(struct allowance *a)
{
	record_done(REF_ALLOWANCE, a);
}

void hidden_done(struct hidden *h)
{
	record_done(REF_HIDDEN, h);
}

void audit_done(struct audit *a)
{
	record_done(REF_AUDIT, a);
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

static int write_numbers(struct buf *out, const struct record_numbers *numbers, struct err *err)
{
	int r;

	if (numbers->n > RECORD_NUMBERS_MAX)
		return err_set(err, -E2BIG, "%zu numbers, above %d", numbers->n,
			       RECORD_NUMBERS_MAX);
	r = buf_append_u32(out, (uint32_t)numbers->n);
	for (size_t i = 0; r >= 0 && i < numbers->n; i++)
		r = buf_append_u64(out, numbers->list[i]);
	return r < 0 ? err_nomem(err) : 0;
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
	case FIELD_NUMBERS:
		return write_numbers(out, at, err);
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

int record_write(enum ref_kind kind, const void *record, struct record_ref *ret, struct err *err)
{
	const struct kind *k = &kinds[kind];
	struct ref *ref = &ret->ref;
	int r;

	*ref = (struct ref){ .kind = kind };
	ref->name = ref_name_of(k, record, ret->hex);
	ref->name_len = strlen(ref->name);
	if (ref->name_len < 1 || ref->name_len > REF_NAME_MAX)
		return err_set(err, -EINVAL, "the name of a %s has 1 to %d bytes",
			       ref_kind_name(kind), REF_NAME_MAX);
	if (k->root != NO_ROOT) {
		memcpy(&ref->root, (const char *)record + k->root, sizeof(ref->root));
		assert(!object_id_is_zero(&ref->root));
	}
	if (buf_append_u8(&ret->value, k->version) < 0)
		return err_nomem(err);
	for (const struct field *f = k->fields; f->type != FIELD_END; f++) {
		r = write_field(&ret->value, f, record, err);
		if (r < 0)
			return err_wrap(err, r, "%s", ref_kind_name(kind));
	}
	ref->value = ret->value.data;
	ref->value_len = ret->value.len;
	return 0;
}

void record_ref_done(struct record_ref *r)
{
	buf_done(&r->value);
}

/* --- reading ---------------------------------------------------------------------------- */

struct cursor {
	const uint8_t *at;
	size_t left;
};

/* The next `n` bytes; NULL if fewer are left. */
static const uint8_t *take_bytes(struct cursor *c, size_t n)
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
	const uint8_t *p = take_bytes(c, 4);
	uint32_t len;

	if (!p)
		return cut_off(err);
	len = le32_load(p);
	if (len > TEXT_MAX)
		return err_set(err, -EBADMSG, "a text of %u bytes, above %zu", len, TEXT_MAX);
	p = take_bytes(c, len);
	if (!p)
		return cut_off(err);
	if (len == 0 && may_be_null)
		return 0;
	return copy_text(p, len, ret, err);
}

static int read_numbers(struct cursor *c, struct record_numbers *ret, struct err *err)
{
	const uint8_t *p = take_bytes(c, 4);
	const size_t n = p ? le32_load(p) : 0;

	if (n > RECORD_NUMBERS_MAX)
		return err_set(err, -EBADMSG, "%zu numbers, above %d", n, RECORD_NUMBERS_MAX);
	p = p ? take_bytes(c, n * sizeof(uint64_t)) : NULL;
	if (!p)
		return cut_off(err);
	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++)
		ret->list[i] = le64_load(p + i * sizeof(uint64_t));
	ret->n = n;
	return 0;
}

static int read_field(struct cursor *c, const struct field *f, void *record, struct err *err)
{
	void *at = (char *)record + f->offset;
	const uint8_t *p;

	if (f->type == FIELD_TEXT || f->type == FIELD_MAYBE_TEXT)
		return read_text(c, f->type == FIELD_MAYBE_TEXT, at, err);
	if (f->type == FIELD_NUMBERS)
		return read_numbers(c, at, err);

	_Static_assert(CATALOG_ID_SIZE == sizeof(uint64_t), "ids and numbers are as long");
	p = take_bytes(c, CATALOG_ID_SIZE);
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
	const uint8_t *version = take_bytes(&c, 1);
	int r;

	if (!version)
		return cut_off(err);
	if (*version > k->version)
		return err_set(err, -EPROTO, "record of a later version");
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

static int read_record(const struct ref *ref, const struct kind *k, union record *record,
		       struct err *err)
{
	int r = read_name(ref, &k->name, record, err);

	if (r < 0)
		return r;
	r = read_root(ref, k, record, err);
	return r < 0 ? r : read_value(ref, k, record, err);
}

int record_read(const struct ref *ref, void *ret, struct err *err)
{
	const struct kind *k = &kinds[ref->kind];
	union record record;
	int r;

	memset(&record, 0, sizeof(record));
	r = read_record(ref, k, &record, err);
	if (r < 0) {
		record_done(ref->kind, &record);
		return wrap(err, r, ref);
	}
	memcpy(ret, &record, k->size);
	return 0;
}
