#include "image/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/text.h"

#define DEPTH_MAX 4 /* of an index in an index */
#define READ_SIZE ((size_t)256 << 10)
#define TYPES     "application/vnd.oci.image."
#define DOCKER    "application/vnd.docker."

void oci_image_done(struct oci_image *i)
{
	free(i->platform);
	free(i->layers);
	free(i->plain);
	json_done(&i->config);
	*i = (struct oci_image){ 0 };
}

const char *oci_platform(void)
{
	static const struct {
		const char *machine, *platform;
	} known[] = {
		{ "x86_64", "linux/amd64" },    { "aarch64", "linux/arm64" },
		{ "i686", "linux/386" },        { "armv7l", "linux/arm" },
		{ "riscv64", "linux/riscv64" }, { "ppc64le", "linux/ppc64le" },
		{ "s390x", "linux/s390x" },
	};
	struct utsname u;

	if (uname(&u) == 0)
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if (strcmp(u.machine, known[i].machine) == 0)
				return known[i].platform;
	return "linux/unknown";
}

/* --- blobs ------------------------------------------------------------------------------ */

/* "sha256:" and 64 digits in lower case: nothing else can be part of a path. */
static bool is_digest(const char *text)
{
	return text && strncmp(text, "sha256:", 7) == 0 && strlen(text) == OCI_DIGEST_SIZE - 1 &&
	       strspn(text + 7, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

static int open_blob(int dir, const struct oci_blob *b, int *ret, struct err *err)
{
	char path[32 + SHA256_HEX_SIZE];
	AUTO_CLOSE int fd = -1;
	struct stat st;

	snprintf(path, sizeof(path), "blobs/sha256/%s", b->digest + 7);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_sys(err, "'%s' of the layout", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "'%s' of the layout", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "'%s' of the layout is no file", path);
	if ((uint64_t)st.st_size != b->size)
		return err_set(err, -EBADMSG, "'%s' of the layout has %lld bytes, not %llu", path,
			       (long long)st.st_size, (unsigned long long)b->size);
	*ret = TAKE_FD(fd);
	return 0;
}

static int check_sum(struct sha256 *sum, const struct oci_blob *b, struct err *err)
{
	char hex[SHA256_HEX_SIZE];

	if (strcmp(sha256_end_hex(sum, hex), b->digest + 7) == 0)
		return 0;
	return err_set(err, -EBADMSG, "blob %s holds bytes whose digest is sha256:%s", b->digest,
		       hex);
}

int oci_open_layer(int dir, const struct oci_blob *layer, int *ret_fd, struct err *err)
{
	AUTO_FREE char *block = malloc(READ_SIZE);
	AUTO_CLOSE int fd = -1;
	struct sha256 sum;
	ssize_t n;
	int r = block ? open_blob(dir, layer, &fd, err) : err_nomem(err);

	if (r < 0)
		return r;
	sha256_begin(&sum);
	while ((n = fdio_read(fd, block, READ_SIZE)) > 0)
		sha256_add(&sum, block, (size_t)n);
	if (n < 0)
		return err_set(err, (int)n, "reading blob %s: %s", layer->digest,
			       strerror((int)-n));
	r = check_sum(&sum, layer, err);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "blob %s", layer->digest);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int read_json(int dir, const struct oci_blob *b, struct json_doc *doc, struct json *ret,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_CLOSE int fd = -1;
	struct sha256 sum;
	ssize_t n;
	int r = open_blob(dir, b, &fd, err);

	if (r < 0)
		return r;
	if (b->size > OCI_JSON_MAX || !buf_extend(&text, b->size + 1))
		return err_set(err, -EINVAL, "blob %s is too large to be JSON", b->digest);
	n = fdio_read(fd, text.data, b->size);
	if (n < 0)
		return err_set(err, (int)n, "reading blob %s: %s", b->digest, strerror((int)-n));
	sha256_begin(&sum);
	sha256_add(&sum, text.data, (size_t)n);
	r = check_sum(&sum, b, err);
	if (r < 0)
		return r;
	r = json_parse(doc, (const char *)text.data, (size_t)n, ret, err);
	return r < 0 ? err_wrap(err, r, "blob %s", b->digest) : 0;
}

/* --- descriptors ------------------------------------------------------------------------ */

static int get_blob(struct json j, struct oci_blob *ret, struct err *err)
{
	const char *digest = json_text_if(j, "digest");

	if (!is_digest(digest) || json_kind(j, "size") != JSON_INT)
		return err_set(err, -EINVAL,
			       "the layout names a blob without a size and a SHA-256 digest");
	snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
	ret->size = json_get_uint(j, "size");
	return 0;
}

bool oci_has_tag(struct json entry, const char *tag)
{
	const char *name = json_text_if(json_object_if(entry, "annotations"), OCI_REF_NAME);

	return name && strcmp(name, tag) == 0;
}

/* Does it say that it is for another platform? */
static bool is_for(struct json entry, const char *platform)
{
	const char *os, *arch;
	char text[64];

	if (json_kind(entry, "platform") != JSON_OBJECT)
		return true;
	os = json_text_if(json_get_object(entry, "platform"), "os");
	arch = json_text_if(json_get_object(entry, "platform"), "architecture");
	snprintf(text, sizeof(text), "%.30s/%.30s", os ? os : "", arch ? arch : "");
	return strcmp(text, platform) == 0;
}

struct choice {
	const char *tag;      /* NULL: any */
	const char *platform; /* "os/arch" */
	bool named;           /* somebody said which platform */
};

/* One of the entries of an index, or -ENOENT or -EINVAL with a sentence. */
static int choose(struct json manifests, const struct choice *c, struct json *ret, struct err *err)
{
	struct json fits = { 0 }, other = { 0 };
	size_t n_fit = 0, n_other = 0;

	for (size_t i = 0; i < json_length(manifests); i++) {
		struct json entry = json_at_object(manifests, i);

		if (c->tag && !oci_has_tag(entry, c->tag))
			continue;
		if (is_for(entry, c->platform)) {
			fits = entry;
			n_fit++;
		} else {
			other = entry;
			n_other++;
		}
	}
	if (n_fit == 0 && n_other == 1 && !c->named) {
		fits = other;
		n_fit = 1;
	}
	if (n_fit == 0)
		return err_set(err, -ENOENT, "the layout has no image%s%.64s for %s",
			       c->tag ? " with the tag " : "", c->tag ? c->tag : "", c->platform);
	if (n_fit > 1 && !c->tag)
		return err_set(err, -EINVAL,
			       "the layout has %zu images: name one by its tag, as DIR:TAG", n_fit);
	*ret = fits;
	return 0;
}

/* --- manifests -------------------------------------------------------------------------- */

static bool is_layer(const char *type)
{
	return type && (strncmp(type, TYPES "layer.", strlen(TYPES "layer.")) == 0 ||
			strncmp(type, DOCKER "image.rootfs.", strlen(DOCKER "image.rootfs.")) == 0);
}

static int get_layers(struct json manifest, struct oci_image *ret, struct err *err)
{
	struct json list = json_get_array(manifest, "layers");
	const size_t n = json_length(list);
	int r = 0;

	if (n > OCI_LAYERS_MAX)
		return err_set(err, -EDQUOT, "the image has more than %d layers", OCI_LAYERS_MAX);
	ret->layers = calloc(n + 1, sizeof(*ret->layers));
	if (!ret->layers)
		return err_nomem(err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct json one = json_at_object(list, i);

		if (!is_layer(json_text_if(one, "mediaType")))
			return err_set(err, -ENOTSUP, "a layer of the image is of no known type");
		r = get_blob(one, &ret->layers[ret->n_layers++], err);
	}
	return r;
}

/* Each layer is named twice: by its own bytes in the manifest, by what it unpacks to in the configuration. */
static int get_plain(struct json config, struct oci_image *ret, struct err *err)
{
	struct json rootfs, list;

	if (json_kind(config, "rootfs") != JSON_OBJECT)
		return 0;
	rootfs = json_get_object(config, "rootfs");
	if (json_kind(rootfs, "diff_ids") != JSON_ARRAY)
		return 0;
	list = json_get_array(rootfs, "diff_ids");
	if (json_length(list) != ret->n_layers)
		return err_set(err, -EBADMSG, "the image has %zu layers, and says that it has %zu",
			       ret->n_layers, json_length(list));
	ret->plain = calloc(ret->n_layers + 1, sizeof(*ret->plain));
	if (!ret->plain)
		return err_nomem(err);
	for (size_t i = 0; i < ret->n_layers; i++) {
		const char *text = json_at_text(list, i);

		if (!text || !is_digest(text))
			return err_set(err, -EBADMSG,
				       "the image has a layer with a digest of no known kind");
		memcpy(ret->plain[i], text, OCI_DIGEST_SIZE);
	}
	return 0;
}

static int get_config(int dir, struct json manifest, struct oci_image *ret, struct err *err)
{
	struct oci_blob blob;
	struct json config;
	const char *os, *arch;
	int r = get_blob(json_get_object(manifest, "config"), &blob, err);

	if (r < 0)
		return r;
	r = read_json(dir, &blob, &ret->config, &config, err);
	if (r < 0)
		return r;
	os = json_text_if(config, "os");
	arch = json_text_if(config, "architecture");
	ret->platform = text_format("%.30s/%.30s", os ? os : "linux", arch ? arch : "unknown");
	if (!ret->platform)
		return err_nomem(err);
	return get_plain(config, ret, err);
}

/* The entry of an index leads to a manifest, perhaps through another index. */
static int follow(int dir, struct json entry, const struct choice *c, unsigned depth,
		  struct oci_image *ret, struct err *err)
{
	const struct choice deeper = { .platform = c->platform, .named = c->named };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json at, next;
	struct oci_blob blob;
	int r = get_blob(entry, &blob, err);

	if (r < 0)
		return r;
	r = read_json(dir, &blob, &doc, &at, err);
	if (r < 0)
		return r;
	if (depth > DEPTH_MAX)
		return err_set(err, -EINVAL, "the layout has an index too deep in others");
	if (json_kind(at, "manifests") == JSON_ARRAY) {
		r = choose(json_get_array(at, "manifests"), &deeper, &next, err);
		return r < 0 ? r : follow(dir, next, c, depth + 1, ret, err);
	}
	memcpy(ret->digest, blob.digest, sizeof(ret->digest));
	r = get_layers(at, ret, err);
	if (r < 0)
		return r;
	r = get_config(dir, at, ret, err);
	return r < 0 ? r : json_end(&doc, err);
}

int oci_find(int dir, const char *tag, const char *platform, struct oci_image *ret, struct err *err)
{
	const struct choice c = {
		.tag = tag,
		.platform = platform ? platform : oci_platform(),
		.named = platform != NULL,
	};
	CLEANUP(oci_image_done) struct oci_image found = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct json index, entry;
	int r = fdio_read_file(dir, "index.json", OCI_JSON_MAX, &text, err);

	if (r < 0)
		return err_wrap(err, r, "this is no OCI layout");
	r = json_parse(&doc, (const char *)text.data, text.len, &index, err);
	if (r < 0)
		return err_wrap(err, r, "'index.json'");
	r = choose(json_get_array(index, "manifests"), &c, &entry, err);
	if (r < 0)
		return r;
	r = follow(dir, entry, &c, 0, &found, err);
	if (r < 0)
		return r;
	r = json_end(&doc, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(found);
	return 0;
}
