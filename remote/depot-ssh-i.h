/*
 * depot-ssh-i.h - private to depot-ssh*.c: a depot at the far end of ssh, and questions to it.
 */
#pragma once

#include "remote/depot.h"
#include "remote/ssh-line.h"

struct ssh_depot {
	struct depot depot;
	struct ssh_line line;
	uint64_t rate;
	unsigned tries;
	uint64_t paced, paced_us; /* bytes since, and when, the rate was looked at first */
};

static inline struct ssh_depot *ssh_of(struct depot *d)
{
	return (struct ssh_depot *)d; /* begins with it */
}

/* Make a connection, if there is none. */
NODISCARD int ssh_connect(struct ssh_depot *s, struct err *err);
void ssh_hang_up(struct ssh_depot *s);

/* One question with its answer: asked again while connections break. */
typedef int (*ssh_ask_fn)(struct ssh_depot *s, void *ctx, struct err *err);
NODISCARD int ssh_ask(struct ssh_depot *s, ssh_ask_fn fn, void *ctx, struct err *err);

/* Send the message that was begun. */
NODISCARD int ssh_send(struct ssh_depot *s, struct err *err);
/* The type of the next message; a failure that the far end tells, or -ECONNRESET and such, with a sentence. */
NODISCARD int ssh_receive(struct ssh_depot *s, struct err *err);
NODISCARD int ssh_receive_ok(struct ssh_depot *s, struct err *err); /* 0: STREAM_OK */
/* Hang up, with -EPROTO and a sentence: what came is nothing that the protocol has. */
NODISCARD int ssh_strange(struct ssh_depot *s, struct err *err);

/* --- what struct depot_ops has ------------------------------------------------------------- */

int ssh_has_blob(struct depot *d, const struct digest *blob, uint64_t *ret_size, struct err *err);
int ssh_put_blob(struct depot *d, const struct digest *blob, const struct depot_bytes *from,
		 const struct depot_watch *watch, struct err *err);
int ssh_get_blob(struct depot *d, const struct digest *blob, uint64_t off, uint64_t len,
		 depot_sink_fn sink, void *ctx, const struct depot_watch *watch, struct err *err);
int ssh_put_manifest(struct depot *d, const char *tag, const struct digest *expect,
		     const char *media_type, const void *bytes, size_t len, struct err *err);
int ssh_get_manifest(struct depot *d, const char *reference, struct buf *out, struct err *err);
int ssh_list_tags(struct depot *d, depot_tag_fn fn, void *ctx, struct err *err);
int ssh_delete_manifest(struct depot *d, const char *reference, struct err *err);
int ssh_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		struct err *err);
int ssh_probe(struct depot *d, depot_tell_fn tell, void *ctx);
