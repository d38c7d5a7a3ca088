#include "cowfs/store/catalog.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cowfs/store/record-i.h"

static int record_put(struct batch *b, enum ref_kind kind, const void *record, enum ref_mode mode,
		      struct err *err)
{
	CLEANUP(record_ref_done) struct record_ref made = { 0 };
	int r = record_write(kind, record, &made, err);

	if (r < 0)
		return r;
	return ref_put(b, &made.ref, mode, err);
}

static int record_get(struct store *s, enum ref_kind kind, const char *name, void *ret,
		      struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct ref ref;
	int r = ref_get(s, kind, name, strlen(name), &ref, &hold, err);

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
		artifact_fn artifact;
		lazy_fn lazy;
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
	case REF_ALLOWANCE:
	case REF_AUDIT:
	case REF_HIDDEN:
	case REF_RESOLUTIONS:
		break; /* nobody visits them */
	case REF_RECEIPT:
		return v->fn.receipt(&record->receipt, v->ctx, err);
	case REF_ARTIFACT:
		return v->fn.artifact(&record->artifact, v->ctx, err);
	case REF_LAZY:
		return v->fn.lazy(&record->lazy, v->ctx, err);
	}
	assert(!"a ref of no kind");
	return -EINVAL;
}

static int visit_ref(const struct ref *ref, void *ctx, struct err *err)
{
	union record record;
	int r = record_read(ref, &record, err);

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

int artifact_put(struct batch *b, const struct artifact *a, struct err *err)
{
	return record_put(b, REF_ARTIFACT, a, REF_NEW, err);
}

int lazy_put(struct batch *b, const struct lazy *l, enum ref_mode mode, struct err *err)
{
	return record_put(b, REF_LAZY, l, mode, err);
}

int lazy_delete(struct batch *b, const struct catalog_id *id, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	catalog_id_hex(id, hex);
	return ref_delete(b, REF_LAZY, hex, strlen(hex), err);
}

int allowance_put(struct batch *b, const struct allowance *a, struct err *err)
{
	return record_put(b, REF_ALLOWANCE, a, REF_REPLACE, err);
}

int allowance_get(struct store *s, const char *clone, struct allowance *ret, struct err *err)
{
	return record_get(s, REF_ALLOWANCE, clone, ret, err);
}

int hidden_put(struct batch *b, const struct hidden *h, struct err *err)
{
	return record_put(b, REF_HIDDEN, h, REF_REPLACE, err);
}

int hidden_get(struct store *s, const char *clone, struct hidden *ret, struct err *err)
{
	return record_get(s, REF_HIDDEN, clone, ret, err);
}

int resolutions_put(struct batch *b, const struct resolutions *r, struct err *err)
{
	return record_put(b, REF_RESOLUTIONS, r, REF_REPLACE, err);
}

int resolutions_get(struct store *s, const char *clone, struct resolutions *ret, struct err *err)
{
	return record_get(s, REF_RESOLUTIONS, clone, ret, err);
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

int artifact_each(struct store *s, artifact_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_ARTIFACT, (struct visit){ { .artifact = fn }, ctx }, err);
}

int lazy_each(struct store *s, lazy_fn fn, void *ctx, struct err *err)
{
	return record_each(s, REF_LAZY, (struct visit){ { .lazy = fn }, ctx }, err);
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
	*ret = TAKE_STRUCT(m.snapshot);
	return 0;
}
