#include "engine/run/run-key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/sys.h"

#define KEY_MAX ((uint64_t)1 << 20) /* a file that is larger counts as one with a key */

static ssize_t read_stored(const struct run_key_in *in, const struct content *c, char *text)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct err unused = { 0 };
	int r = content_reader_new(in->store, c, &rd, &unused);

	return r < 0 ? r : content_reader_read(rd, 0, text, c->size, &unused);
}

/* What is promised is read through the mount, which has the promise kept; it may have been moved meanwhile. */
static ssize_t read_promised(const struct run_key_in *in, const char *path, uint64_t ino,
			     char *text, size_t len)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	AUTO_CLOSE int fd = path ? sys_open_below(in->dir, path, flags) : -ENOMEM;
	struct stat st;

	if (fd < 0)
		return fd;
	return fstat(fd, &st) < 0 || st.st_ino != ino ? -ESTALE : fdio_read(fd, text, len);
}

bool run_key_may_be_in(const struct run_key_in *in, const struct tree_entry *e, const char *path)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	AUTO_FREE char *text = NULL;
	struct tree_entry file = *e;
	struct err unused = { 0 };
	struct content c;
	ssize_t n;

	if (e->form == TREE_LINK &&
	    root_link(in->store, in->root, e->ino, &file, &hold, &unused) < 0)
		return true;
	c = tree_entry_content(&file);
	text = c.size <= KEY_MAX ? malloc(c.size + 1) : NULL;
	if (!text)
		return true;
	n = c.form == CONTENT_LAZY ? read_promised(in, path, e->ino, text, c.size)
				   : read_stored(in, &c, text);
	return n < 0 || (uint64_t)n != c.size || memmem(text, c.size, "PRIVATE KEY", 11);
}
