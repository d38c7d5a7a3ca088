#include <stdlib.h>

#include "snapshot/merge/merge-i.h"

struct fresh {
	struct object_ref ref;
	struct buf bytes;
};

static void fresh_free(struct fresh *f)
{
	buf_done(&f->bytes);
	free(f);
}

void fresh_done(struct map *fresh)
{
	struct fresh *f;

	for (size_t pos = 0; (f = map_next(fresh, &pos));)
		fresh_free(f);
	map_done(fresh);
}

int fresh_keep(struct merging *m, enum object_kind kind, const struct object_id *id,
	       const void *data, size_t len, struct err *err)
{
	struct fresh *f;
	void *existing = NULL;

	if (object_id_is_zero(id) || fresh_get(m, kind, id))
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err);
	f->ref = (struct object_ref){ .id = *id, .kind = kind };
	if (buf_append(&f->bytes, data, len) < 0 || map_add(&m->fresh, &f->ref, f, &existing) < 0) {
		fresh_free(f);
		return err_nomem(err);
	}
	return 0;
}

const struct buf *fresh_get(const struct merging *m, enum object_kind kind,
			    const struct object_id *id)
{
	const struct object_ref ref = { .id = *id, .kind = kind };
	const struct fresh *f = map_get(&m->fresh, &ref);

	return f ? &f->bytes : NULL;
}
