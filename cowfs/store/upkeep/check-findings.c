#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "cowfs/store/upkeep/check-i.h"

int check_add(struct check *c, const char *what, const char *why, size_t *ret, struct err *err)
{
	struct check_report *rep = &c->report;
	struct check_finding *f;

	if (!VEC_ONE_MORE(rep->findings, rep->n_findings))
		return err_nomem(err);
	f = &rep->findings[rep->n_findings];
	*f = (struct check_finding){ 0 };
	snprintf(f->what, sizeof(f->what), "%s", what);
	snprintf(f->why, sizeof(f->why), "%s", why);
	*ret = rep->n_findings++;
	return 0;
}

struct said {
	size_t finding;
	char text[]; /* its key in check.said */
};

int check_add_once(struct check *c, const char *what, const char *why, size_t *ret, struct err *err)
{
	const size_t size = strlen(what) + strlen(why) + sizeof(": ");
	AUTO_FREE struct said *said = malloc(sizeof(*said) + size);
	void *there = NULL;
	int r;

	if (!said)
		return err_nomem(err);
	snprintf(said->text, size, "%s: %s", what, why);
	r = map_add(&c->said, said->text, said, &there);
	if (r < 0)
		return err_nomem(err);
	if (r > 0) {
		*ret = ((const struct said *)there)->finding;
		return 0;
	}
	r = check_add(c, what, why, &said->finding, err);
	if (r < 0) {
		map_remove(&c->said, said->text);
		return r;
	}
	*ret = TAKE_PTR(said)->finding;
	return 0;
}

void check_said_done(struct check *c)
{
	size_t pos = 0;
	void *said;

	while ((said = map_next(&c->said, &pos)))
		free(said);
	map_done(&c->said);
}

/* "chunk 0123..." */
static const char *name_object(enum object_kind kind, const struct object_id *id, char what[64])
{
	char hex[OBJECT_HEX_SIZE];

	snprintf(what, 64, "%s %s", object_kind_name(kind), object_id_hex(id, hex));
	return what;
}

int check_add_about(struct check *c, enum object_kind kind, const struct object_id *id,
		    const char *why, size_t *ret, struct err *err)
{
	char what[64];

	return check_add_once(c, name_object(kind, id, what), why, ret, err);
}

int check_add_object(struct check *c, enum object_kind kind, const struct object_id *id,
		     const char *why, size_t *ret, struct err *err)
{
	AUTO_FREE struct bad_object *bad = calloc(1, sizeof(*bad));
	char what[64];
	void *there = NULL;
	int r;

	if (!bad)
		return err_nomem(err);
	r = check_add(c, name_object(kind, id, what), why, &bad->finding, err);
	if (r < 0)
		return r;
	*ret = bad->finding;
	bad->what = (struct object_ref){ .id = *id, .kind = kind };
	c->report.findings[bad->finding].object = bad->what;
	r = map_add(&c->bad, &bad->what, bad, &there);
	if (r < 0)
		return err_nomem(err);
	if (r == 0)
		TAKE_PTR(bad);
	return 0;
}

struct bad_object *check_bad(const struct check *c, enum object_kind kind,
			     const struct object_id *id)
{
	struct object_ref key = { .id = *id, .kind = kind };

	return map_get(&c->bad, &key);
}

int check_add_path(struct check *c, size_t finding, const char *path, size_t len, struct err *err)
{
	struct check_finding *f = &c->report.findings[finding];
	CLEANUP(buf_done) struct buf shown = BUF_INIT;
	char *copy;

	f->n_paths++;
	if (f->n_kept == CHECK_PATHS_MAX)
		return 0;
	if (path_append_shown(&shown, path, len) < 0 || !buf_str(&shown))
		return err_nomem(err);
	if (!VEC_ONE_MORE(f->paths, f->n_kept))
		return err_nomem(err);
	copy = strdup(buf_str(&shown));
	if (!copy)
		return err_nomem(err);
	f->paths[f->n_kept++] = copy;
	return 0;
}

void check_report_done(struct check_report *r)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		for (size_t k = 0; k < r->findings[i].n_kept; k++)
			free(r->findings[i].paths[k]);
		free(r->findings[i].paths);
	}
	free(r->findings);
	free(r->rows);
	*r = (struct check_report){ 0 };
}
