/*
 * gc of a repository: manifests go by their digest, and with them every tag that names them. If a
 * tag's manifest must stay, only the tag goes, where the registry can do that. Blobs are the
 * registry's own business.
 *
 * A registry has no lock. The tags are read once more right before anything is removed, and
 * manifests that they name by then stay; a tag that comes after that may still lose its manifest.
 */
#include "remote/registry-i.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "remote/pack/digest-table.h"

enum { NAMED = 1 };

struct collecting {
	struct registry *g;
	const struct depot_retention *what;
	struct digest_table named; /* by tags that do not go */
	struct depot_freed *freed;
};

static bool is_kept(const struct collecting *c, const struct digest *d)
{
	return VEC_HAS(it, c->what->keep, c->what->n_keep, digest_equal(it, d)) ||
	       digest_table_find(&c->named, NAMED, d) != NULL;
}

static bool is_dropped(const struct depot_retention *what, const char *tag, const struct digest *d)
{
	return VEC_HAS(it, what->drop, what->n_drop,
		       strcmp(it->tag, tag) == 0 && digest_equal(&it->expect, d));
}

static int look_at_tags(struct collecting *c, struct err *err)
{
	CLEANUP(strlist_done) struct strlist tags = { 0 };
	int r = registry_list_tags(&c->g->depot, strlist_add_to, &tags, err);

	for (size_t i = 0; r == 0 && i < tags.n; i++) {
		CLEANUP(buf_done) struct buf bytes = BUF_INIT;
		struct digest now;

		r = registry_get_manifest(&c->g->depot, tags.list[i], &bytes, err);
		/* It went meanwhile; or it is of a kind that none of ours is. */
		if (r == -ENOENT || r == -EBADMSG) {
			r = 0;
			continue;
		}
		if (r < 0)
			return r;
		now = digest_of(bytes.data, bytes.len);
		if (!is_dropped(c->what, tags.list[i], &now) &&
		    digest_table_add(&c->named, NAMED, &now, 0) < 0)
			return err_nomem(err);
	}
	return r;
}

static int drop_manifest(struct registry *g, const struct digest *digest, struct err *err)
{
	char text[DIGEST_TEXT_SIZE];
	int r = registry_delete_manifest(&g->depot, digest_text(digest, text), err);

	if (r == -ENOTSUP)
		return err_set(err, r,
			       "'%s': the registry removes nothing "
			       "(REGISTRY_STORAGE_DELETE_ENABLED=true allows it)",
			       g->depot.url);
	return r;
}

static int drop_tag(struct collecting *c, const struct depot_drop *drop, struct err *err)
{
	struct registry *g = c->g;
	struct depot_freed *ret = c->freed;
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct digest now;
	int r = registry_get_manifest(&g->depot, drop->tag, &bytes, err);

	if (r == -ENOENT) { /* it went with another that named the same */
		ret->names++;
		return 0;
	}
	if (r < 0)
		return r;
	now = digest_of(bytes.data, bytes.len);
	if (!digest_equal(&now, &drop->expect)) {
		ret->moved++;
		return 0;
	}
	if (!c->what->dry) {
		r = is_kept(c, &now) ? registry_delete_manifest(&g->depot, drop->tag, err)
				     : drop_manifest(g, &now, err);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	ret->names++;
	ret->manifests += !is_kept(c, &now);
	return 0;
}

int registry_collect(struct depot *d, const struct depot_retention *what, struct depot_freed *ret,
		     struct err *err)
{
	struct collecting c = { .g = registry_of(d), .what = what, .freed = ret };
	int r = 0;

	*ret = (struct depot_freed){ .later = true };
	if (what->n_drop + what->n_gone > 0)
		r = look_at_tags(&c, err);
	for (size_t i = 0; r == 0 && i < what->n_drop; i++)
		r = drop_tag(&c, &what->drop[i], err);
	for (size_t i = 0; r == 0 && i < what->n_gone; i++) {
		if (is_kept(&c, &what->gone[i]))
			continue;
		if (!what->dry)
			r = drop_manifest(c.g, &what->gone[i], err);
		ret->manifests += r == 0;
		r = r == -ENOENT ? 0 : r;
	}
	digest_table_done(&c.named);
	return r;
}
