#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/api/tag.h"
#include "engine/find/engine-i.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"

/* A tag is used like other names of states, so it must not look like one of those. */
int tag_check_name(const char *name, struct err *err)
{
	const size_t len = strlen(name);

	if (len == 0)
		return err_set(err, -EINVAL, "a tag needs a name");
	if (len > TAG_NAME_MAX)
		return err_set(err, -EINVAL, "tag '%.32s...' is longer than %d bytes", name,
			       TAG_NAME_MAX);
	if (name[0] == '-' || name[0] == '.')
		return err_set(err, -EINVAL, "tag '%s' begins with '%c'", name, name[0]);
	for (const char *c = name; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr(":@\\", *c))
			return err_set(
			    err, -EINVAL,
			    "tag '%s' may have no blank, ':', '@', backslash or control byte",
			    name);
	if (len == ENGINE_ID_SIZE - 1 && strspn(name, HEX_DIGITS) == len)
		return err_set(err, -EINVAL, "tag '%s' looks like the id of a snapshot", name);
	return 0;
}

char *tag_full_name(const struct catalog_id *project, const char *name)
{
	char hex[CATALOG_HEX_SIZE];

	return text_format("%s/%s", catalog_id_hex(project, hex), name);
}

int tag_append(struct engine_snapshot *s, const char *name, struct err *err)
{
	if (!VEC_ONE_MORE(s->tags, s->n_tags))
		return err_nomem(err);
	s->tags[s->n_tags] = strdup(name);
	if (!s->tags[s->n_tags])
		return err_nomem(err);
	s->n_tags++;
	return 0;
}

struct fill {
	struct engine_snapshot *list;
	size_t n;
};

static int on_tag(const struct tag *t, void *ctx, struct err *err)
{
	const struct fill *fill = ctx;
	char hex[CATALOG_HEX_SIZE];
	const size_t own = CATALOG_HEX_SIZE - 1;

	catalog_id_hex(&t->snapshot, hex);
	for (size_t i = 0; i < fill->n; i++) {
		struct engine_snapshot *s = &fill->list[i];

		if (strcmp(s->id, hex) == 0 && strncmp(t->name, s->project, own) == 0 &&
		    t->name[own] == '/')
			return tag_append(s, t->name + own + 1, err);
	}
	return 0;
}

int tag_fill(struct store *s, struct engine_snapshot *list, size_t n, struct err *err)
{
	struct fill fill = { .list = list, .n = n };

	return n > 0 ? tag_each(s, on_tag, &fill, err) : 0;
}

/* --- listing ---------------------------------------------------------------------------- */

int tag_list_add(struct engine_tags *t, const char *name, const struct catalog_id *snapshot,
		 struct err *err)
{
	struct engine_tag *tag;

	if (!VEC_ONE_MORE(t->list, t->n))
		return err_nomem(err);
	tag = &t->list[t->n];
	tag->name = strdup(name);
	if (!tag->name)
		return err_nomem(err);
	catalog_id_hex(snapshot, tag->snapshot);
	t->n++;
	return 0;
}

struct listing {
	const struct project *project;
	struct engine_tags tags;
};

static void listing_done(struct listing *l)
{
	engine_tags_done(&l->tags);
}

static int on_own_tag(const struct tag *t, void *ctx, struct err *err)
{
	const size_t own = CATALOG_HEX_SIZE - 1;
	struct listing *l = ctx;
	char hex[CATALOG_HEX_SIZE];

	catalog_id_hex(&l->project->id, hex);
	if (strncmp(t->name, hex, own) != 0 || t->name[own] != '/')
		return 0;
	return tag_list_add(&l->tags, t->name + own + 1, &t->snapshot, err);
}

int engine_tags(struct engine *e, struct engine_tags *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(listing_done) struct listing l = { .project = &project };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	if (r < 0)
		return r;
	r = tag_each(s, on_own_tag, &l, err);
	if (r < 0)
		return r;
	l.tags.project = TAKE_PTR(project.path);
	*ret = TAKE_STRUCT(l.tags);
	return 0;
}
