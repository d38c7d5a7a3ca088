/*
 * bare-fuse - a file system in memory that keeps nothing and checks nothing: what FUSE itself
 * costs, so the floor under anything built on it.
 *
 * The kernel hears the same as from cowfs (what it may cache and what it need not ask), one
 * thread answers, and names are found in one table.  What is forgotten or removed stays in memory.
 *
 * With a TREE it has the names of that from the start, of files that hold nothing but zeros.  A listing
 * gives these by name alone, as that of a new clone does, so no floor under its first listing is lower.
 */
#define FUSE_USE_VERSION 314

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FOREVER 1e9
#define BUCKETS (1u << 18)
#define IO_MAX  (1u << 20)

struct node {
	struct stat st;
	char *data; /* of a file, or where a link points to */
	size_t cap;
	struct name *first, *last; /* of a directory */
	bool by_name;              /* a file of TREE */
};

struct name {
	struct name *next_in_bucket, *next, *previous;
	struct node *dir, *node;
	off_t position; /* in its directory, never used again */
	char text[];
};

static struct node top = { .st = { .st_mode = S_IFDIR | 0777, .st_nlink = 2, .st_ino = 1 } };
static struct name *names[BUCKETS];
static ino_t last_ino = 1;
static off_t last_position;
static const char zeros[IO_MAX];

static struct node *node_of(fuse_ino_t id)
{
	return id == FUSE_ROOT_ID ? &top : (struct node *)id; /* NOLINT: that is what it is */
}

static struct name **bucket(const struct node *dir, const char *text)
{
	uint64_t h = (uint64_t)(uintptr_t)dir * 0x9e3779b97f4a7c15u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return &names[(h >> 20) % BUCKETS];
}

/* Where it hangs, or the end of its bucket. */
static struct name **find(const struct node *dir, const char *text)
{
	struct name **at = bucket(dir, text);

	while (*at && ((*at)->dir != dir || strcmp((*at)->text, text) != 0))
		at = &(*at)->next_in_bucket;
	return at;
}

static void touch(struct node *n)
{
	clock_gettime(CLOCK_REALTIME_COARSE, &n->st.st_mtim);
	n->st.st_ctim = n->st.st_mtim;
}

static void add(struct node *dir, const char *text, struct node *node)
{
	const size_t len = strlen(text) + 1;
	struct name *name = malloc(sizeof(*name) + len), **at = find(dir, text);

	if (!name)
		abort();
	*name = (struct name){
		.dir = dir, .node = node, .previous = dir->last, .position = ++last_position
	};
	memcpy(name->text, text, len);
	*at = name;
	if (dir->last)
		dir->last->next = name;
	else
		dir->first = name;
	dir->last = name;
	touch(dir);
}

static void drop(struct name **at)
{
	struct name *name = *at;
	struct node *dir = name->dir;

	*at = name->next_in_bucket;
	if (name->next)
		name->next->previous = name->previous;
	else
		dir->last = name->previous;
	if (name->previous)
		name->previous->next = name->next;
	else
		dir->first = name->next;
	touch(dir);
	free(name);
}

static bool reserve(struct node *n, size_t size)
{
	const size_t cap = size < 4096 ? 4096 : size + size / 2;
	char *data;

	if (size <= n->cap)
		return true;
	data = realloc(n->data, cap);
	if (!data)
		return false;
	memset(data + n->cap, 0, cap - n->cap);
	n->data = data;
	n->cap = cap;
	return true;
}

static struct fuse_entry_param entry_of(struct node *n)
{
	return (struct fuse_entry_param){
		.ino = n == &top ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n,
		.attr = n->st,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
}

/* --- requests --------------------------------------------------------------------------- */

static void on_init(void *unused, struct fuse_conn_info *conn)
{
	const unsigned off = FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC |
			     FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
			     FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE;
	const unsigned on = FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
			    FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS |
			    FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_POSIX_ACL;

	(void)unused;
	conn->want = (conn->want & ~off) | (conn->capable & on);
	conn->max_write = IO_MAX;
	conn->max_background = 64;
	conn->time_gran = 1;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *text)
{
	const struct name *name = *find(node_of(parent), text);
	const struct fuse_entry_param none = { .entry_timeout = FOREVER };
	const struct fuse_entry_param e = name ? entry_of(name->node) : none;

	fuse_reply_entry(req, &e);
}

static void on_forget(fuse_req_t req, fuse_ino_t id, uint64_t n)
{
	(void)id, (void)n;
	fuse_reply_none(req);
}

static void on_getattr(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	(void)fi;
	fuse_reply_attr(req, &node_of(id)->st, FOREVER);
}

static void on_setattr(fuse_req_t req, fuse_ino_t id, struct stat *st, int set,
		       struct fuse_file_info *fi)
{
	struct node *n = node_of(id);

	(void)fi;
	touch(n);
	if (set & FUSE_SET_ATTR_MODE)
		n->st.st_mode = (n->st.st_mode & S_IFMT) | (st->st_mode & ~S_IFMT);
	if (set & FUSE_SET_ATTR_UID)
		n->st.st_uid = st->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		n->st.st_gid = st->st_gid;
	if (set & FUSE_SET_ATTR_MTIME)
		n->st.st_mtim = st->st_mtim;
	if (set & FUSE_SET_ATTR_ATIME)
		n->st.st_atim = st->st_atim;
	if (set & FUSE_SET_ATTR_SIZE) {
		if (!reserve(n, (size_t)st->st_size)) {
			fuse_reply_err(req, ENOSPC);
			return;
		}
		n->st.st_size = st->st_size;
	}
	fuse_reply_attr(req, &n->st, FOREVER);
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *text, mode_t mode,
		 const char *target)
{
	struct node *dir = node_of(parent), *n = calloc(1, sizeof(*n));
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct fuse_entry_param e;

	if (!n || *find(dir, text)) {
		free(n);
		fuse_reply_err(req, n ? EEXIST : ENOMEM);
		return;
	}
	n->st = (struct stat){ .st_mode = mode,
			       .st_nlink = S_ISDIR(mode) ? 2 : 1,
			       .st_ino = ++last_ino,
			       .st_uid = ctx->uid,
			       .st_gid = ctx->gid };
	touch(n);
	n->st.st_atim = n->st.st_mtim;
	if (target) {
		n->data = strdup(target);
		n->st.st_size = (off_t)strlen(target);
	}
	add(dir, text, n);
	e = entry_of(n);
	fuse_reply_entry(req, &e);
}

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *text, mode_t mode, dev_t dev)
{
	(void)dev;
	make(req, parent, text, mode, NULL);
}

static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *text, mode_t mode)
{
	make(req, parent, text, S_IFDIR | (mode & 07777), NULL);
}

static void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *text)
{
	make(req, parent, text, S_IFLNK | 0777, target);
}

static void on_readlink(fuse_req_t req, fuse_ino_t id)
{
	fuse_reply_readlink(req, node_of(id)->data);
}

static void on_remove(fuse_req_t req, fuse_ino_t parent, const char *text)
{
	struct name **at = find(node_of(parent), text);

	if (!*at) {
		fuse_reply_err(req, ENOENT);
	} else if ((*at)->node->first) {
		fuse_reply_err(req, ENOTEMPTY);
	} else {
		drop(at);
		fuse_reply_err(req, 0);
	}
}

static void on_rename(fuse_req_t req, fuse_ino_t from, const char *old, fuse_ino_t to,
		      const char *new, unsigned flags)
{
	struct name **at = find(node_of(from), old), **there = find(node_of(to), new);
	struct node *n = *at ? (*at)->node : NULL;

	if (!n || flags) {
		fuse_reply_err(req, n ? EINVAL : ENOENT);
		return;
	}
	if (*there)
		drop(there);
	drop(find(node_of(from), old));
	add(node_of(to), new, n);
	fuse_reply_err(req, 0);
}

/* Files and directories need not be opened: the kernel asks once. */
static void on_open(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	(void)id, (void)fi;
	fuse_reply_err(req, ENOSYS);
}

static void on_read(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	const struct node *n = node_of(id);
	const size_t left = off < n->st.st_size ? (size_t)(n->st.st_size - off) : 0;

	(void)fi;
	if (left && !n->data) { /* of TREE */
		fuse_reply_buf(req, zeros, size < left ? size : left);
		return;
	}
	fuse_reply_buf(req, left ? n->data + off : NULL, size < left ? size : left);
}

static void on_write(fuse_req_t req, fuse_ino_t id, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct node *n = node_of(id);
	const off_t end = off + (off_t)size;

	(void)fi;
	if (!reserve(n, (size_t)end)) {
		fuse_reply_err(req, ENOSPC);
		return;
	}
	memcpy(n->data + off, data, size);
	if (end > n->st.st_size)
		n->st.st_size = end;
	touch(n);
	fuse_reply_write(req, size);
}

static void list(fuse_req_t req, fuse_ino_t id, size_t size, off_t off, bool plus)
{
	char *buf = malloc(size);
	const struct name *name = node_of(id)->first;
	size_t used = 0;

	while (name && name->position <= off)
		name = name->next;
	for (; buf && name; name = name->next) {
		const struct fuse_entry_param e =
		    name->node->by_name ? (struct fuse_entry_param){ .attr = name->node->st }
					: entry_of(name->node);
		char *at = buf + used;
		const size_t left = size - used;
		const size_t more =
		    plus ? fuse_add_direntry_plus(req, at, left, name->text, &e, name->position)
			 : fuse_add_direntry(req, at, left, name->text, &e.attr, name->position);

		if (more > left)
			break;
		used += more;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void on_readdir(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	(void)fi;
	list(req, id, size, off, false);
}

static void on_readdirplus(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	(void)fi;
	list(req, id, size, off, true);
}

static void on_getxattr(fuse_req_t req, fuse_ino_t id, const char *name, size_t size)
{
	(void)id, (void)name, (void)size;
	fuse_reply_err(req, ENODATA);
}

static const struct fuse_lowlevel_ops ops = {
	.init = on_init,
	.lookup = on_lookup,
	.forget = on_forget,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.mknod = on_mknod,
	.mkdir = on_mkdir,
	.symlink = on_symlink,
	.readlink = on_readlink,
	.unlink = on_remove,
	.rmdir = on_remove,
	.rename = on_rename,
	.open = on_open,
	.opendir = on_open,
	.read = on_read,
	.write = on_write,
	.readdir = on_readdir,
	.readdirplus = on_readdirplus,
	.getxattr = on_getxattr,
};

/* --- a tree to begin with ----------------------------------------------------------------- */

static void load_dir(int at, const char *path, struct node *into);

static void load_one(int at, const char *text, struct node *into)
{
	struct node *n = calloc(1, sizeof(*n));
	char target[4096];
	ssize_t len;

	if (!n || fstatat(at, text, &n->st, AT_SYMLINK_NOFOLLOW) < 0)
		abort();
	n->st.st_ino = ++last_ino;
	n->by_name = S_ISREG(n->st.st_mode);
	if (S_ISLNK(n->st.st_mode)) {
		len = readlinkat(at, text, target, sizeof(target) - 1);
		n->data = strndup(target, len < 0 ? 0 : (size_t)len);
	}
	add(into, text, n);
	if (S_ISDIR(n->st.st_mode))
		load_dir(at, text, n);
}

static void load_dir(int at, const char *path, struct node *into)
{
	const int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir)
		abort();
	while ((d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			load_one(fd, d->d_name, into);
	closedir(dir);
}

int main(int argc, char **argv)
{
	char options[] = "-odefault_permissions,allow_other";
	char *words[] = { argv[0], options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(2, words);
	struct fuse_session *session;
	int status = 1;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: bare-fuse DIRECTORY [TREE]\n");
		return 2;
	}
	top.st.st_uid = getuid();
	top.st.st_gid = getgid();
	touch(&top);
	if (argc == 3)
		load_dir(AT_FDCWD, argv[2], &top);
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (session && fuse_session_mount(session, argv[1]) == 0) {
		status = fuse_daemonize(0) < 0 || fuse_session_loop(session) < 0;
		fuse_session_unmount(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return status;
}
