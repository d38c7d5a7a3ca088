#include "cowfs/store/tree-entry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

#define NS_PER_S 1000000000

_Static_assert(TREE_NAME_LEN_MAX == PATH_NAME_MAX, "names are what path.h says");
_Static_assert(S_IFMT == 0170000 && S_IFDIR == 0040000 && S_IFREG == 0100000 &&
		   S_IFLNK == 0120000 && S_IFCHR == 0020000 && S_IFBLK == 0060000 &&
		   S_IFIFO == 0010000 && S_IFSOCK == 0140000,
	       "the format has these type bits");

void tree_entry_set_content(struct tree_entry *e, const struct content *c)
{
	switch (c->form) {
	case CONTENT_HOLE:
		e->form = TREE_NONE;
		break;
	case CONTENT_CHUNK:
		e->form = TREE_CHUNK;
		break;
	case CONTENT_RECIPE:
		e->form = TREE_RECIPE;
		break;
	case CONTENT_LAZY:
		e->form = TREE_LAZY;
		break;
	}
	e->id = c->id;
	e->size = c->size;
	e->data = c->data;
}

struct content tree_entry_content(const struct tree_entry *e)
{
	struct content c = { .id = e->id, .size = e->size, .data = e->data };

	assert(S_ISREG(e->mode) && e->form != TREE_LINK);
	if (e->form == TREE_CHUNK)
		c.form = CONTENT_CHUNK;
	else if (e->form == TREE_RECIPE)
		c.form = CONTENT_RECIPE;
	else if (e->form == TREE_LAZY)
		c.form = CONTENT_LAZY;
	else
		c.form = CONTENT_HOLE;
	return c;
}

static bool bytes_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

int tree_entry_copy(const struct tree_entry *e, struct tree_entry *ret)
{
	char *target = NULL;

	if (e->target_len > 0) {
		target = malloc(e->target_len);
		if (!target)
			return -ENOMEM;
		memcpy(target, e->target, e->target_len);
	}
	*ret = *e;
	ret->name = NULL;
	ret->name_len = 0;
	ret->below = (struct tree_summary){ 0 };
	ret->target = target;
	return 0;
}

void tree_entry_done(struct tree_entry *e)
{
	free((char *)(uintptr_t)e->target);
	e->target = NULL;
}

bool tree_entry_equal(const struct tree_entry *a, const struct tree_entry *b)
{
	return bytes_equal(a->name, a->name_len, b->name, b->name_len) && a->form == b->form &&
	       a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->ino == b->ino &&
	       a->size == b->size && a->mtime_s == b->mtime_s && a->ctime_s == b->ctime_s &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
	       object_id_equal(&a->id, &b->id) && object_id_equal(&a->xattrs, &b->xattrs) &&
	       a->data == b->data && a->rdev == b->rdev && a->nlink == b->nlink &&
	       bytes_equal(a->target, a->target_len, b->target, b->target_len) &&
	       a->below.files == b->below.files && a->below.bytes == b->below.bytes &&
	       a->below.links == b->below.links;
}

static bool mode_known(uint32_t mode)
{
	if ((mode & ~(uint32_t)(S_IFMT | 07777)) != 0)
		return false;
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	default:
		return false;
	}
}

static const char *link_flaw(const struct tree_entry *e)
{
	struct tree_entry bare = {
		.name = e->name,
		.name_len = e->name_len,
		.form = TREE_LINK,
		.mode = e->mode & S_IFMT,
		.ino = e->ino,
	};

	if (S_ISDIR(e->mode))
		return "a directory with several names";
	if (!tree_entry_equal(e, &bare))
		return "a link has attributes of its own";
	return NULL;
}

static const char *regular_flaw(const struct tree_entry *e)
{
	if (e->size > INT64_MAX)
		return "its size is beyond what a file can have";
	if (e->form == TREE_CHUNK && (e->size == 0 || e->size > CHUNK_SIZE_MAX))
		return "its size does not fit a single chunk";
	if (e->form == TREE_RECIPE && e->size <= CHUNK_SIZE_MAX)
		return "its size does not fit a recipe";
	if ((e->form == TREE_NONE) != (e->data == 0))
		return "data and content do not go together";
	if (e->data > e->size)
		return "it has more data than bytes";
	if (e->form == TREE_CHUNK && e->data != e->size)
		return "a single chunk with a hole in it";
	if (e->form == TREE_LAZY && e->data != e->size)
		return "a promise with a hole in it";
	return NULL;
}

static const char *symlink_flaw(const struct tree_entry *e)
{
	if (e->target_len == 0)
		return "a symlink without a target";
	if (e->target_len > TREE_TARGET_LEN_MAX)
		return "its target is too long";
	if (memchr(e->target, 0, e->target_len))
		return "its target holds a NUL";
	if (e->size != e->target_len)
		return "the size of a symlink is not the length of its target";
	return NULL;
}

/* Of every form but TREE_LINK: are the fields those of its type? */
static const char *type_flaw(const struct tree_entry *e)
{
	const struct tree_summary *below = &e->below;
	bool reg = S_ISREG(e->mode), dir = S_ISDIR(e->mode), symlink = S_ISLNK(e->mode);

	if (dir != (e->form == TREE_DIR))
		return "directory and tree do not go together";
	if (!reg && (e->form == TREE_CHUNK || e->form == TREE_RECIPE || e->form == TREE_LAZY ||
		     e->data != 0))
		return "content of what is no regular file";
	if (!S_ISCHR(e->mode) && !S_ISBLK(e->mode) && e->rdev != 0)
		return "a device number of what is no device";
	if (!dir && (below->files != 0 || below->bytes != 0 || below->links))
		return "a summary of what is no directory";
	if (dir && e->nlink == 1)
		return "a directory of one link";
	if (!symlink && e->target_len != 0)
		return "a target of what is no symlink";
	if (!reg && !symlink && e->size != 0)
		return "a size of what is neither regular file nor symlink";
	if (reg)
		return regular_flaw(e);
	return symlink ? symlink_flaw(e) : NULL;
}

const char *tree_entry_flaw(const struct tree_entry *e)
{
	if (!path_name_valid(e->name, e->name_len))
		return "its name cannot stand in a directory";
	if (!mode_known(e->mode))
		return "its mode is of no known type";
	if (e->mtime_ns >= NS_PER_S || e->ctime_ns >= NS_PER_S)
		return "its time has more nanoseconds than a second";
	if (object_id_is_zero(&e->id) != (e->form == TREE_NONE || e->form == TREE_LINK))
		return "its form and its object do not go together";
	return e->form == TREE_LINK ? link_flaw(e) : type_flaw(e);
}
