#include "engine/api/receipts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/json.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"

const char *engine_receipt_kind_name(enum engine_receipt_kind kind)
{
	static const char *const names[] = {
		[ENGINE_RECEIPT_PROMOTION] = "promotion",
		[ENGINE_RECEIPT_ROLLBACK] = "rollback",
		[ENGINE_RECEIPT_UNDO] = "undo",
	};

	return names[kind];
}

static void set_id(const struct catalog_id *id, char text[ENGINE_ID_SIZE])
{
	text[0] = '\0';
	if (!catalog_id_is_zero(id))
		catalog_id_hex(id, text);
}

/* {"checks":[...]}, as it was written when they had run. */
static const struct field checks_list[] = { FIELD_LIST_OF(
    FIELD_LIST, struct engine_receipt, "checks", checks, n_checks, &engine_checked_fields) };
static const struct fields checks_fields = FIELDS(struct engine_receipt, checks_list);

static int read_checks(const char *text, struct engine_receipt *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json root;
	int r = json_parse(&doc, text, strlen(text), &root, err);

	return r < 0 ? r : fields_read(root, &checks_fields, ret, err);
}

static int fill(const struct receipt *r, struct engine_receipt *ret, struct err *err)
{
	int x = 0;

	*ret = (struct engine_receipt){
		.kind = r->kind == RECEIPT_PROMOTION  ? ENGINE_RECEIPT_PROMOTION
			: r->kind == RECEIPT_ROLLBACK ? ENGINE_RECEIPT_ROLLBACK
						      : ENGINE_RECEIPT_UNDO,
		.undone = r->state == RECEIPT_UNDONE,
		.clone = r->clone ? strdup(r->clone) : NULL,
		.who = strdup(r->who ? r->who : ""),
		.uid = r->uid,
		.created = r->created,
		.sha256 = r->sha256 ? strdup(r->sha256) : NULL,
	};
	set_id(&r->id, ret->id);
	set_id(&r->before, ret->before);
	set_id(&r->after, ret->after);
	set_id(&r->base, ret->base);
	set_id(&r->undoes, ret->undoes);
	if (!ret->who || (r->clone && !ret->clone) || (r->sha256 && !ret->sha256))
		return err_nomem(err);
	if (r->checks)
		x = read_checks(r->checks, ret, err);
	/* We wrote it ourselves, so if it cannot be read, the store is damaged. */
	return x < 0 && x != -ENOMEM
		   ? err_set(err, -EBADMSG, "receipt %s: its checks are not readable", ret->id)
		   : x;
}

/* A target that is gone from the store leaves the receipt as it is. */
static int find_target(struct store *s, const struct receipt *r, struct engine_receipt *ret,
		       struct err *err)
{
	CLEANUP(project_done) struct project target = { 0 };
	int x = catalog_id_is_zero(&r->target) ? -ENOENT : project_get(s, &r->target, &target, err);

	ret->to = TAKE_PTR(target.path);
	return x == -ENOENT ? 0 : x;
}

struct collect {
	struct store *store;
	const struct catalog_id *project;
	struct engine_receipts all;
	size_t cap;
};

static void collect_done(struct collect *c)
{
	engine_receipts_done(&c->all);
}

static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	struct collect *c = ctx;
	struct engine_receipts *all = &c->all;
	int x;

	if (r->state == RECEIPT_BEGUN || !catalog_id_same(&r->project, c->project))
		return 0;
	if (!VEC_ROOM(all->list, all->n, c->cap))
		return err_nomem(err);
	x = fill(r, &all->list[all->n++], err);
	return x < 0 ? x : find_target(c->store, r, &all->list[all->n - 1], err);
}

static int newest_first(const void *a, const void *b)
{
	const struct engine_receipt *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

int engine_receipts(struct engine *e, struct engine_receipts *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(collect_done) struct collect c = { .project = &project.id };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	if (r < 0)
		return r;
	c.store = s;
	r = receipt_each(s, on_receipt, &c, err);
	if (r < 0)
		return r;
	VEC_SORT(c.all.list, c.all.n, newest_first);
	*ret = TAKE_STRUCT(c.all);
	return 0;
}
