/*
 * wire.h - private to fuse/: the parts of the kernel's protocol that libfuse 3.14 lacks.
 *
 * It reads requests before libfuse does, and completes libfuse's answer to the first of them.
 * wire-linux.c is the only file that knows the kernel's structures.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/attr.h"
#include "cowfs/fuse/pool.h"

struct mount;
struct request;

/* What the first request of a connection brought. */
struct wire {
	uint64_t init;    /* number of that request; 0 once it was answered */
	uint64_t offered; /* flags of the kernel */
	bool maps_ids;    /* others may be shown it under other user ids: wanted, later granted */
	bool kills_priv;  /* set-id bits are ours to take away when a file is written */
	bool long_setxattr;
};

/* Of a SETXATTR: it has a longer form, in which libfuse 3.14 does not find them. */
struct wire_setxattr {
	const char *name;
	const void *value;
	bool kills_sgid; /* the set-gid bit must go if this is an access ACL */
};

/* Something that a request may have changed. */
struct wire_change {
	uint64_t node;    /* a directory, if there is a name */
	const char *name; /* in the request; "": the node itself, or what a directory lists */
};

#define WIRE_CHANGES_MAX 4

/* It changes something, and is none of what echo.h answers. */
bool wire_is_no_echo(const void *bytes);

/* How many; 0 for a request that only asks. */
size_t wire_changes(const void *bytes, struct wire_change ret[static WIRE_CHANGES_MAX]);

/*
 * Turn the ids in a request into the layer's: the caller's, an owner to set, those in an ACL.
 * Once for each request.  0, or the errno that it is to be refused with.
 */
NODISCARD int wire_unshift(const struct mount *m, void *bytes, size_t len);

/* Answer a request that libfuse does not know.  True: it needs nothing more. */
bool wire_handle(struct request *rq);

/* Answer with an error, without libfuse. */
void wire_refuse(struct mount *m, const void *bytes, int errnum);

/* Before an answer goes out. */
void wire_amend(struct wire *w, const struct iovec *iov, int n);

bool wire_is_init(const void *bytes);
bool wire_offers_idmap(const void *bytes);            /* of an INIT */
bool wire_always_waits(const void *bytes);            /* never answered from memory */
enum pool_lane wire_lane(const void *bytes);          /* if it has to wait */
bool wire_write_kills_priv(const struct request *rq); /* of a WRITE */
uint32_t wire_thread(const void *bytes);              /* the caller's */
uint32_t wire_op(const void *bytes);                  /* its kind, by the kernel's number */
bool wire_write_meets(const void *bytes, uint64_t node,
		      uint64_t off); /* a WRITE from there, or up to it? */
struct wire_setxattr wire_setxattr(const struct request *rq);

/*
 * Have the kernel ask again for a name, or for the attributes, listing and pages of a node.
 * What is in use stays: files that are open, directories that somebody is in.  0 also if it
 * remembered nothing; a negative errno if the connection is gone.
 */
NODISCARD int wire_expire(struct mount *m, uint64_t dir, const char *name);
NODISCARD int wire_invalidate(struct mount *m, uint64_t node, bool attributes_only);
