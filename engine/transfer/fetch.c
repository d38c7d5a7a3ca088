/*
 * Packs come into a directory of the store, each under its digest, and stay there until cowfsd has
 * made the snapshot, so packs of an interrupted fetch are not fetched again. First come the packs
 * that our own snapshot of this name does not share, each with its index; then those that cowfsd
 * finds missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/api/meta.h"
#include "engine/ask/start-ahead-i.h"
#include "engine/transfer/fetching-i.h"
#include "remote/pack/pack.h"

static void fetching_done(struct fetching *f)
{
	target_done(&f->target);
	connections_done(&f->lines);
	manifest_done(&f->manifest);
	manifest_snapshot_done(&f->told);
	manifest_done(&f->have);
	signers_done(&f->signers);
	sealing_done(&f->sealing);
	free(f->plain);
	free(f->signer);
	cleanup_close(&f->dir);
	cleanup_close(&f->lock);
	cleanup_close(&f->hold);
	free(f->tag);
	free(f->meta);
	strlist_done(&f->packs);
}

/* --- the directory ------------------------------------------------------------------------ */

/* Only one fetch at a time uses it. */
static int open_incoming(struct fetching *f, struct err *err)
{
	AUTO_FREE char *path = NULL;
	int r = transfer_dir(f->e, ENGINE_INCOMING, &path, err);

	if (r < 0)
		return r;
	f->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir < 0)
		return err_sys(err, "opening '%s'", path);
	f->lock = openat(f->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->lock < 0 || flock(f->lock, LOCK_EX) < 0)
		return err_sys(err, "locking '%s'", path);
	return 0;
}

struct sweeping {
	const struct fetching *f;
	bool all;
};

/* Is it a file of this manifest? */
static bool is_ours(const struct fetching *f, const char *name)
{
	char own[PACK_NAME_SIZE];

	for (size_t i = 0; i < f->manifest.n; i++) {
		const struct digest *d = &f->manifest.packs[i].pack.digest;

		if (strncmp(name, fetching_file(d, "", own), SHA256_HEX_SIZE - 1) == 0)
			return true;
	}
	return false;
}

static int sweep_one(const char *name, unsigned char type, void *ctx)
{
	const struct sweeping *s = ctx;

	if (strcmp(name, "lock") != 0 && (s->all || !is_ours(s->f, name)))
		unlinkat(s->f->dir, name, 0);
	return 0;
}

static void sweep(const struct fetching *f, bool all)
{
	AUTO_CLOSE int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		IGNORE_RESULT(sys_each_name(fd, sweep_one, &(struct sweeping){ f, all }),
			      "the next fetch sweeps again");
}

/* --- blobs -------------------------------------------------------------------------------- */

/* It comes as NAME.part; when all of it is there and right, that becomes NAME. */
static int bring_blob(struct fetching *f, struct depot *d, const struct manifest_blob *blob,
		      const struct digest *pack, const char *end, struct err *err)
{
	const struct depot_watch watch = { .moved = meter_moved, .ctx = &f->meter };
	char name[PACK_NAME_SIZE], part[SHA256_HEX_SIZE + 16], text[DIGEST_TEXT_SIZE];
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r;

	fetching_file(pack, end, name);
	if (fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	snprintf(part, sizeof(part), "%s.part", name);
	fd = openat(f->dir, part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "making a file in '%s/%s'", f->e->store_path, ENGINE_INCOMING);
	r = depot_fetch(d, &blob->digest, blob->size, fd, &watch, err);
	if (r == -ENOENT)
		return err_set(err, -EBADMSG, "'%s' of '%s' is incomplete: blob %s is not there",
			       f->target.name, f->target.url, digest_text(&blob->digest, text));
	if (r < 0)
		return r;
	if (renameat(f->dir, part, f->dir, name) < 0)
		return err_sys(err, "naming a pack");
	return 0;
}

/* The index of a pack, which may be here already. */
static int bring_index(struct fetching *f, struct depot *d, size_t i, struct err *err)
{
	const struct manifest_pack *p = &f->manifest.packs[i];
	const struct depot_watch watch = { .moved = meter_moved, .ctx = &f->meter };
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	char name[PACK_NAME_SIZE], text[DIGEST_TEXT_SIZE];
	uint64_t unused;
	int r = f->manifest.sealed
		    ? sealing_get(&f->sealing, d, &p->index, &index, err)
		    : depot_get(d, &p->index.digest, (size_t)p->index.size, &index, &watch, err);

	if (r == -ENOENT)
		return err_set(err, -EBADMSG, "'%s' of '%s' is incomplete: blob %s is not there",
			       f->target.name, f->target.url, digest_text(&p->index.digest, text));
	/* The digest of what is in a sealed pack stands only there. */
	if (r == 0 && f->manifest.sealed)
		r = pack_index_head(index.data, index.len, &f->plain[i], &unused, err);
	if (r < 0)
		return r;
	return fdio_swap_file(f->dir, fetching_file(&f->plain[i], "index", name), index.data,
			      index.len, 0600, err);
}

/* Decrypt a pack that came, and see that it is the one that its index is of. */
static int open_pack(struct fetching *f, size_t i, struct err *err)
{
	char name[PACK_NAME_SIZE], part[SHA256_HEX_SIZE + 16];
	AUTO_CLOSE int from = -1, to = -1;
	struct digest have;
	uint64_t size;
	int r;

	from = openat(f->dir, fetching_file(&f->manifest.packs[i].pack.digest, "sealed", name),
		      O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return err_sys(err, "opening a pack that came");
	fetching_file(&f->plain[i], "pack", name);
	snprintf(part, sizeof(part), "%s.part", name);
	to = openat(f->dir, part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return err_sys(err, "making a file in '%s/%s'", f->e->store_path, ENGINE_INCOMING);
	r = seal_open_file(&f->sealing.seal, from, to, err);
	if (r == 0)
		r = seal_measure(to, &have, &size, err);
	if (r < 0)
		return r;
	if (!digest_equal(&have, &f->plain[i]))
		return err_set(err, -EBADMSG, "a pack of '%s' is not the one that its index is of",
			       f->target.name);
	return renameat(f->dir, part, f->dir, name) < 0 ? err_sys(err, "naming a pack") : 0;
}

/* Packs of the manifest that are to come, each with what of it. */
struct coming {
	struct fetching *f;
	bool *pack;  /* for each pack of the manifest: that itself, */
	bool *index; /* its index */
};

static int bring_one(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct coming *c = ctx;
	const struct manifest_pack *p = &c->f->manifest.packs[i];
	struct depot *d;
	int r = connections_get(&c->f->lines, member, &d, err);

	if (r == 0 && c->index[i])
		r = bring_index(c->f, d, i, err);
	if (r == 0 && c->pack[i])
		r = bring_blob(c->f, d, &p->pack, &p->pack.digest,
			       c->f->manifest.sealed ? "sealed" : "pack", err);
	return r == 0 && c->pack[i] && c->f->manifest.sealed ? open_pack(c->f, i, err) : r;
}

static bool is_here(const struct fetching *f, const struct digest *pack, const char *end)
{
	char name[PACK_NAME_SIZE];
	struct stat st;

	return fstatat(f->dir, fetching_file(pack, end, name), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static uint64_t bytes_to_come(const struct fetching *f, const struct coming *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->manifest.n; i++) {
		const struct manifest_pack *p = &f->manifest.packs[i];

		if (c->index[i] && !is_here(f, &p->pack.digest, "index"))
			n += p->index.size;
		if (c->pack[i] && !is_here(f, &p->pack.digest, "pack"))
			n += p->pack.size;
	}
	return n;
}

/* All that is marked, over several connections. */
static int bring_marked(struct fetching *f, struct coming *c, struct err *err)
{
	const size_t n = f->manifest.n;
	int r = fetching_check_room(f, f->dir, bytes_to_come(f, c), err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct manifest_pack *p = &f->manifest.packs[i];

		f->meter.total +=
		    (c->index[i] ? p->index.size : 0) + (c->pack[i] ? p->pack.size : 0);
		f->n_brought += c->pack[i];
	}
	return crew_each(f->lines.n < n ? f->lines.n : (unsigned)n, n, bring_one, c, err);
}

static int bring_first(struct fetching *f, struct err *err)
{
	AUTO_FREE bool *pack = calloc(f->manifest.n + 1, sizeof(*pack));
	AUTO_FREE bool *index = calloc(f->manifest.n + 1, sizeof(*index));
	struct coming c = { .f = f, .pack = pack, .index = index };
	char hex[SHA256_HEX_SIZE];
	int r;

	f->plain = calloc(f->manifest.n + 1, sizeof(*f->plain));
	if (!pack || !index || !f->plain)
		return err_nomem(err);
	for (size_t i = 0; i < f->manifest.n; i++) {
		f->plain[i] = f->manifest.packs[i].pack.digest;
		pack[i] = !fetching_has(f, &f->plain[i]);
		/* A sealed pack is known here by what its index says. */
		index[i] = pack[i] || f->manifest.sealed;
	}
	r = f->manifest.n > 0 ? bring_marked(f, &c, err) : 0;
	for (size_t i = 0; r == 0 && i < f->manifest.n; i++)
		if (strlist_add(&f->packs, hex_encode(f->plain[i].b, SHA256_SIZE, hex)) < 0)
			r = err_nomem(err);
	return r;
}

/* Bring what cowfsd asked for: the index of a pack first, which may say that it is not needed. */
static int bring_wanted(struct fetching *f, const struct engine_received *got, struct err *err)
{
	AUTO_FREE bool *pack = calloc(f->manifest.n + 1, sizeof(*pack));
	AUTO_FREE bool *index = calloc(f->manifest.n + 1, sizeof(*index));
	struct coming c = { .f = f, .pack = pack, .index = index };

	if (!pack || !index)
		return err_nomem(err);
	for (size_t w = 0; w < got->n_wanted; w++)
		for (size_t i = 0; i < f->manifest.n; i++)
			if (strcmp(f->packs.list[i], got->wanted[w]) == 0) {
				pack[i] = is_here(f, &f->plain[i], "index");
				index[i] = !pack[i];
			}
	return bring_marked(f, &c, err);
}

/* --- the snapshot ------------------------------------------------------------------------- */

static int receive(struct fetching *f, struct engine_received *got, struct err *err)
{
	char root[SHA256_HEX_SIZE];
	const struct engine_receive_options o = fetching_options(f, root);

	for (unsigned round = 0; round < FETCHING_ROUNDS_MAX; round++) {
		int r = engine_receive(f->e, &o, got, err);

		if (r < 0 || got->n_wanted == 0)
			return r;
		r = bring_wanted(f, got, err);
		engine_received_done(got);
		if (r < 0)
			return r;
	}
	return err_set(err, -EBADMSG, "'%s' of '%s' never comes to an end", f->target.name,
		       f->target.url);
}

/* Where it came from, as labels. */
static int choose_labels(struct fetching *f, struct err *err)
{
	char digest[DIGEST_TEXT_SIZE];
	AUTO_FREE char *from = NULL, *manifest = NULL;
	const char *pairs[2];

	if (asprintf(&from, "remote=%s:%s", target_remote(&f->target), f->target.name) < 0 ||
	    asprintf(&manifest, "manifest=%s", digest_text(&f->digest, digest)) < 0)
		return err_nomem(err);
	pairs[0] = manifest;
	pairs[1] = from;
	return meta_encode(pairs, 2, &f->meta, err);
}

static int choose_tag(struct fetching *f, struct err *err)
{
	if (f->options->tag)
		return text_set(&f->tag, err, "%s", f->options->tag);
	return text_set(&f->tag, err, "%s/%s", f->target.remote ? f->target.remote : "remote",
			f->target.name);
}

/* --- the verb ----------------------------------------------------------------------------- */

static int get_snapshot(struct fetching *f, struct err *err)
{
	int r = f->manifest.sealed ? sealing_prepare(&f->sealing, err) : 0;

	if (r == 0)
		r = manifest_get_snapshot(f->depot, &f->manifest, &f->sealing.opener, &f->told,
					  err);
	return r < 0 ? err_wrap(err, r, "'%s' of '%s'", f->target.name, f->target.url) : 0;
}

static int open_source(struct fetching *f, struct err *err)
{
	const char *reference;
	struct store *unused;
	int r = engine_has_store(f->e) ? engine_store(f->e, STORE_READ, &unused, err) : 0;

	if (r == 0)
		r = target_find(f->e, f->options->from, &f->target, err);
	if (r == 0 && !f->target.name)
		r = text_set(&f->target.name, err, TRANSFER_NAME);
	if (r == 0)
		r = signers_find(f->e, &f->target, &f->options->trust, &f->signers, err);
	if (r == 0)
		r = connections_open(f->e, &f->lines, f->target.url, f->options->rate,
				     f->options->jobs, err);
	if (r < 0)
		return r;
	f->depot = f->lines.list[0];
	r = sealing_begin(f->e, &f->target, &f->lines.cache,
			  &(struct sealing_options){ .identity = f->options->identity },
			  &f->sealing, err);
	if (r < 0)
		return r;
	reference = f->options->manifest ? f->options->manifest : f->target.name;
	r = manifest_get(f->depot, reference, &f->manifest, NULL, &f->digest, err);
	if (r == -ENOENT)
		return err_set(err, r, "'%s' has nothing with the name '%s'", f->target.url,
			       reference);
	if (r == 0)
		r = signers_check(&f->signers, &f->manifest, &f->signer, err);
	return r < 0 ? r : get_snapshot(f, err);
}

/* A signature fits for ever; that a remote goes back to an older one shows by the time in it. */
static int check_age(const struct fetching *f, struct err *err)
{
	if (!f->signers.required || f->told.pushed >= f->seen.pushed)
		return 0;
	return err_set(err, -ECANCELED,
		       "'%s' is not accepted: this store has seen a later one under that name",
		       f->signers.place);
}

/* The caller knows better than the name what it is like. */
static int name_base(struct fetching *f, struct err *err)
{
	const struct engine_fetch_options *o = f->options;

	if (digest_parse(o->base_manifest, &f->seen.manifest) < 0)
		return err_set(err, -EINVAL, "'%s' is no digest of a manifest", o->base_manifest);
	snprintf(f->seen.snapshot, sizeof(f->seen.snapshot), "%s", o->base_snapshot);
	return 1;
}

/* 1 if we had something of this name. */
static int load_notes(struct fetching *f, struct err *err)
{
	int r;

	if (f->options->base_manifest)
		return name_base(f, err);
	r = known_load_here(f->e, &f->target, &f->known, err);
	return r < 0 ? r : seen_load(f->e, &f->target, &f->seen, err);
}

/* What we had of this name last, if it is still there. */
static int look_here(struct fetching *f, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	char text[DIGEST_TEXT_SIZE];
	struct err ignored = { 0 };
	struct digest unused;
	struct store *store;
	int r = load_notes(f, err);

	if (r > 0)
		r = check_age(f, err) < 0 ? -ECANCELED : r;
	if (r <= 0)
		return r;
	if (engine_store(f->e, STORE_READ, &store, &ignored) < 0 ||
	    snapshot_find(store, f->seen.snapshot, &s, &ignored) < 0)
		return 0;
	f->has_seen = true;
	if (manifest_get(f->depot, digest_text(&f->seen.manifest, text), &f->have, NULL, &unused,
			 &ignored) < 0)
		manifest_done(&f->have); /* then more comes than need be */
	return 0;
}

static int fill_answer(struct fetching *f, struct engine_received *got, struct engine_fetched *ret)
{
	digest_text(&f->digest, ret->manifest);
	digest_text(&f->told.root, ret->root);
	ret->bytes_received = f->meter.bytes;
	ret->packs_received = f->n_brought;
	ret->packs = f->manifest.n;
	ret->objects = got->objects;
	ret->snapshot = got->snapshot;
	ret->project = got->project;
	ret->registered = got->registered;
	got->snapshot = (struct engine_snapshot){ 0 };
	got->project = NULL;
	ret->remote = TAKE_PTR(f->target.url);
	ret->name = TAKE_PTR(f->target.name);
	ret->tag = TAKE_PTR(f->tag);
	ret->signer = TAKE_PTR(f->signer);
	ret->lazy = got->promised;
	ret->same = f->same;
	return 0;
}

static int fetch(struct fetching *f, struct engine_received *got, struct err *err)
{
	int r = open_incoming(f, err);

	if (r == 0) {
		sweep(f, false);
		start_ahead(f->e);
		r = bring_first(f, err);
	}
	if (r == 0)
		r = receive(f, got, err);
	/* A power failure may have left wrong bytes under a right name: all of it comes again. */
	if (r == 0 || r == -EBADMSG)
		sweep(f, true);
	return r;
}

int engine_fetch(struct engine *e, const struct engine_fetch_options *options,
		 struct engine_fetched *ret, struct err *err)
{
	CLEANUP(engine_received_done) struct engine_received got = { 0 };
	CLEANUP(fetching_done) struct fetching f = { .e = e,
						     .options = options,
						     .dir = -1,
						     .lock = -1,
						     .hold = -1,
						     .meter = { .lock = PTHREAD_MUTEX_INITIALIZER,
								.watch = &options->watch,
								.doing = "receiving" } };
	const uint64_t start = engine_clock_ms();
	int r = open_source(&f, err);

	if (r == 0)
		r = look_here(&f, err);
	if (r == 0)
		r = choose_tag(&f, err);
	if (r == 0)
		r = choose_labels(&f, err);
	if (r == 0)
		r = options->hold ? fetch_lazily(&f, &got, err) : 1;
	if (r > 0)
		r = fetch(&f, &got, err);
	if (r < 0)
		return r;
	f.seen.manifest = f.digest;
	f.seen.pushed = f.told.pushed;
	memcpy(f.seen.snapshot, got.snapshot.id, sizeof(f.seen.snapshot));
	if (!options->base_manifest)
		seen_save(e, &f.target, &f.seen);
	cache_sweep(&f.lines.cache, &f.manifest);
	r = fill_answer(&f, &got, ret);
	if (options->hold)
		*options->hold = TAKE_FD(f.hold);
	ret->elapsed_ms = engine_clock_ms() - start;
	return r;
}
