#include "engine/find/resolve-set-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "engine/find/engine-i.h"

/* The tree holds the list and, under numbers that sort before it, the bytes of each resolution. */
#define LIST      "list"
#define BYTES     "%08zu"
#define NAME_SIZE 24
#define LIST_MAX  ((uint64_t)64 << 20)

static const char *const take_names[] = {
	[ENGINE_TAKE_NONE] = "none",
	[ENGINE_TAKE_OURS] = "ours",
	[ENGINE_TAKE_THEIRS] = "theirs",
	[ENGINE_TAKE_FILE] = "file",
};

void resolve_set_done(struct resolve_set *s)
{
	VEC_FREE(one, s->list, s->n, free(one->path));
	free(s->asked);
	*s = (struct resolve_set){ 0 };
}

struct resolution *resolve_set_find(const struct resolve_set *s, const char *path)
{
	return VEC_FIND(it, s->list, s->n, strcmp(it->path, path) == 0);
}

struct resolution *resolve_set_add(struct resolve_set *s, const char *path)
{
	AUTO_FREE char *copy = strdup(path);

	if (!copy || !VEC_ONE_MORE(s->list, s->n))
		return NULL;
	s->list[s->n] = (struct resolution){ .path = TAKE_PTR(copy) };
	return &s->list[s->n++];
}

void resolve_set_drop(struct resolve_set *s, const struct resolution *r)
{
	const size_t i = (size_t)(r - s->list);

	free(s->list[i].path);
	s->n--;
	memmove(&s->list[i], &s->list[i + 1], (s->n - i) * sizeof(*s->list));
}

/* --- reading ---------------------------------------------------------------------------- */

static int read_all(struct store *s, const struct content *c, struct buf *out, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	ssize_t n = 1;
	int r;

	if (c->size > LIST_MAX)
		return err_set(err, -EBADMSG, "resolutions of %llu bytes",
			       (unsigned long long)c->size);
	r = content_reader_new(s, c, &rd, err);
	if (r < 0)
		return r;
	if (buf_reserve(out, (size_t)c->size) < 0)
		return err_nomem(err);
	while (n > 0 && out->len < c->size) {
		n = content_reader_read(rd, out->len, out->data + out->len, c->size - out->len,
					err);
		if (n < 0)
			return (int)n;
		out->len += (size_t)n;
	}
	return r;
}

static int find_file(struct store *s, const struct root *root, const char *name,
		     struct content *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;
	int r = tree_lookup(s, &root->top.id, name, strlen(name), &e, &hold, err);

	if (r == -ENOENT || (r >= 0 && !S_ISREG(e.mode)))
		return err_set(err, -EBADMSG, "resolutions without their file '%s'", name);
	if (r < 0)
		return r;
	*ret = tree_entry_content(&e);
	return r;
}

static int read_one(struct store *s, const struct root *root, struct json j,
		    struct resolve_set *set, struct err *err)
{
	AUTO_FREE char *path = json_get_name(j, "path");
	const char *take = json_get_text(j, "take"), *versions = json_get_text(j, "versions");
	struct resolution *to;
	char name[NAME_SIZE];
	int r = json_end(j.doc, err);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), BYTES, set->n);
	to = resolve_set_add(set, path);
	if (!to)
		return err_nomem(err);
	for (size_t i = ENGINE_TAKE_OURS; i < ARRAY_LEN(take_names); i++)
		if (strcmp(take, take_names[i]) == 0)
			to->take = (enum engine_take)i;
	snprintf(to->versions, sizeof(to->versions), "%s", versions);
	if (to->take == ENGINE_TAKE_NONE)
		return err_set(err, -EBADMSG, "a resolution that takes '%.20s'", take);
	return to->take == ENGINE_TAKE_FILE ? find_file(s, root, name, &to->bytes, err) : 0;
}

static int read_list(struct store *s, const struct root *root, struct resolve_set *set,
		     struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct content c;
	struct json j, list;
	const char *asked;
	int r = find_file(s, root, LIST, &c, err);

	if (r < 0)
		return r;
	r = read_all(s, &c, &text, err);
	if (r < 0)
		return r;
	r = json_parse(&doc, (const char *)text.data, text.len, &j, err);
	if (r < 0)
		return r;
	asked = json_get_text_or_null(j, "asked");
	list = json_get_array(j, "list");
	for (size_t i = 0; i < json_length(list) && r >= 0; i++)
		r = read_one(s, root, json_at_object(list, i), set, err);
	if (r < 0)
		return r;
	if (asked && !(set->asked = strdup(asked)))
		return err_nomem(err);
	return json_end(&doc, err);
}

static int load_set(struct store *s, const struct clone *clone, struct resolve_set *ret,
		    struct err *err)
{
	CLEANUP(resolutions_done) struct resolutions record = { 0 };
	struct root root;
	int r = resolutions_get(s, clone->name, &record, err);

	if (r == -ENOENT || (r >= 0 && record.created != clone->created))
		return 0;
	if (r < 0)
		return r;
	r = root_get(s, &record.root, &root, err);
	if (r < 0)
		return r;
	r = read_list(s, &root, ret, err);
	return r == -EINVAL ? -EBADMSG : r;
}

int resolve_set_load(struct store *s, const struct clone *clone, struct resolve_set *ret,
		     struct err *err)
{
	int r = load_set(s, clone, ret, err);

	if (r >= 0)
		return 0;
	resolve_set_done(ret);
	return err_wrap(err, r, "resolutions of clone '%s'", clone->name);
}

/* --- writing ---------------------------------------------------------------------------- */

static int list_text(const struct resolve_set *set, struct buf *out, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = json_begin(&doc), list, at;

	json_set_text(j, "asked", set->asked);
	list = json_set_array(j, "list");
	for (size_t i = 0; i < set->n; i++) {
		at = json_add_object(list);
		json_set_name(at, "path", set->list[i].path);
		json_set_text(at, "take", take_names[set->list[i].take]);
		json_set_text(at, "versions", set->list[i].versions);
	}
	return json_append(&doc, out, err);
}

static int add_file(struct tree_builder *t, const char *name, uint64_t ino, const struct content *c,
		    struct err *err)
{
	struct tree_entry e = {
		.name = name,
		.name_len = strlen(name),
		.mode = S_IFREG | 0600,
		.ino = ino,
	};

	tree_entry_set_content(&e, c);
	return tree_builder_add(t, &e, err);
}

int resolve_set_put(struct batch *b, const struct clone *clone, const struct resolve_set *set,
		    struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct resolutions record = { .clone = clone->name, .created = clone->created };
	struct root root = { .top = { .name = ROOT_TOP,
				      .name_len = strlen(ROOT_TOP),
				      .form = TREE_DIR,
				      .mode = S_IFDIR | 0700,
				      .nlink = 2,
				      .ino = 1 } };
	struct content c;
	char name[NAME_SIZE];
	int r = list_text(set, &text, err);

	if (r < 0)
		return r;
	r = content_put(b, text.data, text.len, &c, err);
	if (r < 0)
		return r;
	r = tree_builder_new(b, &t, err);
	for (size_t i = 0; i < set->n && r >= 0; i++) {
		snprintf(name, sizeof(name), BYTES, i);
		if (set->list[i].take == ENGINE_TAKE_FILE)
			r = add_file(t, name, i + 3, &set->list[i].bytes, err);
	}
	if (r < 0)
		return r;
	r = add_file(t, LIST, 2, &c, err);
	if (r < 0)
		return r;
	r = tree_builder_finish(t, &root.top.id, &root.top.below, err);
	if (r < 0)
		return r;
	r = root_put(b, &root, &record.root, err);
	return r < 0 ? r : resolutions_put(b, &record, err);
}

/* --- what it was made for --------------------------------------------------------------- */

/* Everything that a merge looks at: neither times nor inode numbers. */
static void add_side(struct sha256 *sum, const struct merge_side *side)
{
	const struct tree_entry *e = &side->entry;

	sha256_add_u64(sum, side->path != NULL);
	if (!side->path)
		return;
	sha256_add_text(sum, side->path, strlen(side->path));
	sha256_add_u64(sum, e->form);
	sha256_add_u64(sum, e->mode);
	sha256_add_u64(sum, e->uid);
	sha256_add_u64(sum, e->gid);
	sha256_add_u64(sum, S_ISDIR(e->mode) ? 0 : e->size);
	sha256_add_u64(sum, e->rdev);
	sha256_add(sum, &e->id, sizeof(e->id));
	sha256_add(sum, &e->xattrs, sizeof(e->xattrs));
	sha256_add_text(sum, e->target, e->target_len);
}

size_t resolve_versions(const struct merge_conflict *list, size_t n, char hex[SHA256_HEX_SIZE])
{
	struct sha256 sum;
	size_t i = 0;

	sha256_begin(&sum);
	for (; i < n && strcmp(list[i].path, list[0].path) == 0; i++) {
		const char *kind = merge_kind_name(list[i].kind);

		sha256_add_text(&sum, kind, strlen(kind));
		add_side(&sum, &list[i].base);
		add_side(&sum, &list[i].ours);
		add_side(&sum, &list[i].theirs);
	}
	sha256_end_hex(&sum, hex);
	return i;
}

/* Given bytes replace one side's file: ours, if it has one. */
static enum merge_on_conflict side_of(const struct resolution *r, const struct merge_conflict *c)
{
	if (r->take == ENGINE_TAKE_FILE)
		return c->ours.path && S_ISREG(c->ours.entry.mode) ? MERGE_OURS : MERGE_THEIRS;
	return r->take == ENGINE_TAKE_OURS ? MERGE_OURS : MERGE_THEIRS;
}

size_t resolve_set_match(struct resolve_set *s, const struct merge *m)
{
	char versions[SHA256_HEX_SIZE];
	size_t found = 0;

	for (size_t i = 0; i < m->n_conflicts && s->n > 0;) {
		const struct merge_conflict *c = &m->conflicts[i];
		struct resolution *r = resolve_set_find(s, c->path);

		i += resolve_versions(c, m->n_conflicts - i, versions);
		if (!r || r->valid || strcmp(r->versions, versions) != 0)
			continue;
		r->valid = true;
		r->side = side_of(r, c);
		found++;
	}
	return found;
}
