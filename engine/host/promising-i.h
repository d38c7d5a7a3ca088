/*
 * promising-i.h - shared by the files of promises: one capture, and its promises.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/spread.h"
#include "base/sys.h"
#include "cowfs/store/cache.h"
#include "engine/host/promises-i.h"
#include "engine/host/supply-i.h"
#include "snapshot/capture/keep.h"
#include "snapshot/capture/signatures.h"

#define PROMISES_PATIENCE_MS 20000 /* of whoever needs a file, with what may pass */

enum promise_state {
	PROMISE_OPEN,
	PROMISE_BUSY, /* a thread is at it */
	PROMISE_KEPT,
	PROMISE_LOST,
};

struct promise {
	struct object_ref what; /* its key; the kind means nothing */
	char *path;             /* owned; from the top of the project; NULL: not known any more */
	uint64_t size;
	bool held;     /* when the list was made */
	bool hurried;  /* in promising.hurried */
	bool unread;   /* somebody needed it, and it could not be fetched */
	bool wrong;    /* all of it was here, and what it stands for was no file */
	bool stashed;  /* a copy of it was made (stash-i.h); guarded by all->lock */
	uint32_t nth;  /* in the order in which they were found: directory by directory */
	uint32_t file; /* if a remote has it: one more than its place in promising.files */
	enum promise_state state;
	struct content content; /* if it is kept; set while it is busy */
	char *why;              /* owned; if it is lost; the same */
};

/* One capture.  Its threads and whoever has one of its promises busy may use it without the lock. */
struct promising {
	struct promises *all;
	struct lazy record; /* its root is guarded by `saving`; all else never changes */
	dev_t home;
	atomic_int top;        /* the project's directory, or -1 */
	atomic_bool absent;    /* the project is not there, and may come back */
	struct map by_id;      /* struct promise, owned; complete once it is indexed */
	struct promise **list; /* owned; what nobody holds first, then small ones */
	size_t n;
	bool sorted;    /* `list` is; of its thread alone */
	bool recovered; /* a cowfsd before this one began it */
	bool sifted;    /* its heirs are; of its thread, and of the sifter */
	bool sifting;   /* there is a sifter; of its thread alone */
	struct signatures
	    *signatures; /* owned; of its thread alone; with promises, until it ends; or NULL */

	/* Of one whose bytes a remote has (promises-remote.c); set by its thread, `supply` under the lock. */
	struct supply *supply;     /* owned; NULL: an index has not come yet */
	struct supply_file *files; /* owned; what the promises stand for */
	size_t n_files;
	struct digests known; /* of its thread alone */
	char **packs;         /* owned; digests, in hex */
	size_t n_packs;
	char *from;         /* owned; what people call it: REMOTE/NAME */
	uint64_t completed; /* packs that were, when large files were last looked for */
	uint64_t asked_ms;  /* the indexes were first missed then; 0: they were not */

	/* Taken without all->lock; a lease is never waited for while it is held. */
	pthread_mutex_t saving;
	struct cache *cache; /* owned; of the record's tree */
	uint64_t saved;      /* names in that */

	/* Guarded by all->lock. */
	char *dir;                /* owned; the project's */
	size_t next;              /* of the list, to be read */
	struct promise **hurried; /* owned; to be read before all others (promises-hurry.c) */
	size_t n_hurried, cap_hurried;
	struct catalog_id *heirs; /* owned; other snapshots that name its promises */
	size_t n_heirs, cap_heirs;
	unsigned lent;           /* walks that use what its own has seen */
	struct promise **wanted; /* owned; of a remote one: somebody waits for them */
	size_t n_wanted, cap_wanted;
	bool wants_due, large_due; /* look for those, or for large files, that are here by now */
	size_t n_wrong;            /* promises that no fetch can keep */
	struct err wrong;          /* the last of them, why */
	uint64_t done, done_bytes, lost; /* captured or lost; lost files */
	unsigned told;                   /* percent, when that was last said (promises-tell.c) */
	uint64_t told_ms;                /* engine_clock_ms() then; 0: never */
	bool indexed;
	bool closing; /* all is read, and it is about to end: it lends nothing any more */
	bool held;    /* all its promises were, when it began */
	bool ended;
	bool settling;         /* it ends: makers of clones of its project wait */
	bool halted;           /* whoever has read some of it waits before that is stored */
	bool unneeded;         /* its record is gone: nothing more is read or stored, and it ends */
	unsigned saving_now;   /* commits under way */
	unsigned in_use;       /* callers that keep a promise of it for themselves, or supply it */
	unsigned in_hand;      /* of those, callers that have one of its promises in hand */
	unsigned foreground;   /* callers that read or copy a file of it for themselves */
	bool hasty;            /* somebody waits for a busy file: its threads save early */
	atomic_bool has_stash; /* something was ever copied; read without the lock */
	atomic_bool has_early; /* some of that may be small (promises-stash.c); the same */
	struct err stuck;      /* why it cannot go on; its code 0: it can */
	pthread_t thread;
	bool started;
	struct spread sifter; /* looks through its heirs, beside its thread */
	struct promising *after;
};

struct promises {
	struct host *host;
	pthread_mutex_t lock; /* guards what follows; nothing is taken while it is held */
	pthread_cond_t changed;
	struct promising *first;
	struct promises_walk *walks; /* captures that may promise something */
	unsigned inside;             /* callers that rely on there being none */
	uint64_t copying;            /* bytes of files that are being copied (promises-stash.c) */
	unsigned awaited;            /* callers that wait for captures to end */
	struct promises_stay *stays; /* callers that make clones */
	/* Owned; while a capture is under way or begins, or NULL.  Set with the lock, read without. */
	struct holding *_Atomic holding;
	atomic_uint borrowed;   /* callers that may use it, without the lock */
	atomic_uint taken_away; /* callers that wait until there are none */
	atomic_bool full;       /* a writer has waited in vain for room in the store */
	bool early;             /* there may be early copies (promises-stash.c) */
	bool ending;
	struct spread sifter; /* looks through heirs of captures that have ended */
	bool sifting;         /* there is one; of promises_recover() and promises_end() */
};

/* Is a capture at its walk?  lock held */
static inline bool promises_are_beginning(const struct promises *p)
{
	return p->walks != NULL;
}

/* Is there anything that could still be captured?  lock held */
static inline bool promising_is_open(const struct promising *c)
{
	return !c->ended && !c->unneeded;
}

/* Is there nothing more to read, whatever was promised?  lock held */
static inline bool promising_is_over(const struct promising *c)
{
	return c->all->ending || c->unneeded;
}

/* lock held; does this snapshot name its promises? */
static inline bool promising_is_of(const struct promising *c, const struct catalog_id *snapshot)
{
	bool is = catalog_id_same(&c->record.snapshot, snapshot);

	for (size_t i = 0; i < c->n_heirs && !is; i++)
		is = catalog_id_same(&c->heirs[i], snapshot);
	return is;
}

/* What the promise of a remote one stands for. */
static inline const struct supply_file *promise_file(const struct promising *c,
						     const struct promise *one)
{
	return &c->files[one->file - 1];
}

/* What people call it. */
static inline const char *promising_name(const struct promising *c)
{
	return c->from ? c->from : c->dir ? c->dir : "?";
}

/* lock held */
static inline void promises_wait_ms(struct promises *p, unsigned ms)
{
	sys_cond_wait_ms(&p->changed, &p->lock, ms);
}

/* --- promises-lend.c --- */

/* lock held; may a walk rely on what its own has seen? */
bool promising_lends(const struct promising *c);
/* lock held; one that lent until a moment ago, and whose signatures will be there when it has ended; or NULL */
const struct promising *promises_find_closing(const struct promises *p,
					      const struct catalog_id *project);
/* May this snapshot name its promises because what its walk has seen was lent? */
bool promising_may_inherit(const struct lazy *record, const struct snapshot *one);
void promising_find_heirs(struct promising *c); /* after a restart: all that may be */
void promising_sift_heirs(struct promising *c); /* those that are; once it is indexed */
/* The same of captures that a cowfsd before this one ended, in a thread. */
void promises_begin_sifting(struct promises *p);
void promises_end_sifting(struct promises *p);

/* --- promises-held.c --- */

/*
 * What is held; NULL: nothing.  promises_give_back() in any case.  Each file of a walk comes here twice, in
 * several threads, so no lock is taken: whoever takes the set away sees this borrower, or this one sees that
 * it is gone.
 */
struct holding *promises_borrow(struct promises *p);
void promises_give_back(struct promises *p);
/* A descriptor of the file that is held for a promise, the caller's own; -ENOENT. */
NODISCARD int promises_open_held(struct promises *p, const struct object_id *promise);
bool promises_has_held(struct promises *p, const struct object_id *promise);
void promising_drop_held(struct promising *c, struct promise **list, size_t n); /* they are saved */

/* --- promises-hold.c --- */

/* Note which are held; after a restart nothing is, and what is still as promised is held again. */
void promising_hold(struct promising *c);
/* Let go what walks that failed have left, once every capture has its index. */
void promises_drop_unpromised(struct promises *p);
void promises_hold_no_more(struct promises *p,
			   bool whatever); /* else only if no capture is under way */

/* --- promises-find.c --- */

/* lock held, but while an index is being made; NULL: nobody knows such a promise, or could say so in time */
struct promise *promises_find(struct promises *p, const struct object_id *id,
			      struct promising **ret);
/* lock held; NULL: there is none, and *ret_wait says whether one may still turn up */
struct promise *promises_look_up(struct promises *p, const struct object_id *id,
				 struct promising **ret, bool *ret_wait);
/* Nobody knows it yet, and a capture that could not list what it promised tries again. */
bool promises_may_turn_up(struct promises *p, const struct object_id *id);
/* lock held; have it read next */
void promising_hurry(struct promising *c, struct promise *one);
/* lock held; one that is open and was asked for, no more in the list; or NULL */
struct promise *promising_next_hurried(struct promising *c);

/* --- promises-keep.c --- */

/* The caller has it busy.  0: read, or lost and `why` is set; or a failure that may pass. */
NODISCARD int promising_read_one(struct promising *c, struct keeper *k, struct promise *one,
				 struct err *err);
void promising_mark_done(struct promising *c, struct promise *one); /* lock held */
/* promises_keep() for a writer.  1: another thread has it in hand, and the caller may not wait for that. */
NODISCARD int promises_keep_now(struct promises *p, const struct object_id *promise, bool wait,
				struct err *err);

/* --- promises-stash.c --- */

/*
 * Copy what a large promise is of, so that its writer need not wait until it is captured; or of one that no
 * capture knows yet.  0, or why that is not done.
 */
NODISCARD int promises_stash(struct promises *p, const struct object_id *promise, int held);
/* A descriptor of the copy, the caller's own; -ENOENT. */
NODISCARD int promising_open_stash(const struct promising *c, const struct promise *one);
/* What an earlier cowfsd copied. */
NODISCARD int promising_find_stash(struct promising *c, struct err *err);
void promising_drop_stash(struct promising *c, struct promise *one); /* one that is saved */
void promising_end_stash(struct promising *c); /* it has ended: what is left goes */
void promises_sweep_stash(struct promises *p); /* what nobody knows */
/* lock held; early copies, now that it has its index */
NODISCARD int promising_take_over(struct promising *c, struct err *err);
void promises_drop_early(struct promises *p); /* lock held; once every capture has its index */

/* --- promises-run.c --- */

void *promising_run(void *promising); /* a thread's own, until all is done or p->ending */

/* --- promises-tell.c --- */

struct engine_capturing promising_news(const struct promising *c); /* lock held */

void promising_tell(struct promising *c);     /* how far it is, now and then; without the lock */
void promising_tell_end(struct promising *c); /* by its thread, before it forgets what was kept */
void promising_tell_dropped(struct promising *c); /* the same, if nobody needs it any more */

/* --- promises-index.c --- */

struct promise *promising_add(struct promising *p, const struct object_id *id, uint64_t size,
			      struct err *err);
NODISCARD int promising_index(struct promising *p, struct err *err); /* again, if it failed */

/* Put its list in order; from its thread, before anything is read by it. */
NODISCARD int promising_sort(struct promising *p, struct err *err);

/*
 * Look for the project's directory.  0 if there is nothing to wait for: it is open, or gone for good.
 * A failure if it is absent: its file system is not mounted.
 */
NODISCARD int promising_find_top(struct promising *p, struct err *err);
int promising_is_absent(const struct promising *p, struct err *err); /* the failure */

/* Only what was lost is of interest now.  Free the others without the lock: they are many. */
NODISCARD struct map promising_forget_kept(struct promising *p);
void promising_free_kept(struct map *kept);

void promising_free(struct promising *p);

/* --- promises-remote.c --- */

/* Names in the tree of the record of a remote one, behind those of what was done. */
#define PROMISED_NAME "promised"         /* 40 bytes for each: its kind and size, its SHA-256 */
#define SOURCE_NAME   ENGINE_LAZY_SOURCE /* the same as in the directory of the fetch */

/* What its promises stand for; once they are in the map. */
NODISCARD int promising_load_remote(struct promising *c, struct err *err);
/* Open the supply and put the list in its order.  -ENODATA if an index has not come yet. */
NODISCARD int promising_open_supply(struct promising *c, struct err *err);
void promising_close_remote(struct promising *c);
/* Directories of fetches that nobody knows go: a command died. */
void promises_sweep_incoming(struct promises *p);
/* It has ended: what came for it goes, and the digests that were seen are left for the next push. */
void promising_end_remote(struct promising *c);

/* --- promises-fetch.c --- */

/* lock held; one that is here and not yet stored, or NULL */
struct promise *promising_next_here(struct promising *c);
/* The caller has it busy.  0, or -EAGAIN: not all of it is here after all; or a failure. */
NODISCARD int promising_fetch_one(struct promising *c, struct batch *b, struct promise *one,
				  struct err *err);
/* lock held, but while it waits for another thread to store it.  0 if its state has changed. */
NODISCARD int promising_await(struct promising *c, struct promise *one, struct err *err);
/* lock held, but while it waits; 0, or why nothing comes */
NODISCARD int promising_await_news(struct promising *c, struct err *err);

/* --- promises-save.c --- */

/*
 * Name them in the tree of the record, with the batch's objects, and commit.  By any thread.  -ECANCELED if
 * nobody needs the capture any more.
 */
NODISCARD int promising_save(struct promising *p, struct batch *b, struct promise **list, size_t n,
			     struct err *err);
/* A tree with the lost ones alone. */
NODISCARD int promising_put_lost(struct promising *p, struct batch *b, struct object_id *ret,
				 struct err *err);

/* --- promises-settle.c --- */

NODISCARD int promising_settle(struct promising *p, struct err *err);
