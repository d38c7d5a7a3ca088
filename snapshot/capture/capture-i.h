/*
 * capture-i.h - private to capture: nodes, directories, links, numbers, and the walk.
 *
 * capture.c is the whole, capture-walk.c the threads, capture-take.c the work of a thread on one
 * name, capture-put.c the end of a directory whose content is complete; the others support these.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/spread.h"
#include "cowfs/store/content.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"
#include "snapshot/capture/capture.h"
#include "snapshot/capture/ration.h"
#include "snapshot/text/ignore.h"

/*
 * Answers of a reader besides 0 and our own failures: it changed while it was read, try again; or
 * it cannot be read, and err says why without naming it.
 */
#define NODE_CHANGED    1
#define NODE_UNREADABLE 2

/* --- capture-node.c: what bears a name -> what a tree says of it -------------------------- */

/* Scratch for reading many of them in turn. */
struct node_reader {
	struct batch *batch;           /* borrowed */
	struct content_writer *writer; /* owned */
	uint8_t *block;                /* owned */
	struct buf names, values;      /* of extended attributes */
	void (*pulse)(void *ctx);      /* called with each block of a file; or NULL */
	void *pulse_ctx;
	bool (*stop)(
	    void *ctx); /* asked between blocks: is the rest of the file in vain?  Or NULL */
	void *stop_ctx;

	int file;               /* the regular file that is open, or -1 */
	struct stat file_stat;  /* what fstat(2) said of it */
	struct timespec before; /* and when that had not been asked yet */

	const struct catalog_id *lazy; /* files on `home` are promised, not read; NULL: none is */
	bool may_promise;              /* the open file, if it has not changed since `before`: */
	struct lease_trial trial;      /* its lease, set before the stat, */
	struct object_id xattrs;       /* and its attributes, read between the two */
	dev_t home;
	struct capture_promised promised;
	struct ration *ration;                 /* borrowed; NULL: all are promised that can be */
	const struct capture_options *options; /* borrowed; NULL: nothing is promised */
};

NODISCARD int node_reader_init(struct node_reader *nr, struct batch *b, struct err *err);
void node_reader_done(struct node_reader *nr);

struct dir;

struct node {
	struct tree_entry e; /* without a name */
	struct signature_stat stat;
	bool trusted;    /* nothing can have changed since that the stat does not show */
	bool whole;      /* of a directory, once it is put: no name in it was left out */
	struct dir *dir; /* of a directory, until it is put */
	uint64_t record; /* of a directory, once it is put: its signatures */
	char *target;    /* owned; e.target is this */
};

void node_free(struct node *n); /* NULL is fine */
DEFINE_CLEANUP(struct node *, node_free)

/*
 * Open a regular file for node_read(), with its fstat(2): a caller that knows the file must be read
 * saves a stat by name.  NODE_CHANGED if it is something else.
 */
NODISCARD int node_open(struct node_reader *nr, int dirfd, const char *name, struct stat *ret,
			struct err *err);
void node_close(struct node_reader *nr); /* if there is one open */

/*
 * Anything but a directory, content and all.  `st` is what node_open() or fstatat(2) said of the
 * name, `home` the device of the top.  With `patience` a file that is being written is taken too,
 * if it can be.  A regular file stays open until node_close().
 */
NODISCARD int node_read(struct node_reader *nr, int dirfd, const char *name, const struct stat *st,
			dev_t home, bool patience, struct node **ret, struct err *err);

/* The failure is the file's and not ours. */
static inline int node_unreadable(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE ? code : NODE_UNREADABLE;
}

/* The extended attributes of an open file or directory, stored; an id of zeros: it has none. */
NODISCARD int node_read_xattrs(struct node_reader *nr, int fd, struct object_id *ret_id,
			       struct err *err);

/* The bytes and holes of an open file that this stat is of.  NODE_CHANGED if it ends early. */
NODISCARD int node_read_content(struct node_reader *nr, int fd, const struct stat *st,
				struct content *ret, struct err *err);

/* An open directory without its names.  With the stat of `old`, its attributes are taken over. */
NODISCARD int node_read_dir(struct node_reader *nr, int fd, dev_t home, signature_at old,
			    struct stat *ret_st, struct node **ret, struct err *err);

/* --- capture-link.c: files with several names ---------------------------------------------- */

/* Which file of the machine. */
struct file_id {
	dev_t dev;
	ino_t ino;
};

static inline struct file_id file_id_of(const struct stat *st)
{
	return (struct file_id){ .dev = st->st_dev, .ino = st->st_ino };
}

/* The inode number that a tree has for a file, until two of them turn out to be the same. */
static inline uint64_t capture_number(bool apart, uint64_t ino)
{
	return apart ? (ino & (CAPTURE_APART - 1)) | CAPTURE_APART : ino;
}

bool file_id_equal(const struct file_id *a, const struct file_id *b);

/* A file with several names.  After the walk only one thread looks at it. */
struct linked {
	struct file_id id; /* its key in links.files */
	struct node *node; /* owned; what was read, or NULL if it is as `old` says */
	signature_at old;  /* one of its names among the signatures; borrowed */
	bool being_read;   /* all guarded by links.lock */
	uint32_t names;    /* found so far */
	uint64_t ino;      /* that it is given */
};

struct links {
	pthread_mutex_t lock;   /* guards what follows; a leaf */
	pthread_cond_t changed; /* something was read, or could not be */
	struct map files;       /* struct linked by file_id, owned */
	uint64_t bytes;         /* in them */
	bool apart;             /* capture_options.apart */
};

void links_init(struct links *t);
void links_done(struct links *t);

/* Look up a linked file: 1 if it has that stat; 0 if the caller must read it. */
NODISCARD int links_find(struct links *t, const struct file_id *id,
			 const struct signature_stat *stat, signature_at old, struct linked **ret,
			 struct err *err);

/* Report what the caller read, or NULL if it could not.  Takes `n`. */
void links_read(struct links *t, struct linked *l, struct node *n);

/* It has one name more. */
void links_count(struct links *t, struct linked *l);

/* As it would stand alone, without a name; everything is borrowed. */
void linked_signature(const struct linked *l, struct signature *ret);

/* Put the tree of all that were found under more than one name. */
NODISCARD int links_put(const struct links *t, struct tree_builder *builder, struct root *root,
			struct err *err);

/* --- capture-dir.c: directories being walked ----------------------------------------------- */

enum item_kind {
	ITEM_ABSENT, /* left out, gone, or not looked at yet */
	ITEM_FILE,   /* anything but a directory */
	ITEM_LINKED, /* one name of a file that has several */
	ITEM_DIR,
};

/* A name and what was captured there. */
struct item {
	const char *name; /* ends with a NUL; behind it stands its type as it was listed */
	signature_at old; /* its signature of last time; NULL: it has none */
	union {
		struct node *node; /* owned; what was read, or NULL if it is as `old` says */
		struct linked *linked;
	};
	uint64_t ino; /* that it is given */
	enum item_kind kind;
	uint16_t name_len;
};

struct dir {
	struct dir *parent; /* NULL: the top */
	struct item *item;  /* its entry in the parent */
	struct file_id id;  /* by which it is known when it is opened again */
	size_t depth;       /* 0: the top */

	struct buf names;   /* each with its NUL and its type */
	struct item *items; /* owned; in order */
	size_t n_items;
	uint32_t *dirs; /* owned; which of them are directories */
	size_t n_dirs;

	uint64_t old_record; /* its signatures of last time */
	uint32_t n_old;      /* names in them */
	bool has_old;
	atomic_bool waits; /* it or one below has a name of which not all is known before the end */
	struct ignore *ignore; /* owned; the rules that it holds, or NULL */
	bool ruled;            /* it or one above holds some */

	atomic_size_t pending; /* its own listing, and directories in it that are not finished */

	/* Guarded by walk.lock. */
	int fd;                    /* -1: closed for now */
	unsigned users;            /* of the descriptor */
	size_t next_dir;           /* of `dirs`, to be entered */
	struct dir *below;         /* in the list of those with directories to be entered */
	struct dir *newer, *older; /* among those open */
	struct dir *prev, *next;   /* of all that there are */
	struct dir *next_waiting;
};

NODISCARD int dir_open(int parent_fd,
		       const char *name); /* follows no symlink; or a negative errno */
NODISCARD int dir_list_names(struct dir *d, int fd, struct err *err);
void dir_keep_names(struct dir *d, const char *const *only, size_t n_only); /* no others */

/* The same without asking: the names that it had last time. */
NODISCARD int dir_recall_names(struct dir *d, struct signature_iter old, struct err *err);

unsigned char item_type(const struct item *item); /* DT_ of <dirent.h>, as it was listed */
void dir_free(struct dir *d);                     /* NULL is fine */

/* The path of a name in `d`, or of `d` for NULL, from the top: "" is the top itself. */
NODISCARD int dir_append_path(const struct dir *d, const char *name, struct buf *out);

/* Put before the sentence whose it is. */
int dir_fail(const char *top, const struct dir *d, const char *name, int code, struct err *err);

/* --- capture-unread.c ---------------------------------------------------------------------- */

struct unread {
	pthread_mutex_t lock; /* guards what follows; a leaf */
	struct capture_report report;
};

void unread_init(struct unread *u);
void unread_done(struct unread *u);
NODISCARD int unread_add(struct unread *u, const struct dir *d, const char *name,
			 const struct err *why, struct err *err);

/* In the order of paths; *ret is the caller's. */
void unread_take(struct unread *u, struct capture_report *ret);

/* The failure of a capture that could not read those. */
int unread_fail(const struct capture_report *r, const char *top, struct err *err);

/* --- capture-walk.c: what threads share ---------------------------------------------------------------- */

struct walk;

struct worker {
	struct walk *walk;
	struct spread thread;
	struct node_reader reader;
	struct tree_builder *builder; /* owned */
	struct buf record;            /* scratch */
	struct buf path;              /* of the directory being listed, for its rules */
	struct buf inos;              /* uint64_t: the inode numbers met, except of linked files */
	struct buf same;              /* signature_at: directories whose trees were taken over */
	_Atomic uint64_t files, dirs, bytes;
	bool tells;          /* it is the caller's thread and must report progress */
	struct timespec due; /* when to say so */
};

struct walk {
	const struct capture_options *options;
	const char *path; /* of the top */
	struct batch *batch;
	const struct signatures *known; /* or NULL */
	struct file_id *exclude;        /* owned */
	size_t n_exclude;
	bool careful;    /* inode numbers are given at the end; all directories wait for that */
	dev_t home;      /* the device of the top */
	bool times_tell; /* there: no name comes or goes without the directory's ctime */
	uint8_t *marks;  /* owned; what glances saw of directories; NULL: none are cast */
	struct signatures_draft *draft; /* owned */
	struct links links;
	struct unread unread;
	struct unread gits; /* what leads to a repository, maybe (capture.h) */
	struct item top;
	struct ration ration; /* of capture_options.unasked */

	struct worker *workers; /* owned */
	unsigned n_workers;

	pthread_mutex_t lock; /* guards what follows, and those fields of struct dir; a leaf */
	pthread_cond_t more;  /* there is something to do, or nothing any more */
	unsigned n_idle;      /* threads that wait for more */
	struct dir *stack;    /* those with directories to be entered; the last found first */
	struct dir *newest, *oldest; /* open, not in use and not the top */
	size_t n_open;
	bool ended;
	struct err failure;  /* the first; its code 0: none */
	struct dir *dirs;    /* owned: all that there are */
	struct dir *waiting; /* directories that wait for the end, deeper ones first */
	struct dir **waiting_end;
};

NODISCARD int walk_init(struct walk *w, struct batch *b, const char *path,
			const struct capture_options *options, const struct signatures *known,
			bool careful, struct err *err);
void walk_done(struct walk *w);
void walk_stats(const struct walk *w, struct capture_stats *ret);
void walk_promised(const struct walk *w, struct capture_promised *more); /* once all have ended */
void walk_tell(struct walk *w); /* how far it is, and ask whether to go on */

void walk_fail(struct walk *w, int code, const struct err *err); /* the first failure counts */
void walk_end(struct walk *w);                                   /* with the lock */

/* Now and then: says how far all are, if that is for this one to say, and it is time to. */
void walk_pulse(struct worker *k);

/* So much more was seen. */
void worker_count(struct worker *k, const struct capture_stats *more);

/* Is it what the caller wants to be left out? */
bool walk_excludes(const struct walk *w, const struct stat *st);

/* Enter a directory among all that there are; take it out and free it. */
void walk_add(struct walk *w, struct dir *d);
void walk_drop(struct walk *w, struct dir *d);

/* A descriptor of the directory, good until walk_unuse(). */
NODISCARD int walk_use(struct walk *w, struct dir *d, int *ret_fd, struct err *err);
void walk_unuse(struct walk *w, struct dir *d);

/* --- capture-glance.c: trees that are as they were ------------------------------------------- */

/*
 * 1 if a directory that was listed in `parent`, which is open as `fd`, is as it was with all that
 * is in it: it is taken over, and there is nothing to enter.  Else it is to be walked.
 */
NODISCARD int glance_dir(struct worker *k, const struct dir *parent, struct item *item, int fd,
			 struct err *err);

/* The inode numbers in all that were taken over. */
NODISCARD int glance_append_inos(const struct walk *w, struct buf *out);

/* --- capture-take.c: names ------------------------------------------------------------------ */

/* List a directory that was just opened and take everything in it but directories.  Takes `fd`. */
NODISCARD int take_dir(struct worker *k, struct dir *parent, struct item *item, int fd,
		       struct dir **ret, struct err *err);

/* Enter a listed directory.  *ret is NULL if it is gone or no directory any more. */
NODISCARD int take_listed_dir(struct worker *k, struct dir *parent, struct item *item,
			      struct dir **ret, struct err *err);

/* --- capture-put.c: directories of which everything is known --------------------------------- */

/* Put a directory's tree and signatures, and record them in its parent's entry. */
NODISCARD int put_dir(struct worker *k, struct dir *d, struct err *err);

/* --- capture-run.c: threads ------------------------------------------------------------------ */

NODISCARD int walk_run(struct walk *w, struct err *err);

/* --- capture-ino.c: inode numbers ------------------------------------------------------------ */

/* 1 if two things that are not one file have the same. */
NODISCARD int inos_clash(const struct walk *w, struct err *err);

/* Give every name of a careful walk its number.  1 if some are not those on disk. */
NODISCARD int inos_give(struct walk *w, struct err *err);
