/*
 * seal.h - blobs that only some people can read: encrypted and decrypted by the program age.
 *
 * age (age-encryption.org/v1) does all of the cryptography: recipients are its own keys or SSH
 * keys, and it refuses a blob that was changed, cut short, reordered or made for somebody else.
 * docs/design/remote.md, "Encryption", says what still leaks.
 */
#pragma once

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strlist.h"
#include "remote/pack/digest.h"

struct seal {
	/* Keys ("age1...", "ssh-ed25519 ...") or files that list some; none: nothing is sealed. */
	struct strlist recipients;
	char *identity;  /* owned; a file with a private key; NULL: nothing can be opened */
	const char *dir; /* borrowed; where temporary files go, without a name */
};

void seal_done(struct seal *s);

/* -EINVAL with a sentence if it is neither a key nor a file with some. */
NODISCARD int seal_add_recipient(struct seal *s, const char *text, struct err *err);

/* Says of two sets of recipients whether they are the same, in whatever order. */
NODISCARD int seal_fingerprint(const struct seal *s, struct digest *ret, struct err *err);

/*
 * Seal the file `from`, from its first byte, into a new file without a name; its descriptor.  -ENOTSUP
 * without age, -EINVAL if a recipient is none.
 */
NODISCARD int seal_close_file(const struct seal *s, int from, struct err *err);
/*
 * The other way, into the empty file `to`, which is worth nothing unless this returns 0.  -EACCES without
 * an identity, -ECANCELED if it was not sealed for it, -EBADMSG if it is damaged.
 */
NODISCARD int seal_open_file(const struct seal *s, int from, int to, struct err *err);

/* The same for bytes; `out` is replaced. */
NODISCARD int seal_close(const struct seal *s, const struct buf *in, struct buf *out,
			 struct err *err);
NODISCARD int seal_open(const struct seal *s, const struct buf *in, struct buf *out,
			struct err *err);

/* The digest and the size of a file. */
NODISCARD int seal_measure(int fd, struct digest *ret, uint64_t *ret_size, struct err *err);
