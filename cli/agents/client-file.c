#include "cli/agents/client-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"

#define FILE_MAX ((size_t)64 << 20)

char *client_path(const char *path)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");

	if (config && *config == '/' && strncmp(path, ".config/", 8) == 0)
		return path_join(config, path + 8);
	return home && *home == '/' ? path_join(home, path) : NULL;
}

int client_find(const char *title, const char *path, char **ret, struct err *err)
{
	AUTO_FREE char *full = client_path(path);
	char *real;

	if (!full)
		return err_set(err, -ENOENT,
			       "$HOME is not set, so nobody knows where %s keeps '%s'", title,
			       path);
	real = realpath(full, NULL);
	if (!real && errno != ENOENT)
		return err_sys(err, "'%s'", full);
	*ret = real ? real : TAKE_PTR(full);
	return 0;
}

int client_read(const char *file, struct buf *ret, bool *ret_there, struct err *err)
{
	int r = fdio_read_file(AT_FDCWD, file, FILE_MAX, ret, err);

	*ret_there = r >= 0;
	return r == -ENOENT ? 0 : r;
}

bool client_same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int write_file(const char *file, const struct buf *text, mode_t mode, struct err *err)
{
	return fdio_replace_file(AT_FDCWD, file, text->data, text->len, mode, err);
}

static int make_folder(const char *file, struct err *err)
{
	AUTO_FREE char *dir = strdup(file);
	char *end = dir ? strrchr(dir, '/') : NULL;

	if (!end)
		return err_nomem(err);
	*end = '\0';
	return path_make_dirs(dir, 0700, err);
}

/* Keep what is there, then put the new text in its place. */
static int replace(const char *file, const struct buf *was, const struct buf *text, bool there,
		   bool no_backup, char **ret_backup, struct err *err)
{
	AUTO_FREE char *backup = NULL;
	mode_t mode = 0600;
	struct stat st;
	int r;

	if (!there) {
		r = make_folder(file, err);
		return r < 0 ? r : write_file(file, text, mode, err);
	}
	if (stat(file, &st) < 0)
		return err_sys(err, "'%s'", file);
	mode = st.st_mode & 0777;
	backup = text_format("%s" CLIENT_BACKUP, file);
	if (!backup)
		return err_nomem(err);
	r = no_backup ? 0 : write_file(backup, was, mode, err);
	if (r >= 0)
		r = write_file(file, text, mode, err);
	if (r < 0)
		return r;
	*ret_backup = no_backup ? NULL : TAKE_PTR(backup);
	return 0;
}

int client_change(const struct client_edit *edit, char **ret_file, char **ret_backup,
		  struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT, after = BUF_INIT;
	bool there;
	int r;

	*ret_backup = NULL;
	r = client_find(edit->title, edit->path, ret_file, err);
	if (r < 0)
		return r;
	r = client_read(*ret_file, &text, &there, err);
	if (r < 0)
		return r;
	r = edit->fn(&text, edit->ctx, &after, err);
	if (r == -ENOENT)
		return 1;
	if (r < 0)
		return err_wrap(err, r, "'%s' is left as it is", *ret_file);
	if (client_same_text(&text, &after))
		return 1;
	return edit->dry_run
		   ? 0
		   : replace(*ret_file, &text, &after, there, edit->no_backup, ret_backup, err);
}
