#include "engine/run/run-cover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "engine/wire/control-i.h"

#define SOCKETS "/proc/net/unix" /* all of this network namespace */

struct cover {
	struct layout *layout;
	const char *clone;   /* its path outside; what is in it belongs to the run */
	const char *project; /* NULL: it is the root, and covers none of what is granted */
	size_t n_granted;    /* how many of the layout's first mounts were granted */
};

static bool is_hidden(const struct layout *l, const char *guest)
{
	return VEC_HAS(one, l->mounts, l->n,
		       one->kind == SANDBOX_HIDE && path_is_below(guest, one->guest));
}

/* Hide the path wherever the run would see it; nothing in a `store` can be granted either. */
static int cover_path(struct cover *c, const char *path, bool store, struct err *err)
{
	for (size_t i = 0; i < c->n_granted; i++) {
		const struct sandbox_mount *m = &c->layout->mounts[i];
		AUTO_FREE char *guest = NULL;
		struct sandbox_mount hide = { .kind = SANDBOX_HIDE };
		int r;

		if (m->kind != SANDBOX_BIND || path_is_below(m->host, c->clone))
			continue;
		if (store && path_is_below(m->host, path))
			return err_set(err, -ECANCELED, "'%s' is in the store '%s'", m->host, path);
		if (!path_is_below(path, m->host) || strcmp(path, m->host) == 0)
			continue;
		guest = path_join(m->guest,
				  path + strlen(m->host) + (path[strlen(m->host)] == '/' ? 1 : 0));
		if (!guest)
			return err_nomem(err);
		/* The clone already covers it. */
		if ((c->project && path_is_below(guest, c->project)) || is_hidden(c->layout, guest))
			continue;
		hide.guest = guest;
		r = layout_add(c->layout, &hide, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Cut "STORE/run/cowfsd.sock" down to the store; leave any other path. */
static bool cut_to_store(char *path)
{
	static const char end[] = "/" CONTROL_DIR "/" CONTROL_SOCKET;
	const size_t len = strlen(path), n = strlen(end);

	if (len <= n || strcmp(path + len - n, end) != 0)
		return false;
	path[len - n] = '\0';
	return true;
}

static int cover_socket(struct cover *c, const char *name, struct err *err)
{
	AUTO_FREE char *path = realpath(name, NULL);

	return path ? cover_path(c, path, cut_to_store(path), err) : 0;
}

/* The last of a line's eight words; NULL if the socket has no name in the file system. */
static char *name_in(char *line)
{
	char *at = line;

	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 7; i++) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	at += strspn(at, " ");
	return *at == '/' ? at : NULL;
}

static int cover_sockets(struct cover *c, struct err *err)
{
	AUTO_FCLOSE FILE *f = fopen(SOCKETS, "re");
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (!f)
		return errno == ENOENT ? 0 : err_sys(err, "reading '" SOCKETS "'");
	while (r >= 0 && getline(&line, &size, f) >= 0) {
		const char *name = name_in(line);

		r = name ? cover_socket(c, name, err) : 0;
	}
	return r;
}

static int cover_usual(struct cover *c, const char *variable, const char *below, struct err *err)
{
	const char *dir = getenv(variable);
	AUTO_FREE char *path = dir && *dir == '/' ? path_join(dir, below) : NULL;
	AUTO_FREE char *store = path ? realpath(path, NULL) : NULL;

	return store ? cover_path(c, store, true, err) : 0;
}

int run_cover(struct layout *l, const char *clone, const char *project, struct err *err)
{
	struct cover c = { .layout = l, .clone = clone, .project = project, .n_granted = l->n };
	bool any = false;
	int r;

	for (size_t i = 0; i < l->n; i++)
		any |= l->mounts[i].kind == SANDBOX_BIND &&
		       (!project || strcmp(l->mounts[i].guest, project) != 0);
	if (!any)
		return 0;
	/* The clone covers the project only at its own path. */
	r = project ? cover_path(&c, project, false, err) : 0;
	if (r < 0)
		return r;
	r = cover_usual(&c, "XDG_DATA_HOME", "snapcow", err);
	if (r < 0)
		return r;
	r = cover_usual(&c, "HOME", ".local/share/snapcow", err);
	return r < 0 ? r : cover_sockets(&c, err);
}
