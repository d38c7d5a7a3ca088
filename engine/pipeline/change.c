#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/vec.h"
#include "engine/find/event-i.h"
#include "engine/pipeline/pipeline-i.h"

/* --- the record ---------------------------------------------------------------------------- */

#define C(kind, member) FIELD(FIELD_##kind, struct engine_checked, member)
static const struct field check_list[] = { C(NAME, command), C(UINT, exit_code), C(ID, run),
					   C(UINT, duration_ms) };
static const struct fields check_fields = FIELDS(struct engine_checked, check_list);
#undef C

#define P(kind, member) FIELD(FIELD_##kind, struct engine_passed, member)
static const struct field passed_list[] = {
	P(NAME, stage),
	P(NAME_OR_NULL, target),
	P(ID, receipt),
	P(ID, sha256),
	FIELD_LIST_OF(FIELD_LIST, struct engine_passed, "checks", checks, n_checks, &check_fields),
	P(NAME_OR_NULL, approved_by),
	P(UINT, approved_uid),
	P(TEXT_OR_NULL, reason),
	P(INT, passed),
	P(INT, soak_until),
	P(INT, health_next),
	P(UINT, health_runs),
	P(BOOL, undone),
	P(ID, link),
};
static const struct fields passed_fields = FIELDS(struct engine_passed, passed_list);
#undef P

#define X(kind, member) FIELD(FIELD_##kind, struct engine_change, member)
static const struct field change_list[] = {
	X(ID, id),
	X(NAME, clone),
	X(NAME, project),
	X(NAME, who),
	X(UINT, uid),
	X(ID, base),
	X(ID, state_id),
	X(ID, sha256),
	X(INT, created),
	X(UINT, state),
	X(NAME_OR_NULL, obstacle),
	X(TEXT_OR_NULL, why),
	X(NAME_OR_NULL, to),
	X(NAME_OR_NULL, stage),
	X(NAME_OR_NULL, risk),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_change, "approvers", approvers, n_approvers, NULL),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_change, "subject", subject, n_subject, NULL),
	FIELD_LIST_OF(FIELD_NAMES, struct engine_change, "held", held, n_held, NULL),
	X(NAME_OR_NULL, approved_by),
	X(TEXT_OR_NULL, reason),
	X(UINT, approved_uid),
	X(NAME_OR_NULL, landing_clone),
	X(NAME_OR_NULL, landing_target),
	X(ID, landing_after),
	FIELD_LIST_OF(FIELD_LIST, struct engine_change, "passed", passed, n_passed, &passed_fields),
};
const struct fields change_fields = FIELDS(struct engine_change, change_list);
#undef X

const struct docket_kind change_kind = {
	.dir = "changes",
	.noun = "change",
	.version = 1,
	.fields = &change_fields,
};

void engine_change_done(struct engine_change *c)
{
	fields_done(&change_fields, c);
	*c = (struct engine_change){ 0 };
}

void engine_changes_done(struct engine_changes *l)
{
	for (size_t i = 0; i < l->n; i++)
		engine_change_done(&l->list[i]);
	free(l->list);
	*l = (struct engine_changes){ 0 };
}

/* --- words --------------------------------------------------------------------------------- */

const char *engine_change_state_name(enum engine_change_state state)
{
	static const char *const names[] = {
		[ENGINE_CHANGE_READY] = "ready",       [ENGINE_CHANGE_WAITING] = "waiting",
		[ENGINE_CHANGE_LANDING] = "landing",   [ENGINE_CHANGE_SOAKING] = "soaking",
		[ENGINE_CHANGE_HELD] = "held",         [ENGINE_CHANGE_SHIPPED] = "shipped",
		[ENGINE_CHANGE_REJECTED] = "rejected", [ENGINE_CHANGE_UNDOING] = "undoing",
		[ENGINE_CHANGE_SICK] = "sick",
	};

	return names[state];
}

bool engine_change_is_over(enum engine_change_state state)
{
	return state == ENGINE_CHANGE_SHIPPED || state == ENGINE_CHANGE_REJECTED ||
	       state == ENGINE_CHANGE_SICK;
}

int64_t pipeline_now(void)
{
	const char *path = getenv("SNAPCOW_CLOCK");
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err err = { 0 };
	int64_t ns = 0;

	if (!path || fdio_read_file(AT_FDCWD, path, 64, &text, &err) < 0 || !buf_str(&text))
		return engine_now();
	ns = strtoll(buf_str(&text), NULL, 10);
	return ns > 0 ? ns : engine_now();
}

void change_unapprove(struct engine_change *c)
{
	free(c->approved_by);
	free(c->reason);
	c->approved_by = c->reason = NULL;
	c->approved_uid = 0;
}

struct engine_passed *change_passed(const struct engine_change *c, const char *stage)
{
	for (size_t i = 0; i < c->n_passed; i++)
		if (strcmp(c->passed[i].stage, stage) == 0)
			return &c->passed[i];
	return NULL;
}

/* --- reading and writing ------------------------------------------------------------------- */

int change_load(struct engine *e, const char *id, const struct docket_lock *l,
		struct engine_change *ret, struct err *err)
{
	struct engine_change c = { 0 };
	int r = docket_read(e, &change_kind, id, l, &c, &c.alive, err);

	if (r < 0)
		return r;
	if (c.state > ENGINE_CHANGE_SICK || strcmp(c.id, id) != 0 ||
	    (c.n_passed == 0 &&
	     (c.state == ENGINE_CHANGE_SOAKING || c.state == ENGINE_CHANGE_UNDOING))) {
		engine_change_done(&c);
		return err_set(err, -EBADMSG, "the state of change '%s' is damaged", id);
	}
	*ret = c;
	return 0;
}

int shipping_save(struct shipping *s, const char *kind, struct err *err)
{
	const struct engine_change *c = s->change;
	struct event ev;
	int r = docket_save(&s->lock, &change_kind, c->id, c, err);

	if (r < 0 || !kind)
		return r;
	event_begin(&ev, kind, (struct event_subject){ .project = c->project, .clone = c->clone });
	json_set_text(ev.data, "change", c->id);
	json_set_text(ev.data, "state", engine_change_state_name(c->state));
	json_set_name(ev.data, "stage", c->stage);
	json_set_text(ev.data, "why", c->why);
	json_set_text(ev.data, "sha256", c->sha256);
	event_end(&ev, s->engine->store_path);
	return 0;
}

int shipping_hold(struct shipping *s, const char *obstacle, const char *why, struct err *err)
{
	struct engine_change *c = s->change;
	int r = text_set(&c->obstacle, err, "%s", obstacle);

	if (r >= 0)
		r = text_set(&c->why, err, "%s", why);
	if (r < 0)
		return r;
	c->state = ENGINE_CHANGE_HELD;
	return shipping_save(s, "change-held", err);
}

/* --- finding ------------------------------------------------------------------------------- */

struct listing {
	struct engine *engine;
	const char *project; /* NULL: of all */
	struct engine_changes all;
};

static int add_change(const char *name, void *ctx, struct err *err)
{
	struct listing *l = ctx;
	struct engine_change *c;
	int r;

	if (!VEC_ONE_MORE(l->all.list, l->all.n))
		return err_nomem(err);
	c = &l->all.list[l->all.n];
	*c = (struct engine_change){ 0 };
	r = change_load(l->engine, name, NULL, c, err);
	/* It was made or removed just now; or it is damaged, and the others are not. */
	if (r < 0 && r != -ENOENT && r != -ENOMEM)
		log_warn("%s, continuing", err->msg);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (l->project && strcmp(l->project, c->project) != 0)
		engine_change_done(c);
	else
		l->all.n++;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct engine_change *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

int engine_changes(struct engine *e, bool all, struct engine_changes *ret, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct listing l = { .engine = e };
	struct store *s;
	int r = all ? engine_store(e, STORE_READ, &s, err) : engine_project(e, &s, &project, err);

	/* Without a store there are no changes. */
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	l.project = project.path;
	r = docket_each(e, &change_kind, add_change, &l, err);
	if (r < 0) {
		engine_changes_done(&l.all);
		return r;
	}
	if (l.all.n > 0)
		qsort(l.all.list, l.all.n, sizeof(*l.all.list), by_age);
	*ret = l.all;
	return 0;
}

int engine_change_find(struct engine *e, const char *id, struct engine_change *ret, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	struct engine_change *found = NULL;
	int r = engine_changes(e, true, &all, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		if (strncmp(all.list[i].id, id, strlen(id)) != 0 || strlen(id) < 4)
			continue;
		if (found)
			return err_set(err, -EINVAL, "'%s' is the beginning of several changes",
				       id);
		found = &all.list[i];
	}
	for (size_t i = 0; i < all.n && !found; i++)
		if (strcmp(all.list[i].clone, id) == 0)
			found = &all.list[i];
	if (!found)
		return err_set(err, -ENOENT, "there is no change '%.100s'", id);
	*ret = *found;
	*found = (struct engine_change){ 0 };
	return 0;
}
