/*
 * supply-i.h - which frames of its packs a lazy fetch has, and which come next.
 *
 * The packs of a snapshot are in a directory of the store, each with the frames that have come
 * (docs/design/remote.md, "Lazy clones"). A process of the command line fetches frames and asks
 * here which ones (supply_next()), because cowfsd uses no network. Frames that a reader waits for
 * come first, then the rest in order. The objects of a frame are compared with their SHA-256 each
 * time they are read. A wrong frame is fetched again; if it is wrong twice, the fetch reports that
 * as its failure.
 *
 * Thread-safe. A caller may hold the lock of the promises; nothing here takes another one.
 */
#pragma once

#include "engine/api/remote.h"
#include "remote/pack/digests.h"
#include "remote/pack/inbound.h"

struct supply;

/* What a promise stands for: a chunk, or a large file by its top node. */
struct supply_file {
	struct digest digest;
	uint64_t size;
	enum object_kind kind;
	uint32_t pack, frame; /* where that object lies; set by supply_place() */
};

/* `path` has the index of each pack.  -ENODATA, with a sentence, if one is not there yet. */
NODISCARD int supply_open(const char *path, char *const *packs, size_t n, struct supply **ret,
			  struct err *err);
void supply_free(struct supply *s); /* NULL is fine */
DEFINE_CLEANUP(struct supply *, supply_free)

/* For inbound.  It has a lock of its own. */
struct pack_set *supply_packs(struct supply *s);

/* Frames that were asked for and are not here, as ranges of bytes; owned. */
NODISCARD int supply_missed(struct supply *s, struct engine_range **ret, size_t *ret_n,
			    struct err *err);

/* --- promises ----------------------------------------------------------------------------- */

bool supply_place(struct supply *s, struct supply_file *f); /* false: no pack has it */
/* Is that object here, of a chunk the whole file?  Cheap. */
bool supply_has_object(struct supply *s, const struct supply_file *f);

/*
 * The content of a file into the store: 0.  -EAGAIN if some of it is not here: with `urgent` that comes
 * next.  -EBADMSG: a frame was wrong once more.  -EPROTO: none was, and they hold no such file.
 */
NODISCARD int supply_content(struct supply *s, struct batch *b, struct digests *known,
			     const struct supply_file *what, bool urgent, struct content *ret,
			     struct err *err);
/* Is all of it here?  Else, with `urgent`, it comes next. */
bool supply_has(struct supply *s, const struct supply_file *what, bool urgent);

/* Bytes of a large file.  Waits until they are here.  -EIO with a sentence if they do not come. */
NODISCARD ssize_t supply_read(struct supply *s, const struct supply_file *what, uint64_t off,
			      void *data, size_t len, struct err *err);

/* --- waiting ------------------------------------------------------------------------------ */

/* What was so when somebody began to wait. */
struct supply_since {
	uint64_t ms, failures;
};

struct supply_since supply_begin_wait(struct supply *s);
/* 0 if there is hope; else -EIO and why nothing comes. */
NODISCARD int supply_check_wait(struct supply *s, const struct supply_since *since,
				const struct supply_file *what, struct err *err);
/* cowfsd ends: readers that wait go on, and fail. */
void supply_end(struct supply *s);
/* 0 if the fetch goes on; else -EIO and why it does not. */
NODISCARD int supply_check(struct supply *s, struct err *err);

/* --- the process that brings frames ------------------------------------------------------- */

/* Whether the range that supply_next() gave it last has come. */
NODISCARD int supply_report(struct supply *s, const struct engine_supply_options *o,
			    struct err *err);
/* What it should bring next.  False if nothing was wanted for a second. */
bool supply_next(struct supply *s, const struct engine_supply_options *o, struct engine_range *ret);

/* How often a pack was here from end to end; again, after a frame of it came again. */
uint64_t supply_completed(struct supply *s);
