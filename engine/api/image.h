/*
 * image.h - whole file trees imported from an archive or an OCI image, and archives made of states.
 *
 * An image is a snapshot that belongs to no directory. It has a name in the whole store and can be
 * used wherever a state can. Importing one needs no privilege: owners, devices and set-id bits are
 * kept in the store, and nothing is unpacked on a disk.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"

#define ENGINE_IMAGE_TEXT_MAX ((size_t)60 << 10) /* of what an image says of itself */

struct engine_image {
	char *name;              /* owned, as are the others */
	char id[ENGINE_ID_SIZE]; /* of its snapshot */
	int64_t created;         /* imported, in nanoseconds since 1970 */
	uint64_t files, bytes;
	uint64_t clones; /* that were made of it */
	/*
	 * A JSON object: "source", and of an OCI image "digest" (of its manifest), "platform", "layers" (digests) and
	 * "config" (with Env, Cmd, Entrypoint, WorkingDir, User and what else the image says).
	 */
	char *about;
};

void engine_image_done(struct engine_image *i);

struct engine_images {
	struct engine_image *list; /* owned; by name */
	size_t n;
};

void engine_images_done(struct engine_images *i);

/* --- looking ---------------------------------------------------------------------------- */

/* None if there is no store yet. */
NODISCARD int engine_images(struct engine *e, struct engine_images *ret, struct err *err);

/* -ENOENT with a sentence. */
NODISCARD int engine_image_find(struct engine *e, const char *name, struct engine_image *ret,
				struct err *err);

/* --- importing -------------------------------------------------------------------------- */

struct engine_import_options {
	const char
	    *source; /* an archive, "-" for standard input, DIR or DIR:TAG with an OCI layout */
	const char *name;     /* of the image; NULL: after the source */
	const char *platform; /* "linux/arm64"; NULL: of this machine */
	bool replace;         /* one of that name gets this content; clones keep what they have */
	uint64_t max_bytes;   /* of its files; 0: a limit of ours */
	uint64_t max_names;   /* likewise; each costs cowfsd some 400 bytes of memory meanwhile */
	struct engine_watch watch;
};

struct engine_imported {
	struct engine_image image;
	uint64_t entries, layers; /* that were read */
	bool replaced;
	uint64_t elapsed_ms;
};

void engine_imported_done(struct engine_imported *i);

/*
 * Once this returns 0 the image survives power loss; on failure there is nothing.  -EEXIST if there is
 * one of that name, -EBADMSG if a digest does not fit, -EINVAL if the archive is none or refused, -EDQUOT
 * if it is above a limit.
 */
NODISCARD int engine_import(struct engine *e, const struct engine_import_options *options,
			    struct engine_imported *ret, struct err *err);

/* -EBUSY if clones were made of it and `force` is not set, which removes them too. */
NODISCARD int engine_image_remove(struct engine *e, const char *name, bool force,
				  struct engine_image *ret, struct err *err);

/* --- exporting -------------------------------------------------------------------------- */

enum engine_compression {
	ENGINE_PLAIN,
	ENGINE_GZIP,
	ENGINE_ZSTD,
};

struct engine_export_options {
	const char *state; /* NULL: the clone that holds the engine's directory */
	int tar_fd;        /* borrowed; gets an archive; -1: none */
	const char *oci;   /* a directory that gets, or has, an OCI layout; NULL: none */
	const char *tag;   /* of the image in the layout; NULL: "latest" */
	const char
	    *base; /* a state: the image is that and a layer with the changes; NULL: one layer */
	enum engine_compression compression;
	const char
	    *platform; /* that the image is said to be for; NULL: as its image, else this machine */
	struct engine_watch watch;
};

struct engine_exported {
	char *state;             /* owned; that was exported */
	char digest[80];         /* of the manifest; "": none */
	uint64_t entries, bytes; /* written, of the last layer */
	uint64_t size;           /* of the archive or of all blobs */
	uint64_t layers;
	uint64_t sockets;   /* left out: no archive has them */
	uint64_t whiteouts; /* in the layer with the changes */
	uint64_t elapsed_ms;
};

void engine_exported_done(struct engine_exported *x);

/* The same state always gives the same bytes.  On failure a layout is as it was but for unused blobs. */
NODISCARD int engine_export(struct engine *e, const struct engine_export_options *options,
			    struct engine_exported *ret, struct err *err);
