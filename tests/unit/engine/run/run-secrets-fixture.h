/* What the tests of the search for secrets share: where it looks, and what it found. */
#pragma once

#include "engine/run/run-secrets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "tests/lib/live.h"

static struct run_secrets_in looking_in(const struct live *v)
{
	return (struct run_secrets_in){
		.store = v->store,
		.top = "/p",
		.dir = -1,
		.each = 8,
		.max = 150,
		.until_ms = UINT64_MAX,
	};
}

static int by_path(const void *a, const void *b)
{
	const struct run_secret *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* " PATH" for each, in order.  All have the numbers of what is there. */
static char *paths_of(struct live *v, struct run_secrets_found *f)
{
	struct buf out = BUF_INIT;
	char *text;

	VEC_SORT(f->list, f->n, by_path);
	for (size_t i = 0; i < f->n; i++) {
		CHECK_EQ(buf_printf(&out, " %s", f->list[i].path), 0);
		CHECK_EQ(live_stat(v, f->list[i].path).st_ino, f->list[i].ino);
	}
	text = strdup(buf_str(&out));
	buf_done(&out);
	return text;
}

static int try_find(struct live *v, const struct run_secrets_in *in, struct run_secrets_found *ret,
		    struct err *err)
{
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	const struct object_id now = live_persist(v);

	CHECK_OK(run_search_new(in, &s, err), err);
	return run_search_look(s, &now, ret, err);
}

static void check_found_in(struct live *v, const struct run_secrets_in *in, const char *want)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	AUTO_FREE char *got = NULL;
	struct err err = { 0 };

	CHECK_OK(try_find(v, in, &found, &err), &err);
	got = paths_of(v, &found);
	CHECK_STR(got, want);
}

/* The same for a clone that began with another state. */
static void check_found(struct live *v, const struct object_id *before, const char *want)
{
	struct run_secrets_in in = looking_in(v);

	in.before = before;
	check_found_in(v, &in, want);
}

/* 0.key and so on. */
static void put_keys(struct live *v, const char *dir, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s%u.key", dir, i);
		live_put(v, path, "secret");
	}
}
