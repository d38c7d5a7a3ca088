/*
 * Objects of the packs, and their counterparts here: each is read once, however often it is named.
 */
#include <errno.h>

#include "base/vec.h"
#include "remote/pack/inbound-i.h"

int inbound_note(struct inbound *in, uint32_t kind, const struct digest *d,
		 const struct brought *what, struct err *err)
{
	if (!VEC_ROOM(in->brought, in->n, in->cap))
		return err_nomem(err);
	in->brought[in->n] = *what;
	if (digest_table_add(&in->seen, kind, d, in->n) < 0)
		return err_nomem(err);
	in->n++;
	return 0;
}

const struct brought *inbound_seen(const struct inbound *in, uint32_t kind, const struct digest *d)
{
	const uint64_t *at = digest_table_find(&in->seen, kind, d);

	return at ? &in->brought[*at] : NULL;
}

int inbound_get(struct inbound *in, enum object_kind kind, const struct digest *d, struct buf *out,
		struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	int r = pack_set_get(in->options->packs, kind, d, out, err);

	if (r == -ENOENT)
		return err_set(err, -EBADMSG, "the snapshot is incomplete: no pack has the %s %s",
			       object_kind_name(kind), digest_text(d, text));
	if (r == 0) {
		in->objects++;
		in->bytes += out->len;
	}
	return r;
}
