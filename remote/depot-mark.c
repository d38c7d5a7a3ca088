#include "remote/depot-mark.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"

#define DEPTH_MAX  8 /* of manifests that name manifests */
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"

/* OPENED: what it names is marked, too.  A blob may be NEEDED as a layer before it is met as a manifest. */
enum { NEEDED = 1, GONE = 2, OPENED = 3 };

void depot_marks_done(struct depot_marks *m)
{
	digest_table_done(&m->table);
}

/* --- what a manifest names ---------------------------------------------------------------- */

/* These types alone: the index of a pack is no index of images. */
static bool names_manifest(struct json descriptor)
{
	static const char *const types[] = {
		DEPOT_MANIFEST_TYPE,
		INDEX_TYPE,
		"application/vnd.docker.distribution.manifest.v2+json",
		"application/vnd.docker.distribution.manifest.list.v2+json",
	};
	const char *type = json_text_if(descriptor, "mediaType");

	return type && VEC_HAS(it, types, ARRAY_LEN(types), strcmp(type, *it) == 0);
}

static int each_of(struct json descriptor, bool is_manifest, depot_blob_fn fn, void *ctx)
{
	const char *text = json_text_if(descriptor, "digest");
	struct digest digest;

	/* Other algorithms lie in other directories. */
	if (!text || digest_parse(text, &digest) < 0)
		return 0;
	return fn(&digest, is_manifest || names_manifest(descriptor), ctx);
}

int depot_each_blob(const struct buf *manifest, depot_blob_fn fn, void *ctx)
{
	static const char *const lists[] = { "layers", "manifests", "blobs" };
	static const char *const singles[] = { "config", "subject" };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct err ignored = { 0 };
	struct json j;
	int r = 0;

	if (json_parse(&doc, (const char *)manifest->data, manifest->len, &j, &ignored) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(singles); i++)
		if (json_kind(j, singles[i]) == JSON_OBJECT)
			r = each_of(json_get_object(j, singles[i]), i == 1, fn, ctx);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct json list;

		if (json_kind(j, lists[i]) != JSON_ARRAY)
			continue;
		list = json_get_array(j, lists[i]);
		for (size_t n = 0; r == 0 && n < json_length(list); n++) {
			struct json one = json_at_object(list, n);

			if (one.node)
				r = each_of(one, i == 1, fn, ctx);
		}
	}
	return r;
}

/* --- marks -------------------------------------------------------------------------------- */

static int mark_blob(const struct digest *blob, bool is_manifest, void *ctx)
{
	struct depot_marks *m = ctx;
	int r;

	if (!is_manifest)
		return digest_table_add(&m->table, NEEDED, blob, 0) < 0 ? err_nomem(m->err) : 0;
	r = depot_mark_manifest(m, blob);
	/* What a foreign image lacks is not ours to judge; the rest of it stays. */
	return r == -ENOENT ? 0 : r;
}

static int mark_named(struct depot_marks *m, const struct buf *text)
{
	int r;

	if (m->depth == DEPTH_MAX)
		return err_set(m->err, -EBADMSG, "'%s' has manifests of manifests without end",
			       m->depot->url);
	m->depth++;
	r = depot_each_blob(text, mark_blob, m);
	m->depth--;
	return r;
}

/*
 * 1 and its bytes in `text`, or 0 if it was opened before.  It is needed in any case.  -ENOENT without a
 * sentence if it is not there.
 */
static int open_manifest(struct depot_marks *m, const struct digest *d, struct buf *text)
{
	int r;

	if (digest_table_add(&m->table, NEEDED, d, 0) < 0)
		return err_nomem(m->err);
	if (digest_table_find(&m->table, OPENED, d))
		return 0;
	r = depot_get(m->depot, d, DEPOT_MANIFEST_MAX, text, NULL, m->err);
	if (r < 0)
		return r;
	return digest_table_add(&m->table, OPENED, d, 0) < 0 ? err_nomem(m->err) : 1;
}

int depot_mark_manifest(struct depot_marks *m, const struct digest *d)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = open_manifest(m, d, &text);

	return r > 0 ? mark_named(m, &text) : r;
}

int depot_mark_bytes(struct depot_marks *m, const struct buf *manifest)
{
	const struct digest d = digest_of(manifest->data, manifest->len);

	if (digest_table_add(&m->table, NEEDED, &d, 0) < 0 ||
	    digest_table_add(&m->table, OPENED, &d, 0) < 0)
		return err_nomem(m->err);
	return mark_named(m, manifest);
}

int depot_mark_retained(struct depot_marks *m, const struct depot_retention *what)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < what->n_keep; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		r = open_manifest(m, &what->keep[i], &text);
		/* One that is gone or damaged itself needs nothing, and stays as it is. */
		if (r == -ENOENT || r == -EBADMSG)
			r = 0;
		if (r > 0)
			r = mark_named(m, &text);
	}
	for (size_t i = 0; r == 0 && i < what->n_gone; i++)
		if (digest_table_add(&m->table, GONE, &what->gone[i], 0) < 0)
			r = err_nomem(m->err);
	return r;
}

bool depot_is_needed(const struct depot_marks *m, const struct digest *blob)
{
	return digest_table_find(&m->table, NEEDED, blob) != NULL;
}

bool depot_is_gone(const struct depot_marks *m, const struct digest *manifest)
{
	return digest_table_find(&m->table, GONE, manifest) != NULL;
}
