/*
 * The run may move directories above what it does not see to where a later run does not look for names.  So cowfsd
 * keeps the numbers of what is found before the run begins, and each search knows those of the earlier ones.
 *
 * Looking through a clone takes as long as it has directories, and meanwhile everybody else goes on in
 * it.  So the state that is looked through first is one of the store.  Only then directories are
 * kept where they are, and what has changed since is looked through: usually nothing.
 */
#include "engine/run/run-hide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/vec.h"
#include "cowfs/store/catalog.h"
#include "engine/ask/ask-hold-i.h"
#include "engine/ask/ask-stage-i.h"
#include "engine/find/hidden-i.h"
#include "engine/run/run-secrets.h"

#define EACH 8   /* in a directory; one with more is hidden as a whole, since each is a mount */
#define MOST 150 /* of the mounts that a run can have */

#define SEARCH_MS 300000 /* that looking through a clone may take */
#define TRIES     3      /* to find a moment in which nothing changes any more */

/* What was hidden in the other clone, which may be gone. */
static int load_like(struct store *s, const char *name, struct hidden *ret, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(hidden_done) struct hidden there = { 0 };
	int r = clone_get(s, name, &clone, err);

	if (r == -ENOENT)
		return 0;
	r = r < 0 ? r : hidden_load(s, &clone, &there, err);
	if (r < 0)
		return r;
	return hidden_add(ret, &there) < 0 ? err_nomem(err) : 0;
}

/* The state that the clone began with, 0: it has none; and what was hidden in it before. */
static int find_start(const struct run_hiding *h, struct store *s, struct object_id *ret,
		      struct hidden *ret_known, struct err *err)
{
	const char *const name = h->stage->clone;
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(snapshot_done) struct snapshot start = { 0 };
	int r = clone_find(s, name, &clone, err);

	r = r < 0 ? r : hidden_load(s, &clone, ret_known, err);
	r = r < 0 || !h->like ? r : load_like(s, h->like, ret_known, err);
	if (r < 0)
		return r;
	if (catalog_id_is_zero(clone_start(&clone)))
		return 0;
	r = snapshot_get(s, clone_start(&clone), &start, err);
	if (r == -ENOENT && !catalog_id_is_zero(&clone.base))
		r = snapshot_get(s, &clone.base, &start, err);
	if (r < 0)
		return err_wrap(err, r, "the state that clone '%s' began with", name);
	*ret = start.root;
	return 1;
}

/* Those of `all` that are not among `known`, both rising. */
static int pick_new(const struct record_numbers *all, const struct record_numbers *known,
		    struct record_numbers *ret, struct err *err)
{
	size_t k = 0;

	ret->list = calloc(all->n + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	for (size_t i = 0; i < all->n; i++) {
		while (k < known->n && known->list[k] < all->list[i])
			k++;
		if (k == known->n || known->list[k] != all->list[i])
			ret->list[ret->n++] = all->list[i];
	}
	return 0;
}

/* So many numbers as go with one question, from `at` on. */
static struct record_numbers part_of(const struct record_numbers *all, size_t at)
{
	const size_t left = at < all->n ? all->n - at : 0;

	return (struct record_numbers){ left > 0 ? all->list + at : NULL,
					left < STAGE_HIDDEN_MAX ? left : STAGE_HIDDEN_MAX };
}

/* Have the numbers kept for later runs in the clone. */
static int keep(const struct run_hiding *h, struct hidden *known, const struct run_search *s,
		struct err *err)
{
	const struct hidden all = run_search_kept(s);
	CLEANUP(hidden_done) struct hidden new = { 0 };
	int r = pick_new(&all.numbers, &known->numbers, &new.numbers, err);

	r = r < 0 ? r : pick_new(&all.dirs, &known->dirs, &new.dirs, err);
	for (size_t i = 0; (i < new.numbers.n || i < new.dirs.n) && r >= 0; i += STAGE_HIDDEN_MAX) {
		const struct hidden part = { .numbers = part_of(&new.numbers, i),
					     .dirs = part_of(&new.dirs, i) };

		r = stage_ask_hide(h->engine, h->stage->clone, &part, err);
	}
	if (r < 0)
		return r;
	return hidden_add(known, &new) < 0 ? err_nomem(err) : 0;
}

/* A look at the clone as it is now; with `names` no directory is moved from then on. */
struct relook {
	const struct run_hiding *hiding;
	struct run_search *search;
	struct hidden *known;
	struct object_id was;  /* what was looked at last */
	struct control *names; /* NULL: directories may be moved */
	uint64_t until_ms;     /* of the whole search */
};

#define STILL_MS 500 /* in which what changed must be looked through if directories may be moved */

/* Another run that began meanwhile may have moved what it hid. */
static int know_more(struct relook *l, struct err *err)
{
	const struct run_hiding *const h = l->hiding;
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(hidden_done) struct hidden now = { 0 };
	struct store *s;
	int r = engine_store(h->engine, STORE_READ, &s, err);

	r = r < 0 ? r : clone_find(s, h->stage->clone, &clone, err);
	r = r < 0 ? r : hidden_load(s, &clone, &now, err);
	if (r < 0)
		return r;
	if (hidden_add(l->known, &now) < 0)
		return err_nomem(err);
	return run_search_know(l->search, &now, err);
}

static int look_once(struct relook *l, uint64_t until_ms, struct run_secrets_found *ret,
		     struct err *err)
{
	CLEANUP(control_done) struct control pin = CONTROL_INIT;
	struct object_id now;
	int r = hold_ask_names(l->hiding->engine, l->hiding->stage->clone,
			       l->names ? HOLD_NAMES_MS : 0, l->names ? l->names : &pin, &now, err);

	if (r < 0 || object_id_equal(&now, &l->was))
		return r;
	run_secrets_found_done(ret);
	l->was = now;
	run_search_until(l->search, until_ms);
	/* Only now, as at first: what was moved in this state was kept before. */
	r = know_more(l, err);
	return r < 0 ? r : run_search_look(l->search, &now, ret, err);
}

/* Half of the time of a hold is for the mounts. */
static int look_until_still(struct relook *l, uint64_t *ret_by_ms, struct run_secrets_found *ret,
			    struct err *err)
{
	for (int i = 0; i < TRIES; i++) {
		const uint64_t began = clock_ms();
		const uint64_t by = began + (l->names ? HOLD_NAMES_MS / 2 : STILL_MS);
		int r = look_once(l, by < l->until_ms ? by : l->until_ms, ret, err);

		if (l->names)
			*ret_by_ms = began + HOLD_NAMES_MS;
		if ((r < 0 && r != -ETIMEDOUT) || clock_ms() < by)
			return r;
		if (l->names)
			control_done(l->names);
	}
	return err_set(
	    err, -EBUSY,
	    "clone '%s' changes faster than it can be looked through for secrets: try again "
	    "when less is written in it, or run in another clone",
	    l->hiding->stage->clone);
}

/* `names` NULL: numbers count, and directories may be moved. */
static int find_secrets(const struct run_hiding *h, size_t each, size_t most, struct control *names,
			uint64_t *ret_by_ms, struct run_secrets_found *ret, struct err *err)
{
	CLEANUP(run_search_free_p) struct run_search *s = NULL;
	CLEANUP(control_done) struct control pin = CONTROL_INIT;
	CLEANUP(hidden_done) struct hidden known = { 0 };
	struct object_id start;
	struct run_secrets_in in = {
		.top = names ? h->stage->project : "/", /* else it is the run's root */
		.dir = h->clone_fd,
		.each = each,
		.max = most,
		.until_ms = clock_ms() + SEARCH_MS,
	};
	struct relook again = {
		.hiding = h, .known = &known, .names = names, .until_ms = in.until_ms
	};
	int r = engine_store(h->engine, STORE_READ, &in.store, err);

	r = r < 0 ? r : hold_ask_names(h->engine, h->stage->clone, 0, &pin, &again.was, err);
	/* Only now: a run that moved a directory in this state had the numbers below it kept before. */
	r = r < 0 ? r : find_start(h, in.store, &start, &known, err);
	if (r < 0)
		return r;
	in.before = r > 0 ? &start : NULL;
	r = run_search_new(&in, &s, err);
	r = r < 0 ? r : run_search_know(s, &known, err);
	r = r < 0 ? r : run_search_look(s, &again.was, ret, err);
	/* Usually this keeps all, so that nothing is left to do while names are held. */
	r = r < 0 ? r : keep(h, &known, s, err);
	again.search = s;
	r = r < 0 ? r : look_until_still(&again, ret_by_ms, ret, err);
	return r < 0 ? r : keep(h, &known, s, err);
}

/* --- by paths --------------------------------------------------------------------------- */

static int add_mask(struct layout *l, const char *path, uint64_t ino, struct err *err)
{
	const struct sandbox_mount m = { .kind = SANDBOX_HIDE, .guest = path, .ino = ino };

	/* Below a mask there is nothing. */
	if (VEC_HAS(it, l->mounts, l->n,
		    it->kind == SANDBOX_HIDE && path_is_below(path, it->guest)))
		return 0;
	return layout_add(l, &m, err);
}

/* Where in the clone a mount is from, "" being its top; NULL: from elsewhere. */
static const char *place_in_clone(const struct run_hiding *h, const struct sandbox_mount *m)
{
	const char *below;

	if (m->kind != SANDBOX_BIND || !path_is_below(m->host, h->shown))
		return NULL;
	below = m->host + strlen(h->shown);
	return *below == '/' ? below + 1 : below;
}

/* The last mount at a path, or above it, is the one that shows what is there. */
static bool shows(const struct layout *l, size_t mount, const char *guest)
{
	return !VEC_HAS(it, l->mounts + mount + 1, l->n - mount - 1,
			it->kind != SANDBOX_HIDE && path_is_below(guest, it->guest));
}

/* What is left of `path` below `dir`, both from the top of the clone; NULL: it is not there. */
static const char *below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	if (n == 0 || strcmp(path, dir) == 0)
		return path + n;
	return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* A directory of the clone may be granted once more, under another path; and lie in what is hidden. */
static int mask_in(const struct run_hiding *h, struct layout *l, size_t mount,
		   const struct run_secret *secret, struct err *err)
{
	const char *at = l->mounts[mount].guest, *top = place_in_clone(h, &l->mounts[mount]);
	const char *in_mount = top ? below(secret->path, top) : NULL;
	const bool inside = top && !in_mount && below(top, secret->path);
	AUTO_FREE char *guest = NULL;

	if (!in_mount && !inside)
		return 0;
	guest = inside || *in_mount == '\0' ? strdup(at) : path_join(at, in_mount);
	if (!guest)
		return err_nomem(err);
	return shows(l, mount, guest) ? add_mask(l, guest, inside ? 0 : secret->ino, err) : 0;
}

int run_hide_paths(const struct run_hiding *h, struct layout *l, struct control *names,
		   uint64_t *ret_by_ms, struct err *err)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	const size_t n = l->n;
	int r = find_secrets(h, EACH, MOST, names, ret_by_ms, &found, err);

	for (size_t i = 0; i < found.n && r >= 0; i++) {
		AUTO_FREE char *path = path_join(h->stage->project, found.list[i].path);

		if (!path)
			return err_nomem(err);
		for (size_t k = 0; k < n && r >= 0; k++)
			r = mask_in(h, l, k, &found.list[i], err);
		/* And over what was mounted there instead. */
		r = r < 0 ? r : add_mask(l, path, 0, err);
	}
	return r;
}

/* --- by numbers ------------------------------------------------------------------------- */

int run_hide_numbers(const struct run_hiding *h, uint64_t **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(run_secrets_found_done) struct run_secrets_found found = { 0 };
	uint64_t *list;
	int r = find_secrets(h, SIZE_MAX, STAGE_HIDDEN_MAX, NULL, NULL, &found, err);

	if (r < 0)
		return r;
	list = calloc(found.n + 1, sizeof(*list));
	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < found.n; i++)
		list[i] = found.list[i].ino;
	VEC_SORT(list, found.n, vec_by_u64);
	*ret = list;
	*ret_n = found.n;
	return 0;
}
