#include "cowfs/fuse/echo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/sys.h"

#define PHANTOM     ((uint64_t)1 << 63) /* no node of a layer has such a number */
#define PHANTOM_DIR ((uint64_t)1 << 62)

enum step {
	STEP_GOES,  /* to be removed, */
	STEP_COMES, /* to be made, */
	STEP_CAME,  /* to be opened and touched */
	STEP_OVER,
};

/* One name, and how far its echo is. */
struct echo_name {
	const struct layer_replaced *of;
	uint64_t dir;
	const char *name; /* in of->path */
	enum step step;
	uint64_t shown; /* the node that the echoing thread was shown; 0: none */
};

struct echo {
	struct echo *next;
	char token[MOUNT_ECHO_SIZE];
	uint32_t thread; /* the echoing thread; 0: not yet known */
	struct map names;
	struct echo_name *list; /* owned */
};

/* --- names -------------------------------------------------------------------------------- */

static uint64_t hash_name(const void *key)
{
	const struct echo_name *n = key;

	return map_hash_str(n->name) ^ n->dir * 0x9e3779b97f4a7c15ull;
}

static bool equal_names(const void *a, const void *b)
{
	const struct echo_name *x = a, *y = b;

	return x->dir == y->dir && strcmp(x->name, y->name) == 0;
}

static void echo_free(struct echo *e)
{
	if (e == NULL)
		return;
	map_done(&e->names);
	free(e->list);
	free(e);
}
DEFINE_CLEANUP(struct echo *, echo_free)

static int fill(struct echo *e, const struct layer_replaced *list, size_t n)
{
	void *other;

	e->names = MAP_INIT(hash_name, equal_names);
	e->list = calloc(n + 1, sizeof(*e->list));
	if (e->list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(list[i].path, '/');
		struct echo_name *name = &e->list[i];

		*name = (struct echo_name){
			.of = &list[i],
			.dir = list[i].dir,
			.name = slash != NULL ? slash + 1 : list[i].path,
			.step = list[i].was != 0 ? STEP_GOES : STEP_COMES,
		};
		if (map_add(&e->names, name, name, &other) < 0)
			return -ENOMEM;
	}
	return 0;
}

int mount_echo_begin(struct mount *m, const struct layer_replaced *list, size_t n,
		     char token[static MOUNT_ECHO_SIZE], struct err *err)
{
	CLEANUP(echo_free_p) struct echo *e = calloc(1, sizeof(*e));
	uint8_t secret[16];
	int r;

	if (e == NULL || fill(e, list, n) < 0)
		return err_nomem(err);
	r = sys_random(secret, sizeof(secret));
	if (r < 0)
		return err_set(err, r, "no random bytes");
	memcpy(e->token, MOUNT_ECHO_PREFIX, strlen(MOUNT_ECHO_PREFIX));
	hex_encode(secret, sizeof(secret), e->token + strlen(MOUNT_ECHO_PREFIX));
	memcpy(token, e->token, MOUNT_ECHO_SIZE);
	LOCKED(&m->lock);
	e->next = m->echoes;
	m->echoes = TAKE_PTR(e);
	atomic_fetch_add(&m->n_echoes, 1);
	return 0;
}

void mount_echo_end(struct mount *m, const char *token)
{
	struct echo **at, *e = NULL;

	pthread_mutex_lock(&m->lock);
	for (at = &m->echoes; *at != NULL && strcmp((*at)->token, token) != 0; at = &(*at)->next)
		continue;
	if (*at != NULL) {
		e = *at;
		*at = e->next;
		atomic_fetch_sub(&m->n_echoes, 1);
	}
	pthread_mutex_unlock(&m->lock);
	echo_free(e);
}

void echo_end_all(struct mount *m)
{
	while (m->echoes != NULL) {
		struct echo *e = m->echoes;

		m->echoes = e->next;
		echo_free(e);
	}
}

/* --- requests ----------------------------------------------------------------------------- */

static bool is_idle(struct mount *m)
{
	return atomic_load_explicit(&m->n_echoes, memory_order_relaxed) == 0;
}

/* Of the mount's lock. */
static struct echo *echo_of(struct mount *m, uint32_t thread)
{
	struct echo *e = m->echoes;

	while (e != NULL && (thread == 0 || e->thread != thread))
		e = e->next;
	return e;
}

static struct echo_name *name_in(struct echo *e, uint64_t dir, const char *name)
{
	const struct echo_name key = { .dir = dir, .name = name };

	return map_get(&e->names, &key);
}

bool echo_is_from(struct mount *m, uint32_t thread)
{
	if (is_idle(m))
		return false;
	LOCKED(&m->lock);
	return echo_of(m, thread) != NULL;
}

bool echo_awaits(struct mount *m, uint64_t dir, const char *name)
{
	bool awaits = false;

	if (is_idle(m))
		return false;
	LOCKED(&m->lock);
	for (struct echo *e = m->echoes; e != NULL && !awaits; e = e->next) {
		const struct echo_name *n = name_in(e, dir, name);

		awaits = n != NULL && n->step != STEP_OVER;
	}
	return awaits;
}

/* What the calling thread must do with that name: a copy, with STEP_OVER if nothing. */
static struct echo_name look(struct mount *m, uint32_t thread, uint64_t dir, const char *name)
{
	struct echo_name ret = { .step = STEP_OVER };
	const struct echo_name *found;
	struct echo *e;

	LOCKED(&m->lock);
	e = echo_of(m, thread);
	found = e != NULL ? name_in(e, dir, name) : NULL;
	if (found != NULL)
		ret = *found;
	return ret;
}

static void go_on(struct mount *m, uint32_t thread, uint64_t dir, const char *name, enum step step,
		  uint64_t shown)
{
	struct echo_name *found;
	struct echo *e;

	LOCKED(&m->lock);
	e = echo_of(m, thread);
	found = e != NULL ? name_in(e, dir, name) : NULL;
	if (found != NULL) {
		found->step = step;
		found->shown = shown;
	}
}

/* The echoing thread's first request, for a name that only it knows. */
static bool is_greeting(struct mount *m, uint32_t thread, const char *name)
{
	struct echo *e;

	if (thread == 0 || strncmp(name, MOUNT_ECHO_PREFIX, strlen(MOUNT_ECHO_PREFIX)) != 0)
		return false;
	LOCKED(&m->lock);
	for (e = m->echoes; e != NULL && strcmp(e->token, name) != 0; e = e->next)
		continue;
	if (e != NULL)
		e->thread = thread;
	return e != NULL;
}

/* --- phantoms ----------------------------------------------------------------------------- */

static uint64_t phantom_new(struct mount *m, bool is_dir)
{
	return PHANTOM | (is_dir ? PHANTOM_DIR : 0) | atomic_fetch_add(&m->phantoms, 1);
}

/* It belongs to our user, as the echoing thread does, so no permission stands in the way. */
static struct stat phantom_stat(uint64_t node)
{
	const bool is_dir = (node & PHANTOM_DIR) != 0;

	return (struct stat){
		.st_ino = node,
		.st_mode = is_dir ? S_IFDIR | 0700 : S_IFREG | 0600,
		.st_nlink = is_dir ? 2 : 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
	};
}

static void reply_phantom(fuse_req_t req, uint64_t node)
{
	const struct layer_found found = { .node = node, .st = phantom_stat(node) };
	struct fuse_entry_param e = reply_entry_of(&found);

	e.entry_timeout = 0; /* the next lookup is to find what is there */
	fuse_reply_entry(req, &e);
}

/* --- answers ------------------------------------------------------------------------------ */

/* Is the name there now?  -EAGAIN: only a thread that may wait can find out. */
static int is_there(fuse_req_t req, fuse_ino_t dir, const char *name, bool *ret_is_dir)
{
	const struct layer_call call = ops_call(req);
	struct layer_found found = { 0 };
	struct err err = { 0 };
	int r = layer_lookup(ops_layer(req), &call, dir, name, &found, &err);

	if (r == -EAGAIN) {
		reply_error(req, r, &err);
		return r;
	}
	if (r < 0)
		return 0;
	*ret_is_dir = S_ISDIR(found.st.st_mode);
	layer_forget(ops_layer(req), found.node, 1);
	return 1;
}

/* Show the node that was there, so that a watch on the file itself fires, if the kernel still has it. */
static void show_before(fuse_req_t req, fuse_ino_t dir, const char *name,
			const struct echo_name *now)
{
	struct mount *m = fuse_req_userdata(req);
	const uint32_t thread = (uint32_t)fuse_req_ctx(req)->pid;
	const bool was_dir = S_ISDIR(now->of->was);
	struct layer_found found;
	struct err none = { 0 };
	uint64_t phantom;

	if (now->of->before != 0 && layer_refer(m->layer, now->of->before, &found) == 0) {
		found.st.st_nlink = was_dir ? 2 : 1;
		go_on(m, thread, dir, name, STEP_GOES, found.node);
		reply_found_briefly(req, 0, &found, &none);
		return;
	}
	phantom = phantom_new(m, was_dir);
	go_on(m, thread, dir, name, STEP_GOES, phantom);
	reply_phantom(req, phantom);
}

/* Somebody else has made it again since: that is a real file, and the kernel told of it. */
static bool was_made_again(fuse_req_t req, fuse_ino_t dir, const char *name,
			   const struct echo_name *now, bool *ret_later)
{
	bool is_dir;
	int r = now->of->is != 0 ? 0 : is_there(req, dir, name, &is_dir);

	*ret_later = r < 0;
	return r > 0;
}

bool echo_lookup(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct mount *m = fuse_req_userdata(req);
	const uint32_t thread = (uint32_t)fuse_req_ctx(req)->pid;
	struct echo_name now;
	bool later;

	if (is_idle(m))
		return false;
	if (dir == LAYER_ROOT && is_greeting(m, thread, name)) {
		reply_phantom(req, phantom_new(m, false));
		return true;
	}
	now = look(m, thread, dir, name);
	switch (now.step) {
	case STEP_OVER:
		return false;
	case STEP_COMES:
		fuse_reply_err(req, ENOENT);
		return true;
	case STEP_CAME:
		reply_phantom(req, now.shown);
		return true;
	case STEP_GOES:
		break;
	}
	if (was_made_again(req, dir, name, &now, &later)) {
		go_on(m, thread, dir, name, STEP_OVER, 0);
		return false;
	}
	if (!later)
		show_before(req, dir, name, &now);
	return true;
}

bool echo_make(fuse_req_t req, fuse_ino_t dir, const char *name, mode_t mode)
{
	struct mount *m = fuse_req_userdata(req);
	const uint32_t thread = (uint32_t)fuse_req_ctx(req)->pid;
	struct echo_name now;
	uint64_t phantom;
	bool is_dir;
	int r;

	if (!echo_is_from(m, thread))
		return false;
	now = look(m, thread, dir, name);
	r = now.step == STEP_COMES ? is_there(req, dir, name, &is_dir) : 0;
	if (r < 0)
		return true;
	if (r == 0 || is_dir != (bool)S_ISDIR(mode)) {
		fuse_reply_err(req, EPERM);
		return true;
	}
	phantom = phantom_new(m, is_dir);
	go_on(m, thread, dir, name, STEP_CAME, phantom);
	reply_phantom(req, phantom);
	return true;
}

bool echo_remove(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct mount *m = fuse_req_userdata(req);
	const uint32_t thread = (uint32_t)fuse_req_ctx(req)->pid;
	struct echo_name now;

	if (!echo_is_from(m, thread))
		return false;
	now = look(m, thread, dir, name);
	if (now.step != STEP_GOES) {
		fuse_reply_err(req, EPERM);
		return true;
	}
	if (now.shown == 0) {
		/* The kernel remembers what somebody else found there: ESTALE has it look again. */
		fuse_reply_err(req, ESTALE);
		return true;
	}
	go_on(m, thread, dir, name, now.of->is != 0 ? STEP_COMES : STEP_OVER, 0);
	fuse_reply_err(req, 0);
	return true;
}

bool echo_setattr(fuse_req_t req, fuse_ino_t node)
{
	struct mount *m = fuse_req_userdata(req);
	struct err none = { 0 };
	struct stat st;

	if (!echo_is_from(m, (uint32_t)fuse_req_ctx(req)->pid))
		return false;
	if ((node & PHANTOM) == 0) {
		fuse_reply_err(req, EPERM);
		return true;
	}
	st = phantom_stat(node);
	reply_attr(req, 0, &st, &none);
	return true;
}
