/*
 * manifest.h - the meaning of a name in a depot: a snapshot, and the packs that hold it.
 *
 * An OCI image manifest. Its config is the snapshot, its layers are packs, each followed by its
 * index. Both come from strangers: sizes and numbers are bounded, and only digests are trusted.
 * Byte for byte: docs/design/remote.md.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "remote/depot.h"

#define MANIFEST_PACKS_MAX     4096
#define MANIFEST_CONFIG_MAX    ((size_t)1 << 20)
#define MANIFEST_SIGNATURE_MAX ((size_t)16 << 10)
#define MANIFEST_SEAL_MAX      ((uint64_t)1 << 20) /* bytes that encryption adds, at most */
#define SNAPSHOT_TYPE          "application/vnd.snapcow.snapshot.v1+json"

struct manifest_blob {
	struct digest digest;
	uint64_t size;
};

struct manifest_pack {
	struct manifest_blob pack, index;
};

/* What a manifest says of a snapshot; all strings are owned, and may be NULL. */
struct manifest_snapshot {
	struct digest root;
	char *parent; /* the manifest that the name meant before, "sha256:..." */
	char *message, *who, *host, *project;
	char *meta;   /* labels, as engine/api/meta.h has them */
	char *hidden; /* what strict runs must not see (docs/design/remote.md); or NULL */
	int64_t created, pushed; /* nanoseconds since 1970 */
	uint64_t files, bytes;
};

struct manifest {
	struct manifest_blob config;
	struct manifest_pack *packs; /* owned */
	size_t n, cap;
	bool sealed;              /* its blobs are encrypted; see seal.h */
	struct digest recipients; /* of a sealed one: seal_fingerprint() */
	char *signature;          /* owned; NULL: not signed.  See signature.h */
	char *signed_as;          /* owned; what the signature claims to be for, REPOSITORY:NAME */
};

void manifest_snapshot_done(struct manifest_snapshot *s);
void manifest_done(struct manifest *m);

/* 1: it is listed already. */
NODISCARD int manifest_add_pack(struct manifest *m, const struct manifest_pack *pack,
				struct err *err);
/* What all packs take together. */
uint64_t manifest_packed(const struct manifest *m);

/* Both replace `out`. */
NODISCARD int manifest_encode(const struct manifest *m, struct buf *out, struct err *err);
NODISCARD int manifest_snapshot_encode(const struct manifest_snapshot *s, struct buf *out,
				       struct err *err);

/* -EBADMSG with a sentence if it is no snapshot of ours, -EPROTO if it is of a later version. */
NODISCARD int manifest_decode(const struct buf *text, struct manifest *ret, struct err *err);
NODISCARD int manifest_snapshot_decode(const struct buf *text, struct manifest_snapshot *ret,
				       struct err *err);

/* How a blob of a sealed manifest is read. */
struct manifest_opener {
	int (*open)(void *ctx, struct depot *d, const struct manifest_blob *blob, struct buf *out,
		    struct err *err);
	void *ctx;
};

/* The snapshot of a manifest.  -EPROTO if it is sealed and there is no opener (NULL). */
NODISCARD int manifest_get_snapshot(struct depot *d, const struct manifest *m,
				    const struct manifest_opener *opener,
				    struct manifest_snapshot *ret, struct err *err);

/*
 * Get both by a tag or a digest, and the digest of the manifest.  `ret_snapshot` may be NULL.  -ENOENT
 * without a sentence; -EPROTO if the snapshot is asked for and it is sealed.
 */
NODISCARD int manifest_get(struct depot *d, const char *reference, struct manifest *ret,
			   struct manifest_snapshot *ret_snapshot, struct digest *ret_digest,
			   struct err *err);
