#include "cowfs/store/ref-row-i.h"

#include <errno.h>
#include <string.h>

#include <xxhash.h>

#include "base/le.h"
#include "base/path.h"

const char *ref_kind_name(enum ref_kind kind)
{
	switch (kind) {
	case REF_PROJECT:
		return "project";
	case REF_SNAPSHOT:
		return "snapshot";
	case REF_TAG:
		return "tag";
	case REF_CLONE:
		return "clone";
	case REF_RESOLUTIONS:
		return "resolutions";
	case REF_RECEIPT:
		return "receipt";
	case REF_ARTIFACT:
		return "artifact";
	case REF_ALLOWANCE:
		return "allowance";
	case REF_AUDIT:
		return "audit entry";
	case REF_LAZY:
		return "lazy capture";
	case REF_HIDDEN:
		return "list of hidden files";
	}
	return kind == REF_CARRIED ? "carried chunk" : "ref of unknown kind";
}

static uint64_t ref_sum(const struct ref *ref)
{
	uint8_t head[4 + 8 + 8];
	uint64_t h;

	le32_store(head, ref->kind);
	le64_store(head + 4, ref->name_len);
	le64_store(head + 12, ref->value_len);
	h = XXH3_64bits(head, sizeof(head));
	h = XXH3_64bits_withSeed(ref->name, ref->name_len, h);
	h = XXH3_64bits_withSeed(ref->root.b, sizeof(ref->root.b), h);
	return XXH3_64bits_withSeed(ref->value, ref->value_len, h);
}

int ref_row_err(struct err *err, int code, const struct ref *ref, const char *why)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	const char *name = "?";

	if (path_append_shown(&shown, ref->name, ref->name_len) == 0 && buf_str(&shown))
		name = buf_str(&shown);
	return err_set(err, code, "%s '%.120s' %s", ref_kind_name(ref->kind), name, why);
}

/* --- writing ---------------------------------------------------------------------------- */

int ref_row_write(struct db *meta, const struct ref *ref, enum ref_mode mode, struct err *err)
{
	static const char new_sql[] =
	    "INSERT INTO ref(kind, name, root, value, sum) VALUES(?1, ?2, ?3, ?4, ?5)";
	static const char replace_sql[] =
	    "INSERT OR REPLACE INTO ref(kind, name, root, value, sum) VALUES(?1, ?2, ?3, ?4, ?5)";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, mode == REF_NEW ? new_sql : replace_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, ref->kind);
	query_bind_blob(q, 1, ref->name, ref->name_len);
	query_bind_blob(q, 2, ref->root.b, sizeof(ref->root.b));
	query_bind_blob(q, 3, ref->value, ref->value_len);
	query_bind_int(q, 4, (int64_t)ref_sum(ref));
	r = query_run(q, err);
	return r == -EEXIST ? ref_row_err(err, r, ref, "exists already") : r;
}

/* --- reading ---------------------------------------------------------------------------- */

int ref_row_read(struct db_query *q, enum ref_kind kind, struct ref *ret, struct err *err)
{
	struct ref ref = { .kind = kind };
	const void *name, *root;
	size_t root_len;
	int r = query_blob(q, 0, &name, &ref.name_len, err);

	if (r < 0)
		return r;
	r = query_blob(q, 1, &root, &root_len, err);
	if (r < 0)
		return r;
	r = query_blob(q, 2, &ref.value, &ref.value_len, err);
	if (r < 0)
		return r;
	ref.name = name;
	if (root_len != sizeof(ref.root.b) || ref.value_len > REF_VALUE_MAX)
		return ref_row_err(err, -EBADMSG, &ref, "is damaged: a field has the wrong length");
	memcpy(ref.root.b, root, sizeof(ref.root.b));
	if ((uint64_t)query_int(q, 3) != ref_sum(&ref))
		return ref_row_err(err, -EBADMSG, &ref,
				   "is damaged: it does not match its checksum");
	*ret = ref;
	return 0;
}

_Static_assert(REF_CARRIED == 255, "the query below leaves them out");

static void claims_of(struct db_query *q, struct ref_damage *ret)
{
	struct object_id root;
	const void *bytes;
	size_t len;

	if (query_blob(q, 0, &bytes, &len, NULL) >= 0 && len <= REF_NAME_MAX &&
	    !memchr(bytes, '\0', len))
		memcpy(ret->name, bytes, len);
	if (query_blob(q, 1, &bytes, &len, NULL) < 0 || len != sizeof(root.b))
		return;
	memcpy(root.b, bytes, sizeof(root.b));
	ret->rootless = object_id_is_zero(&root);
}

static int scan_one(struct db_query *q, ref_scan_fn fn, void *ctx, struct err *err)
{
	struct ref_damage damage = { .kind = query_int(q, 4) };
	const int64_t kind = damage.kind;
	struct ref ref;
	int r;

	if (kind < 1 || kind > 254)
		r = err_set(&damage.why, -EBADMSG, "a ref of unknown kind %lld", (long long)kind);
	else
		r = ref_row_read(q, (enum ref_kind)kind, &ref, &damage.why);
	/* Whole, and not ours: what it keeps must not be swept, nor it repaired away. */
	if (r >= 0 && kind > REF_KINDS)
		return err_set(err, -EPROTO,
			       "the store has refs of kind %lld, written by a later version",
			       (long long)kind);
	if (r >= 0)
		return fn(&ref, NULL, ctx, err);
	if (r != -EBADMSG)
		return err_set(err, r, "%s", damage.why.msg);
	claims_of(q, &damage);
	return fn(NULL, &damage, ctx, err);
}

int ref_scan(struct db *meta, enum ref_kind kind, ref_scan_fn fn, void *ctx, struct err *err)
{
	static const char all[] =
	    "SELECT name, root, value, sum, kind FROM ref WHERE kind <> 255 ORDER BY kind, name";
	static const char some[] =
	    "SELECT name, root, value, sum, kind FROM ref WHERE kind = ?1 ORDER BY name";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, kind == 0 ? all : some, &q, err);

	if (r < 0)
		return r;
	if (kind != 0)
		query_bind_int(q, 0, kind);
	while ((r = query_step(q, err)) > 0) {
		r = scan_one(q, fn, ctx, err);
		if (r < 0)
			return r;
	}
	return r;
}
