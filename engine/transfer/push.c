/*
 * Objects that the remote lacks go into two packs that fill up side by side: content in one,
 * directories in the other, so that a reader can fetch the directories first. A full pack is sent
 * with its index while the next one is made (sender-i.h). The manifest, which lists the packs of
 * the last push and the new ones, goes last and moves the name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/text.h"
#include "base/user.h"
#include "engine/find/hidden-i.h"
#include "engine/transfer/beside-i.h"
#include "engine/transfer/known-i.h"
#include "engine/transfer/outgoing-i.h"
#include "engine/transfer/signers-i.h"
#include "engine/transfer/there-i.h"
#include "remote/pack/outbound.h"
#include "remote/signature.h"

/* A pack that is being filled. */
struct filling {
	int fd; /* of a file without a name; -1: nothing is in it yet */
	struct pack_writer *writer;
};

enum { FILLING_CONTENT, FILLING_TREES, N_FILLING };

struct pushing {
	struct engine *e;
	const struct engine_push_options *options;
	struct store *store;
	struct target target;
	struct hold hold;
	struct connections lines;
	struct depot *depot;    /* the first of them */
	struct manifest before; /* what the name means now; no packs: nothing */
	struct manifest_snapshot told_before;
	struct digest digest_before; /* all zero: nothing */
	bool blind; /* what the name means cannot be read: replace it, whatever it is */
	struct digest digest_like; /* of `before`: that, or of the base */
	struct there there;        /* what its packs hold */
	struct digests known;
	char *dir; /* owned; STORE/remote */
	struct filling filling[N_FILLING];
	struct sender sender;
	struct sealing sealing;
	struct manifest manifest; /* that comes of it */
	struct manifest_snapshot told;
	struct meter meter;
	uint64_t objects, packs;
};

static void pushing_done(struct pushing *p)
{
	for (int i = 0; i < N_FILLING; i++) {
		pack_writer_free(p->filling[i].writer);
		cleanup_close(&p->filling[i].fd);
	}
	target_done(&p->target);
	hold_done(&p->hold);
	sender_done(&p->sender);
	sealing_done(&p->sealing);
	connections_done(&p->lines);
	manifest_done(&p->before);
	manifest_snapshot_done(&p->told_before);
	there_done(&p->there);
	digests_done(&p->known);
	manifest_done(&p->manifest);
	manifest_snapshot_done(&p->told);
	free(p->dir);
}

/* --- what is there ------------------------------------------------------------------------ */

static int check_stale(struct pushing *p, struct err *err)
{
	int r;

	if (p->options->force)
		return 0;
	r = known_covers(p->e, &p->target, &p->hold.states[0].snapshot, &p->digest_before, err);
	if (r != 0)
		return r < 0 ? r : 0;
	return err_set(err, -ESTALE,
		       "'%s' of '%s' has changes that are not in what you push, and they would no "
		       "longer have a name",
		       p->target.name, p->target.url);
}

static enum there_plan plan_of(const struct pushing *p)
{
	const struct snapshot *s = &p->hold.states[0].snapshot;

	return there_plan(&p->before, s->files, s->bytes);
}

static int load_there(struct pushing *p, struct err *err)
{
	const struct there_source from = { .lines = &p->lines,
					   .sealing = &p->sealing,
					   .manifest = &p->before,
					   .target = &p->target };
	int r = there_load(&p->there, &from, plan_of(p), err);

	for (size_t i = 0; r == 0 && i < p->before.n; i++)
		if (p->there.listed[i])
			r = manifest_add_pack(&p->manifest, &p->before.packs[i], err);
	return r;
}

/* Are packs of this manifest for the same readers? */
static bool has_readers(const struct pushing *p, const struct manifest *m)
{
	return m->sealed == sealing_is_on(&p->sealing) &&
	       (!m->sealed || digest_equal(&m->recipients, &p->sealing.recipients));
}

/* Can the next manifest list packs of this one?  They need the same readers, and content that is still needed. */
static bool builds_on(const struct pushing *p)
{
	return !p->options->whole && plan_of(p) != THERE_NONE && has_readers(p, &p->before);
}

/* The name is new; what the base's packs hold need not travel. */
static int look_base(struct pushing *p, struct err *err)
{
	int r = manifest_get(p->depot, p->options->base, &p->before, NULL, &p->digest_like, err);

	if (r == -ENOENT)
		return 0;
	/* It was made from what was meant for few. */
	if (r == 0 && p->before.sealed && !sealing_is_on(&p->sealing))
		return err_set(err, -EINVAL,
			       "'%s' of '%s' is encrypted, and no recipients are known for what "
			       "was made from it",
			       p->options->base, p->target.url);
	if (r < 0 || !builds_on(p))
		return r;
	r = manifest_get_snapshot(p->depot, &p->before, &p->sealing.opener, &p->told_before, err);
	return r < 0 ? err_wrap(err, r, "'%s' of '%s'", p->options->base, p->target.url)
		     : load_there(p, err);
}

static int build_beside(struct pushing *p, struct beside *b, struct err *err)
{
	const struct snapshot *s = &p->hold.states[0].snapshot;
	struct there_source from = { .sealing = &p->sealing,
				     .manifest = &b->manifest,
				     .target = &b->target };
	enum there_plan plan;
	int r = beside_open(p->e, b, &p->lines, p->options->rate, p->options->jobs, err);

	if (r < 0)
		return r;
	from.lines = b->lines;
	plan = there_plan(&b->manifest, s->files, s->bytes);
	if (!has_readers(p, &b->manifest) || b->manifest.n == 0 || plan == THERE_NONE)
		return -EXDEV;
	r = there_load(&p->there, &from, plan, err);
	if (r == 0)
		r = beside_take(b, p->there.listed, &p->lines, err);
	for (size_t i = 0; r == 0 && i < b->manifest.n; i++)
		if (p->there.listed[i])
			r = manifest_add_pack(&p->manifest, &b->manifest.packs[i], err);
	return r;
}

/* The name is new; what this store sent under another one need not travel. */
static int look_beside(struct pushing *p, struct err *err)
{
	CLEANUP(beside_done) struct beside b = { 0 };
	struct err ignored = { 0 };
	int r;

	if (p->options->whole)
		return 0;
	r = beside_find(p->e, &p->target, &p->hold.states[0].snapshot, p->options->mount, &b, err);
	if (r < 0 || !b.target.url)
		return r;
	r = build_beside(p, &b, &ignored);
	if (r == 0)
		return 0;
	/* Whatever the reason is, all of it can be sent. */
	there_done(&p->there);
	manifest_done(&p->manifest);
	return 0;
}

static int look_there(struct pushing *p, struct err *err)
{
	int r = manifest_get(p->depot, p->target.name, &p->before, NULL, &p->digest_before, err);

	/* A depot that lost the manifest is mended by sending everything. */
	p->blind = r == -EBADMSG && p->options->whole && p->options->force;
	if (r == -ENOENT || p->blind)
		return p->options->base ? look_base(p, err) : look_beside(p, err);
	p->digest_like = p->digest_before;
	if (r == 0 && p->before.sealed && !sealing_is_on(&p->sealing))
		return err_set(err, -EINVAL,
			       "'%s' of '%s' is encrypted: say for whom with --encrypt-to, or use "
			       "another name",
			       p->target.name, p->target.url);
	if (r == 0)
		r = check_stale(p, err);
	if (r < 0 || !builds_on(p))
		return r;
	r = manifest_get_snapshot(p->depot, &p->before, &p->sealing.opener, &p->told_before, err);
	if (r == 0)
		r = load_there(p, err);
	if (r == -EACCES && p->before.sealed)
		return err_set(
		    err, r,
		    "'%s' of '%s' is encrypted and was not pushed from here: name your key "
		    "with --identity, or send all of it with --whole",
		    p->target.name, p->target.url);
	return r < 0 ? err_wrap(err, r, "'%s' of '%s'", p->target.name, p->target.url) : r;
}

/* --- packs -------------------------------------------------------------------------------- */

static int begin_pack(struct pushing *p, struct filling *f, struct err *err)
{
	int r;

	if (f->writer)
		return 0;
	f->fd = fdio_open_nameless(p->dir, err);
	if (f->fd < 0) {
		r = f->fd;
		f->fd = -1;
		return r;
	}
	return pack_writer_new(f->fd, &f->writer, err);
}

static int end_pack(struct pushing *p, struct filling *f, struct err *err)
{
	struct parcel one = { .fd = -1 };
	struct manifest_pack *pack = &one.pack;
	int r;

	if (!f->writer)
		return 0;
	one.fd = TAKE_FD(f->fd);
	r = pack_writer_finish(f->writer, &pack->pack.digest, &pack->pack.size, &one.index, err);
	pack_writer_free(TAKE_PTR(f->writer));
	if (r == 0) {
		pack->index.size = one.index.len;
		pack->index.digest = digest_of(one.index.data, one.index.len);
		r = sealing_is_on(&p->sealing) ? sealing_close_parcel(&p->sealing, &one, err) : 0;
	}
	if (r == 0)
		r = manifest_add_pack(&p->manifest, pack, err);
	/* The remote had this pack already, though we did not know what it holds. */
	if (r != 0) {
		parcel_done(&one);
		return r < 0 ? r : 0;
	}
	p->packs++;
	return sender_add(&p->sender, &one, err);
}

static bool on_has(void *ctx, enum object_kind kind, const struct digest *digest)
{
	const struct pushing *p = ctx;

	return there_has(&p->there, kind, digest);
}

static int on_put(void *ctx, enum object_kind kind, const struct digest *digest, const void *data,
		  size_t len, struct err *err)
{
	struct pushing *p = ctx;
	struct filling *f = &p->filling[kind == OBJECT_CHUNK ? FILLING_CONTENT : FILLING_TREES];
	int r = begin_pack(p, f, err);

	if (r == 0)
		r = pack_writer_add(f->writer, kind, digest, data, len, err);
	p->objects++;
	return r == 0 && pack_writer_is_full(f->writer) ? end_pack(p, f, err) : r;
}

static int on_step(void *ctx, uint64_t files, struct err *err)
{
	struct pushing *p = ctx;

	pthread_mutex_lock(&p->meter.lock);
	p->meter.files += files;
	pthread_mutex_unlock(&p->meter.lock);
	return meter_moved(0, &p->meter);
}

static int send_objects(struct pushing *p, struct err *err)
{
	const struct outbound_sink sink = { on_has, on_put, on_step, p };
	int r = transfer_dir(p->e, DIGESTS_DIR, &p->dir, err);

	p->meter.total = p->hold.states[0].snapshot.files;
	p->meter.by_files = true;
	sender_begin(&p->sender, &p->lines, &p->meter);
	if (r == 0)
		r = digests_load(&p->known, p->dir, err);
	if (r == 0)
		r = outbound_root(p->store, &p->known, &p->hold.held[0].root, &sink, &p->told.root,
				  err);
	for (int i = 0; r == 0 && i < N_FILLING; i++)
		r = end_pack(p, &p->filling[i], err);
	return r < 0 ? r : sender_finish(&p->sender, err);
}

/* --- the manifest ------------------------------------------------------------------------- */

/* A run that began before the state was taken had kept what it may have moved in it. */
static int tell_hidden(struct pushing *p, struct err *err)
{
	CLEANUP(hidden_done) struct hidden h = { 0 };
	CLEANUP(snapshot_done) struct snapshot still = { 0 };
	const struct state *state = &p->hold.states[0];
	int found = hidden_load_of(p->store, &state->snapshot, &h, err);
	int r = found < 0 ? found : snapshot_get(p->store, &state->snapshot.id, &still, err);

	/* Its list went with it, so we cannot tell whether there was one. */
	if (r == -ENOENT)
		return err_set(err, r, "'%.80s' was removed just now", state->text);
	return r < 0 || found == 0 ? r : hidden_write(&h, &p->told.hidden, err);
}

static int describe(struct pushing *p, struct err *err)
{
	static const struct digest none;
	const struct snapshot *s = &p->hold.states[0].snapshot;
	const char *message = p->options->message ? p->options->message : s->message;
	struct manifest_snapshot *told = &p->told;
	char before[DIGEST_TEXT_SIZE], host[256] = "";
	const char *project = path_base(p->hold.states[0].project.path);
	const char *parent =
	    digest_equal(&p->digest_before, &none) ? NULL : digest_text(&p->digest_before, before);

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	told->created = s->created;
	told->pushed = engine_now();
	told->files = s->files;
	told->bytes = s->bytes;
	told->who = user_name(geteuid());
	if (!told->who)
		return err_nomem(err);
	if (text_copy(&told->message, message, err) < 0 || text_copy(&told->host, host, err) < 0 ||
	    text_copy(&told->project, project, err) < 0 ||
	    text_copy(&told->meta, s->meta, err) < 0 || text_copy(&told->parent, parent, err) < 0)
		return -ENOMEM;
	return 0;
}

static int sign(struct pushing *p, struct err *err)
{
	AUTO_FREE char *place = NULL;
	int r = p->options->sign ? signers_place(&p->target, NULL, &place, err) : 0;

	return r < 0 || !place ? r : signature_make(&p->manifest, place, p->options->sign, err);
}

static int send_manifest(struct pushing *p, struct digest *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf config = BUF_INIT, text = BUF_INIT;
	int r = describe(p, err);

	if (r == 0)
		r = manifest_snapshot_encode(&p->told, &config, err);
	p->manifest.sealed = sealing_is_on(&p->sealing);
	p->manifest.recipients = p->sealing.recipients;
	if (r == 0 && p->manifest.sealed)
		r = sealing_close(&p->sealing, &config, err);
	if (r == 0)
		r = depot_put(p->depot, config.data, config.len, &p->manifest.config.digest, err);
	p->manifest.config.size = config.len;
	if (r == 0)
		r = sign(p, err);
	if (r == 0)
		r = manifest_encode(&p->manifest, &text, err);
	if (r < 0)
		return r;
	if (text.len > DEPOT_MANIFEST_MAX)
		return err_set(err, -E2BIG,
			       "the snapshot has too many packs: push it with --whole");
	p->meter.bytes += config.len + text.len;
	*ret = digest_of(text.data, text.len);
	p->lines.cache.depot.put(&p->lines.cache, ret, text.data, text.len);
	return p->depot->ops->put_manifest(p->depot, p->target.name,
					   p->blind ? NULL : &p->digest_before, DEPOT_MANIFEST_TYPE,
					   text.data, text.len, err);
}

/* --- the verb ----------------------------------------------------------------------------- */

static void fill_answer(struct pushing *p, const struct digest *manifest, struct engine_pushed *ret)
{
	digest_text(manifest, ret->manifest);
	digest_text(&p->told.root, ret->root);
	ret->bytes_sent = p->meter.bytes;
	ret->objects_sent = p->objects;
	ret->packs_sent = p->packs;
	ret->packs = p->manifest.n;
	ret->bytes_skipped = 0;
	for (size_t i = 0; i + p->packs < p->manifest.n; i++)
		ret->bytes_skipped += p->manifest.packs[i].pack.size;
	ret->remote = TAKE_PTR(p->target.url);
	ret->name = TAKE_PTR(p->target.name);
	ret->encrypted = p->manifest.sealed;
	ret->signed_as = TAKE_PTR(p->manifest.signed_as);
	ret->state = TAKE_PTR(p->hold.states[0].text);
}

static bool hides_the_same(const struct pushing *p)
{
	const char *now = p->told.hidden, *before = p->told_before.hidden;

	return now && before ? strcmp(now, before) == 0 : now == before;
}

static bool is_due(const struct pushing *p)
{
	const uint64_t ms = p->options->renew_ms;

	return ms > 0 && engine_now() - p->told_before.pushed > (int64_t)ms * 1000000;
}

static int push(struct pushing *p, struct digest *ret_manifest, bool *ret_same, struct err *err)
{
	struct err ignored = { 0 };
	const struct sealing_options seal = { .to = p->options->encrypt_to,
					      .n_to = p->options->n_encrypt_to,
					      .identity = p->options->identity,
					      .closes = true };
	int r = sealing_begin(p->e, &p->target, &p->lines.cache, &seal, &p->sealing, err);

	if (r == 0)
		r = sealing_prepare(&p->sealing, err);
	if (r == 0)
		r = tell_hidden(p, err);
	if (r == 0)
		r = look_there(p, err);
	if (r == 0)
		r = send_objects(p, err);
	if (r < 0)
		return r;
	*ret_same = p->before.n > 0 && p->packs == 0 &&
		    digest_equal(&p->told.root, &p->told_before.root) && hides_the_same(p) &&
		    !p->options->message && !p->options->sign && !is_due(p);
	*ret_manifest = p->digest_like;
	/* Our own copy of the config says nothing of theirs. */
	r = *ret_same ? there_check_blob(&p->target, p->depot, &p->before.config, "its config", err)
		      : send_manifest(p, ret_manifest, err);
	if (r == 0 && digests_save(&p->known, p->dir, &ignored) < 0)
		engine_warn(p->e, "%s, continuing", ignored.msg);
	return r;
}

static int open_target(struct pushing *p, struct err *err)
{
	int r = target_find(p->e, p->options->to, &p->target, err);

	if (r < 0)
		return r;
	if (!p->target.name)
		p->target.name = strdup(TRANSFER_NAME);
	if (!p->target.name)
		return err_nomem(err);
	/* Before anything is sent that would have no name then. */
	if (p->options->sign && access(p->options->sign, R_OK) < 0)
		return err_sys(err, "reading the key '%s'", p->options->sign);
	r = connections_open(p->e, &p->lines, p->target.url, p->options->rate, p->options->jobs,
			     err);
	p->depot = p->lines.list[0];
	return r;
}

static void note_pushed(struct pushing *p, const struct digest *manifest, bool same)
{
	const struct snapshot *state = &p->hold.states[0].snapshot;
	struct seen seen = { .manifest = *manifest,
			     .pushed = same ? p->told_before.pushed : p->told.pushed };
	struct err err = { 0 };

	catalog_id_hex(&state->id, seen.snapshot);
	seen_save(p->e, &p->target, &seen);
	if (known_push(p->e, &p->target, state, manifest, &err) < 0)
		engine_warn(p->e, "%s, continuing", err.msg);
}

int engine_push(struct engine *e, const struct engine_push_options *options,
		struct engine_pushed *ret, struct err *err)
{
	CLEANUP(pushing_done) struct pushing p = { .e = e,
						   .options = options,
						   .hold = HOLD_INIT,
						   .filling = { { .fd = -1 }, { .fd = -1 } },
						   .meter = { .lock = PTHREAD_MUTEX_INITIALIZER,
							      .watch = &options->watch,
							      .doing = "sending" } };
	const uint64_t start = engine_clock_ms();
	struct digest manifest;
	bool same = false;
	int r = open_target(&p, err);

	if (r == 0)
		r = outgoing_choose(e, options, &p.hold, err);
	if (r == 0)
		r = engine_store(e, STORE_READ, &p.store, err);
	if (r == 0)
		r = push(&p, &manifest, &same, err);
	if (r < 0)
		return r;
	note_pushed(&p, &manifest, same);
	cache_sweep(&p.lines.cache, &p.manifest);
	fill_answer(&p, &manifest, ret);
	ret->same = same;
	ret->elapsed_ms = engine_clock_ms() - start;
	return 0;
}
