/*
 * The paths of the clone as it is now become a tree of their own, which shares everything below
 * them with the clone. The ref that names this tree keeps it.
 *
 * The digest is the SHA-256 of a line for each entry below the top, in the order of a walk: the
 * mode in octal, a space, the SHA-256 of the content or of the target of a link in hex ("-" if
 * there is none), a space, the path, a NUL.
 */
#include "engine/act/artifact-i.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/path.h"
#include "base/size.h"
#include "base/strlist.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/tree-walk.h"
#include "engine/act/events-i.h"
#include "engine/act/hold-i.h"
#include "engine/act/pick-i.h"
#include "engine/find/artifact-i.h"
#include "engine/find/content-sum-i.h"
#include "engine/host/host-i.h"

#define PATHS_MAX ((size_t)60 << 10) /* bytes of all of them in a record */

struct saving {
	struct task *task;
	struct store *store;
	struct strlist paths; /* sorted, and none below another */
	struct buf text;      /* the same as the record has them */
	struct clone clone;
	struct root root; /* of the artifact */
	struct artifact record;
	bool pinned; /* record.root */
	struct sha256 sum;
	char hex[SHA256_HEX_SIZE];
};

static void saving_done(struct saving *s)
{
	if (s->pinned)
		store_unpin(s->store, OBJECT_TREE, &s->record.root);
	strlist_done(&s->paths);
	buf_done(&s->text);
	clone_done(&s->clone);
}

/* --- which paths ------------------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
	return path_compare(*(char *const *)a, *(char *const *)b);
}

static int add_path(struct saving *s, const char *path, struct err *err)
{
	AUTO_FREE char *clean = path_clean("/", path);

	if (!clean)
		return err_nomem(err);
	if (path[0] == '/')
		return err_set(err, -EINVAL, "'%s' does not count from the top of the project",
			       path);
	if (clean[1] == '\0')
		return err_set(err, -EINVAL,
			       "'%s' is all of the clone: a snapshot with a tag keeps that", path);
	return strlist_add(&s->paths, clean + 1) < 0 ? err_nomem(err) : 0;
}

/* Drop what is below another one, and duplicates. */
static void drop_covered(struct strlist *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (n > 0 && path_is_within(l->list[i], l->list[n - 1])) {
			free(l->list[i]);
			continue;
		}
		l->list[n++] = l->list[i];
	}
	l->n = n;
}

static int choose_paths(struct saving *s, const struct engine_artifact_options *o, struct err *err)
{
	int r = o->n_paths > 0 ? 0 : err_set(err, -EINVAL, "no path to save is given");

	for (size_t i = 0; i < o->n_paths && r >= 0; i++)
		r = add_path(s, o->paths[i], err);
	if (r < 0)
		return r;
	qsort(s->paths.list, s->paths.n, sizeof(*s->paths.list), by_path);
	drop_covered(&s->paths);
	for (size_t i = 0; i < s->paths.n; i++)
		if ((i > 0 && buf_append_str(&s->text, ARTIFACT_BETWEEN) < 0) ||
		    buf_append_str(&s->text, s->paths.list[i]) < 0)
			return err_nomem(err);
	if (s->text.len > PATHS_MAX)
		return err_set(err, -E2BIG,
			       "these are too many paths: name the directories that hold them");
	s->record.paths = buf_str(&s->text) ? (char *)s->text.data : NULL;
	return s->record.paths ? 0 : err_nomem(err);
}

/* --- the tree --------------------------------------------------------------------------- */

static int put_tree(struct saving *s, const struct object_id *of, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct root from;
	int r = batch_begin(s->store, &b, err);

	if (r < 0)
		return r;
	r = root_get(s->store, of, &from, err);
	if (r < 0)
		return r;
	r = pick_paths(b, &from, &s->paths, &s->root, err);
	if (r < 0)
		return r;
	r = root_put(b, &s->root, &s->record.root, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(s->store, OBJECT_TREE, &s->record.root, err);
	s->pinned = r >= 0;
	return r;
}

static int sum_entry(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		     struct err *err)
{
	struct saving *s = ctx;
	char hex[SHA256_HEX_SIZE] = "-", head[SHA256_HEX_SIZE + 32];
	uint8_t digest[SHA256_SIZE];
	int r = task_wanted(s->task, err), len;

	if (r < 0)
		return r;
	if (S_ISREG(e->mode))
		r = content_sum(s->store, e, digest, err);
	else if (S_ISLNK(e->mode))
		sha256_of(e->target, e->target_len, digest);
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	if (S_ISREG(e->mode) || S_ISLNK(e->mode))
		hex_encode(digest, sizeof(digest), hex);
	len = snprintf(head, sizeof(head), "%o %s ", e->mode, hex);
	sha256_add(&s->sum, head, (size_t)len);
	sha256_add(&s->sum, path, strlen(path) + 1);
	return 0;
}

static int sum_up(struct saving *s, struct err *err)
{
	int r;

	sha256_begin(&s->sum);
	r = tree_walk(s->store, &s->root.top.id, "", sum_entry, s, err);
	if (r < 0)
		return r;
	s->record.sha256 = sha256_end_hex(&s->sum, s->hex);
	return 0;
}

/* --- the record ------------------------------------------------------------------------- */

/* host->snapshots held for reading: the project cannot be forgotten meanwhile. */
static int put_locked(struct saving *s, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct artifact *a = &s->record;
	int r = project_get(s->store, &s->clone.project, &project, err);

	if (r == -ENOENT)
		return err_set(err, -ENXIO, "the project of clone '%s' was forgotten just now",
			       s->clone.name);
	if (r < 0)
		return r;
	r = catalog_id_new(&a->id, err);
	if (r < 0)
		return r;
	a->project = s->clone.project;
	a->clone = s->clone.name;
	a->created = engine_now();
	a->files = s->root.top.below.files;
	a->bytes = s->root.top.below.bytes;
	r = batch_begin(s->store, &b, err);
	if (r < 0)
		return r;
	r = batch_pin(b, &a->root, err);
	if (r < 0)
		return r;
	r = artifact_put(b, a, err);
	if (r < 0)
		return r;
	r = task_wanted(s->task, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* --- what an agent may keep ------------------------------------------------------------- */

struct kept_by {
	char *label; /* owned */
	uint64_t n, bytes;
};

static int count_one(const struct artifact *a, void *ctx, struct err *err)
{
	struct kept_by *k = ctx;

	if (!meta_matches(a->meta, k->label))
		return 0;
	k->n++;
	k->bytes += a->bytes;
	return 0;
}

/* The caller has the turn of the session, so that two saves at once are counted one after the other. */
static int check_session(struct saving *s, const char *session, struct err *err)
{
	struct kept_by k = { 0 };
	const uint64_t more = s->root.top.below.bytes;
	char most[SIZE_TEXT_MAX], is[SIZE_TEXT_MAX];
	int r;

	if (asprintf(&k.label, ENGINE_SESSION_KEY "=%s", session) < 0)
		return err_nomem(err);
	r = artifact_each(s->store, count_one, &k, err);
	free(k.label);
	if (r < 0)
		return r;
	if (k.n >= ENGINE_SESSION_ARTIFACTS)
		return err_set(
		    err, -EDQUOT,
		    "this session has %llu artifacts, and an agent's may have no more: a "
		    "person can remove some with 'snap artifact rm'",
		    (unsigned long long)k.n);
	if (more > ENGINE_SESSION_BYTES || k.bytes > ENGINE_SESSION_BYTES - more)
		return err_set(
		    err, -EDQUOT,
		    "with this one the session would have artifacts of %s, and an agent's "
		    "may have %s: save less, or a person can remove some with 'snap "
		    "artifact rm'",
		    size_format(k.bytes + more, is), size_format(ENGINE_SESSION_BYTES, most));
	return 0;
}

static int put_record(struct saving *s, struct err *err)
{
	struct host *h = s->task->host;
	int r;

	pthread_rwlock_rdlock(&h->snapshots);
	r = put_locked(s, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

static int check_run(const char *run, struct err *err)
{
	if (!run || (strlen(run) == ENGINE_RUN_ID_SIZE - 1 &&
		     strspn(run, "0123456789abcdef") == ENGINE_RUN_ID_SIZE - 1))
		return 0;
	return err_set(err, -EINVAL, "'%.20s' is no id of a run", run);
}

int artifact_save(struct task *task, const struct engine_artifact_options *o,
		  struct engine_artifact *ret, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(saving_done) struct saving s = { .task = task };
	AUTO_FREE char *meta = o->meta ? strdup(o->meta) : NULL;
	AUTO_FREE char *run = o->run ? strdup(o->run) : NULL;
	struct held held;
	int r;

	if ((o->meta && !meta) || (o->run && !run))
		return err_nomem(err);
	r = meta_check(o->meta, err);
	if (r < 0)
		return r;
	r = check_run(o->run, err);
	if (r < 0)
		return r;
	r = choose_paths(&s, o, err);
	if (r < 0)
		return r;
	s.record.meta = meta;
	s.record.run = run;
	r = engine_store(&task->engine, STORE_WRITE, &s.store, err);
	if (r < 0)
		return r;
	r = clone_meant(&task->engine, s.store, o->clone, &s.clone, err);
	if (r < 0)
		return r;
	r = hold_clone(task, s.clone.name, &held, err);
	if (r < 0)
		return r;
	r = put_tree(&s, &held.root, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", s.clone.name);
	if (o->session) {
		r = turns_take(&task->host->turns, o->session, &turn, err);
		if (r >= 0)
			r = check_session(&s, o->session, err);
	}
	if (r < 0)
		return r;
	r = sum_up(&s, err);
	if (r < 0)
		return r;
	r = put_record(&s, err);
	if (r < 0)
		return r;
	r = artifact_entry(&s.record, ret, err);
	if (r >= 0)
		event_artifact(task, &s.clone.project, ret, false);
	return r;
}

int artifact_remove(struct task *task, const char *id, struct engine_artifact *ret, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int r = engine_store(&task->engine, STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	r = project_around(&task->engine, s, &project, err);
	if (r < 0)
		return r;
	r = artifact_find(s, &project.id, id, ret, NULL, err);
	if (r < 0)
		return r;
	r = batch_begin(s, &b, err);
	if (r < 0)
		return r;
	r = ref_delete(b, REF_ARTIFACT, ret->id, strlen(ret->id), err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_DURABLE, err);
	if (r == -ENOENT)
		return err_set(err, r, "this project has no artifact '%.64s'", id);
	if (r >= 0)
		event_artifact(task, &project.id, ret, true);
	return r;
}
