#include "engine/act/targets-i.h"

#include <stdlib.h>

#include "base/vec.h"

struct targets {
	struct catalog_id *list; /* owned */
	size_t n;
};

static void targets_done(struct targets *t)
{
	free(t->list);
}

static int add_target(const struct project *p, void *ctx, struct err *err)
{
	struct targets *t = ctx;

	if (p->hidden != PROJECT_TARGET)
		return 0;
	if (!VEC_ONE_MORE(t->list, t->n))
		return err_nomem(err);
	t->list[t->n++] = p->id;
	return 0;
}

static void keep(struct targets *t, const struct catalog_id *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (catalog_id_same(&t->list[i], id))
			t->list[i] = t->list[--t->n];
}

static int keep_of_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	keep(ctx, &r->target);
	return 0;
}

static int keep_of_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	keep(ctx, &s->project);
	return 0;
}

static int forget_targets(struct store *s, const struct targets *t, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	char hex[CATALOG_HEX_SIZE];
	int r = batch_begin(s, &b, err);

	for (size_t i = 0; i < t->n && r >= 0; i++)
		r = ref_delete(b, REF_PROJECT, catalog_id_hex(&t->list[i], hex),
			       CATALOG_HEX_SIZE - 1, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

int targets_sweep(struct store *s, struct err *err)
{
	CLEANUP(targets_done) struct targets t = { 0 };
	int r = project_each(s, add_target, &t, err);

	if (r < 0 || t.n == 0)
		return r;
	r = receipt_each(s, keep_of_receipt, &t, err);
	if (r < 0 || t.n == 0)
		return r;
	r = snapshot_each(s, keep_of_snapshot, &t, err);
	return r < 0 || t.n == 0 ? r : forget_targets(s, &t, err);
}
