/*
 * remote.h - push snapshots to other machines, and fetch them from there.
 *
 * A remote is a place that others can reach: a directory, a registry. It keeps snapshots under
 * names that move. A push sends what the remote lacks and moves the name last, so a name never
 * means something incomplete. A fetch checks every byte before the store takes it.
 *
 * The user's configuration lists the remotes (remotes.json, beside config.yaml), the same for all
 * stores and projects. It holds no secret.
 */
#pragma once

#include "engine/api/history.h"

#define ENGINE_DIGEST_SIZE 72 /* "sha256:", 64 hex digits and a NUL */

struct engine_remote {
	char *name, *url; /* owned */
};

struct engine_remotes {
	struct engine_remote *list; /* owned; in the order of names */
	size_t n;
};

void engine_remotes_done(struct engine_remotes *r);

NODISCARD int engine_remotes(struct engine *e, struct engine_remotes *ret, struct err *err);

struct engine_remote_add_options {
	const char *name, *url;
	bool insecure; /* a registry without TLS; its address then begins with oci+http:// */
};

/* -EEXIST if there is one of that name, -EINVAL if name or url cannot be one. */
NODISCARD int engine_remote_add(struct engine *e, const struct engine_remote_add_options *o,
				struct err *err);
/* -ENOENT with a sentence.  What the remote holds stays there. */
NODISCARD int engine_remote_remove(struct engine *e, const char *name, struct err *err);

/*
 * Is it REMOTE, REMOTE:NAME or REMOTE/NAME with a remote that is written down, or an address?  Reaches for
 * nothing.
 */
bool engine_remote_is(struct engine *e, const char *text);

/* Progress counts bytes that move; `total` is 0 until it is known. */
struct engine_push_options {
	const char
	    *state;     /* NULL: the project now, or the clone that holds the engine's directory */
	const char *to; /* REMOTE[:NAME]; the remote's name or its url */
	const char *message; /* NULL: the snapshot's own */
	bool force;          /* move the name although it means something that the state lacks */
	bool whole;          /* send all of it in new packs, not only what the remote lacks */
	bool mount;       /* take over packs of another repository, with all else that they hold */
	const char *base; /* a manifest there that it is like, for a name that is new; NULL: none */
	/* If the name means it already, but was pushed longer ago: let it count as pushed now; 0: never. */
	uint64_t renew_ms;
	uint64_t rate; /* bytes a second at most; 0: no limit */
	uint64_t jobs; /* connections; 0: as many as may be */
	/* Keys of age or SSH, or files of some; none: as config.yaml says. */
	const char *const *encrypt_to;
	size_t n_encrypt_to;
	const char *identity; /* a key to read what is encrypted there; NULL: config.yaml's */
	const char *sign;     /* a key to sign it with, as ssh-keygen -f has it; NULL: not signed */
	struct engine_watch watch;
};

struct engine_pushed {
	char *remote, *name; /* owned; its url, and the name that moved */
	bool encrypted;
	char *signed_as;                    /* owned; REPOSITORY:NAME; NULL: it was not signed */
	char *state;                        /* owned; what was pushed, as state_find() spells it */
	char manifest[ENGINE_DIGEST_SIZE];  /* that the name means now */
	char root[ENGINE_DIGEST_SIZE];      /* of all that is in it */
	uint64_t bytes_sent, bytes_skipped; /* packed; skipped: packs that were there */
	uint64_t objects_sent, packs_sent, packs;
	bool same; /* the name meant exactly this before */
	uint64_t elapsed_ms;
};

void engine_pushed_done(struct engine_pushed *p);

/* -ESTALE if the name means something with changes that the state lacks, and not `force`. */
NODISCARD int engine_push(struct engine *e, const struct engine_push_options *options,
			  struct engine_pushed *ret, struct err *err);

/* Whose signature is required.  All zero: what config.yaml says of the remote. */
struct engine_trust {
	bool required;
	const char *signers; /* a file of ssh-keygen's ALLOWED SIGNERS; NULL: config.yaml's */
	const char *as;      /* REPOSITORY:NAME that it was signed as; NULL: those of the remote */
};

struct engine_fetch_options {
	const char *from; /* REMOTE[:NAME] */
	struct engine_trust trust;
	const char *identity; /* a key to decrypt with; NULL: config.yaml's */
	const char *tag;      /* for it in this project; NULL: REMOTE/NAME */
	const char *manifest; /* exactly this one, whatever the name means now; NULL: that */
	/* A manifest that is like it, and the snapshot here that holds it; NULL: what the name meant last. */
	const char *base_manifest, *base_snapshot;
	uint64_t rate;
	uint64_t jobs;
	/*
	 * Not NULL: return as soon as names and attributes are here.  The caller makes a clone of the snapshot
	 * before it closes the descriptor that is left here: without a clone, the fetch ends then, or when this
	 * process dies.  -1: there is nothing to wait for.
	 */
	int *hold;
	struct engine_watch watch;
};

struct engine_fetched {
	char *remote, *name, *tag; /* owned */
	char manifest[ENGINE_DIGEST_SIZE];
	char root[ENGINE_DIGEST_SIZE];
	struct engine_snapshot snapshot;
	char *signer;    /* owned; the principal who signed it; NULL: none was asked for */
	char *project;   /* owned; its path */
	bool registered; /* the project is new to the store */
	bool same;       /* it was here already */
	bool lazy;       /* its bytes come later */
	uint64_t bytes_received, packs_received, packs, objects;
	uint64_t elapsed_ms;
};

void engine_fetched_done(struct engine_fetched *f);

/* The snapshot is then one of the project that holds the engine's directory; its files are untouched. */
NODISCARD int engine_fetch(struct engine *e, const struct engine_fetch_options *options,
			   struct engine_fetched *ret, struct err *err);

/*
 * Fetch for a project that is to become that snapshot: ret_since is its state that both sides have in common
 * since it last pushed, pulled or merged this name, and belongs into `since` of engine_rollback(); "" if none
 * is known.  Its files are untouched.
 */
NODISCARD int engine_fetch_for(struct engine *e, const struct engine_fetch_options *options,
			       struct engine_fetched *ret, char ret_since[ENGINE_ID_SIZE],
			       struct err *err);

/* The project is what was fetched now; `landed`: it was something else before. */
void engine_fetch_applied(struct engine *e, const struct engine_fetched *fetched, bool landed);

/* A snapshot that a remote has. */
struct engine_remote_entry {
	char *name; /* owned; NULL: an earlier one */
	char manifest[ENGINE_DIGEST_SIZE];
	char *message, *who, *host; /* owned */
	int64_t created, pushed;
	uint64_t files, bytes; /* unpacked */
	uint64_t packed;       /* what its packs take there */
	uint64_t packs;
};

struct engine_remote_log {
	char *remote; /* owned; its url */
	struct engine_remote_entry *list;
	size_t n;
};

void engine_remote_log_done(struct engine_remote_log *l);

/* The snapshots under one name, newest first; or, if `what` has no name, the newest under each. */
NODISCARD int engine_remote_log(struct engine *e, const char *what, size_t max,
				struct engine_remote_log *ret, struct err *err);

/* --- what a remote keeps ------------------------------------------------------------------- */

struct engine_remote_gc_options {
	const char *remote;
	uint64_t keep_last;     /* of each name, so many of the last snapshots; 0: no such rule */
	uint64_t older_than_ms; /* snapshots that were pushed longer ago may go; 0: no such rule */
	const char *const *keep_tags; /* patterns of names that keep everything */
	size_t n_keep_tags;
	uint64_t grace_ms;    /* what no snapshot needs stays for that long: pushes are under way */
	const char *identity; /* a key for encrypted snapshots; NULL: config.yaml may name one */
	bool dry;
	struct engine_watch watch;
};

struct engine_remote_gone {
	char *name;                        /* owned; NULL: a snapshot that a name meant before */
	char manifest[ENGINE_DIGEST_SIZE]; /* what it meant */
	int64_t pushed;
};

struct engine_remote_gc {
	char *remote; /* owned; its url */
	struct engine_remote_gone *gone;
	size_t n_gone;
	uint64_t names, snapshots; /* that stay; snapshots: with those that names meant before */
	uint64_t moved;            /* names that should have gone and were moved meanwhile */
	uint64_t blobs, bytes;     /* that went */
	uint64_t young, kept;      /* bytes that stay: too young to go, and needed */
	bool later;                /* the server frees bytes, by a gc of its own */
};

void engine_remote_gc_done(struct engine_remote_gc *g);

/*
 * Remove snapshots that no rule keeps, and what no snapshot needs.  Without a rule every snapshot stays, but
 * for what tickets left under names of their own (docs/design/workers.md), which goes after 8 days.
 * With several, one survives that any of them keeps.  A name goes with the snapshot that it means.
 */
NODISCARD int engine_remote_gc(struct engine *e, const struct engine_remote_gc_options *options,
			       struct engine_remote_gc *ret, struct err *err);

/* --- between the command line and cowfsd -------------------------------------------------- */

/* Where the command line leaves packs for cowfsd, in the store's directory: HEX.index and HEX.pack. */
#define ENGINE_INCOMING "remote/incoming"

/* Of a snapshot whose bytes come later: here, in a directory named by the id of the fetch. */
#define ENGINE_LAZY_DIR        "remote/lazy"
#define ENGINE_LAZY_SOURCE     "source" /* JSON: url, name, from, rate, jobs, packs */
#define ENGINE_LAZY_SOURCE_MAX ((size_t)4 << 20)
#define ENGINE_LAZY_LOCK       "lock" /* held by the process that brings something */

/* Bytes of a pack: whole frames. */
struct engine_range {
	char pack[65]; /* digest, in hex; "": none */
	uint64_t at, len;
	uint64_t frame, frames; /* the first of them, and how many */
};

struct engine_receive_options {
	char lazy[ENGINE_ID_SIZE]; /* the id of a lazy fetch; "": all of it is to be stored now */
	char **packs;              /* owned; digests, in hex, of all that the snapshot needs */
	size_t n_packs;
	const char *root;    /* digest, in hex */
	const char *base;    /* a snapshot here that is like it; NULL: none */
	const char *since;   /* the one that its changes are counted from; NULL: not known */
	const char *message; /* NULL: none */
	const char *meta;    /* labels; NULL: none */
	const char *hidden;  /* what strict runs must not see, as remotes have it; NULL: none */
	const char *tag;
	struct engine_watch watch;
};

struct engine_received {
	struct engine_snapshot snapshot;
	char *project; /* owned */
	bool registered;
	char **
	    wanted; /* owned; packs that it needs and that are not there: then there is no snapshot */
	size_t n_wanted;
	struct engine_range *ranges; /* owned; the same of a lazy fetch */
	size_t n_ranges;
	bool promised; /* some of its bytes are still to come */
	uint64_t objects;
};

void engine_received_done(struct engine_received *r);

NODISCARD int engine_receive(struct engine *e, const struct engine_receive_options *options,
			     struct engine_received *ret, struct err *err);

/*
 * The same for a lazy fetch.  -EBUSY if none may begin now: somebody needs all states to be complete.
 * *ret_hold is as in struct engine_fetch_options.
 */
NODISCARD int engine_receive_lazily(struct engine *e, const struct engine_receive_options *options,
				    struct engine_received *ret, int *ret_hold, struct err *err);

/* A process that brings what a lazy fetch promised reports, and asks what to bring next. */
struct engine_supply_options {
	char id[ENGINE_ID_SIZE];
	uint64_t process;         /* a number of its own; not 0 */
	bool first;               /* no other process brings anything */
	bool idle;                /* it only reports */
	bool wanted_only;         /* only what somebody waits for */
	uint64_t most;            /* bytes of anything else */
	struct engine_range done; /* the last answer, brought; none at first */
	const char *why;          /* why that did not come; NULL: it did */
};

struct engine_supply {
	bool over;  /* nothing is to be brought any more */
	bool ended; /* because the fetch has, or there never was one: the directory goes */
	struct engine_range range;
};

/* Go on with lazy fetches that nobody works at.  What fails is logged. */
void engine_fetch_resume(struct engine *e);

/* The program's name as argv[0] of such a process, and what that does: argv[1] is the store, [2] the id. */
#define FETCHER_NAME "snap-fetch"
int fetcher_main(int argc, char **argv);
