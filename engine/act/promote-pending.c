#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/act/forget-i.h"
#include "engine/act/promote-i.h"
#include "engine/act/receipt-i.h"
#include "engine/host/host-i.h"
#include "engine/host/keep-i.h"

struct pending_promotion {
	struct kept kept;
	struct host *host;
	struct catalog_id snapshot, receipt;
	bool landed;
};

/* Does nothing if the receipt is gone. */
static int drop_receipt(struct pending_promotion *p, struct batch *b, struct err *err)
{
	CLEANUP(receipt_done) struct receipt receipt = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r = receipt_get(p->host->store, &p->receipt, &receipt, err);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r
		     : ref_delete(b, REF_RECEIPT, catalog_id_hex(&p->receipt, hex),
				  CATALOG_HEX_SIZE - 1, err);
}

/*
 * A clone may still need the snapshot: the clone of a check whose command was killed, or one that
 * somebody made by its id.  Then snapshot and receipt stay, in nobody's history, until a later start
 * finds them unused.
 */
static int drop(struct pending_promotion *p, struct err *err)
{
	CLEANUP(forget_done) struct forget f = { .ending = &p->receipt };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	uint64_t unused;
	int r = batch_begin(p->host->store, &b, err);

	if (r < 0)
		return r;
	r = forget_add_id(&f, p->host->store, &p->snapshot, err);
	if (r < 0)
		return r;
	r = forget_settle(&f, p->host->store, NULL, err);
	if (r < 0 || forget_stays(&f, &p->snapshot))
		return r;
	r = forget_put(&f, b, &unused, err);
	if (r < 0)
		return r;
	r = drop_receipt(p, b, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

static void release(struct kept *k)
{
	struct pending_promotion *p = (struct pending_promotion *)k;
	struct err err = { 0 };
	int r = 0;

	if (!p->landed) {
		pthread_rwlock_wrlock(&p->host->snapshots);
		r = drop(p, &err);
		pthread_rwlock_unlock(&p->host->snapshots);
	}
	if (r < 0)
		log_warn("removing the snapshot that was to be checked: %s, continuing", err.msg);
	free(p);
}

int pending_promotion_put(struct task *task, struct snapshot *s, struct receipt *r, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	AUTO_FREE struct pending_promotion *p = calloc(1, sizeof(*p));
	struct pending_promotion *kept;
	int x;

	if (!p)
		return err_nomem(err);
	x = batch_begin(task->engine.store, &b, err);
	if (x < 0)
		return x;
	x = catalog_id_new(&s->id, err);
	if (x < 0)
		return x;
	x = snapshot_put(b, s, REF_NEW, err);
	if (x < 0)
		return x;
	r->after = s->id;
	x = receipt_begin(b, r, err);
	if (x < 0)
		return x;
	x = batch_commit(b, BATCH_SAFE, err);
	if (x < 0)
		return x;
	*p = (struct pending_promotion){
		.kept.release = release,
		.host = task->host,
		.snapshot = s->id,
		.receipt = r->id,
	};
	kept = TAKE_PTR(p);
	keep_add(task->kept, &kept->kept);
	return 0;
}

int pending_promotion_find(struct task *task, const char *id, struct pending_promotion **ret,
			   struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	for (struct kept *k = *task->kept; k; k = k->next) {
		struct pending_promotion *p = (struct pending_promotion *)k;

		if (k->release != release || strcmp(catalog_id_hex(&p->snapshot, hex), id) != 0)
			continue;
		*ret = p;
		return 0;
	}
	return err_set(err, -ENOENT, "'%s' is nothing that was to be checked", id);
}

const struct catalog_id *pending_promotion_snapshot(const struct pending_promotion *p)
{
	return &p->snapshot;
}

const struct catalog_id *pending_promotion_receipt(const struct pending_promotion *p)
{
	return &p->receipt;
}

void pending_promotion_landed(struct pending_promotion *p)
{
	p->landed = true;
}
