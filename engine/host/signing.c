#include "engine/host/signing-i.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/host/host-i.h"

#define SIGNATURES_DIR "signatures"
#define NS_PER_S       1000000000

/* The directory of signatures; -1 if there is none and it could not be made. */
static int open_dir(struct host *h, bool make)
{
	AUTO_FREE char *path = path_join(h->dir, SIGNATURES_DIR);

	if (!path)
		return -1;
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int signing_read(struct host *h, const struct catalog_id *project, struct stat *ret_file,
		 struct signatures **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	AUTO_CLOSE int dir = open_dir(h, false);
	char name[CATALOG_HEX_SIZE];
	int r;

	catalog_id_hex(project, name);
	if (dir < 0 || fstatat(dir, name, ret_file, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, -ENOENT, "there are none");
	*ret = recall_take(&h->recall, ret_file);
	if (*ret)
		return 0;
	r = fdio_read_file(dir, name, SIGNATURES_MAX, &bytes, err);
	return r < 0 ? r : signatures_decode(&bytes, store_key(h->store), ret, err);
}

void signing_write(struct host *h, const struct catalog_id *project, const char *path,
		   const struct signatures *s)
{
	AUTO_CLOSE int dir = open_dir(h, true);
	char name[CATALOG_HEX_SIZE];
	struct err err = { 0 };
	int r;

	if (dir < 0)
		r = err_sys(&err, "'" SIGNATURES_DIR "'");
	else
		r = fdio_swap_file(dir, catalog_id_hex(project, name), s->bytes.data, s->bytes.len,
				   0600, &err);
	if (r < 0)
		log_warn("signatures of '%s': %s, continuing; the next snapshot takes longer", path,
			 err.msg);
}

void signing_write_late(struct host *h, const struct catalog_id *project, const char *path,
			const struct signatures *s, int64_t began)
{
	AUTO_CLOSE int dir = open_dir(h, false);
	char name[CATALOG_HEX_SIZE];
	struct stat st;

	if (dir >= 0 &&
	    fstatat(dir, catalog_id_hex(project, name), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (int64_t)SYS_ST_MTIM(&st).tv_sec * NS_PER_S + SYS_ST_MTIM(&st).tv_nsec > began)
		return;
	signing_write(h, project, path, s);
}

int signing_remove(struct host *h, const struct catalog_id *project, struct err *err)
{
	AUTO_CLOSE int dir = open_dir(h, false);
	char name[CATALOG_HEX_SIZE];

	if ((dir < 0 || unlinkat(dir, catalog_id_hex(project, name), 0) < 0) && errno != ENOENT)
		return err_sys(err, "removing signatures");
	return 0;
}
