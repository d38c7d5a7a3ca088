#include "engine/transfer/sealing-i.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "engine/find/config-i.h"
#include "remote/pack/digests.h"
#include "remote/pack/pack.h"

void sealing_done(struct sealing *s)
{
	seal_done(&s->seal);
	free(s->dir);
	s->dir = NULL;
}

static int open_blob(void *ctx, struct depot *d, const struct manifest_blob *blob, struct buf *out,
		     struct err *err)
{
	return sealing_get(ctx, d, blob, out, err);
}

/* What the options left open. */
static int read_config(struct sealing *s, const struct target *t, bool recipients, struct err *err)
{
	AUTO_FREE char *path = config_file(s->e->home, CONFIG_FILE), *file = NULL;
	struct config c = { 0 };
	int r = path && t->remote ? config_read(path, &c, err) : 0;

	for (size_t i = 0; r == 0 && i < c.remotes.n; i++) {
		if (strcmp(c.remotes.list[i], t->remote) != 0)
			continue;
		if (!s->seal.identity && c.remote_identity.list[i][0] != '\0')
			r = config_expand(s->e->home, c.remote_identity.list[i], &s->seal.identity,
					  err);
		if (r < 0 || !recipients || c.remote_recipients.list[i][0] == '\0')
			continue;
		r = config_expand(s->e->home, c.remote_recipients.list[i], &file, err);
		if (r == 0)
			r = seal_add_recipient(&s->seal, file, err);
		if (r == 0 && s->seal.recipients.n == 0)
			r = err_set(err, -EINVAL, "'%s' lists no recipient", file);
	}
	config_done(&c);
	return r;
}

int sealing_begin(struct engine *e, const struct target *t, struct cache *cache,
		  const struct sealing_options *o, struct sealing *s, struct err *err)
{
	int r = 0;

	s->e = e;
	s->cache = cache;
	s->opener = (struct manifest_opener){ .open = open_blob, .ctx = s };
	for (size_t i = 0; r == 0 && i < o->n_to; i++) {
		r = seal_add_recipient(&s->seal, o->to[i], err);
		if (r == 0 && s->seal.recipients.n == 0)
			r = err_set(err, -EINVAL, "'%.100s' lists no recipient", o->to[i]);
	}
	if (r == 0 && o->identity && access(o->identity, R_OK) < 0)
		return err_sys(err, "reading the key '%s'", o->identity);
	if (r == 0 && o->identity)
		r = text_set(&s->seal.identity, err, "%s", o->identity);
	if (r == 0)
		r = read_config(s, t, o->closes && o->n_to == 0, err);
	return r < 0 ? r : seal_fingerprint(&s->seal, &s->recipients, err);
}

bool sealing_is_on(const struct sealing *s)
{
	return s->seal.recipients.n > 0;
}

int sealing_prepare(struct sealing *s, struct err *err)
{
	int r = s->dir ? 0 : transfer_dir(s->e, DIGESTS_DIR, &s->dir, err);

	s->seal.dir = s->dir;
	return r;
}

int sealing_get(struct sealing *s, struct depot *d, const struct manifest_blob *blob,
		struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf sealed = BUF_INIT;
	int r;

	if (cache_noted(s->cache, &blob->digest, out) > 0)
		return 0;
	if (!s->seal.identity)
		return err_set(err, -EACCES, "it is encrypted: name your key with --identity");
	r = depot_get(d, &blob->digest, (size_t)blob->size, &sealed, NULL, err);
	return r < 0 ? r : seal_open(&s->seal, &sealed, out, err);
}

int sealing_close(struct sealing *s, struct buf *bytes, struct err *err)
{
	CLEANUP(buf_done) struct buf sealed = BUF_INIT;
	struct digest d;
	int r = seal_close(&s->seal, bytes, &sealed, err);

	if (r < 0)
		return r;
	d = digest_of(sealed.data, sealed.len);
	cache_note(s->cache, &d, bytes);
	buf_swap(bytes, &sealed);
	return 0;
}

int sealing_close_parcel(struct sealing *s, struct parcel *p, struct err *err)
{
	AUTO_CLOSE int fd = seal_close_file(&s->seal, p->fd, err);
	int r;

	if (fd < 0)
		return fd;
	r = seal_measure(fd, &p->pack.pack.digest, &p->pack.pack.size, err);
	if (r == 0)
		r = sealing_close(s, &p->index, err);
	if (r < 0)
		return r;
	p->sealed = true;
	cleanup_close(&p->fd);
	p->fd = TAKE_FD(fd);
	p->pack.index.size = p->index.len;
	p->pack.index.digest = digest_of(p->index.data, p->index.len);
	return 0;
}
