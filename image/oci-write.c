#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "image/oci.h"

#define MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define CONFIG   "application/vnd.oci.image.config.v1+json"
#define LAYER    "application/vnd.oci.image.layer.v1.tar"
#define INDEX    "application/vnd.oci.image.index.v1+json"
#define BLOBS    "blobs/sha256"

static int make_dir(int dir, const char *name, struct err *err)
{
	return mkdirat(dir, name, 0777) < 0 && errno != EEXIST ? err_sys(err, "'%s'", name) : 0;
}

int oci_make_layout(int dir, struct err *err)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	int r = make_dir(dir, "blobs", err);

	if (r >= 0)
		r = make_dir(dir, BLOBS, err);
	if (r < 0 || faccessat(dir, "oci-layout", F_OK, 0) == 0)
		return r;
	return fdio_replace_file(dir, "oci-layout", layout, strlen(layout), 0666, err);
}

/* --- blobs ------------------------------------------------------------------------------ */

int oci_writer_open(struct oci_writer *w, int dir, struct err *err)
{
	w->dir = dir;
	w->size = 0;
	sha256_begin(&w->sum);
	snprintf(w->temp, sizeof(w->temp), BLOBS "/.tmp-%d", (int)getpid());
	w->fd = openat(dir, w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	return w->fd < 0 ? err_sys(err, "a blob of the layout") : 0;
}

int oci_writer_add(struct oci_writer *w, const void *data, size_t len, struct err *err)
{
	int r = fdio_write(w->fd, data, len);

	sha256_add(&w->sum, data, len);
	w->size += len;
	return r < 0 ? err_set(err, r, "writing a blob of the layout: %s", strerror(-r)) : 0;
}

int oci_writer_keep(struct oci_writer *w, struct oci_blob *ret, struct err *err)
{
	char hex[SHA256_HEX_SIZE], path[32 + SHA256_HEX_SIZE];

	snprintf(path, sizeof(path), BLOBS "/%s", sha256_end_hex(&w->sum, hex));
	/* What has that name already holds the same. */
	if (fsync(w->fd) < 0 || renameat(w->dir, w->temp, w->dir, path) < 0)
		return err_sys(err, "'%s' of the layout", path);
	cleanup_close(&w->fd);
	snprintf(ret->digest, sizeof(ret->digest), "sha256:%s", hex);
	ret->size = w->size;
	return 0;
}

void oci_writer_done(struct oci_writer *w)
{
	if (w->fd < 0)
		return;
	cleanup_close(&w->fd);
	unlinkat(w->dir, w->temp, 0);
}

static int put_json(int dir, const struct json_doc *doc, struct oci_blob *ret, struct err *err)
{
	CLEANUP(oci_writer_done) struct oci_writer w = OCI_WRITER_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int r = json_append(doc, &text, err);

	if (r < 0)
		return r;
	r = oci_writer_open(&w, dir, err);
	if (r < 0)
		return r;
	/* Without the newline. */
	r = oci_writer_add(&w, text.data, text.len - 1, err);
	return r < 0 ? r : oci_writer_keep(&w, ret, err);
}

/* --- the image -------------------------------------------------------------------------- */

static void split(const char *platform, char os[32], char arch[32])
{
	const size_t n = strcspn(platform, "/");

	snprintf(os, 32, "%.*s", (int)n, platform);
	snprintf(arch, 32, "%s", platform[n] ? platform + n + 1 : "unknown");
}

/* No time is in it, so that the same image has the same digest. */
static int put_config(int dir, const struct oci_made *m, struct oci_blob *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), rootfs, ids, history;
	char os[32], arch[32];

	split(m->platform, os, arch);
	json_set_text(j, "architecture", arch);
	json_set_text(j, "os", os);
	if (!m->config || !json_set_parsed(j, "config", m->config, strlen(m->config)))
		json_set_object(j, "config");
	rootfs = json_set_object(j, "rootfs");
	json_set_text(rootfs, "type", "layers");
	ids = json_set_array(rootfs, "diff_ids");
	history = json_set_array(j, "history");
	for (size_t i = 0; i < m->n; i++) {
		json_add_text(ids, m->layers[i].diff_id);
		json_set_text(json_add_object(history), "created_by", "snap export");
	}
	return put_json(dir, &doc, ret, err);
}

static void set_blob(struct json j, const char *type, const char *packed, const struct oci_blob *b)
{
	char text[80];

	snprintf(text, sizeof(text), "%s%s", type, packed);
	json_set_text(j, "mediaType", text);
	json_set_text(j, "digest", b->digest);
	json_set_uint(j, "size", b->size);
}

static int put_manifest(int dir, const struct oci_made *m, const struct oci_blob *config,
			struct oci_blob *ret, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), layers;

	json_set_uint(j, "schemaVersion", 2);
	json_set_text(j, "mediaType", MANIFEST);
	set_blob(json_set_object(j, "config"), CONFIG, "", config);
	layers = json_set_array(j, "layers");
	for (size_t i = 0; i < m->n; i++)
		set_blob(json_add_object(layers), LAYER, m->layers[i].packed, &m->layers[i].blob);
	return put_json(dir, &doc, ret, err);
}

/* The entries of the index that is there, but for those with the tag, each with a comma behind it. */
static int keep_entries(int dir, const char *tag, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index, list;
	int r = fdio_read_file(dir, "index.json", OCI_JSON_MAX, &text, err);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = json_parse(&doc, (const char *)text.data, text.len, &index, err);
	if (r < 0)
		return err_wrap(err, r, "'index.json' of the layout");
	list = json_get_array(index, "manifests");
	for (size_t i = 0; i < json_length(list) && r >= 0; i++) {
		struct json entry = json_at_object(list, i);
		const char *one = json_text_of(entry);

		if (!one)
			return err_nomem(err);
		if (!oci_has_tag(entry, tag))
			r = buf_printf(out, "%s,", one);
	}
	return r < 0 ? err_nomem(err) : json_end(&doc, err);
}

static int put_index(int dir, const struct oci_made *m, const struct oci_blob *manifest,
		     struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct json j = json_begin(&doc), platform;
	char os[32], arch[32];
	const char *entry;
	int r =
	    buf_printf(&out, "{\"schemaVersion\":2,\"mediaType\":\"" INDEX "\",\"manifests\":[");

	if (r < 0)
		return err_nomem(err);
	r = keep_entries(dir, m->tag, &out, err);
	if (r < 0)
		return r;
	set_blob(j, MANIFEST, "", manifest);
	split(m->platform, os, arch);
	platform = json_set_object(j, "platform");
	json_set_text(platform, "architecture", arch);
	json_set_text(platform, "os", os);
	json_set_text(json_set_object(j, "annotations"), OCI_REF_NAME, m->tag);
	entry = json_text_of(j);
	if (!entry || buf_printf(&out, "%s]}", entry) < 0)
		return err_nomem(err);
	return fdio_replace_file(dir, "index.json", out.data, out.len, 0666, err);
}

int oci_put_image(int dir, const struct oci_made *image, struct oci_blob *ret, struct err *err)
{
	struct oci_blob config, manifest;
	int r = put_config(dir, image, &config, err);

	if (r < 0)
		return r;
	r = put_manifest(dir, image, &config, &manifest, err);
	if (r < 0)
		return r;
	r = put_index(dir, image, &manifest, err);
	if (r < 0)
		return r;
	*ret = manifest;
	return 0;
}
