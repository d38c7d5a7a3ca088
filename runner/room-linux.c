/*
 * room-linux.c - where a caller puts the run's view, for an init that exists already.
 *
 * It is memory that both share, at one address, so either side can point into it. The init reads it
 * when the caller says so, and from then on the caller writes no more. The command never sees it,
 * because exec leaves it behind.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "runner/sandbox-i.h"

#define TEXT_MAX ((size_t)4 << 20) /* bytes of all paths and texts; taken as they are needed */

struct room {
	const char *cwd; /* in `text`, as are the strings of the mounts */
	struct sandbox_mount mounts[SANDBOX_MOUNTS_MAX];
	size_t n_mounts, used;
	uint64_t mounted_by_ms;
	char text[TEXT_MAX];
};

int room_new(struct room **ret, struct err *err)
{
	void *at = mmap(NULL, sizeof(struct room), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return err_sys(err, "sharing memory with the init of the run");
	*ret = at;
	return 0;
}

void room_free(struct room *room)
{
	if (room)
		munmap(room, sizeof(*room));
}

static int copy(struct room *room, const char **text, struct err *err)
{
	const size_t size = *text ? strlen(*text) + 1 : 0;

	if (size == 0)
		return 0;
	if (size > TEXT_MAX - room->used)
		return err_set(err, -E2BIG,
			       "the paths of the run's mounts have more than %zu bytes", TEXT_MAX);
	*text = memcpy(room->text + room->used, *text, size);
	room->used += size;
	return 0;
}

static int add_mount(struct room *room, const struct sandbox_mount *m, struct err *err)
{
	struct sandbox_mount *own = &room->mounts[room->n_mounts];
	int r;

	if (room->n_mounts == SANDBOX_MOUNTS_MAX)
		return err_set(err, -EINVAL, "a run can have no more than %d mounts",
			       SANDBOX_MOUNTS_MAX);
	*own = *m;
	r = copy(room, &own->host, err);
	if (r == 0)
		r = copy(room, &own->guest, err);
	room->n_mounts += r == 0;
	return r;
}

int room_fill(struct room *room, const struct sandbox_spec *spec, const struct sandbox_view *view,
	      struct err *err)
{
	int r;

	room->cwd = view->cwd ? view->cwd : spec->cwd;
	room->mounted_by_ms = view->mounted_by_ms;
	r = copy(room, &room->cwd, err);
	for (size_t i = 0; r == 0 && i < spec->n_mounts; i++)
		r = add_mount(room, &spec->mounts[i], err);
	for (size_t i = 0; r == 0 && i < view->n_mounts; i++)
		r = add_mount(room, &view->mounts[i], err);
	return r;
}

void room_show(const struct room *room, struct sandbox_spec *spec)
{
	spec->cwd = room->cwd;
	spec->mounts = room->mounts;
	spec->n_mounts = room->n_mounts;
	spec->mounted_by_ms = room->mounted_by_ms;
}
