/*
 * Whatever bytes decode as a plan lead nowhere but down from the top, and encode to bytes that
 * decode to the same plan.  They need not be those that came: what a reader does not look at is
 * written as zero.
 */
#include "snapshot/apply/plan.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_step(const struct plan *p, const struct plan_step *s, bool dir)
{
	FUZZ_CHECK(s->path && s->path[0] != '/' && !strstr(s->path, "//"));
	FUZZ_CHECK(strcmp(s->path, "..") != 0 && strncmp(s->path, "../", 3) != 0 &&
		   !strstr(s->path, "/../"));
	FUZZ_CHECK(s->dir == PLAN_NONE || s->dir < p->n_dirs || dir);
	FUZZ_CHECK(dir || s->first < p->n_files);
}

static void check_plan(const struct plan *p)
{
	CLEANUP(buf_done) struct buf once = BUF_INIT, twice = BUF_INIT;
	CLEANUP(plan_done) struct plan again = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < p->n_dirs; i++)
		check_step(p, &p->dirs[i], true);
	for (size_t i = 0; i < p->n_files; i++)
		check_step(p, &p->files[i], false);
	FUZZ_CHECK(plan_encode(p, &once, &err) == 0);
	FUZZ_CHECK(plan_decode(once.data, once.len, &again, &err) == 0);
	FUZZ_CHECK(plan_encode(&again, &twice, &err) == 0);
	FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(plan_done) struct plan p = { 0 };
	struct err err = { 0 };
	int r = plan_decode(data, len, &p, &err);

	FUZZ_CHECK(r == 0 || (r == -EBADMSG && err.code == r));
	if (r == 0)
		check_plan(&p);
	return 0;
}
