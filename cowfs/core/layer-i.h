/*
 * layer-i.h - private to the core: nodes, entries, and how operations get what they lack.
 *
 * Lock order: layer->lock, then layers->lock, then the locks of the store and its cache. No code
 * reads or writes the store with layer->lock held: an operation that lacks something returns
 * -EAGAIN (need.h) to op_again(), which gets it without the lock.
 *
 * layer->lock guards everything below unless a comment says otherwise.
 *
 * The links tree (root.h) is a directory here like any other, without a name: each file with
 * several names has an entry in it, node->linked, and that entry holds its attributes.
 */
#pragma once

#include <pthread.h>

#include "base/lock.h"
#include "base/map.h"
#include "cowfs/core/file.h"
#include "cowfs/core/layer.h"
#include "cowfs/core/layers.h"
#include "cowfs/core/need.h"
#include "cowfs/store/catalog.h"
#include "cowfs/store/tree.h"

struct halves;
struct node;

/*
 * A name in a directory that is known here: because somebody has a reference to what is
 * behind it, or because it differs from what is stored.  It stays, as a whiteout if need
 * be, until what it says is persisted.
 */
struct entry {
	struct node *dir;
	struct node *node;        /* NULL: a whiteout, no such name */
	struct entry *next, **at; /* in node->names */
	struct entry *next_marked;
	uint64_t changed; /* the generation it last changed in */
	bool marked;      /* on dir->dir.marked */
	bool stored;      /* the base of the directory has the name */
	char name[];
};

struct dir {
	struct object_id base;     /* a tree; zero: never stored, empty */
	struct tree_summary below; /* of base */
	struct map entries;        /* struct entry by name */
	struct entry *marked;      /* those that differ from base, or hold something that does */
	size_t hidden;             /* whiteouts of stored names */
	size_t added;              /* names that are not stored */
	struct listing *listing;   /* a listing under way, or NULL */
	uint64_t version;          /* rises when names come or go */
	bool bare;                 /* promised files in it were last listed by name alone */
};

struct node {
	uint64_t id;
	uint64_t refs;      /* that callers were given */
	unsigned pins;      /* of ours, for as long as a freeze is under way */
	uint32_t xattr_len; /* bytes of its attributes, as far as that is known (charge.c) */
	bool told;          /* callers know its attributes as they are (list.c) */
	bool listed;        /* in layer->partly */
	bool lost;          /* what was written to it is, with its promise (partly.c) */

	struct entry *names;  /* empty: no name any more, or the top */
	struct entry *linked; /* its entry in the links tree, or NULL */

	uint64_t ino;
	uint64_t rdev;
	uint32_t mode, uid, gid, nlink;
	struct timespec mtime, ctime, atime;
	struct object_id xattrs; /* as stored */
	struct buf *new_xattrs;  /* owned; the set if it is not stored; may be empty */
	uint64_t changed;        /* the generation it last changed in */
	struct node_pins *kept;  /* owned; what is pinned in the store for it, or NULL */
	struct node *next_stray, **stray_at;      /* on layer->strays, or NULL */
	struct node *next_dropped, *next_emptied; /* rollback.c */

	union {
		struct dir dir;   /* S_ISDIR */
		struct file file; /* S_ISREG */
		char *target;     /* S_ISLNK; owned */
	};
};

/* So many synced files are remembered: a program that renames one of them wants it to last. */
#define LAYER_SYNCED 16

struct layer {
	struct layers *all;
	struct cache *cache;
	struct clone record; /* root: what is committed; without a name: a warm clone */
	bool pinned;         /* record.root, in the store */
	bool kept;           /* it is closed, and the clone stays */

	pthread_mutex_t lock;
	pthread_cond_t calm; /* a persist or a rollback has ended */
	struct map nodes;    /* struct node by id */
	struct node *top, *links;
	uint64_t next_node, next_ino;
	int64_t grown; /* bytes of data since the clone was made, those without a name included */
	int64_t loose; /* of that, in files without a name */
	int64_t meta;  /* bytes of names and attributes since then (charge.c), the same */
	int64_t loose_meta;            /* of that, of what has no name */
	int64_t held;                  /* data and meta as of the last persist */
	_Atomic uint64_t appended;     /* to the store, since the last gc of ours (sweep.c) */
	_Atomic uint64_t sweeping;     /* before that, and the gc under way may free it */
	_Atomic bool stuck;            /* none could be done: writes do not wait for another */
	_Atomic uint64_t append_bound; /* of that, before a gc must come; 0: none */
	_Atomic int64_t dirty;       /* memory of it that is not persisted; read without the lock */
	int64_t inodes;              /* made and not gone, since it was opened */
	uint64_t ceiling;            /* of both together, while a run has one; 0: none */
	uint64_t nodes_ceiling;      /* of `inodes`, the same */
	uint64_t refused;            /* changes that the quota or the ceiling did not allow */
	uint64_t nodes_refused;      /* and the ceiling of inodes */
	uint64_t generation;         /* rises with every freeze */
	_Atomic uint64_t marks;      /* of entries, since the last freeze; read without the lock */
	_Atomic int64_t changed_at;  /* the last time, as dirty_since */
	bool marked;                 /* something is not persisted, or not settled */
	_Atomic int64_t dirty_since; /* monotonic ms; 0: nothing is dirty; read without the lock */
	uint64_t turns_asked, turns_ended; /* of persists and similar work, one at a time */
	bool sync_asked;                   /* one of those that wait for a turn is a sync */
	_Atomic unsigned waiting;          /* for the end of one; read without the lock */
	bool switching;                    /* a rollback: changes wait */
	uint64_t switches;                 /* rollbacks and rebases since it was opened */
	bool holding;             /* writes wait, but for pieces of those that have begun */
	unsigned names_held;      /* > 0: renames of directories wait, */
	uint64_t names_until;     /* and no longer than so, monotonic ms */
	unsigned names_waiting;   /* so many renames */
	bool sealed;              /* its end: what is not in memory waits too */
	_Atomic int failed;       /* what the last persist failed with, or 0 */
	_Atomic int64_t hurry_at; /* ms, when it is to be persisted all the same; 0: no haste */
	int64_t calm_until;   /* ms: no haste before that; the committer's, guarded by all->lock */
	_Atomic bool passing; /* nothing of it need be persisted for anybody's sake */
	uint64_t synced[LAYER_SYNCED]; /* nodes that an fsync was asked for last */
	unsigned next_synced;
	uint64_t freezes;         /* begun */
	uint64_t persisted;       /* the last freeze that was committed */
	uint64_t durable;         /* the last one whose commit waited for the disk */
	struct layer_state state; /* of the last commit */
	_Atomic unsigned reading; /* > 0: of late somebody read files that were not in memory */
	unsigned curious;         /* listings that are to have attributes (list.c) */
	struct halves *halves;    /* owned; NULL until one is met */
	layer_witness_fn witness; /* or NULL */
	void *witness_ctx;
	struct node *strays; /* files without names that have dirty blocks */
	uint64_t *partly;    /* owned; ids of nodes that are partly promised, or were (partly.c) */
	size_t n_partly, cap_partly;
	uint64_t partly_bytes;   /* that all of them promise */
	_Atomic bool has_partly; /* some; read without the lock */
	bool whole_only;         /* a persist begins: no further one may come */

	struct {
		_Atomic uint64_t requests, read, written, waiting, rests, work;
	} traffic; /* (traffic.c) */

	struct layer *next;  /* guarded by all->lock, as what follows */
	unsigned committers; /* threads of layers.c that work on it */
	bool apart;          /* one of its own does (committer.c) */
	uint64_t round;      /* of the committer that had it last */
};

/* --- budget.c --------------------------------------------------------------------------- */

struct cache *layers_cache(struct layers *ls);

/* A promised file of this size is read piece by piece, and not kept for its reader. */
#define PROMISE_PEEK_MIN ((uint64_t)8 << 20)

/* Ask the source; without any lock. */
NODISCARD ssize_t layers_peek_promise(struct layers *ls, const struct object_id *promise,
				      uint64_t off, void *data, size_t len);
NODISCARD int layers_keep_promise(struct layers *ls, const struct object_id *promise,
				  struct content *ret, struct err *err);
NODISCARD int layers_hurry_promise(struct layers *ls, const struct object_id *promise);
struct ahead *layers_ahead(struct layers *ls);
struct store *layers_store(struct layers *ls);

/* As cache_load(), and remembered as a wait for the store. */
NODISCARD int layers_load(struct layers *ls, enum object_kind kind, const struct object_id *id,
			  const struct cached **ret, struct err *err);

/* Loading takes less time than leaving it to somebody else, as far as one can tell. */
bool layers_load_quickly(struct layers *ls);

/* Dirty memory grew or shrank.  With the lock of the layer. */
void layer_count(struct layer *l, int64_t grown);

/* May a change that needs `bytes` more go on?  0, -ENOSPC, or -EAGAIN with NEED_ROOM. */
NODISCARD int layers_room(struct layer *l, size_t bytes, struct need *need);

/* Until there is room or `l` cannot be persisted. */
NODISCARD int layers_wait_room(struct layers *ls, struct layer *l);

void layers_was_marked(struct layers *ls); /* a layer has something to persist that had nothing */
bool layers_pressed(struct layers *ls);    /* memory is short */
void layers_count_persist(struct layers *ls);
void layers_count_wait(struct layers *ls);
void layers_count_node(struct layers *ls, int n);
int64_t layers_clock(void); /* monotonic ms */
NODISCARD int layers_statvfs(struct layers *ls, struct statvfs *ret);

/* --- committer.c ------------------------------------------------------------------------ */

/* What was done just now is to be persisted at once, or as soon as that is no burden. */
void layer_hurry(struct layer *l);

/* --- charge.c --------------------------------------------------------------------------- */

/* What counts against the limits: bytes of data, and of all else what is not free of charge. */
uint64_t layer_charged(const struct layer *l);

/* May so many inodes, and so many bytes that are no data, be added?  Else -ENOSPC, counted. */
NODISCARD int charge_may(struct layer *l, unsigned nodes, size_t bytes);

void charge_node(struct layer *l, const struct node *n, int sign); /* it came (1) or went (-1) */
void charge_name(struct layer *l, const char *name, int sign);
void charge_loose(struct layer *l, const struct node *n, int sign); /* without a name, or no more */
void charge_xattrs(struct layer *l, struct node *n, size_t before, size_t now);
void charge_learn_xattrs(struct layer *l,
			 struct node *n); /* how long they are, if that is in memory */

/* The same of what is stored; without its attributes. */
int64_t charge_of_entry(const struct tree_entry *e);
int64_t charge_of_name(size_t len);

/* --- sweep.c ---------------------------------------------------------------------------- */

void sweep_charge(struct layer *l, uint64_t bytes); /* it appended so much */
void sweep_count_freed(struct layer *l);            /* what it persisted holds less now */
void sweep_bound(struct layer *l);                  /* its limits are others now */

/* Without the lock: wait if it owes a gc.  -ENOSPC if it owes several and none can be done. */
NODISCARD int sweep_await(struct layer *l);
NODISCARD int sweep_await_room(struct layer *l); /* the same, only for several */

/* --- op.c ------------------------------------------------------------------------------- */

#define OP_HELD_MAX 24

struct op {
	struct layer *l;
	const struct layer_call *call;
	struct err *err;
	struct need need;
	const struct cached *held[OP_HELD_MAX]; /* what was needed or is borrowed from */
	unsigned n_held;
	struct listing *listing;  /* owned; got for the operation */
	int tries;                /* objects that could not be got */
	bool has_turn;            /* no persist runs until the operation ends */
	struct object_id promise; /* that was kept for it, with `content`; zero: none was */
	struct content content;
	struct object_id asked; /* a promise, and the answer: */
	bool sure;              /* nothing can change what it stands for before it is kept */
	struct {
		struct object_id promise;
		uint64_t number;
		uint8_t *data; /* owned; FILE_BLOCK bytes, or NULL */
		size_t len;    /* that were got */
	} block;               /* of a promised file */
};

/* Takes the lock; op_end() gives it back. */
struct op op_begin(struct layer *l, const struct layer_call *call, struct err *err);
void op_end(struct op *op);

/*
 * An operation returned *r.  True if it was -EAGAIN and what it lacked is here now: do it
 * again.  Else *r is the answer.
 */
bool op_again(struct op *op, int *r);

/* What every change asks first: 0, -EROFS of a warm clone, or -EAGAIN while a rollback is under way. */
NODISCARD int op_may_change(struct op *op);
NODISCARD int op_may_write(struct op *op, uint64_t node, uint64_t off); /* bytes of a file */
NODISCARD int op_may_load(struct op *op); /* the same of everything that makes a node of a name */

/* The object if it is in memory, held until the operation ends; else -EAGAIN. */
NODISCARD int op_object(struct op *op, enum object_kind kind, const struct object_id *id,
			const struct cached **ret);

struct timespec layer_now(void);

/* A number for the next new file that no tree has which was stored until now. */
uint64_t layer_first_ino(uint64_t at_least);

/* Something is to be persisted. */
void layer_mark(struct layer *l);

/*
 * One persist, rollback or listing of a large directory at a time, in the order in which they were
 * asked for: beside threads that sync without end, others have their turn too.  With the lock.
 */
void layer_take_turn(struct layer *l);
bool layer_is_taken(const struct layer *l);
void layer_await_turn(struct layer *l); /* somebody else's has ended, or something else has */
void layer_end_turn(struct layer *l);

/* --- layer.c ---------------------------------------------------------------------------- */

/* A layer that layers.c does not know yet, or no more. */
NODISCARD int layer_create(struct layers *ls, const char *clone, struct layer **ret,
			   struct err *err);
NODISCARD int layer_create_warm(struct layers *ls, const struct object_id *root, struct layer **ret,
				struct err *err);
void layer_unpin(struct layer *l);   /* its root, if it is pinned */
void layer_destroy(struct layer *l); /* NULL is fine */
DEFINE_CLEANUP(struct layer *, layer_destroy)

/* What the store has of a clone becomes the layer's.  The second takes it. */
NODISCARD int layer_find_record(struct layers *ls, const char *clone, struct clone *ret,
				struct err *err);
void layer_take_record(struct layer *l, struct clone *record);

/* A layer that belongs to no clone yet: nothing in it changes. */
static inline bool layer_is_warm(const struct layer *l)
{
	return !l->record.name;
}

/* How much it may have grown by; 0: no limit.  The caller has the lock. */
static inline uint64_t layer_limit(const struct layer *l)
{
	const uint64_t quota = l->record.quota, ceiling = l->ceiling;

	return quota == 0 || (ceiling > 0 && ceiling < quota) ? ceiling : quota;
}

/* --- node.c ----------------------------------------------------------------------------- */

NODISCARD int node_get(struct layer *l, uint64_t id, struct node **ret);      /* -ESTALE */
NODISCARD int node_get_dir(struct layer *l, uint64_t id, struct node **ret);  /* -ENOTDIR */
NODISCARD int node_get_file(struct layer *l, uint64_t id, struct node **ret); /* -EISDIR, -EINVAL */

/*
 * The same for its bytes: none of them is promised any more (promise.c).  -EAGAIN while that is
 * not so.
 */
NODISCARD int node_get_bytes(struct op *op, uint64_t id, struct node **ret);

/* promise.c: what it promised was found elsewhere */
void node_stand_on(struct layer *l, struct node *n, const struct content *c);

/* A new node, not in any directory.  `mode` says what it is. */
NODISCARD int node_new(struct layer *l, uint32_t mode, struct node **ret);
NODISCARD int node_from_entry(struct layer *l, const struct tree_entry *e, struct node **ret);

/* Free it if nobody needs it, and then the directories above it for which the same holds. */
void node_release(struct layer *l, struct node *n);
void node_destroy(struct layer *l, struct node *n); /* whatever refers to it */

/* Its last name is gone: what it holds must outlive the refs of the store. */
void node_orphan(struct layer *l, struct node *n);
void node_keep(struct layer *l, struct node *n); /* as it is now, in the place of what was kept */
void node_unkeep(struct layer *l, struct node *n);
void node_leave_strays(struct node *n);

/* Its data was `before` bytes. */
void node_count_data(struct layer *l, const struct node *n, uint64_t before);
static inline bool node_has_no_name(const struct node *n)
{
	return !n->names && !n->linked;
}

void node_stat(const struct node *n, struct stat *ret);
void node_found(struct node *n, struct layer_found *ret); /* and one reference */
static inline bool node_is_dir(const struct node *n)
{
	return S_ISDIR(n->mode);
}

/* It changed: what holds its attributes must be persisted. */
void node_mark(struct layer *l, struct node *n);

/* attr.c: takes set-id bits away, as a write of the caller does */
void node_kill_priv(const struct layer_call *call, struct node *n);

/* As node_mark(), and its ctime is now; for a directory whose names changed also its mtime. */
void node_touch(struct layer *l, struct node *n, bool mtime);

/* --- partly.c --------------------------------------------------------------------------- */

/* Was it changed while it is promised? */
static inline bool node_is_partly(const struct node *n)
{
	return n->file.base.form == CONTENT_LAZY && !file_is_stored(&n->file);
}

/*
 * A file that is about to be changed, of which bytes may be promised still.  -EAGAIN as
 * node_get_bytes().
 */
NODISCARD int node_get_partly(struct op *op, uint64_t id, struct node **ret);

/*
 * If it is promised: the blocks that the range covers in part become its own, so that none of them shows
 * promised bytes beside changed ones.  -EAGAIN while they are not here.
 */
NODISCARD int partly_own(struct op *op, struct node *n, uint64_t off, uint64_t len);

/* It was changed. */
void partly_note(struct layer *l, struct node *n);

/*
 * Keep the promises of all files that were changed before they were kept, and let no further file become one of
 * these until the turn ends or the layer is frozen.  With a turn, and the lock, which it drops meanwhile.  -EIO
 * if a promise is lost, and with it what was changed in that file.
 */
NODISCARD int partly_keep(struct layer *l, struct err *err);

/* Is what was written to it lost?  Programs that have it open learn of that with every fsync. */
bool partly_is_lost(struct layer *l, uint64_t id);

/* --- list.c ----------------------------------------------------------------------------- */

/* A name in `dir` was looked up and leads to this node. */
void list_note_lookup(struct layer *l, struct node *dir, const struct node *found);

/* --- entry.c ---------------------------------------------------------------------------- */

/* A name that leads nowhere yet; `stored`: the base of the directory has it. */
NODISCARD int entry_new(struct node *dir, const char *name, bool stored, struct entry **ret);

/* Make it lead to `n`, or nowhere, which is no change: what is stored says so. */
void entry_point(struct layer *l, struct entry *e, struct node *n);

/* Make an entry name `n`, or nothing.  Keeps the lists, not the link counts. */
void entry_set(struct layer *l, struct entry *e, struct node *n);
void entry_mark(struct layer *l, struct entry *e);
void entry_unmark(struct layer *l, struct entry *e); /* the caller has taken it off the list */
void entry_set_stored(struct entry *e, bool stored); /* its directory has another base now */

/* Take an entry away that is as stored. */
void entry_free(struct layer *l, struct entry *e);

/* --- dir.c ------------------------------------------------------------------------------ */

/* The name, loaded if it is stored.  -ENOENT if there is none, or -EAGAIN. */
NODISCARD int dir_find(struct op *op, struct node *dir, const char *name, struct entry **ret);

/* The slot of a name for entry_set(): an entry that is there, or a new one that is a whiteout. */
NODISCARD int dir_slot(struct op *op, struct node *dir, const char *name, struct entry **ret);

/* 1 if it has no names, 0 if it has, or -EAGAIN. */
NODISCARD int dir_is_empty(struct op *op, struct node *dir);

bool dir_is_dead(const struct layer *l,
		 const struct node *dir); /* has no name and is not the top */

NODISCARD int name_check(const char *name);

/* --- name.c ----------------------------------------------------------------------------- */

/* A node that is new today, owned by the caller, for a place in `dir`. */
NODISCARD int node_make(struct op *op, const struct node *dir, uint32_t mode, struct node **ret);

/* Forget a slot that was made and not used. */
void slot_drop(struct layer *l, struct entry *e);

/* Take a name from what has it; without other names and references that is freed. */
void name_remove(struct layer *l, struct entry *e);

/* `child` came to a directory (1) or left it (-1). */
void dir_count_links(struct node *dir, const struct node *child, int n);

/* --- node-xattr.c ----------------------------------------------------------------------- */

struct xattr;

/* Its set, borrowed until the operation ends; an empty one if it has none; or -EAGAIN. */
NODISCARD int node_xattrs(struct op *op, const struct node *n, struct buf *ret);

/* 1 and the attribute, borrowed until the operation ends; 0 if there is none; or -EAGAIN. */
NODISCARD int node_find_xattr(struct op *op, const struct node *n, const char *name,
			      struct xattr *ret);

/* The set that it would have with this attribute, or (`value` NULL) without, and how long
 * the one is that it has; -EAGAIN, or -ENOSPC if the clone may not grow by it. */
NODISCARD int node_edit_xattrs(struct op *op, const struct node *n, const char *name,
			       const void *value, size_t size, struct buf **ret,
			       size_t *ret_before);

/*
 * How dirty memory changes when one set takes the place of another; either may be NULL.  Twice:
 * a freeze has a copy.
 */
static inline int64_t node_dirty_xattrs(const struct buf *before, const struct buf *now)
{
	return 2 * ((int64_t)(now ? now->len : 0) - (int64_t)(before ? before->len : 0));
}

/* Give it that set, which it takes; `before` is how long the one was that it had. */
void node_set_xattrs(struct layer *l, struct node *n, struct buf *set, size_t before);

NODISCARD int xattr_set_new(const struct xattr *list, size_t n, struct buf **ret);
void xattr_set_free(struct buf *set); /* NULL is fine */
DEFINE_CLEANUP(struct buf *, xattr_set_free)

/* --- node-acl.c ------------------------------------------------------------------------- */

/* Set one of the two lists; its mode goes with it. */
NODISCARD int node_set_acl(struct op *op, struct node *n, const char *name, const void *acl,
			   size_t len, int flags);

/* The set that it must have with another mode; NULL if it has no list, and needs none. */
NODISCARD int node_chmod_acl(struct op *op, const struct node *n, uint32_t mode, struct buf **ret,
			     size_t *ret_before);

/*
 * What is made in a directory gets: *mode becomes its mode, *ret the set of its attributes,
 * or NULL if it has none.
 */
NODISCARD int node_inherit_acl(struct op *op, const struct node *dir, uint32_t *mode,
			       struct buf **ret);

/* --- lower.c ---------------------------------------------------------------------------- */

/* A name in a stored tree, from memory.  *ret borrows until the operation ends. */
NODISCARD int lower_find(struct op *op, const struct object_id *tree, const char *name,
			 struct tree_entry *ret);

/* How many names a stored tree has. */
NODISCARD int lower_count(struct op *op, const struct object_id *tree, uint64_t *ret);

/* --- freeze.c --------------------------------------------------------------------------- */

/* What was changed, at one moment. */
struct frozen;

/* With the lock.  Also raises the generation. */
NODISCARD int freeze_collect(struct layer *l, struct frozen **ret);

/*
 * freeze-put.c: put all of it, bottom-up; without the lock.  `waited`: somebody waits for the end,
 * so it may keep all processors busy if it is much.  Else it does so once somebody does.
 */
NODISCARD int freeze_put(struct frozen *f, struct batch *b, bool waited, struct layer_state *ret,
			 struct err *err);

/* With the lock: it is committed, or (`stored` false) not; frees it. */
void freeze_settle(struct layer *l, struct frozen *f, bool stored);

/* traffic.c: bytes that were read from it and written to it. */
void traffic_read(struct layer *l, uint64_t bytes);
void traffic_written(struct layer *l, uint64_t bytes);

/* And what traffic_work() (traffic.h) counts: processor time of this thread, from `begun` to now. */
uint64_t traffic_work_now(void);
void traffic_worked(struct layer *l, uint64_t begun);
