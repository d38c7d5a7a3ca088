/*
 * A promotion into a directory elsewhere has the turn of that directory, not of the project whose receipt it is.
 * The project may be forgotten meanwhile: before the records are put, or not until they are there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/act/acts-i.h"
#include "engine/act/land-i.h"
#include "engine/host/host-i.h"
#include "tests/lib/stock.h"

/* What trying to take host->snapshots, as `projects forget` does, says while a receipt is put. */
static struct host *watched;
static int tried;

int __real_receipt_begin(struct batch *b, struct receipt *receipt, struct err *err);
int __wrap_receipt_begin(struct batch *b, struct receipt *receipt, struct err *err);
int __wrap_receipt_begin(struct batch *b, struct receipt *receipt, struct err *err)
{
	tried = watched ? pthread_rwlock_trywrlock(&watched->snapshots) : 0;
	if (watched && tried == 0)
		pthread_rwlock_unlock(&watched->snapshots);
	return __real_receipt_begin(b, receipt, err);
}

/* A project that is registered, and a directory that it promotes to for the first time. */
struct scene {
	struct host *host;
	struct store *store;
	struct task task;
	struct project owner, target;
	struct landing landing;
	struct plan plan;
	char hex[CATALOG_HEX_SIZE];
};

static void scene_open(struct scene *s, const char *name)
{
	const struct survey_options survey = { 0 };
	const struct plan_options options = { 0 };
	struct err err = { 0 };
	struct batch *b;

	CHECK(asprintf(&s->owner.path, "%s-owner", test_path(name)) > 0);
	CHECK(asprintf(&s->target.path, "%s-target", test_path(name)) > 0);
	CHECK_EQ(mkdir(s->owner.path, 0700), 0);
	CHECK_EQ(mkdir(s->target.path, 0700), 0);
	s->store = stock_open(test_path(name), STORE_CREATE);
	b = stock_begin(s->store);
	CHECK_OK(catalog_id_new(&s->owner.id, &err), &err);
	CHECK_OK(project_put(b, &s->owner, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
	catalog_id_hex(&s->owner.id, s->hex);
	CHECK_OK(host_new(test_path(name), s->store, &s->host, &err), &err);
	s->task = task_of(s->host);
	s->target.hidden = PROJECT_TARGET;
	CHECK_OK(landing_open(&s->landing, &s->task, &s->target, &survey, &err), &err);
	CHECK_OK(plan_make(s->store, &s->landing.now.root, &s->landing.now.root, &options, &s->plan,
			   &err),
		 &err);
}

static void scene_done(struct scene *s)
{
	plan_done(&s->plan);
	landing_close(&s->landing);
	host_free(s->host);
	project_done(&s->owner);
	project_done(&s->target);
}

static int land(struct scene *s, struct landed *ret, struct err *err)
{
	char message[] = "";
	struct snapshot after = { .root = s->landing.now.root, .message = message };
	struct landing_act act = {
		.message = message, .after = &after, .owner = &s->owner, .fresh = &s->target
	};

	CHECK_OK(catalog_id_new(&s->target.id, err), err);
	act.receipt = (struct receipt){ .kind = RECEIPT_PROMOTION,
					.project = s->owner.id,
					.target = s->target.id };
	return landing_act(&s->landing, &s->plan, &act, ret, err);
}

static int forget(struct scene *s, struct err *err)
{
	struct task task = task_of(s->host);

	return project_forget(&task, s->hex, false, err);
}

TEST(nobody_forgets_a_project_between_the_last_look_at_it_and_its_receipt)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	CLEANUP(landed_done) struct landed landed = { 0 };
	CLEANUP(project_done) struct project p = { 0 };
	struct err err = { 0 };

	scene_open(&s, "locked");
	watched = s.host;
	CHECK_OK(land(&s, &landed, &err), &err);
	watched = NULL;
	CHECK_EQ(tried, EBUSY);
	CHECK(landed.receipt[0] != '\0');
	CHECK_OK(project_get(s.store, &s.target.id, &p, &err), &err);
	/* An empty plan ends no receipt; as long as one is begun, nobody forgets its project. */
	CHECK_EQ(forget(&s, &err), -EBUSY);
}

TEST(what_was_forgotten_before_gets_no_receipt_and_no_directory)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	CLEANUP(landed_done) struct landed landed = { 0 };
	CLEANUP(project_done) struct project p = { 0 };
	struct err err = { 0 };

	scene_open(&s, "gone");
	CHECK_OK(forget(&s, &err), &err);
	CHECK_EQ(land(&s, &landed, &err), -ENXIO);
	CHECK(strstr(err.msg, "was forgotten just now"));
	CHECK_STR(landed.receipt, "");
	CHECK_EQ(project_get(s.store, &s.target.id, &p, &err), -ENOENT);
}

TEST_MAIN("land")
