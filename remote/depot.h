/*
 * depot.h - where pushed snapshots live: blobs by digest, manifests by tag or digest.
 *
 * A depot is one repository as the OCI distribution specification has it, behind a table of
 * functions.  depot-dir.c keeps one in a directory (an OCI image layout), depot-registry.c in a
 * registry, depot-s3.c in an S3 store.  Back ends move bytes and judge nothing; what they get wrong is found here or above:
 *
 *   - A blob is named by the SHA-256 of its bytes and never changes.  depot_fetch() hands out
 *     nothing that it has not checked against that name; get_blob() alone is unchecked.
 *   - A tag names a complete manifest: the caller puts every blob first and the manifest last, and
 *     put_manifest() moves the tag in one step.
 *   - Blobs and manifests come from strangers: sizes are bounded by the caller's `max`.
 *
 * Codes: -ENOENT says that the depot answered and has no such blob, tag or repository; it carries no
 * sentence.  A depot that cannot be reached, refuses or fails is anything else, with a sentence that
 * names the depot: -EACCES (credentials wanted or refused), -EAGAIN (the other side asks to wait, and
 * waiting did not help), -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ECONNRESET (network), -ENOSPC or
 * -EDQUOT (it is full), -EPROTO (an answer that the protocol does not have), -EBADMSG (wrong bytes),
 * -ENOTSUP (it cannot do that), -ECANCELED (watch->moved said so).  Back ends retry what may pass by
 * themselves before they give up.
 *
 * A struct depot belongs to one thread at a time.  Open one for each connection that is to work
 * beside the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "remote/pack/digest.h"

#define DEPOT_MANIFEST_MAX ((size_t)4 << 20) /* bytes; registries refuse larger ones too */
#define DEPOT_TAG_MAX      128               /* [A-Za-z0-9_][A-Za-z0-9._-]{0,127} */
#define DEPOT_TO_END       UINT64_MAX

#define DEPOT_MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"

bool depot_tag_valid(const char *tag);

/*
 * How far it has come.  `moved` is called after some bytes went over the wire, or every second while
 * nothing does (bytes = 0); a negative answer ends the transfer with that code.  Both may be NULL.
 */
struct depot_watch {
	int (*moved)(uint64_t bytes, void *ctx);
	void *ctx;
};

/*
 * Bytes to send: the file `fd` from its first byte, or `data` if fd is -1.  Sent again on a retry.
 * `read`, if it is set, gives them instead, in order and once: only a directory takes that.
 */
struct depot_bytes {
	int fd;
	const void *data;
	uint64_t size;
	int (*read)(void *to, size_t len, void *ctx); /* all of `len`, or a negative errno */
	void *ctx;
};

/* Takes what arrives, in order; a negative answer ends the transfer with that code. */
typedef int (*depot_sink_fn)(const void *data, size_t len, void *ctx);
typedef int (*depot_tag_fn)(const char *tag, void *ctx);

/*
 * What may go.  Manifests that tags name, when the depot is looked at for the last time, stay with all their
 * blobs whatever is said here.
 */
struct depot_drop {
	const char *tag;
	struct digest expect; /* what the tag names; a tag that was moved meanwhile stays */
};

struct depot_retention {
	const struct depot_drop *drop;
	size_t n_drop;
	const struct digest *keep; /* manifests that stay beside those that tags name */
	size_t n_keep;
	const struct digest *gone; /* manifests that need not stay; none of them is in `keep` */
	size_t n_gone;
	uint64_t grace_ms; /* what is younger stays: it may belong to a push that is under way */
	bool dry;          /* count, and remove nothing */
};

struct depot_freed {
	uint64_t names, moved; /* tags that went; tags that stayed since somebody moved them */
	uint64_t manifests;    /* that went */
	uint64_t blobs, bytes; /* that went, manifests among them */
	uint64_t young;        /* bytes that nobody needs and that are too young to go */
	uint64_t kept;         /* bytes that stay because something needs them */
	bool later;            /* only the server can free bytes, by its own gc */
};

/* What a try of a depot found, for `doctor`; all borrowed while `tell` runs. */
enum depot_level { DEPOT_WELL, DEPOT_WEAK, DEPOT_ILL };

struct depot_finding {
	const char *name; /* of what was tried: "reach", "tls", "login", "push", "clock" */
	enum depot_level level;
	const char *detail, *fix; /* what to type or do; fix "": nothing is to be mended */
};

typedef void (*depot_tell_fn)(const struct depot_finding *f, void *ctx);

struct depot;

struct depot_ops {
	void (*close)(struct depot *d);

	/* 1 and its size if the blob is there, 0 if not. */
	int (*has_blob)(struct depot *d, const struct digest *blob, uint64_t *ret_size,
			struct err *err);
	/*
	 * Store a blob whose digest and size the caller has computed.  Durable when it returns 0, or
	 * not there at all.  One that is there already is 0 at once.
	 */
	int (*put_blob)(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
			const struct depot_watch *watch, struct err *err);
	/*
	 * `len` bytes from `off` on (DEPOT_TO_END: all that follow) to `sink`.  -ENOENT if there is
	 * no such blob.  A depot without ranges reads from the start and drops what was not asked
	 * for.  Fewer bytes than the blob has are -ECONNRESET once retries are used up.
	 */
	int (*get_blob)(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
			depot_sink_fn sink, void *ctx, const struct depot_watch *watch,
			struct err *err);
	/*
	 * Take a blob over from another repository of the same server, without moving bytes.  1 if it
	 * is there now, 0 if it must be sent.  May be NULL: nothing can be taken over.
	 */
	int (*mount_blob)(struct depot *d, const struct digest *blob, const char *from_repository,
			  struct err *err);

	/*
	 * Store a manifest, and let `tag` (NULL: none) name it.  With `expect`, only if the tag names
	 * that manifest now (all zero: no manifest at all), else -ESTALE; where the protocol cannot
	 * compare and set, the tag is read right before.
	 */
	int (*put_manifest)(struct depot *d, const char *tag, const struct digest *expect,
			    const char *media_type, const void *bytes, size_t len, struct err *err);
	/*
	 * Replace `out` with the manifest that a tag or a digest ("sha256:...") names.  -ENOENT;
	 * -EFBIG if it is over DEPOT_MANIFEST_MAX.
	 */
	int (*get_manifest)(struct depot *d, const char *reference, struct buf *out,
			    struct err *err);
	/* Each tag, in no order.  A repository that does not exist yet has none. */
	int (*list_tags)(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err);
	/*
	 * Remove a tag, or a manifest by its digest with every tag that names it.  Blobs stay until
	 * the depot's own gc.  -ENOENT; -ENOTSUP where the server does not allow it.
	 */
	int (*delete_manifest)(struct depot *d, const char *reference, struct err *err);

	/*
	 * Remove tags, and what nothing needs any more.  A listed manifest that cannot be read stops
	 * it before anything is removed.
	 */
	int (*collect)(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		       struct err *err);

	/*
	 * Try what a push needs, step by step, and take it back.  Ends at the step without which no
	 * other can be tried, and then returns a negative errno; `tell` has heard what was
	 * wrong, and there is no sentence.
	 */
	int (*probe)(struct depot *d, depot_tell_fn tell, void *ctx);
};

/*
 * Small blobs and manifests that are here already, by their digest.  Several threads may call both;
 * what get() hands out has been compared with the digest.
 */
struct depot_cache {
	/* 1 and the bytes in `out`, which is empty; 0 if it has none, or more than `max`. */
	int (*get)(void *ctx, const struct digest *blob, size_t max, struct buf *out);
	void (*put)(void *ctx, const struct digest *blob, const void *data, size_t len);
	void *ctx;
};

/* Back ends begin their struct with this. */
struct depot {
	const struct depot_ops *ops;
	const struct depot_cache
	    *cache;     /* borrowed; NULL: none.  depot_get() and depot_put() use it */
	unsigned lines; /* connections that make sense beside each other; 0: any number */
	char *url;      /* owned; without a password, so it may stand in sentences */
};

struct depot_config {
	uint64_t rate;       /* bytes a second at most; 0: no limit */
	bool plain_http;     /* a registry without TLS; loopback needs no leave */
	unsigned tries;      /* of a request that fails; 0: as many as a transfer should have */
	const char *ca_file; /* NULL: the system's */
};

/* Does it begin as an address with a scheme does: "dir:", "oci://"? */
bool depot_is_url(const char *text);

/* A word that cannot be the name of a remote, since addresses begin with it. */
bool depot_is_scheme(const char *word);

/*
 * Open what `url` names: "dir:/path", or a registry as "oci://host[:port]/repository" or, as docker
 * writes it, without the scheme if the host has a dot or a port or is localhost; "oci+http://" is a
 * registry without TLS, "ssh://[user@]host[:port]/path" a directory of another machine, "s3://bucket/prefix" or
 * "s3+https://host[:port]/bucket/prefix" a part of an S3 store.  `config` may be NULL.  Reaches for nothing yet,
 * but for -EINVAL if the url is none, and -ENOTSUP with a sentence if this build has no such back end.  A directory that is
 * missing is made by the first put.
 */
NODISCARD int depot_open(const char *url, const struct depot_config *config, struct depot **ret,
			 struct err *err);
void depot_close(struct depot *d); /* NULL is fine */
DEFINE_CLEANUP(struct depot *, depot_close)

/*
 * The name of the repository `other`, for mount_blob() of `url`; owned.  NULL if it is not another one of the
 * same server, or without memory.
 */
NODISCARD char *depot_beside(const char *url, const char *other);

/* Back ends, for depot_open(). */
NODISCARD int depot_dir_open(const char *url, const struct depot_config *config, struct depot **ret,
			     struct err *err);
NODISCARD int depot_ssh_open(const char *url, const struct depot_config *config, struct depot **ret,
			     struct err *err);
NODISCARD int depot_s3_open(const char *url, const struct depot_config *config, struct depot **ret,
			    struct err *err);
NODISCARD int depot_registry_open(const char *url, const struct depot_config *config,
				  struct depot **ret, struct err *err);
NODISCARD char *depot_registry_beside(const char *url, const char *other);

/*
 * A blob of at most `max` bytes into the empty buffer `out`, checked: from the cache, so that it says
 * nothing of whether the depot has it, or else from the depot.  -ENOENT without a sentence,
 * -EFBIG, -EBADMSG; `out` is then empty.
 */
NODISCARD int depot_get(struct depot *d, const struct digest *blob, size_t max, struct buf *out,
			const struct depot_watch *watch, struct err *err);

/*
 * Bring a blob of exactly `size` bytes into the file `fd`, which may hold the beginning of it from an
 * earlier attempt: that is kept, and only the rest is asked for.  The whole is checked; wrong bytes
 * are -EBADMSG and leave the file empty.  -ENOENT without a sentence.
 */
NODISCARD int depot_fetch(struct depot *d, const struct digest *blob, uint64_t size, int fd,
			  const struct depot_watch *watch, struct err *err);

/* put_blob() for bytes in memory, named by their digest. */
NODISCARD int depot_put(struct depot *d, const void *bytes, size_t len, struct digest *ret,
			struct err *err);
