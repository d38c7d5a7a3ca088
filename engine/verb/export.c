/*
 * The command line reads the store itself: cowfsd only holds the state meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/path.h"
#include "engine/api/image.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/find/image-i.h"
#include "engine/find/part-i.h"
#include "image/oci.h"
#include "image/pack.h"

struct export
{
	const struct engine_export_options *options;
	struct store *store;
	struct hold hold;
	struct engine_exported *ret;
	struct oci_writer writer; /* of --oci: the blob that is being written */
};

static void export_done(struct export *x)
{
	hold_done(&x->hold);
	oci_writer_done(&x->writer);
}

static int add_state(struct engine *e, struct export *x, const char *text, struct err *err)
{
	int r = state_find(e, x->store, text, &x->hold.states[x->hold.n], err);

	x->hold.n += r >= 0;
	return r;
}

/* What one of the two never looked at must not be said to be removed or new. */
static int compare_parts(const struct export *x, struct err *err)
{
	AUTO_FREE char *part = NULL, *base = NULL;
	int r = part_of_state(x->store, &x->hold.states[0], &part, err);

	r = r < 0 ? r : part_of_state(x->store, &x->hold.states[1], &base, err);
	if (r < 0 || part_same(part, base))
		return r;
	return err_set(err, -EINVAL,
		       "one of the two has only '%.80s': name a base with the same part, or export "
		       "without '--base'",
		       part ? part : base);
}

static int choose(struct engine *e, struct export *x, struct err *err)
{
	AUTO_FREE char *here = x->options->state ? NULL : clone_here(e);
	const char *state = here ? here : x->options->state;
	int r;

	if (!state)
		return err_set(err, -EINVAL, "no state is named, and this is in no clone");
	r = add_state(e, x, state, err);
	if (r < 0)
		return r;
	if (x->options->base)
		r = add_state(e, x, x->options->base, err);
	if (r < 0)
		return r;
	if (x->options->base)
		r = compare_parts(x, err);
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

/* Of the layer that was written last. */
static void record_packed(struct export *x, const struct packed *p)
{
	x->ret->entries = p->entries;
	x->ret->bytes = p->bytes;
	x->ret->sockets = p->sockets;
	x->ret->whiteouts = p->whiteouts;
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
	record_packed(x, &packed);
	x->ret->layers = 1;
	return 0;
}

/* --- an OCI layout ---------------------------------------------------------------------- */

static int write_blob(const void *data, size_t len, void *ctx, struct err *err)
{
	struct export *x = ctx;

	return oci_writer_add(&x->writer, data, len, err);
}

static int put_layer(struct export *x, int dir, const struct object_id *root,
		     const struct object_id *base, struct oci_layer *ret, struct err *err)
{
	static const char *const packed[] = {
		[PACK_PLAIN] = "",
		[PACK_GZIP] = "+gzip",
		[PACK_ZSTD] = "+zstd",
	};
	const struct pack_options options = {
		.filter = filter_of(x->options->compression),
		.base = base,
		.layer = true,
		.report = on_report,
		.write = write_blob,
		.ctx = x,
	};
	char hex[SHA256_HEX_SIZE];
	struct packed done;
	int r = oci_writer_open(&x->writer, dir, err);

	if (r < 0)
		return r;
	r = pack_root(x->store, root, &options, &done, err);
	if (r < 0)
		return r;
	r = oci_writer_keep(&x->writer, &ret->blob, err);
	if (r < 0)
		return r;
	hex_encode(done.sha256, sizeof(done.sha256), hex);
	snprintf(ret->diff_id, sizeof(ret->diff_id), "sha256:%s", hex);
	ret->packed = packed[options.filter];
	record_packed(x, &done);
	x->ret->size += ret->blob.size;
	return 0;
}

/* How to run it, if the state came from an image that says so. */
static int find_about(struct export *x, struct json_doc *doc, struct json *ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	const struct state *s = &x->hold.states[0];
	const char *about = s->snapshot.image;
	int r;

	if (s->kind == STATE_CLONE || (s->kind == STATE_SNAPSHOT && !about)) {
		r = snapshot_get(x->store,
				 s->kind == STATE_CLONE ? &s->clone.base : &s->snapshot.base, &base,
				 err);
		if (r < 0 && r != -ENOENT)
			return r;
		about = base.image;
	}
	if (!about)
		about = "{}";
	return json_parse(doc, about, strlen(about), ret, err);
}

static int put_image(struct export *x, int dir, const struct oci_layer *layers, size_t n,
		     struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct oci_made made = {
		.layers = layers,
		.n = n,
		.tag = x->options->tag ? x->options->tag : "latest",
	};
	struct oci_blob manifest;
	struct json about;
	int r = find_about(x, &doc, &about, err);

	if (r < 0)
		return r;
	made.platform =
	    x->options->platform ? x->options->platform : json_text_if(about, "platform");
	if (!made.platform)
		made.platform = oci_platform();
	if (json_kind(about, "config") == JSON_OBJECT)
		made.config = json_text_of(json_get_object(about, "config"));
	r = oci_put_image(dir, &made, &manifest, err);
	if (r < 0)
		return r;
	snprintf(x->ret->digest, sizeof(x->ret->digest), "%s", manifest.digest);
	x->ret->layers = n;
	return 0;
}

static int export_oci(struct export *x, struct err *err)
{
	const struct object_id *root = &x->hold.held[0].root, *base = NULL;
	struct oci_layer layers[2];
	AUTO_CLOSE int dir = -1;
	size_t n = 0;
	int r = path_make_dirs(x->options->oci, 0777, err);

	if (r < 0)
		return r;
	dir = open(x->options->oci, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(err, "'%s'", x->options->oci);
	r = oci_make_layout(dir, err);
	if (r >= 0 && x->options->base) {
		base = &x->hold.held[1].root;
		r = put_layer(x, dir, base, NULL, &layers[n++], err);
	}
	if (r >= 0)
		r = put_layer(x, dir, root, base, &layers[n++], err);
	return r < 0 ? r : put_image(x, dir, layers, n, err);
}

int engine_export(struct engine *e, const struct engine_export_options *options,
		  struct engine_exported *ret, struct err *err)
{
	CLEANUP(engine_exported_done) struct engine_exported done = { 0 };
	CLEANUP(export_done) struct export x = {
		.options = options, .hold = HOLD_INIT, .ret = &done, .writer = OCI_WRITER_INIT
	};
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
	r = options->oci ? export_oci(&x, err) : export_tar(&x, err);
	if (r < 0)
		return r;
	done.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(done);
	return 0;
}
