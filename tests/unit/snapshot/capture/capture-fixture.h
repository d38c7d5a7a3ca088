/*
 * capture-fixture.h - for tests of capture: a directory to fill, and the store it goes to.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "snapshot/capture/capture.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

struct scene {
	const char *path; /* of the directory */
	int fd;           /* the directory */
	struct store *s;
	struct object_id id; /* of the last capture, and what it gave */
	struct root root;
	struct capture_stats stats;
	struct signatures *known; /* owned; for the next capture, if it is to use them */
	struct capture_report unread;
	bool incremental; /* captures use and keep `known` */
};

static inline struct scene scene_new(const char *name)
{
	char store_name[64];
	struct scene sc = { .path = test_path(name) };

	snprintf(store_name, sizeof(store_name), "%s.store", name);
	CHECK_EQ(mkdir(sc.path, 0755), 0);
	sc.fd = open(sc.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(sc.fd >= 0);
	sc.s = stock_open(test_path(store_name), STORE_CREATE);
	return sc;
}

static inline void scene_done(struct scene *sc)
{
	cleanup_close(&sc->fd);
	signatures_free(sc->known);
	capture_report_done(&sc->unread);
	store_close(sc->s);
}

static inline void scene_write(struct scene *sc, const char *path, const void *data, size_t len)
{
	AUTO_CLOSE int fd = openat(sc->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, data, len), 0);
}

static inline void scene_text(struct scene *sc, const char *path, const char *text)
{
	scene_write(sc, path, text, strlen(text));
}

static inline void scene_mkdir(struct scene *sc, const char *path)
{
	CHECK_EQ(mkdirat(sc->fd, path, 0755), 0);
}

static inline int scene_try(struct scene *sc, const struct capture_options *options,
			    struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(sc->s);
	CLEANUP(captured_done) struct captured c = { 0 };
	struct capture_options o = { 0 };
	int r;

	if (options)
		o = *options;
	if (sc->incremental)
		o.known = sc->known;
	r = capture_directory(b, sc->path, &o, &c, err);
	capture_report_done(&sc->unread);
	sc->unread = c.unread;
	c.unread = (struct capture_report){ 0 };
	if (r < 0)
		return r;
	sc->id = c.root;
	sc->stats = c.stats;
	stock_name(b, REF_SNAPSHOT, "captured", &c.root, REF_REPLACE);
	stock_commit(b);
	if (sc->incremental && c.signatures) {
		signatures_free(sc->known);
		sc->known = TAKE_PTR(c.signatures);
	}
	CHECK_OK(root_get(sc->s, &sc->id, &sc->root, err), err);
	return 0;
}

static inline void scene_capture_with(struct scene *sc, const struct capture_options *options)
{
	struct err err = { 0 };

	CHECK_OK(scene_try(sc, options, &err), &err);
}

static inline void scene_capture(struct scene *sc)
{
	scene_capture_with(sc, NULL);
}

/* Past the time in which a change might not show. */
static inline void scene_settle(void)
{
	const struct timespec t = { .tv_nsec = 30000000 };

	nanosleep(&t, NULL);
}

/* What one without signatures makes of it. */
static inline struct object_id scene_capture_whole(struct scene *sc)
{
	struct object_id id = sc->id, whole;

	sc->incremental = false;
	scene_capture(sc);
	sc->incremental = true;
	whole = sc->id;
	sc->id = id;
	return whole;
}

/* The capture must fail with this code and sentence. */
static inline void scene_fails(struct scene *sc, const struct capture_options *options, int code,
			       const char *why)
{
	struct err err = { 0 };

	CHECK_EQ(scene_try(sc, options, &err), code);
	CHECK_HAS(err.msg, why);
}

/* What was captured at a path; -ENOENT if nothing was.  *ret borrows from `hold`. */
static inline int scene_find(struct scene *sc, const char *path, struct tree_entry *ret,
			     struct buf *hold)
{
	struct object_id tree = sc->root.top.id;
	struct err err = { 0 };
	int r;

	for (;;) {
		const size_t len = strcspn(path, "/");

		r = tree_lookup(sc->s, &tree, path, len, ret, hold, &err);
		CHECK(r == 0 || r == -ENOENT);
		if (r < 0 || path[len] == '\0')
			return r;
		CHECK_EQ(ret->form, TREE_DIR);
		tree = ret->id;
		path += len + 1;
	}
}

static inline bool scene_has(struct scene *sc, const char *path)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;

	return scene_find(sc, path, &e, &hold) == 0;
}

static inline struct tree_entry scene_entry(struct scene *sc, const char *path, struct buf *hold)
{
	struct tree_entry e = { 0 };

	CHECK_EQ(scene_find(sc, path, &e, hold), 0);
	return e;
}

/* The bytes of a captured regular file. */
static inline struct buf scene_read(struct scene *sc, const struct tree_entry *e)
{
	const struct content c = tree_entry_content(e);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct buf bytes = BUF_INIT;
	struct err err = { 0 };
	void *p;

	CHECK_OK(content_reader_new(sc->s, &c, &rd, &err), &err);
	p = buf_extend(&bytes, e->size);
	CHECK(p != NULL);
	CHECK_EQ(content_reader_read(rd, 0, p, e->size, &err), e->size);
	return bytes;
}
