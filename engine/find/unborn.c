#include "engine/find/unborn-i.h"

#include <stdlib.h>

#include "base/vec.h"

bool unborn_by(const struct receipt *r)
{
	return r->state == RECEIPT_BEGUN &&
	       (r->kind != RECEIPT_ROLLBACK || !catalog_id_is_zero(&r->base));
}

void unborn_done(struct unborn *u)
{
	free(u->list);
	*u = (struct unborn){ 0 };
}

static int add_unborn(const struct receipt *r, void *ctx, struct err *err)
{
	struct unborn *u = ctx;

	if (!unborn_by(r))
		return 0;
	if (!VEC_ONE_MORE(u->list, u->n))
		return err_nomem(err);
	u->list[u->n++] = r->after;
	return 0;
}

int unborn_load(struct store *s, struct unborn *ret, struct err *err)
{
	return receipt_each(s, add_unborn, ret, err);
}

bool unborn_has(const struct unborn *u, const struct catalog_id *snapshot)
{
	return VEC_HAS(it, u->list, u->n, catalog_id_same(it, snapshot));
}
