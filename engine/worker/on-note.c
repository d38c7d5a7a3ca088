#include "engine/worker/on-note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"

#define DIRECTORY "remote/tickets"

static bool is_id(const char *text)
{
	return strlen(text) == QUEUE_ID_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == QUEUE_ID_SIZE - 1;
}

static int open_dir(struct engine *e, int *ret, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int r = transfer_dir(e, DIRECTORY, &path, err);

	if (r < 0)
		return r;
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_sys(err, "'%s'", path) : 0;
}

static bool is_old(int dir, const char *name, int days)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtime < time(NULL) - (time_t)days * 86400;
}

static void sweep(int dir)
{
	const int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *d;

	while (list && (d = readdir(list)))
		if (is_id(d->d_name) && is_old(dir, d->d_name, ON_NOTE_DAYS_TRAY))
			unlinkat(dir, d->d_name, 0);
	if (list)
		closedir(list);
	else if (copy >= 0)
		close(copy);
}

int on_note_save(struct engine *e, const char *id, const char *place, const char *state,
		 const struct buf *text, struct err *err)
{
	CLEANUP(buf_done) struct buf note = BUF_INIT;
	AUTO_CLOSE int dir = -1;
	int r = open_dir(e, &dir, err);

	if (r < 0)
		return r;
	if (buf_printf(&note, "%s\n%s\n", place, state) < 0 ||
	    buf_append(&note, text->data, text->len) < 0)
		return err_nomem(err);
	sweep(dir);
	return fdio_replace_file(dir, id, note.data, note.len, 0600, err);
}

/* The first line of what is left, which begins behind it then; NULL: there is none, or no memory. */
static char *take_line(const struct buf *note, size_t *at)
{
	const char *from = (const char *)note->data + *at;
	const char *end = memchr(from, '\n', note->len - *at);

	if (!end)
		return NULL;
	*at += (size_t)(end - from) + 1;
	return strndup(from, (size_t)(end - from));
}

int on_note_load(struct engine *e, const char *id, const char *place, int days, char **ret_state,
		 struct buf *ret, struct err *err)
{
	AUTO_FREE char *sent_to = NULL;
	size_t at = 0;
	CLEANUP(buf_done) struct buf note = BUF_INIT;
	AUTO_CLOSE int dir = -1;
	int r = is_id(id) ? open_dir(e, &dir, err) : -ENOENT;

	if (r == 0)
		r = fdio_read_file(dir, id, QUEUE_TICKET_MAX + 4096, &note, err);
	if (r == -ENOENT)
		return err_set(err, r, "this store waits for no ticket '%.80s'", id);
	/* Nobody may remember its result by now: sent once more, it would run twice. */
	if (r == 0 && is_old(dir, id, days))
		return err_set(
		    err, -ENOENT,
		    "ticket %.12s is more than %d days old: its result is no longer kept", id,
		    days);
	if (r < 0)
		return r;
	sent_to = take_line(&note, &at);
	*ret_state = sent_to ? take_line(&note, &at) : NULL;
	if (!*ret_state)
		return err_set(err, -EBADMSG, "the note of ticket %s is damaged", id);
	/* Nobody elsewhere knows whether it has run. */
	if (strcmp(sent_to, place) != 0)
		return err_set(err, -EINVAL, "ticket %.12s was sent to another place: --on %s", id,
			       sent_to);
	return buf_append(ret, note.data + at, note.len - at) < 0 ? err_nomem(err) : 0;
}

void on_note_drop(struct engine *e, const char *id)
{
	AUTO_CLOSE int dir = -1;
	struct err ignored = { 0 };

	if (open_dir(e, &dir, &ignored) == 0)
		unlinkat(dir, id, 0);
}
