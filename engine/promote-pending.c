#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/host-i.h"
#include "engine/keep-i.h"
#include "engine/promote-i.h"
#include "engine/receipt-i.h"

struct pending {
	struct kept kept;
	struct store *store;
	struct catalog_id snapshot, receipt;
	bool landed;
};

/* In the batch, if it is still there. */
static int drop(struct batch *b, struct store *s, enum ref_kind kind, const struct catalog_id *id,
		struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	char hex[CATALOG_HEX_SIZE];
	struct ref ref;
	int r;

	catalog_id_hex(id, hex);
	r = ref_get(s, kind, hex, strlen(hex), &ref, &hold, err);
	return r == -ENOENT ? 0 : r < 0 ? r : ref_delete(b, kind, hex, strlen(hex), err);
}

static void release(struct kept *k)
{
	struct pending *p = (struct pending *)k;
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };
	int r = p->landed ? 0 : batch_begin(p->store, &b, &err);

	if (b && r >= 0)
		r = drop(b, p->store, REF_SNAPSHOT, &p->snapshot, &err);
	if (b && r >= 0)
		r = drop(b, p->store, REF_RECEIPT, &p->receipt, &err);
	if (b && r >= 0)
		r = batch_commit(b, BATCH_SAFE, &err);
	if (r < 0)
		log_warn("what was to be checked is left: %s, continuing", err.msg);
	free(p);
}

int pending_put(struct engine *e, struct snapshot *s, struct receipt *r, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	AUTO_FREE struct pending *p = calloc(1, sizeof(*p));
	struct pending *kept;
	int x;

	if (!p)
		return err_nomem(err);
	x = batch_begin(e->store, &b, err);
	if (x >= 0)
		x = catalog_id_new(&s->id, err);
	if (x >= 0)
		x = snapshot_put(b, s, REF_NEW, err);
	r->after = s->id;
	if (x >= 0)
		x = receipt_begin(b, r, err);
	if (x >= 0)
		x = batch_commit(b, BATCH_SAFE, err);
	if (x < 0)
		return x;
	*p = (struct pending){
		.kept.release = release,
		.store = e->store,
		.snapshot = s->id,
		.receipt = r->id,
	};
	kept = TAKE_PTR(p);
	keep_add(e->kept, &kept->kept);
	return 0;
}

int pending_find(struct engine *e, const char *id, struct pending **ret, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	for (struct kept *k = *e->kept; k; k = k->next) {
		struct pending *p = (struct pending *)k;

		if (k->release != release || strcmp(catalog_id_hex(&p->snapshot, hex), id) != 0)
			continue;
		*ret = p;
		return 0;
	}
	return err_set(err, -ENOENT, "'%s' is nothing that was to be checked", id);
}

const struct catalog_id *pending_snapshot(const struct pending *p)
{
	return &p->snapshot;
}

const struct catalog_id *pending_receipt(const struct pending *p)
{
	return &p->receipt;
}

void pending_landed(struct pending *p)
{
	p->landed = true;
}
