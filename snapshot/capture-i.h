/*
 * capture-i.h - private to capture: nodes, the directories being walked, and identity.
 */
#pragma once

#include <sys/stat.h>

#include "base/map.h"
#include "cowfs/store/content.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree.h"

/* It was not one thing while it was looked at: look again. */
#define NODE_CHANGED 1

/* --- capture-node.c: what bears a name -> what a tree says of it -------------------------- */

/* Scratch for reading many of them in turn. */
struct node_reader {
	struct batch *batch;           /* borrowed */
	struct content_writer *writer; /* owned */
	uint8_t *block;                /* owned */
	struct buf names, values;      /* of extended attributes */
};

NODISCARD int node_reader_init(struct node_reader *nr, struct batch *b, struct err *err);
void node_reader_done(struct node_reader *nr);

struct node {
	struct tree_entry e; /* without a name */
	char *target;        /* owned; e.target is this */
};

void node_done(struct node *n);

/*
 * Anything but a directory, content and all.  `st` is what fstatat(2) said of the name.
 * NODE_CHANGED if the name now stands for something else or the file did not hold still.
 * Sentences do not say whose they are.
 */
NODISCARD int node_read(struct node_reader *nr, int dirfd, const char *name, const struct stat *st,
			struct node *ret, struct err *err);

/* An open directory, without what is in it. */
NODISCARD int node_read_dir(struct node_reader *nr, int fd, struct stat *ret_st, struct node *ret,
			    struct err *err);

/* --- capture-link.c: which file is which -------------------------------------------------- */

/* Which file of the machine. */
struct file_id {
	dev_t dev;
	ino_t ino;
};

static inline struct file_id file_id_of(const struct stat *st)
{
	return (struct file_id){ .dev = st->st_dev, .ino = st->st_ino };
}

bool file_id_equal(const void *a, const void *b);

/* A file with several names. */
struct linked {
	struct file_id id; /* its key in links.files */
	struct node node;
	uint32_t names; /* found so far */
};

struct links {
	struct map files;   /* struct linked by file_id, owned */
	struct map inos;    /* uint64_t, owned: every inode number given so far */
	uint64_t spare_ino; /* to be given next in place of a taken one */
};

void links_init(struct links *t);
void links_done(struct links *t);

/* Give a file its inode number: *ino as it is, or a spare one if that is taken. */
NODISCARD int links_give_ino(struct links *t, uint64_t *ino, struct err *err);

struct linked *links_find(const struct links *t, const struct file_id *id); /* NULL if absent */
NODISCARD int links_add(struct links *t, const struct file_id *id, struct linked **ret,
			struct err *err); /* its node has only the inode number */

/* Put the tree of all that were found under more than one name. */
NODISCARD int links_put(const struct links *t, struct tree_builder *builder, struct root *root,
			struct err *err);

/* --- capture-dir.c: the way from the top to where the walk is ------------------------------ */

/* What stands under a name. */
struct item {
	struct node node;      /* of a linked file the name alone */
	struct linked *linked; /* borrowed, or NULL */
};

struct dir {
	struct dir *parent; /* NULL: the top */
	struct dir *child;  /* the one being walked */
	struct item *item;  /* what it is in its parent */
	int fd;             /* -1: closed for now */
	struct file_id id;  /* by which it is known when it is opened again */
	size_t depth;       /* 0: the top */

	struct buf names;      /* each with its NUL */
	const char **sorted;   /* owned; into names */
	size_t n_sorted, next; /* next: to be taken */
	struct item *items;    /* owned; room for n_sorted */
	size_t n_items;

	bool waits; /* it or one below has a linked file */
	struct dir *next_waiting;
};

NODISCARD int dir_open(int parent_fd,
		       const char *name); /* follows no symlink; or a negative errno */
NODISCARD int dir_list_names(struct dir *d, struct err *err);
void dir_free(struct dir *d); /* NULL is fine */
DEFINE_CLEANUP(struct dir *, dir_free)

struct dir_stack {
	const char *path; /* of the top */
	struct dir *at;   /* the deepest; owned, with those above it */
	size_t n_open;    /* of them with a descriptor */
};

void dir_stack_done(struct dir_stack *s);
void dir_stack_push(struct dir_stack *s, struct dir *d); /* takes `d` */
struct dir *dir_stack_pop(struct dir_stack *s);          /* owned by the caller, closed */
NODISCARD int dir_stack_reopen(struct dir_stack *s, struct err *err); /* the deepest */

/* Say of a failure whose it is: of a name in `d`, or of `d`, or of the top if there is none. */
int dir_stack_fail(const struct dir_stack *s, const struct dir *d, const char *name, int code,
		   struct err *err);
