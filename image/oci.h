/*
 * oci.h - an OCI image layout in a directory: finding an image in one, adding an image to one.
 *
 * Everything in a layout is named by the SHA-256 of its bytes, and everything that is read is checked
 * against its name first.  The JSON is bounded; what it names is a file in blobs/sha256 or nothing.
 */
#pragma once

#include "base/json.h"
#include "base/sha256.h"

#define OCI_DIGEST_SIZE (7 + SHA256_HEX_SIZE) /* "sha256:", digits and a NUL */
#define OCI_LAYERS_MAX  512
#define OCI_JSON_MAX    ((size_t)4 << 20)
#define OCI_REF_NAME    "org.opencontainers.image.ref.name"

struct oci_blob {
	char digest[OCI_DIGEST_SIZE];
	uint64_t size;
};

/* Does an entry of an index have this tag? */
bool oci_has_tag(struct json entry, const char *tag);

/* --- finding ---------------------------------------------------------------------------- */

struct oci_image {
	char digest[OCI_DIGEST_SIZE]; /* of its manifest */
	char *platform;               /* owned; "linux/amd64" */
	struct oci_blob *layers;      /* owned; the lowest first */
	char (*plain)
	    [OCI_DIGEST_SIZE]; /* owned; of each layer, what it unpacks to; NULL: nothing says so */
	size_t n_layers;
	struct json_doc config; /* the whole configuration file */
};

void oci_image_done(struct oci_image *i);

/*
 * The image with that tag (NULL: the only one there is) for that platform, "os/arch" (NULL: this
 * machine's; a layout with one image for another one gives that).  -ENOENT, -EINVAL or -EBADMSG with a
 * sentence.
 */
NODISCARD int oci_find(int dir, const char *tag, const char *platform, struct oci_image *ret,
		       struct err *err);

/* Open a layer at its beginning, all its bytes verified.  *ret_fd is owned by the caller. */
NODISCARD int oci_open_layer(int dir, const struct oci_blob *layer, int *ret_fd, struct err *err);

/* What this machine runs: "linux/arm64". */
const char *oci_platform(void);

/* --- adding ----------------------------------------------------------------------------- */

/* A blob being written; it gets its name when it is whole. */
struct oci_writer {
	int dir; /* borrowed; of the layout */
	int fd;  /* owned; -1: none */
	char temp[32];
	struct sha256 sum;
	uint64_t size;
};

#define OCI_WRITER_INIT ((struct oci_writer){ .fd = -1 })

/* Make the directory a layout, unless it is one. */
NODISCARD int oci_make_layout(int dir, struct err *err);

NODISCARD int oci_writer_open(struct oci_writer *w, int dir, struct err *err);
NODISCARD int oci_writer_add(struct oci_writer *w, const void *data, size_t len, struct err *err);
NODISCARD int oci_writer_keep(struct oci_writer *w, struct oci_blob *ret, struct err *err);
void oci_writer_done(struct oci_writer *w); /* takes away what was not kept */

struct oci_layer {
	struct oci_blob blob;
	char diff_id[OCI_DIGEST_SIZE]; /* of the archive as it is unpacked */
	const char *packed;            /* "", "+gzip", "+zstd" */
};

struct oci_made {
	const struct oci_layer *layers; /* borrowed, as are the others; the lowest first */
	size_t n;
	const char *platform; /* "os/arch" */
	const char *config;   /* JSON: what a run of it is like; NULL: nothing */
	const char *tag;
};

/* Write configuration, manifest and, in one step, the index that names it.  *ret is the manifest. */
NODISCARD int oci_put_image(int dir, const struct oci_made *image, struct oci_blob *ret,
			    struct err *err);
