#include "engine/api/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fdio.h"
#include "base/path.h"
#include "engine/api/clone.h"
#include "engine/find/engine-i.h"

#define EDIT_MAX ((size_t)64 << 20) /* bytes of a file that is edited */

/* Where a file is: its directory, open, and its name in it, which points into `parts`. */
struct place {
	int dir;
	char *parts; /* owned */
	const char *name;
};

static void place_done(struct place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	free(p->parts);
}

/* Go down one directory and close the descriptor of the last. */
static int enter(int *dir, const char *name, bool make, struct err *err)
{
	int next, rc = make ? mkdirat(*dir, name, 0777) : 0;

	if (rc < 0 && errno != EEXIST)
		return err_sys(err, "directory '%s'", name);
	next = openat(*dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return err_sys(err, "directory '%s'", name);
	close(*dir);
	*dir = next;
	return 0;
}

static int find_place(struct engine *e, const char *clone, const char *path, bool make,
		      struct place *ret, struct err *err)
{
	AUTO_FREE char *mount = NULL;
	char *part, *slash;
	int r;

	ret->parts = strdup(path);
	if (!ret->parts)
		return err_nomem(err);
	r = engine_mount(e, clone, &mount, err);
	if (r < 0)
		return r;
	ret->dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir < 0)
		return err_sys(err, "clone '%s'", clone);
	for (part = ret->parts; r >= 0; part = slash + 1) {
		slash = strchr(part, '/');
		if (slash)
			*slash = '\0';
		if (*part == '\0' || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
			return err_set(
			    err, -EINVAL,
			    "'%s' is no path of a file: it counts from the top of the clone", path);
		if (!slash)
			break;
		r = enter(&ret->dir, part, make, err);
	}
	ret->name = part;
	return r < 0 ? err_wrap(err, r, "'%s'", path) : 0;
}

/* The new file gets the mode and owner of the old one. */
static int replace(const struct place *p, const char *path, const void *data, size_t len,
		   bool executable, struct engine_written *ret, struct err *err)
{
	struct stat old;
	const bool exists = fstatat(p->dir, p->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	int r;

	if (!exists && errno != ENOENT)
		return err_sys(err, "'%s'", path);
	if (exists && S_ISLNK(old.st_mode))
		return err_set(err, -ELOOP, "'%s' is a symlink, which is not followed", path);
	if (exists && !S_ISREG(old.st_mode))
		return err_set(err, -EINVAL, "'%s' is no regular file", path);
	r = fdio_swap_file(p->dir, p->name, data, len, executable ? 0777 : 0666, err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	if (exists && (old.st_uid != geteuid() || old.st_gid != getegid()) &&
	    fchownat(p->dir, p->name, old.st_uid, old.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EPERM)
		return err_sys(err, "the owner of '%s'", path);
	if (exists &&
	    fchmodat(p->dir, p->name, (old.st_mode & 07777) | (executable ? 0111 : 0), 0) < 0)
		return err_sys(err, "the mode of '%s'", path);
	ret->created = !exists;
	ret->bytes = len;
	return 0;
}

int engine_file_write(struct engine *e, const char *clone, const char *path, const void *data,
		      size_t len, bool executable, struct engine_written *ret, struct err *err)
{
	CLEANUP(place_done) struct place p = { .dir = -1 };
	int r = find_place(e, clone, path, true, &p, err);

	*ret = (struct engine_written){ 0 };
	return r < 0 ? r : replace(&p, path, data, len, executable, ret, err);
}

/* `to` becomes the text of `from` with every `old` replaced; returns how many there were. */
static int64_t replace_text(const struct buf *from, const char *old, const char *new,
			    struct buf *to)
{
	const size_t old_len = strlen(old);
	const char *at = (const char *)from->data, *end = at + from->len, *hit;
	int64_t n = 0;

	while ((hit = memmem(at, (size_t)(end - at), old, old_len))) {
		if (buf_append(to, at, (size_t)(hit - at)) < 0 || buf_append_str(to, new) < 0)
			return -ENOMEM;
		at = hit + old_len;
		n++;
	}
	return buf_append(to, at, (size_t)(end - at)) < 0 ? -ENOMEM : n;
}

int engine_file_edit(struct engine *e, const char *clone, const char *path, const char *old,
		     const char *new, bool all, struct engine_written *ret, struct err *err)
{
	CLEANUP(place_done) struct place p = { .dir = -1 };
	CLEANUP(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	int64_t n;
	int r;

	*ret = (struct engine_written){ 0 };
	if (*old == '\0')
		return err_set(err, -EINVAL, "the text to replace is empty");
	r = find_place(e, clone, path, false, &p, err);
	if (r < 0)
		return r;
	r = fdio_read_file(p.dir, p.name, EDIT_MAX, &before, err);
	if (r < 0)
		return r;
	n = replace_text(&before, old, new, &after);
	if (n < 0)
		return err_nomem(err);
	if (n == 0)
		return err_set(err, -EINVAL, "'%s' does not hold the text to replace", path);
	if (n > 1 && !all)
		return err_set(err, -EINVAL,
			       "'%s' holds the text to replace %lld times: give more of the lines "
			       "around it, or ask for all",
			       path, (long long)n);
	ret->replaced = (uint64_t)n;
	return replace(&p, path, after.data, after.len, false, ret, err);
}

/* --- whose it is ------------------------------------------------------------------------ */

int engine_is_of_project(struct engine *e, const char *text, bool is_clone, struct err *err)
{
	CLEANUP(project_done) struct project here = { 0 };
	CLEANUP(state_done) struct state state = { 0 };
	struct store *s;
	int r = engine_project(e, &s, &here, err);

	if (r == -ENXIO && !is_clone && strcmp(text, ".") == 0)
		return 0;
	r = r < 0 ? r : state_find(e, s, text, &state, err);
	if (r == -ENXIO || r == -ENOENT ||
	    (r >= 0 && memcmp(&state.project.id, &here.id, sizeof(here.id)) != 0) ||
	    (r >= 0 && is_clone && state.kind != STATE_CLONE))
		return err_set(err, -ENOENT, "this project has no %s '%s'",
			       is_clone ? "clone" : "state", text);
	return r;
}
