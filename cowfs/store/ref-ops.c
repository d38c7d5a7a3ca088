/*
 * Changes of refs, from the batch in which they wait to the transaction that writes them.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/store/audit-i.h"
#include "cowfs/store/ref-row-i.h"

int ref_op_new(const struct ref *ref, bool delete, enum ref_mode mode, struct ref_op **ret,
	       struct err *err)
{
	struct ref_op *op;

	if (ref->name_len == 0)
		return err_set(err, -EINVAL, "the name of a %s is empty", ref_kind_name(ref->kind));
	if (ref->name_len > REF_NAME_MAX)
		return err_set(err, -EINVAL, "the name of a %s has %zu bytes, above %d",
			       ref_kind_name(ref->kind), ref->name_len, REF_NAME_MAX);
	if (ref->value_len > REF_VALUE_MAX)
		return err_set(err, -EINVAL, "the value of a %s has %zu bytes, above %zu",
			       ref_kind_name(ref->kind), ref->value_len, REF_VALUE_MAX);
	op = malloc(sizeof(*op) + ref->name_len + ref->value_len);
	if (!op)
		return err_nomem(err);
	*op = (struct ref_op){ .delete = delete, .mode = mode, .ref = *ref };
	memcpy(op->bytes, ref->name, ref->name_len);
	if (ref->value_len)
		memcpy(op->bytes + ref->name_len, ref->value, ref->value_len);
	op->ref.name = op->bytes;
	op->ref.value = op->bytes + ref->name_len;
	*ret = op;
	return 0;
}

void ref_ops_free(struct ref_op *ops)
{
	while (ops) {
		struct ref_op *next = ops->next;

		free(ops);
		ops = next;
	}
}

static int require_tree(struct db *meta, const struct ref *ref, struct err *err)
{
	static const char sql[] = "SELECT 1 FROM object WHERE id = ?1 AND kind = ?2";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, sql, &q, err);

	if (r < 0)
		return r;
	query_bind_blob(q, 0, ref->root.b, sizeof(ref->root.b));
	query_bind_int(q, 1, OBJECT_TREE);
	r = query_step(q, err);
	if (r == 0)
		return ref_row_err(err, -ENOENT, ref, "would name a tree that is not in the store");
	return r < 0 ? r : 0;
}

static int apply_put(struct db *meta, const struct ref_op *op, struct err *err)
{
	int r = object_id_is_zero(&op->ref.root) ? 0 : require_tree(meta, &op->ref, err);

	return r < 0 ? r : ref_row_write(meta, &op->ref, op->mode, err);
}

static int apply_delete(struct db *meta, const struct ref_op *op, struct err *err)
{
	static const char sql[] = "DELETE FROM ref WHERE kind = ?1 AND name = ?2";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, op->ref.kind);
	query_bind_blob(q, 1, op->ref.name, op->ref.name_len);
	r = query_run(q, err);
	if (r < 0)
		return r;
	if (db_changes(meta) == 0)
		return ref_row_err(err, -ENOENT, &op->ref, "does not exist");
	return r;
}

int ref_ops_apply(struct db *meta, const struct ref_op *ops, struct err *err)
{
	int r = 0;

	for (; ops && r >= 0; ops = ops->next) {
		r = ops->delete ? apply_delete(meta, ops, err) : apply_put(meta, ops, err);
		if (r >= 0 && ops->ref.kind == REF_RECEIPT)
			r = audit_append(meta, &ops->ref, ops->delete, err);
	}
	return r;
}
