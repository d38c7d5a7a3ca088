/*
 * index.json of a depot in a directory: which manifest each tag names.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/json.h"
#include "remote/depot-dir-i.h"
#include "remote/depot-mark.h"

#define INDEX_MAX  ((size_t)16 << 20)
#define TAG_KEY    "org.opencontainers.image.ref.name"
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"

static const char *tag_of(struct json entry)
{
	struct json notes;

	if (json_kind(entry, "annotations") != JSON_OBJECT)
		return NULL;
	notes = json_get_object(entry, "annotations");
	return json_text_if(notes, TAG_KEY);
}

int dir_index_load(struct dir_depot *dir, struct json_doc *doc, struct json *ret, struct err *err)
{
	static const char none[] = "{\"schemaVersion\":2,\"manifests\":[]}";
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index;
	int r = fdio_read_file(dir->fd, "index.json", INDEX_MAX, &text, err);

	if (r == -ENOENT)
		r = buf_append(&text, none, sizeof(none) - 1);
	if (r < 0)
		return err_wrap(err, r, "'%s'", dir->depot.url);
	r = json_parse(doc, (const char *)text.data, text.len, &index, err);
	if (r == 0 && json_kind(index, "manifests") != JSON_ARRAY)
		r = err_set(err, -EINVAL, "there is no list of manifests");
	if (r < 0)
		return err_wrap(err, r == -EINVAL ? -EBADMSG : r, "'%s/index.json'", dir->path);
	*ret = json_get_array(index, "manifests");
	return 0;
}

int dir_index_find(struct json manifests, const char *tag, struct digest *ret)
{
	size_t i;

	for (i = 0; i < json_length(manifests); i++) {
		struct json entry = json_at_object(manifests, i);
		const char *name = tag_of(entry), *digest = json_text_if(entry, "digest");

		if (name && strcmp(name, tag) == 0)
			return digest && digest_parse(digest, ret) == 0 ? 0 : -EBADMSG;
	}
	return -ENOENT;
}

bool dir_index_drops(struct json entry, const struct dir_index_change *c)
{
	const char *tag = tag_of(entry), *digest = json_text_if(entry, "digest");
	struct digest d;

	if (c->drop_tag && tag && strcmp(tag, c->drop_tag) == 0)
		return true;
	if (!digest || digest_parse(digest, &d) < 0)
		return false;
	for (size_t i = 0; tag && i < c->n_drops; i++)
		if (strcmp(tag, c->drops[i].tag) == 0 && digest_equal(&d, &c->drops[i].expect))
			return true;
	return c->drop_digest && digest_equal(&d, c->drop_digest);
}

int dir_index_change(struct dir_depot *dir, struct json manifests, const struct dir_index_change *c,
		     struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index = json_begin(&doc), list, entry;
	char digest[DIGEST_TEXT_SIZE];
	int r, dropped = 0;
	size_t i;

	json_set_int(index, "schemaVersion", 2);
	json_set_text(index, "mediaType", INDEX_TYPE);
	list = json_set_array(index, "manifests");
	for (i = 0; i < json_length(manifests); i++) {
		struct json old = json_at_object(manifests, i);

		if (dir_index_drops(old, c)) {
			dropped++;
			continue;
		}
		entry = json_add_object(list);
		json_set_value(entry, "mediaType", old, "mediaType");
		json_set_value(entry, "digest", old, "digest");
		json_set_value(entry, "size", old, "size");
		json_set_value(entry, "platform", old, "platform");
		json_set_value(entry, "artifactType", old, "artifactType");
		json_set_value(entry, "annotations", old, "annotations");
	}
	if (c->add_tag) {
		entry = json_add_object(list);
		json_set_text(entry, "mediaType", c->media_type);
		json_set_text(entry, "digest", digest_text(c->add_digest, digest));
		json_set_uint(entry, "size", c->size);
		json_set_text(json_set_object(entry, "annotations"), TAG_KEY, c->add_tag);
	}
	r = json_append(&doc, &text, err);
	if (r == 0)
		r = fdio_replace_file(dir->fd, "index.json", text.data, text.len, 0666, err);
	return r < 0 ? err_wrap(err, r, "'%s'", dir->depot.url) : dropped;
}

static int check_expected(struct dir_depot *dir, struct json manifests, const char *tag,
			  const struct digest *expect, struct err *err)
{
	static const struct digest none;
	struct digest now = none;
	int r;

	if (!expect)
		return 0;
	r = dir_index_find(manifests, tag, &now);
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "'%s/index.json' names no digest for '%s'", dir->path, tag);
	if (digest_equal(&now, expect))
		return 0;
	return err_set(err, -ESTALE, "'%s' of '%s' was moved by somebody else meanwhile", tag,
		       dir->depot.url);
}

struct checking {
	struct dir_depot *dir;
	struct err *err;
};

static int check_there(const struct digest *blob, bool is_manifest, void *ctx)
{
	const struct checking *c = ctx;
	char text[DIGEST_TEXT_SIZE];
	uint64_t size;
	int r = c->dir->depot.ops->has_blob(&c->dir->depot, blob, &size, c->err);

	if (r != 0)
		return r < 0 ? r : 0;
	return err_set(c->err, -EAGAIN,
		       "'%s' lost blob %s while it was pushed to: push once more, or with --whole",
		       c->dir->depot.url, digest_text(blob, text));
}

int dir_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		     const char *media_type, const void *bytes, size_t len, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct dir_index_change c = { .drop_tag = tag, .add_tag = tag, .media_type = media_type };
	AUTO_CLOSE int lock = -1;
	struct json manifests;
	struct digest digest;
	int r = depot_put(d, bytes, len, &digest, err);

	if (r < 0)
		return r;
	if (fsync(dir->blobs) < 0)
		return err_sys(err, "syncing '%s/blobs/sha256'", dir->path);
	if (!tag)
		return 0;
	c.add_digest = &digest;
	c.size = len;
	r = dir_lock(dir, &lock, err);
	if (r == 0)
		r = dir_index_load(dir, &doc, &manifests, err);
	if (r == 0)
		r = check_expected(dir, manifests, tag, expect, err);
	/* Under the lock: a gc that ran since the blobs were put has let go of it. */
	if (r == 0)
		r = check_there(&digest, true, &(struct checking){ dir, err });
	if (r == 0)
		r = depot_each_blob(
		    &(const struct buf){ .data = (void *)(uintptr_t)bytes, .len = len },
		    check_there, &(struct checking){ dir, err });
	if (r == 0)
		r = dir_index_change(dir, manifests, &c, err);
	return r < 0 ? r : 0;
}

int dir_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err)
{
	const struct depot_cache *cache = d->cache;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct json manifests;
	struct digest digest;
	int r = dir_use(dir, err);

	if (r < 0)
		return r;
	if (digest_parse(reference, &digest) < 0) {
		r = dir_index_load(dir, &doc, &manifests, err);
		if (r == 0)
			r = dir_index_find(manifests, reference, &digest);
		if (r < 0)
			return r;
		/* Our own copy says nothing of whether the name still means something there. */
		d->cache = NULL;
		r = depot_get(d, &digest, DEPOT_MANIFEST_MAX, out, NULL, err);
		d->cache = cache;
		if (r == -ENOENT)
			return err_set(
			    err, -EBADMSG,
			    "'%s' lacks the manifest that '%s' names: push it with --whole --force",
			    d->url, reference);
		return r;
	}
	return depot_get(d, &digest, DEPOT_MANIFEST_MAX, out, NULL, err);
}

int dir_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct json manifests;
	size_t i;
	int r = dir_use(dir, err);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = dir_index_load(dir, &doc, &manifests, err);
	for (i = 0; r == 0 && i < json_length(manifests); i++) {
		const char *tag = tag_of(json_at_object(manifests, i));

		if (tag)
			r = fn(tag, ctx);
	}
	return r;
}

int dir_delete_manifest(struct depot *d, const char *reference, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct dir_depot *dir = dir_of(d);
	struct dir_index_change c = { 0 };
	AUTO_CLOSE int lock = -1;
	struct json manifests;
	struct digest digest;
	int r;

	if (digest_parse(reference, &digest) == 0)
		c.drop_digest = &digest;
	else
		c.drop_tag = reference;
	r = dir_use(dir, err);
	if (r == 0)
		r = dir_lock(dir, &lock, err);
	if (r == 0)
		r = dir_index_load(dir, &doc, &manifests, err);
	if (r == 0)
		r = dir_index_change(dir, manifests, &c, err);
	if (r < 0)
		return r;
	return r == 0 ? -ENOENT : 0;
}
