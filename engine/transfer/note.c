#include "engine/transfer/note-i.h"

#include <fcntl.h>
#include <string.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "engine/transfer/transfer-i.h"

#define NOTE_MAX ((size_t)4 << 10)

int transfer_dir(struct engine *e, const char *name, char **ret, struct err *err)
{
	AUTO_FREE char *dir = path_join(e->store_path, name);
	int r;

	if (!dir)
		return err_nomem(err);
	r = path_make_dirs(dir, 0700, err);
	if (r == 0)
		*ret = TAKE_PTR(dir);
	return r;
}

/* A file for each key: its digest is the file's name, so that any url will do. */
static int find_path(struct engine *e, const char *name, const char *key, char **ret,
		     struct err *err)
{
	const struct digest d = digest_of(key, strlen(key));
	char hex[SHA256_HEX_SIZE];
	AUTO_FREE char *dir = NULL;
	int r = transfer_dir(e, name, &dir, err);

	if (r < 0)
		return r;
	*ret = path_join(dir, hex_encode(d.b, sizeof(d.b), hex));
	return *ret ? 0 : err_nomem(err);
}

int note_read(int dir, const char *path, struct json_doc *doc, struct json *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct err ignored = { 0 };

	return fdio_read_file(dir, path, NOTE_MAX, &text, &ignored) >= 0 &&
	       json_parse(doc, (const char *)text.data, text.len, ret, &ignored) >= 0;
}

int note_load(struct engine *e, const char *dir, const char *key, struct json_doc *doc,
	      struct json *ret, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int r;

	if (!engine_has_store(e))
		return 0;
	r = find_path(e, dir, key, &path, err);
	return r < 0 ? r : note_read(AT_FDCWD, path, doc, ret);
}

void note_save(struct engine *e, const char *dir, const char *key, const struct json_doc *doc)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE char *path = NULL;
	struct err err = { 0 };
	int r = json_append(doc, &text, &err);

	if (r == 0)
		r = find_path(e, dir, key, &path, &err);
	if (r == 0)
		r = fdio_swap_file(AT_FDCWD, path, text.data, text.len, 0600, &err);
	if (r < 0)
		engine_warn(e, "%s, continuing", err.msg);
}
