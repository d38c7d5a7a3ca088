#include "image/rootfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cowfs/store/content.h"

int rootfile_open(struct store *s, const struct object_id *root, struct rootfile *ret,
		  struct err *err)
{
	*ret = (struct rootfile){ .store = s };
	return root_get(s, root, &ret->root, err);
}

void rootfile_done(struct rootfile *l)
{
	buf_done(&l->hold[0]);
	buf_done(&l->hold[1]);
}

int rootfile_find(struct rootfile *l, const char *path, struct tree_entry *ret, struct err *err)
{
	size_t hold = 0, n;
	int r;

	*ret = l->root.top;
	for (const char *p = path; *p != '\0'; p += n + (p[n] == '/')) {
		const struct object_id dir = ret->id;

		n = strcspn(p, "/");
		if (ret->form != TREE_DIR)
			return -ENOENT;
		hold = !hold;
		r = tree_lookup(l->store, &dir, p, n, ret, &l->hold[hold], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int rootfile_read(struct rootfile *l, const struct tree_entry *e, struct buf *text, struct err *err)
{
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const size_t before = text->len;
	struct tree_entry file = *e;
	struct content c;
	ssize_t n;
	int r = 0;

	if (e->form == TREE_LINK)
		r = root_link(l->store, &l->root, e->ino, &file, &hold, err);
	if (r < 0)
		return r;
	if (!S_ISREG(file.mode) || file.size == 0)
		return 0;
	if (file.size > ROOTFILE_TEXT_MAX)
		return err_set(err, -EDQUOT, "it has more than %u MiB",
			       (unsigned)(ROOTFILE_TEXT_MAX >> 20));
	c = tree_entry_content(&file);
	r = content_reader_new(l->store, &c, &rd, err);
	if (r < 0)
		return r;
	if (!buf_extend(text, file.size))
		return err_nomem(err);
	n = content_reader_read(rd, 0, text->data + before, file.size, err);
	text->len = before + (n > 0 ? (size_t)n : 0);
	return n < 0 ? (int)n : 0;
}

int rootfile_text(struct rootfile *l, const char *path, struct buf *text, struct err *err)
{
	struct tree_entry e;
	int r = rootfile_find(l, path, &e, err);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = rootfile_read(l, &e, text, err);
	return r < 0 ? err_wrap(err, r, "reading '%s'", path) : 1;
}
