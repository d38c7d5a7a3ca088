#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "engine/api/receipts.h"
#include "engine/find/digest-i.h"
#include "engine/pipeline/checkout-i.h"
#include "engine/pipeline/pipeline-i.h"

/* --- links --------------------------------------------------------------------------------- */

static void add_text(struct sha256 *sum, const char *text)
{
	sha256_add(sum, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(struct sha256 *sum, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	add_text(sum, text);
}

void verify_link(const struct engine_change *c, size_t i, char ret[65])
{
	const struct engine_passed *p = &c->passed[i];
	struct sha256 sum;

	sha256_begin(&sum);
	add_text(&sum, i > 0 ? c->passed[i - 1].link : "");
	add_text(&sum, c->id);
	add_text(&sum, c->sha256);
	add_text(&sum, c->who);
	add_text(&sum, p->stage);
	add_text(&sum, p->target);
	add_text(&sum, p->receipt);
	add_text(&sum, p->sha256);
	add_text(&sum, p->approved_by);
	add_number(&sum, (int64_t)p->approved_uid);
	add_text(&sum, p->reason);
	add_number(&sum, p->passed);
	if (*p->commit != '\0')
		add_text(&sum, p->commit);
	for (size_t k = 0; k < p->n_checks; k++) {
		add_text(&sum, p->checks[k].command);
		add_number(&sum, p->checks[k].exit_code);
		add_text(&sum, p->checks[k].run);
	}
	sha256_end_hex(&sum, ret);
}

/* --- receipts of landings ------------------------------------------------------------------ */

static int differs(char **ret_why, struct err *err, const char *stage, const char *why)
{
	return asprintf(ret_why, "stage '%s': %s", stage, why) < 0 ? err_nomem(err) : 1;
}

static int check_commit(const struct engine_passed *p, char **ret_why, struct err *err)
{
	CLEANUP(branch_close_p) struct branch *b = NULL;
	int r;

	if (*p->commit == '\0' || p->undone)
		return 0;
	r = target_branch(p->target, &b, err);
	if (r == -ENOENT)
		return differs(ret_why, err, p->stage, "its branch is gone");
	if (r >= 0)
		r = branch_contains(b, p->commit, err);
	if (r != 0)
		return r < 0 ? r : 0;
	return differs(ret_why, err, p->stage, "its commit is not on the branch any more");
}

static int check_receipt(struct engine *e, const struct engine_passed *p, char **ret_why,
			 struct err *err)
{
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	AUTO_FREE char *dir = NULL;
	int r;

	if (*p->receipt == '\0')
		return 0;
	dir = target_dir(e, p->target);
	r = dir ? pipeline_engine(e, dir, &there, err) : err_nomem(err);
	if (r >= 0)
		r = engine_receipts(there, &all, err);
	if (r == -ENXIO || r == -ENOENT)
		return differs(ret_why, err, p->stage, "its target is not a project any more");
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		const struct engine_receipt *one = &all.list[i];

		if (strcmp(one->id, p->receipt) != 0)
			continue;
		if (strcmp(one->sha256 ? one->sha256 : "", p->sha256) != 0)
			return differs(ret_why, err, p->stage,
				       "the promotion's receipt has another digest");
		if (one->undone && !p->undone)
			return differs(ret_why, err, p->stage, "its landing was taken back");
		return 0;
	}
	return differs(ret_why, err, p->stage, "the receipt of its landing is gone");
}

/* --- the content --------------------------------------------------------------------------- */

static int check_content(struct engine *e, const struct engine_change *c, char **ret_why,
			 struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot from = { 0 }, to = { 0 };
	char sha256[65];
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = snapshot_find(s, c->base, &from, err);
	if (r >= 0)
		r = snapshot_find(s, c->state_id, &to, err);
	if (r == -ENOENT)
		return asprintf(ret_why, "a snapshot of its content is gone") < 0 ? err_nomem(err)
										  : 1;
	if (r >= 0)
		r = digest_trees(s, &from.root, &to.root, sha256, err);
	if (r < 0)
		return r;
	if (r == 0 && strcmp(sha256, c->sha256) == 0)
		return 0;
	return asprintf(ret_why, "its content is not what its digest says") < 0 ? err_nomem(err)
										: 1;
}

int engine_change_verify(struct engine *e, const struct engine_change *c, char **ret_why,
			 struct err *err)
{
	int r = check_content(e, c, ret_why, err);

	for (size_t i = 0; i < c->n_passed && r == 0; i++) {
		char link[65];

		verify_link(c, i, link);
		r = strcmp(link, c->passed[i].link) == 0
			? check_receipt(e, &c->passed[i], ret_why, err)
			: differs(ret_why, err, c->passed[i].stage, "its receipt was changed");
		if (r == 0)
			r = check_commit(&c->passed[i], ret_why, err);
	}
	return r;
}
