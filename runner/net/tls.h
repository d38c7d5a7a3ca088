/*
 * tls.h - both ends of TLS that the proxy has for an inspected host: one as the host, with a
 * program of the run, and one as a client of the real host.
 *
 * No sockets: bytes of the network come and go in buffers. The real host must have a valid
 * certificate for its name, for servers, from an authority among the roots, or its handshake fails.
 * Both ends speak TLS 1.2 or 1.3 and HTTP/1.1 in it; neither renegotiates, resumes or takes early
 * data.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "runner/net/tls-keys.h"

struct tls;     /* the library, the roots, and who we are for each host */
struct tls_end; /* one end of one connection */

/* What --tls-inspect comes to; all of it is borrowed as long as a proxy lives. */
struct tls_plan {
	const struct allow *hosts;
	const struct tls_keys *keys;
	const char *roots; /* certificates, as PEM */
	size_t roots_len;
};

/* Load the library and all keys: not before the run's own processes exist, which would inherit them. */
/* Load what tls_open() needs, before there is a run that could change what is loaded. */
NODISCARD int tls_load(struct err *err);

NODISCARD int tls_open(const struct tls_plan *plan, struct tls **ret, struct err *err);
void tls_close(struct tls *t); /* NULL is fine */
DEFINE_CLEANUP(struct tls *, tls_close)

/* An end as that host, for programs; or one with that host. */
NODISCARD int tls_end_as(struct tls *t, const char *host, uint16_t port, struct tls_end **ret,
			 struct err *err);
NODISCARD int tls_end_with(struct tls *t, const char *host, struct tls_end **ret, struct err *err);
void tls_end_free(struct tls_end *e); /* NULL is fine */
DEFINE_CLEANUP(struct tls_end *, tls_end_free)

/*
 * Go on with the handshake: `in` is what the other side sent, `eof` that no more will come, and what
 * it must hear goes to `out`.  1 once it is done, 0 if more is needed, -EKEYREJECTED if the
 * certificate of the host is none to believe, -ECONNABORTED if the other side ended it, else -EPROTO;
 * with a few words, for a longer sentence.
 */
NODISCARD int tls_end_shake(struct tls_end *e, struct buf *in, bool eof, struct buf *out,
			    struct err *err);

/*
 * Append to `plain` what the other side said, until that has `max` bytes.  0, 1 at the end of what it
 * says, -EPIPE if that was cut off, -EPROTO.
 */
NODISCARD int tls_end_read(struct tls_end *e, struct buf *in, bool eof, struct buf *out,
			   struct buf *plain, size_t max);

/* Say it; all of it comes to `out`. */
NODISCARD int tls_end_write(struct tls_end *e, const struct buf *plain, struct buf *out);
void tls_end_bye(struct tls_end *e, struct buf *out); /* that it was all */
