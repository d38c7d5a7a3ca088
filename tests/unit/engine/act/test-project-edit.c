/*
 * A project is forgotten while it moves, and moves while it is forgotten.  Both wait for the turn of
 * its path; whoever gets it second must look again.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/act/acts-i.h"
#include "engine/host/host-i.h"
#include "tests/lib/stock.h"

/* What happens while somebody waits for a turn, once. */
static void (*meanwhile)(void *ctx);
static void *meanwhile_ctx;

int __real_turns_take(struct turns *t, const char *name, struct turn **ret, struct err *err);
int __wrap_turns_take(struct turns *t, const char *name, struct turn **ret, struct err *err);
int __wrap_turns_take(struct turns *t, const char *name, struct turn **ret, struct err *err)
{
	void (*const fn)(void *) = meanwhile;

	meanwhile = NULL;
	if (fn)
		fn(meanwhile_ctx);
	return __real_turns_take(t, name, ret, err);
}

/* A host with a project that is at `to` by now, and one snapshot of it. */
struct scene {
	struct host *host;
	struct store *store;
	struct catalog_id id, snapshot;
	char hex[CATALOG_HEX_SIZE];
	char *from, *to;
};

static void scene_open(struct scene *s, const char *name)
{
	struct project p = { 0 };
	char message[] = "";
	struct snapshot snapshot = { .created = 1, .message = message };
	struct err err = { 0 };
	struct batch *b;

	CHECK(asprintf(&s->from, "%s-old", test_path(name)) > 0);
	CHECK(asprintf(&s->to, "%s-new", test_path(name)) > 0);
	CHECK_EQ(mkdir(s->to, 0700), 0);
	s->store = stock_open(test_path(name), STORE_CREATE);
	b = stock_begin(s->store);
	CHECK_OK(catalog_id_new(&s->id, &err), &err);
	CHECK_OK(catalog_id_new(&s->snapshot, &err), &err);
	p.id = snapshot.project = s->id;
	p.path = s->from;
	snapshot.id = s->snapshot;
	snapshot.root = stock_put_root(b, "text");
	CHECK_OK(project_put(b, &p, REF_NEW, &err), &err);
	CHECK_OK(snapshot_put(b, &snapshot, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
	catalog_id_hex(&s->id, s->hex);
	CHECK_OK(host_new(test_path(name), s->store, &s->host, &err), &err);
}

static void scene_done(struct scene *s)
{
	host_free(s->host);
	free(s->from);
	free(s->to);
}

static int forget(struct scene *s, struct err *err)
{
	struct task task = task_of(s->host);

	return project_forget(&task, s->hex, false, err);
}

static int move(struct scene *s, struct err *err)
{
	struct task task = task_of(s->host);

	return project_move(&task, s->hex, s->to, false, err);
}

static void forget_meanwhile(void *ctx)
{
	struct err err = { 0 };

	CHECK_OK(forget(ctx, &err), &err);
}

static void move_meanwhile(void *ctx)
{
	struct err err = { 0 };

	CHECK_OK(move(ctx, &err), &err);
}

TEST(a_project_that_is_forgotten_while_it_moves_stays_forgotten)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	CLEANUP(project_done) struct project p = { 0 };
	CLEANUP(snapshot_done) struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	scene_open(&s, "forgotten");
	meanwhile = forget_meanwhile;
	meanwhile_ctx = &s;
	CHECK_EQ(move(&s, &err), -ENXIO);
	CHECK(strstr(err.msg, "was forgotten just now"));
	CHECK_EQ(project_get(s.store, &s.id, &p, &err), -ENOENT);
	CHECK_EQ(snapshot_get(s.store, &s.snapshot, &snapshot, &err), -ENOENT);
}

TEST(a_project_that_moves_while_it_is_forgotten_keeps_all_it_has)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	CLEANUP(project_done) struct project p = { 0 };
	CLEANUP(snapshot_done) struct snapshot snapshot = { 0 };
	struct err err = { 0 };

	scene_open(&s, "moved");
	meanwhile = move_meanwhile;
	meanwhile_ctx = &s;
	CHECK_EQ(forget(&s, &err), -ENXIO);
	CHECK(strstr(err.msg, "was moved just now"));
	CHECK_OK(project_get(s.store, &s.id, &p, &err), &err);
	CHECK_STR(p.path, s.to);
	CHECK_OK(snapshot_get(s.store, &s.snapshot, &snapshot, &err), &err);
}

TEST_MAIN("project-edit")
