#include <errno.h>
#include <string.h>

#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/upkeep/check-i.h"
#include "cowfs/store/xattrs.h"

/* Is the object of the form its kind has? */
static int verify_form(enum object_kind kind, const struct buf *raw, struct err *why)
{
	struct recipe_node recipe;
	struct tree_node node;
	int r;

	switch (kind) {
	case OBJECT_CHUNK:
		return 0;
	case OBJECT_RECIPE:
		return recipe_decode(raw->data, raw->len, &recipe, why);
	case OBJECT_TREE:
		r = tree_node_open(raw->data, raw->len, &node, why);
		return r < 0 ? r : tree_node_verify(&node, why);
	case OBJECT_XATTRS:
		return xattrs_verify(raw->data, raw->len, why);
	}
	return err_set(why, -EBADMSG, "unknown kind %d", (int)kind);
}

/* What the row says it is, and its bytes as far as they can be had. */
static int read_row(struct db_query *q, struct checked_row *ret, struct err *why)
{
	const int64_t kind = query_int(q, 4);
	const void *id;
	size_t id_len;
	int r = query_blob(q, 3, &ret->packed, &ret->len, why);

	if (r < 0)
		return r;
	if (kind < 1 || kind > OBJECT_KINDS)
		return err_set(why, -EBADMSG, "unknown kind %lld", (long long)kind);
	ret->kind = (enum object_kind)kind;
	r = query_blob(q, 1, &id, &id_len, why);
	if (r < 0)
		return r;
	if (id_len != OBJECT_ID_SIZE)
		return err_set(why, -EBADMSG, "its id has %zu bytes", id_len);
	memcpy(ret->id.b, id, OBJECT_ID_SIZE);
	return 0;
}

static int verify_content(const struct object_key *key, struct codec *codec, struct buf *raw,
			  struct checked_row *row, struct err *why)
{
	struct object_id actual;
	int r = object_unpack(codec, row->packed, row->len, object_kind_max(row->kind), raw, why);

	if (r < 0)
		return r;
	row->unpacked = true;
	actual = object_id_of(key, row->kind, raw->data, raw->len);
	if (!object_id_equal(&actual, &row->id))
		return err_set(why, -EBADMSG, "its bytes do not match its id");
	return verify_form(row->kind, raw, why);
}

int check_row(const struct object_key *key, struct codec *codec, struct db_query *q,
	      struct buf *raw, struct checked_row *ret, struct err *why)
{
	const uint64_t sum = (uint64_t)query_int(q, 2);
	struct err content = { 0 };
	int r;

	*ret = (struct checked_row){ 0 };
	r = read_row(q, ret, why);
	if (r < 0)
		return r;
	r = verify_content(key, codec, raw, ret, &content);
	if (r < 0 && r != -EBADMSG)
		return err_set(why, r, "%s", content.msg);
	ret->right = r >= 0;
	if (object_row_sum(query_int(q, 0), ret->kind, &ret->id, ret->packed, ret->len) != sum)
		return err_set(why, -EBADMSG, "the row does not match its checksum");
	return r < 0 ? err_set(why, r, "%s", content.msg) : 0;
}
