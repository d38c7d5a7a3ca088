#include "cowfs/store/ref.h"

#include <errno.h>
#include <string.h>

#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"

static int queue(struct batch *b, const struct ref *ref, bool delete, enum ref_mode mode,
		 struct err *err)
{
	struct ref_op *op;
	int r = ref_op_new(ref, delete, mode, &op, err);

	if (r < 0)
		return r;
	batch_add_ref_op(b, op);
	return r;
}

int ref_put(struct batch *b, const struct ref *ref, enum ref_mode mode, struct err *err)
{
	return queue(b, ref, false, mode, err);
}

int ref_delete(struct batch *b, enum ref_kind kind, const char *name, size_t name_len,
	       struct err *err)
{
	struct ref ref = { .kind = kind, .name = name, .name_len = name_len };

	return queue(b, &ref, true, REF_REPLACE, err);
}

/* The query, on a reader that must outlive it. */
static int select_refs(struct store *s, const char *sql, enum ref_kind kind, const char *name,
		       size_t name_len, struct reader **ret_reader, struct db_query **ret,
		       struct err *err)
{
	int r = reader_take(s, ret_reader, err);

	if (r < 0)
		return r;
	r = db_query((*ret_reader)->db[TABLE_META], sql, ret, err);
	if (r < 0)
		return r;
	query_bind_int(*ret, 0, kind);
	query_bind_blob(*ret, 1, name, name_len);
	return 0;
}

int ref_get(struct store *s, enum ref_kind kind, const char *name, size_t name_len, struct ref *ret,
	    struct buf *hold, struct err *err)
{
	static const char sql[] =
	    "SELECT name, root, value, sum FROM ref WHERE kind = ?1 AND name = ?2";
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct ref ref;
	int r = select_refs(s, sql, kind, name, name_len, &rd, &q, err);

	if (r < 0)
		return r;
	r = query_step(q, err);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = ref_row_read(q, kind, &ref, err);
	if (r < 0)
		return r;
	buf_reset(hold);
	if (buf_append(hold, ref.name, ref.name_len) < 0 ||
	    buf_append(hold, ref.value, ref.value_len) < 0)
		return err_nomem(err);
	ref.name = (const char *)hold->data;
	ref.value = hold->data + ref.name_len;
	*ret = ref;
	return 0;
}

int ref_each(struct store *s, enum ref_kind kind, const char *prefix, size_t prefix_len, ref_fn fn,
	     void *ctx, struct err *err)
{
	static const char sql[] =
	    "SELECT name, root, value, sum FROM ref WHERE kind = ?1 AND name >= ?2 ORDER BY name";
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct ref ref;
	int r = select_refs(s, sql, kind, prefix, prefix_len, &rd, &q, err);

	if (r < 0)
		return r;
	while ((r = query_step(q, err)) > 0) {
		r = ref_row_read(q, kind, &ref, err);
		if (r < 0)
			return r;
		if (ref.name_len < prefix_len ||
		    (prefix_len > 0 && memcmp(ref.name, prefix, prefix_len) != 0))
			return 0;
		r = fn(&ref, ctx, err);
		if (r != 0)
			return r;
	}
	return r;
}
