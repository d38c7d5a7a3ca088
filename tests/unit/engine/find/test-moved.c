#include "engine/find/moved-i.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/stock.h"
#include "tests/lib/test.h"

/* A store with projects whose paths are gone, and the directory HERE/app/in. */
struct scene {
	struct store *s;
	char app[512], in[600];
	struct project is; /* what HERE/app is known by */
};

static struct scene scene_new(const char *name)
{
	struct scene sc = { 0 };
	char here[400];

	snprintf(here, sizeof(here), "%s", test_path(name));
	snprintf(sc.app, sizeof(sc.app), "%s/app", here);
	snprintf(sc.in, sizeof(sc.in), "%s/in", sc.app);
	CHECK_EQ(mkdir(here, 0700), 0);
	CHECK_EQ(mkdir(sc.app, 0700), 0);
	CHECK_EQ(mkdir(sc.in, 0700), 0);
	snprintf(here + strlen(here), sizeof(here) - strlen(here), "-store");
	sc.s = stock_open(here, STORE_CREATE);
	sc.is.path = sc.app;
	moved_identify(&sc.is);
	if (sc.is.born == 0) /* this file system does not tell */
		sc.is.born = 1;
	return sc;
}

static void scene_done(struct scene *sc)
{
	store_close(sc->s);
}

static void put(struct scene *sc, uint8_t id, char *path, struct project known)
{
	struct batch *b = stock_begin(sc->s);
	struct err err = { 0 };

	known.id = (struct catalog_id){ { id } };
	known.path = path;
	CHECK_OK(project_put(b, &known, REF_NEW, &err), &err);
	stock_commit(b);
	batch_end(b);
}

static char gone_app[] = "/nowhere/app", gone_other[] = "/nowhere/other",
	    gone_in[] = "/nowhere/app/in";

TEST(the_copy_of_a_whole_file_system_is_not_certain)
{
	for (int stored = 0; stored < 2; stored++) {
		CLEANUP(scene_done) struct scene sc = scene_new(stored ? "copy" : "old");
		CLEANUP(moved_done) struct moved m = { 0 };
		struct err err = { 0 };

		if (sc.is.born == 1)
			return;
		sc.is.fs = stored ? sc.is.fs + 1 : 0;
		put(&sc, 1, gone_other, sc.is);
		CHECK_EQ(moved_find(sc.s, sc.in, sc.in, &m, &err), 1);
		CHECK(!m.certain);
		CHECK_STR(m.from, gone_other);
		CHECK_STR(m.to, sc.app);
	}
}

TEST(a_name_alone_is_not_enough_for_a_hint)
{
	CLEANUP(scene_done) struct scene sc = scene_new("name");
	CLEANUP(moved_done) struct moved m = { 0 };
	const struct project part = { .ino = sc.is.ino, .born = sc.is.born + 1, .fs = sc.is.fs };
	struct err err = { 0 };

	if (sc.is.born == 1)
		return;
	put(&sc, 1, gone_app, (struct project){ 0 });
	put(&sc, 2, gone_app, (struct project){ .ino = part.ino + 1, .born = part.born });
	put(&sc, 3, gone_other, part);
	CHECK_EQ(moved_find(sc.s, sc.app, sc.app, &m, &err), 0);
	put(&sc, 4, gone_app, part);
	CHECK_EQ(moved_find(sc.s, sc.app, sc.app, &m, &err), 1);
	CHECK(!m.certain);
	CHECK_STR(m.to, sc.app);
}

TEST(the_innermost_of_several_is_meant_in_whatever_order_they_come)
{
	for (uint8_t first = 1; first <= 2; first++) {
		CLEANUP(scene_done) struct scene sc = scene_new(first == 1 ? "out" : "in");
		CLEANUP(moved_done) struct moved m = { 0 };
		struct project in = { .path = sc.in };
		struct err err = { 0 };

		if (sc.is.born == 1 || sc.is.fs == 0)
			return;
		moved_identify(&in);
		put(&sc, first, gone_app, sc.is);
		put(&sc, 3 - first, gone_in, in);
		CHECK_EQ(moved_find(sc.s, sc.in, sc.in, &m, &err), 1);
		CHECK(m.certain);
		CHECK_STR(m.from, gone_in);
		CHECK_STR(m.to, sc.in);
	}
}

TEST_MAIN("moved")
