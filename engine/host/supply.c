#include "engine/host/supply-i.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/lock.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/host/supplying-i.h"

/* --- opening ------------------------------------------------------------------------------ */

void supply_free(struct supply *s)
{
	if (!s)
		return;
	VEC_FREE(it, s->frames, s->packs.n, free(it->list));
	free(s->wants);
	pack_set_done(&s->packs);
	cleanup_close(&s->dir);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Which frames of the last pack have come. */
static int load_here(struct supply *s, const char *hex, struct err *err)
{
	struct pack *p = &s->packs.packs[s->packs.n - 1];
	char name[PACK_NAME_SIZE];
	AUTO_CLOSE int fd = openat(s->dir, pack_file_name(hex, "have", name),
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "opening '%s'", name);
	n = fdio_pread(fd, p->here, p->n_frames, 0);
	if (n < 0)
		return err_set(err, (int)n, "reading '%s': %s", name, strerror((int)-n));
	for (ssize_t i = 0; i < n; i++)
		p->here[i] = p->here[i] == 1;
	return 0;
}

static int add_pack(struct supply *s, const char *hex, struct err *err)
{
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	char name[PACK_NAME_SIZE];
	struct digest pack, of;
	uint64_t size;
	int r, fd;

	if (strlen(hex) != 64 || hex_decode(hex, 64, pack.b, sizeof(pack.b)) < 0)
		return err_set(err, -EINVAL, "'%.80s' is no digest of a pack", hex);
	r = fdio_read_file(s->dir, pack_file_name(hex, "index", name), PACK_INDEX_MAX, &index, err);
	if (r == -ENOENT)
		return err_set(err, -ENODATA, "the index of pack %s has not come yet", hex);
	if (r == 0)
		r = pack_index_head(index.data, index.len, &of, &size, err);
	if (r < 0)
		return r;
	if (!digest_equal(&of, &pack))
		return err_set(err, -EBADMSG, "the index of pack %s belongs to another pack", hex);
	fd = openat(s->dir, pack_file_name(hex, "pack", name),
		    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, "opening '%s'", name);
	r = pack_set_add_partial(&s->packs, index.data, index.len, fd, err);
	return r < 0 ? r : load_here(s, hex, err);
}

static int make_frames(struct supply *s, struct err *err)
{
	s->frames = calloc(s->packs.n + 1, sizeof(*s->frames));
	if (!s->frames)
		return err_nomem(err);
	for (size_t i = 0; i < s->packs.n; i++) {
		const struct pack *p = &s->packs.packs[i];

		s->frames[i].list = calloc(p->n_frames + 1, sizeof(*s->frames[i].list));
		if (!s->frames[i].list)
			return err_nomem(err);
		for (uint32_t f = 0; f < p->n_frames; f++)
			s->frames[i].here += p->here[f];
		s->completed += s->frames[i].here == p->n_frames;
	}
	return 0;
}

int supply_open(const char *path, char *const *packs, size_t n, struct supply **ret,
		struct err *err)
{
	CLEANUP(supply_free_p) struct supply *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return err_nomem(err);
	pthread_mutex_init(&s->lock, NULL);
	sys_cond_init(&s->changed);
	s->packs.lock = &s->lock;
	s->opened_ms = s->news_ms = engine_clock_ms();
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir < 0)
		return err_sys(err, "opening '%s'", path);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_pack(s, packs[i], err);
	if (r == 0)
		r = make_frames(s, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct pack_set *supply_packs(struct supply *s)
{
	return &s->packs;
}

/* --- what is here ------------------------------------------------------------------------- */

bool supply_place(struct supply *s, struct supply_file *f)
{
	const struct pack_object *o;
	size_t pack;
	LOCKED(&s->lock);

	o = pack_set_find(&s->packs, f->kind, &f->digest, &pack);
	if (!o)
		return false;
	f->pack = (uint32_t)pack;
	f->frame = o->frame;
	return true;
}

bool supply_has_object(struct supply *s, const struct supply_file *f)
{
	LOCKED(&s->lock);

	return s->packs.packs[f->pack].here[f->frame];
}

uint64_t supply_completed(struct supply *s)
{
	LOCKED(&s->lock);

	return s->completed;
}

/* A range of frames of one pack. */
struct engine_range supply_range(const struct supply *s, size_t pack, uint32_t frame, uint32_t n)
{
	const struct pack *p = &s->packs.packs[pack];
	struct engine_range r = { .at = p->frames[frame].at, .frame = frame, .frames = n };

	for (uint32_t i = 0; i < n; i++)
		r.len += p->frames[frame + i].packed;
	hex_encode(p->digest.b, sizeof(p->digest.b), r.pack);
	return r;
}

int supply_missed(struct supply *s, struct engine_range **ret, size_t *ret_n, struct err *err)
{
	size_t cap = 0;
	LOCKED(&s->lock);

	for (size_t i = 0; i < s->packs.n; i++) {
		struct pack *p = &s->packs.packs[i];

		for (uint32_t f = 0; f < p->n_frames; f++) {
			if (!p->missed[f])
				continue;
			p->missed[f] = 0;
			if (!VEC_ROOM(*ret, *ret_n, cap))
				return err_nomem(err);
			(*ret)[(*ret_n)++] = supply_range(s, i, f, 1);
		}
		p->wanted = false;
	}
	return 0;
}
