/*
 * A promotion into a directory elsewhere has the turn of that directory, not of the project whose receipt it is.
 * The project may be forgotten meanwhile: before the records are put, or not until they are there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/pin.h"
#include "engine/act/acts-i.h"
#include "engine/act/forget-i.h"
#include "engine/act/hold-i.h"
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

/* A rollback goes back to a snapshot that was there before. */
static int roll_back(struct scene *s, struct snapshot *to, struct err *err)
{
	CLEANUP(landed_done) struct landed landed = { 0 };
	char message[] = "";
	const struct landing_act act = { .message = message,
					 .after = to,
					 .receipt = { .kind = RECEIPT_ROLLBACK } };

	return landing_act(&s->landing, &s->plan, &act, &landed, err);
}

static struct snapshot an_old_one(struct scene *s, char *message)
{
	struct snapshot old = { .root = s->landing.now.root, .message = message, .created = 1 };
	struct err err = { 0 };

	CHECK_OK(catalog_id_new(&old.id, &err), &err);
	return old;
}

static bool would_go(struct scene *s, const struct snapshot *what, bool unborn)
{
	CLEANUP(forget_done) struct forget f = { .unborn = unborn };
	struct err err = { 0 };

	CHECK_OK(forget_add(&f, what, &err), &err);
	CHECK_OK(forget_settle(&f, s->store, NULL, &err), &err);
	return forget_goes(&f, &what->id);
}

TEST(nobody_forgets_what_a_rollback_under_way_goes_back_to)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct err err = { 0 };
	char message[] = "";
	struct snapshot old;
	struct batch *b;

	scene_open(&s, "under-way");
	old = an_old_one(&s, message);
	b = stock_begin(s.store);
	CHECK_OK(snapshot_put(b, &old, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
	CHECK(would_go(&s, &old, false));
	/* An empty plan ends no receipt. */
	CHECK_OK(roll_back(&s, &old, &err), &err);
	CHECK(!would_go(&s, &old, false));
	CHECK(would_go(&s, &old, true));
}

TEST(a_rollback_to_what_was_removed_just_now_is_refused)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct err err = { 0 };
	char message[] = "";
	struct snapshot old;

	scene_open(&s, "removed");
	old = an_old_one(&s, message);
	CHECK_EQ(roll_back(&s, &old, &err), -ENOENT);
	CHECK(strstr(err.msg, "was removed just now"));
}

TEST(a_snapshot_is_held_only_while_its_record_is_there)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	struct err err = { 0 };
	char message[] = "";
	struct snapshot old;
	struct batch *b;

	scene_open(&s, "held");
	old = an_old_one(&s, message);
	CHECK_EQ(hold_tree(s.store, &old, &err), -ENOENT);
	CHECK(strstr(err.msg, "was removed just now"));
	b = stock_begin(s.store);
	CHECK_OK(snapshot_put(b, &old, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
	CHECK_OK(hold_tree(s.store, &old, &err), &err);
	store_unpin(s.store, OBJECT_TREE, &old.root);
}

TEST(the_state_before_is_kept_though_its_snapshot_was_removed_just_now)
{
	CLEANUP(scene_done) struct scene s = { 0 };
	CLEANUP(landed_done) struct landed landed = { 0 };
	CLEANUP(snapshot_done) struct snapshot before = { 0 };
	struct err err = { 0 };
	char *message = strdup("");

	CHECK(message);
	scene_open(&s, "before");
	s.landing.newest = an_old_one(&s, message);
	CHECK_OK(land(&s, &landed, &err), &err);
	CHECK_OK(snapshot_find(s.store, landed.before, &before, &err), &err);
	CHECK(catalog_id_is_zero(&before.parent));
}

TEST_MAIN("land")
