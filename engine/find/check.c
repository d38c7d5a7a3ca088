#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/find/upkeep-i.h"

/*
 * Open as the store's one writer if possible, so that nobody removes what we check.  A read-only
 * store has no writer, and a store too damaged for writing may still be readable.
 */
static int open_to_check(struct engine *e, struct store **ret, struct err *err)
{
	int r = engine_store(e, STORE_WRITE, ret, err);

	if (r == -EROFS || r == -EACCES || r == -EPERM || r == -EBADMSG)
		r = engine_store(e, STORE_READ, ret, err);
	return r;
}

int upkeep_check(struct engine *e, const struct engine_check_options *options,
		 upkeep_repair_fn *repair, void *repair_ctx, struct engine_check *ret,
		 struct err *err)
{
	CLEANUP(check_report_done) struct check_report report = { 0 };
	CLEANUP(engine_check_done) struct engine_check c = { 0 };
	uint64_t start = engine_clock_ms();
	struct store *s;
	int r;

	assert(!options->repair || repair);
	r = options->repair ? engine_store(e, STORE_WRITE, &s, err) : open_to_check(e, &s, err);
	if (r < 0)
		return r;
	r = upkeep_look(s, &options->watch, &report, err);
	if (r < 0)
		return r;
	if (options->repair && report.n_findings > 0)
		r = repair(repair_ctx, &options->watch, &report, &c, err);
	if (r < 0)
		return r;
	c.objects = report.objects;
	c.bytes = report.bytes;
	c.refs = report.refs;
	if (report.n_findings > 0) {
		c.damage = calloc(report.n_findings, sizeof(*c.damage));
		if (!c.damage)
			return err_nomem(err);
	}
	for (; c.n_damage < report.n_findings && r >= 0; c.n_damage++)
		r = upkeep_take_finding(&report.findings[c.n_damage], &c.damage[c.n_damage], err);
	if (r < 0)
		return r;
	c.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(c);
	return 0;
}
