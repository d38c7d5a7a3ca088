#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "cowfs/store/check-i.h"

int check_add(struct check *c, const char *what, const char *why, size_t *ret, struct err *err)
{
	struct check_report *rep = &c->report;
	struct check_finding *f;

	f = reallocarray(rep->findings, rep->n_findings + 1, sizeof(*f));
	if (!f)
		return err_nomem(err);
	rep->findings = f;
	f += rep->n_findings;
	*f = (struct check_finding){ 0 };
	snprintf(f->what, sizeof(f->what), "%s", what);
	snprintf(f->why, sizeof(f->why), "%s", why);
	*ret = rep->n_findings++;
	return 0;
}

int check_add_about(struct check *c, enum object_kind kind, const struct object_id *id,
		    const char *why, size_t *ret, struct err *err)
{
	char hex[OBJECT_HEX_SIZE], what[64];

	snprintf(what, sizeof(what), "%s %s", object_kind_name(kind), object_id_hex(id, hex));
	return check_add(c, what, why, ret, err);
}

int check_add_object(struct check *c, enum object_kind kind, const struct object_id *id,
		     const char *why, size_t *ret, struct err *err)
{
	AUTO_FREE struct bad_object *bad = calloc(1, sizeof(*bad));
	void *there = NULL;
	int r;

	if (!bad)
		return err_nomem(err);
	r = check_add_about(c, kind, id, why, &bad->finding, err);
	if (r < 0)
		return r;
	*ret = bad->finding;
	bad->what = (struct object_ref){ .id = *id, .kind = kind };
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
	char **paths, *copy;

	f->n_paths++;
	if (f->n_kept == CHECK_PATHS_MAX)
		return 0;
	if (path_append_shown(&shown, path, len) < 0 || !buf_str(&shown))
		return err_nomem(err);
	paths = reallocarray(f->paths, f->n_kept + 1, sizeof(*paths));
	if (!paths)
		return err_nomem(err);
	f->paths = paths;
	copy = strdup(buf_str(&shown));
	if (!copy)
		return err_nomem(err);
	paths[f->n_kept++] = copy;
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
	*r = (struct check_report){ 0 };
}
