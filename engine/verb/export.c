/*
 * The command line reads the store itself: cowfsd only holds the state meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "engine/api/image.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/find/image-i.h"
#include "image/pack.h"

struct export
{
	const struct engine_export_options *options;
	struct store *store;
	struct hold hold;
	struct engine_exported *ret;
};

static void export_done(struct export *x)
{
	hold_done(&x->hold);
}

static int add_state(struct engine *e, struct export *x, const char *text, struct err *err)
{
	int r = state_find(e, x->store, text, &x->hold.states[x->hold.n], err);

	x->hold.n += r >= 0;
	return r;
}

static int choose(struct engine *e, struct export *x, struct err *err)
{
	AUTO_FREE char *here = x->options->state ? NULL : clone_here(e);
	const char *state = here ? here : x->options->state;
	int r;

	if (!state)
		return err_set(err, -EINVAL, "no state is named, and this is in no clone");
	r = add_state(e, x, state, err);
	if (r >= 0 && x->options->base)
		r = add_state(e, x, x->options->base, err);
	return r < 0 ? r : hold_open(e, &x->hold, &x->options->watch, err);
}

/* --- a tar archive ---------------------------------------------------------------------- */

static int write_tar(const void *data, size_t len, void *ctx, struct err *err)
{
	struct export *x = ctx;
	int r = fdio_write(x->options->tar_fd, data, len);

	x->ret->size += len;
	return r < 0 ? err_set(err, r, "writing the archive: %s", strerror(-r)) : 0;
}

static int on_report(uint64_t entries, uint64_t bytes, void *ctx, struct err *err)
{
	const struct export *x = ctx;
	const struct engine_progress p = { .doing = "exporting", .files = entries, .bytes = bytes };

	(void)err;
	if (x->options->watch.fn)
		x->options->watch.fn(&p, x->options->watch.ctx);
	return 0;
}

static enum pack_filter filter_of(enum engine_compression c)
{
	switch (c) {
	case ENGINE_GZIP:
		return PACK_GZIP;
	case ENGINE_ZSTD:
		return PACK_ZSTD;
	case ENGINE_PLAIN:
		break;
	}
	return PACK_PLAIN;
}

static int export_tar(struct export *x, struct err *err)
{
	const struct pack_options options = {
		.filter = filter_of(x->options->compression),
		.base = x->options->base ? &x->hold.held[1].root : NULL,
		.layer = x->options->base != NULL,
		.report = on_report,
		.write = write_tar,
		.ctx = x,
	};
	struct packed packed;
	int r = pack_root(x->store, &x->hold.held[0].root, &options, &packed, err);

	if (r < 0)
		return r;
	x->ret->entries = packed.entries;
	x->ret->bytes = packed.bytes;
	x->ret->sockets = packed.sockets;
	x->ret->whiteouts = packed.whiteouts;
	x->ret->layers = 1;
	return 0;
}

int engine_export(struct engine *e, const struct engine_export_options *options,
		  struct engine_exported *ret, struct err *err)
{
	CLEANUP(engine_exported_done) struct engine_exported done = { 0 };
	CLEANUP(export_done) struct export x = { .options = options,
						 .hold = HOLD_INIT,
						 .ret = &done };
	const uint64_t start = engine_clock_ms();
	int r = engine_store(e, STORE_READ, &x.store, err);

	if (r == -ENOENT)
		return err_set(err, r, "there is no state '%s': nothing is stored yet",
			       options->state ? options->state : ".");
	if (r < 0)
		return r;
	r = choose(e, &x, err);
	if (r < 0)
		return r;
	done.state = strdup(x.hold.states[0].text);
	if (!done.state)
		return err_nomem(err);
	r = export_tar(&x, err);
	if (r < 0)
		return r;
	done.elapsed_ms = engine_clock_ms() - start;
	*ret = done;
	done = (struct engine_exported){ 0 };
	return 0;
}
