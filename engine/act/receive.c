/*
 * The command line fetches packs, because it may use the network and cowfsd may not; cowfsd reads
 * them, because it alone writes to the store. Nothing is trusted on the way: every object is
 * compared with its SHA-256 here, whatever the command line checked before (remote/pack/inbound.h).
 *
 * The snapshot, its tag and, if need be, its project come with one commit. Until then nothing is
 * visible, and objects put meanwhile are garbage for the next gc.
 */
#include "engine/act/receive-i.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/path.h"
#include "cowfs/store/root.h"
#include "engine/act/acts-i.h"
#include "engine/act/receive-lazy-i.h"
#include "engine/act/unneeded-i.h"
#include "engine/api/meta.h"
#include "engine/find/hidden-i.h"
#include "engine/find/moved-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"
#include "remote/pack/inbound.h"

#define PACKS_MAX     4096
#define STEPS_BETWEEN 64 /* two looks whether the client still waits */

struct receiving {
	struct task *task;
	const struct engine_receive_options *options;
	struct store *store;
	struct project project;
	bool is_new; /* the project */
	struct pack_set packs;
	bool *unlisted;           /* owned; for each pack of the options: its index is not here */
	struct receive_lazy lazy; /* unless all of it is stored now */
	struct digests known;
	char *dir; /* owned; where the store keeps digests */
	struct inbound_result got;
	struct hidden hidden;     /* from runs where it was made */
	struct snapshot base;     /* that is like it; all zero: none */
	struct snapshot snapshot; /* its strings are borrowed */
	uint64_t steps;
};

static void receiving_done(struct receiving *r)
{
	project_done(&r->project);
	snapshot_done(&r->base);
	pack_set_done(&r->packs);
	free(r->unlisted);
	receive_lazy_done(&r->lazy);
	hidden_done(&r->hidden);
	digests_done(&r->known);
	free(r->dir);
}

/* --- packs -------------------------------------------------------------------------------- */

static int open_incoming(const struct receiving *v, const struct digest *pack, const char *end,
			 struct err *err)
{
	char hex[SHA256_HEX_SIZE], name[PACK_NAME_SIZE];
	AUTO_FREE char *dir = path_join(store_path(v->store), ENGINE_INCOMING), *path = NULL;
	int fd;

	pack_file_name(hex_encode(pack->b, sizeof(pack->b), hex), end, name);
	path = dir ? path_join(dir, name) : NULL;
	if (!path)
		return err_nomem(err);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	return fd < 0 ? err_sys(err, "opening '%s'", path) : fd;
}

static int read_index(int fd, struct buf *out, struct err *err)
{
	ssize_t n;

	if (!buf_extend(out, 64 << 10))
		return err_nomem(err);
	buf_reset(out);
	for (;;) {
		void *room = buf_extend(out, 64 << 10);

		if (!room)
			return err_nomem(err);
		n = fdio_read(fd, room, 64 << 10);
		if (n < 0)
			return err_set(err, (int)n, "reading an index: %s", strerror((int)-n));
		out->len -= (size_t)((64 << 10) - n);
		if (n < 64 << 10)
			return 0;
		if (out->len > PACK_INDEX_MAX)
			return err_set(err, -EFBIG, "the index of a pack is too large");
	}
}

/* 1 if its index is not here: it belongs to what this store has of the name, most likely. */
static int add_pack(struct receiving *v, const char *hex, struct err *err)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct digest pack, of;
	AUTO_CLOSE int fd = -1;
	uint64_t size;
	int r, pack_fd;

	if (hex_decode(hex, strlen(hex), pack.b, sizeof(pack.b)) < 0)
		return err_set(err, -EINVAL, "'%.80s' is no digest of a pack", hex);
	fd = open_incoming(v, &pack, "index", err);
	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	r = read_index(fd, &index, err);
	if (r == 0)
		r = pack_index_head(index.data, index.len, &of, &size, err);
	if (r < 0)
		return r;
	if (!digest_equal(&of, &pack))
		return err_set(err, -EBADMSG, "the index of pack %.80s belongs to another pack",
			       hex);
	pack_fd = open_incoming(v, &pack, "pack", err);
	if (pack_fd < 0 && pack_fd != -ENOENT)
		return pack_fd;
	return pack_set_add(&v->packs, index.data, index.len, pack_fd < 0 ? -1 : pack_fd, err);
}

static int open_packs(struct receiving *v, struct err *err)
{
	const struct engine_receive_options *o = v->options;
	int r = 0;

	if (o->n_packs > PACKS_MAX)
		return err_set(err, -E2BIG, "the snapshot has more than %d packs", PACKS_MAX);
	if (o->lazy[0])
		return receive_lazy_open(&v->lazy, v->store, o, err);
	v->unlisted = calloc(o->n_packs + 1, sizeof(*v->unlisted));
	if (!v->unlisted)
		return err_nomem(err);
	for (size_t i = 0; r >= 0 && i < o->n_packs; i++) {
		r = add_pack(v, o->packs[i], err);
		v->unlisted[i] = r == 1;
		v->packs.unlisted |= r == 1;
	}
	return r < 0 ? r : 0;
}

/* --- objects ------------------------------------------------------------------------------ */

static int on_step(void *ctx, uint64_t objects, uint64_t bytes, struct err *err)
{
	struct receiving *v = ctx;
	const struct engine_watch *watch = &v->options->watch;
	const struct engine_progress p = { .doing = "storing",
					   .files = objects,
					   .bytes = bytes,
					   .done = objects,
					   .total = v->packs.where.n };

	if (watch->fn)
		watch->fn(&p, watch->ctx);
	/* A system call for each of many small directories would cost as much as reading them. */
	return v->steps++ % STEPS_BETWEEN == 0 ? task_wanted(v->task, err) : 0;
}

/* The root of a snapshot that is like it, held until the batch ends; NULL: there is none. */
static int hold_base(struct receiving *v, struct batch *b, const struct object_id **ret,
		     struct err *err)
{
	struct err gone = { 0 };
	int r;

	*ret = NULL;
	if (!v->options->base || snapshot_find(v->store, v->options->base, &v->base, &gone) < 0)
		return 0; /* only slower */
	r = batch_pin(b, &v->base.root, err);
	if (r == 0)
		*ret = &v->base.root;
	return r;
}

static int bring(struct receiving *v, struct batch *b, struct err *err)
{
	struct inbound_options o = {
		.packs = &v->packs, .known = &v->known, .step = on_step, .ctx = v
	};
	struct digest root;
	struct err why = { 0 };
	int r;

	if (!v->options->root ||
	    hex_decode(v->options->root, strlen(v->options->root), root.b, sizeof(root.b)) < 0)
		return err_set(err, -EINVAL, "the root of the snapshot is no digest");
	v->dir = path_join(store_path(v->store), DIGESTS_DIR);
	if (!v->dir)
		return err_nomem(err);
	r = digests_load(&v->known, v->dir, err);
	if (r == 0)
		r = hold_base(v, b, &o.base, err);
	if (v->lazy.supply) {
		receive_lazy_options(&v->lazy, &o);
		batch_expect_passing_trees(b);
	}
	if (r < 0)
		return r;
	r = inbound_root(b, &o, &root, &v->got, &why);
	return r < 0 ? err_set(err, r == -EILSEQ ? -EBADMSG : r, "%s", why.msg) : r;
}

static int add_wanted(struct engine_received *ret, const char *hex, struct err *err)
{
	ret->wanted[ret->n_wanted] = strdup(hex);
	if (!ret->wanted[ret->n_wanted])
		return err_nomem(err);
	ret->n_wanted++;
	return 0;
}

static int report_wanted(struct receiving *v, struct engine_received *ret, struct err *err)
{
	const struct engine_receive_options *o = v->options;
	int r = 0;

	ret->snapshot.message = strdup("");
	if (v->lazy.supply)
		return ret->snapshot.message
			   ? supply_missed(v->lazy.supply, &ret->ranges, &ret->n_ranges, err)
			   : err_nomem(err);
	ret->wanted = calloc(o->n_packs + 1, sizeof(*ret->wanted));
	if (!ret->wanted || !ret->snapshot.message)
		return err_nomem(err);
	for (size_t i = 0; r == 0 && i < v->packs.n; i++) {
		const struct pack *p = &v->packs.packs[i];
		char hex[SHA256_HEX_SIZE];

		if (p->wanted)
			r = add_wanted(ret, hex_encode(p->digest.b, sizeof(p->digest.b), hex), err);
	}
	for (size_t i = 0; r == 0 && v->packs.asked && i < o->n_packs; i++)
		if (v->unlisted[i])
			r = add_wanted(ret, o->packs[i], err);
	return r;
}

/* --- the record --------------------------------------------------------------------------- */

static int find_project(struct receiving *v, struct err *err)
{
	int r;

	project_done(&v->project);
	v->project = (struct project){ 0 };
	r = project_choose(&v->task->engine, v->store, NULL, &v->project, err);
	if (r < 0)
		return r;
	v->is_new = catalog_id_is_zero(&v->project.id);
	return 0;
}

/* A clone of it has as its own what others did since the project was last the same. */
static void fill_base(struct receiving *v)
{
	CLEANUP(snapshot_done) struct snapshot since = { 0 };
	struct err gone = { 0 };

	if (!v->options->since || snapshot_find(v->store, v->options->since, &since, &gone) < 0 ||
	    !catalog_id_same(&since.project, &v->project.id))
		return;
	v->snapshot.base = v->snapshot.parent = since.id;
}

static int fill_record(struct receiving *v, struct err *err)
{
	const struct engine_receive_options *o = v->options;
	struct snapshot *s = &v->snapshot;
	int r;

	/* When it was made is a label: the clock of another machine must not order this history. */
	s->created = engine_now();
	s->made = SNAPSHOT_MADE_AUTOMATICALLY;
	s->message = (char *)(uintptr_t)(o->message ? o->message : "");
	s->meta = (char *)(uintptr_t)o->meta;
	s->root = v->got.root;
	s->files = v->got.files;
	s->bytes = v->got.bytes;
	if (v->is_new) {
		v->project.created = engine_now();
		moved_identify(&v->project);
		r = catalog_id_new(&v->project.id, err);
		if (r < 0)
			return r;
	}
	s->project = v->project.id;
	/* A stranger's state is none of the project's own: going there passes the guard. */
	s->clone = (char *)(uintptr_t)(o->tag ? o->tag : "remote");
	fill_base(v);
	return catalog_id_new(&s->id, err);
}

static int put_records(struct receiving *v, struct batch *b, struct err *err)
{
	AUTO_FREE char *full = NULL;
	struct tag tag = { 0 };
	int r = fill_record(v, err);

	if (r == 0 && v->is_new)
		r = project_put(b, &v->project, REF_NEW, err);
	if (r == 0)
		r = snapshot_put(b, &v->snapshot, REF_NEW, err);
	if (r == 0 && v->options->hidden)
		r = hidden_put_of(b, &v->snapshot.id, &v->hidden, err);
	if (r == 0 && v->lazy.supply)
		r = receive_lazy_put(&v->lazy, b, &v->snapshot, err);
	if (r < 0 || !v->options->tag)
		return r;
	full = tag_full_name(&v->project.id, v->options->tag);
	if (!full)
		return err_nomem(err);
	tag.name = full;
	tag.snapshot = v->snapshot.id;
	return tag_put(b, &tag, REF_REPLACE, err);
}

/*
 * The caller has the turn of the project.  A lazy fetch is for clones, which power loss may take as long as nothing in
 * them was synced: their first sync makes this one durable, too.
 */
static int commit(struct receiving *v, struct batch *b, struct err *err)
{
	struct host *h = v->task->host;
	int r;

	pthread_rwlock_rdlock(&h->snapshots);
	r = find_project(v, err);
	if (r == 0)
		r = put_records(v, b, err);
	if (r == 0)
		r = task_wanted(v->task, err);
	if (r == 0)
		r = batch_commit(b, v->lazy.supply ? BATCH_SAFE : BATCH_DURABLE, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

static int describe(struct receiving *v, struct engine_received *ret, struct err *err)
{
	struct err ignored = { 0 };
	int r;

	/* Slower next time, and no reason to fail what is done.  Trees with promises are replaced soon. */
	if (!v->lazy.supply && digests_save(&v->known, v->dir, &ignored) < 0)
		engine_warn(&v->task->engine, "%s, continuing", ignored.msg);
	ret->registered = v->is_new;
	ret->objects = v->got.objects;
	ret->project = strdup(v->project.path);
	if (!ret->project)
		return err_nomem(err);
	r = history_entry(&v->snapshot, &ret->snapshot, err);
	return r == 0 && v->options->tag ? tag_append(&ret->snapshot, v->options->tag, err) : r;
}

static int receive(struct task *task, const struct engine_receive_options *options,
		   struct engine_received *ret, struct lazy *ret_lazy, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(receiving_done) struct receiving v = { .task = task, .options = options };
	CLEANUP(engine_received_done) struct engine_received got = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = options->meta ? meta_check(options->meta, err) : 0;

	if (r == 0 && options->tag)
		r = tag_check_name(options->tag, err);
	if (r == 0 && options->hidden)
		r = hidden_read(options->hidden, &v.hidden, err);
	if (r < 0)
		return r;
	r = engine_store(&task->engine, STORE_WRITE, &v.store, err);
	if (r == 0)
		r = find_project(&v, err);
	if (r == 0)
		r = open_packs(&v, err);
	if (r == 0)
		r = batch_begin(v.store, &b, err);
	if (r < 0)
		return r;
	r = bring(&v, b, err);
	if (r == -ENODATA) {
		r = report_wanted(&v, &got, err);
	} else if (r == 0) {
		r = turns_take(&task->host->turns, v.project.path, &turn, err);
		if (r == 0)
			r = commit(&v, b, err);
		if (r == 0)
			r = describe(&v, &got, err);
	}
	if (r < 0)
		return r;
	if (ret_lazy && got.n_ranges == 0) {
		*ret_lazy = v.lazy.record;
		got.promised = v.lazy.record.files > 0;
	}
	*ret = TAKE_STRUCT(got);
	return 0;
}

int receive_snapshot(struct task *task, const struct engine_receive_options *options,
		     struct engine_received *ret, struct err *err)
{
	if (options->lazy[0])
		return err_set(err, -EINVAL, "a lazy fetch is received lazily");
	return receive(task, options, ret, NULL, err);
}

int receive_lazily(struct task *task, const struct engine_receive_options *options,
		   struct engine_received *ret, struct err *err)
{
	struct promises *p = task->host->promises;
	struct promises_walk walk = { 0 };
	struct lazy record = { 0 };
	int r;

	/* Then all of it is fetched at once. */
	if (!promises_have_room(p) || !promises_may_begin(p, &walk))
		return err_set(err, -EBUSY, "others need all states to be complete");
	r = receive(task, options, ret, &record, err);
	if (r < 0 || record.files == 0) {
		promises_give_up(p, &walk);
		return r;
	}
	promises_begin(p, &walk, &record, NULL, false);
	return unneeded_await_clone(task, &record.snapshot, err);
}
