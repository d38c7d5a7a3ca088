/*
 * The command keeps its promotion's options as JSON, because cowfsd does not know all of them.
 */
#include "engine/api/resolve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/text.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"
#include "engine/find/resolve-set-i.h"
#include "engine/verb/resolve-i.h"

/* --- conflicts -------------------------------------------------------------------------- */

int engine_conflicts(struct engine *e, const struct engine_promote_options *options,
		     struct engine_promotion *ret, struct err *err)
{
	CLEANUP(asked_done) struct asked asked = { 0 };
	int r = asked_read(e, options, &asked, err);

	if (r < 0)
		return r;
	asked.options.dry_run = true;
	asked.options.again = asked.options.git = false;
	return engine_promote(e, &asked.options, ret, err);
}

/* A copy for cowfsd, which must not read a file that may be in a clone it serves. */
struct given {
	char *path, *name; /* owned; NULL: none; `name` is the end of `path` */
};

static void given_done(struct given *g)
{
	if (g->path)
		unlink(g->path);
	free(g->path);
}

static int copy_bytes(int from, int to, const char *path, struct err *err)
{
	char piece[64 << 10];
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0) {
		int r = fdio_write(to, piece, (size_t)n);

		if (r < 0)
			return err_set(err, r, "copying '%s' for cowfsd failed", path);
	}
	return n < 0 ? err_sys(err, "'%s'", path) : 0;
}

static int give_file(struct engine *e, const char *path, struct given *g, struct err *err)
{
	AUTO_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC), to = -1;

	if (from < 0)
		return err_sys(err, "'%s'", path);
	g->path = text_format("%s/" CONTROL_DIR "/given-XXXXXX", e->store_path);
	if (!g->path)
		return err_nomem(err);
	to = mkostemp(g->path, O_CLOEXEC);
	if (to < 0) {
		int r = err_sys(err, "'%s'", g->path);

		free(g->path);
		g->path = NULL;
		return r;
	}
	g->name = strrchr(g->path, '/') + 1;
	return copy_bytes(from, to, path, err);
}

int engine_resolve(struct engine *e, const struct engine_resolve_options *options, struct err *err)
{
	CLEANUP(ask_done) struct ask a = { 0 };
	CLEANUP(given_done) struct given given = { 0 };
	struct engine_resolve_options o = *options;
	int r = o.take == ENGINE_TAKE_FILE ? give_file(e, o.file, &given, err) : 0;

	if (r < 0)
		return r;
	o.file = given.name;
	ask_begin(&a, e, VERB_RESOLVE);
	fields_set(a.options, &wire_resolve_options, &o);
	return ask_for(&a, e, ASK_STORE, NULL, NULL, NULL, err);
}
