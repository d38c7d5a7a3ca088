/*
 * Files of a supply into the store, and bytes of large ones; missing frames come next, wrong ones
 * come again.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/hex.h"
#include "base/lock.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/host/supplying-i.h"

/* lock held; what was missed comes next, or is forgotten */
static int take_missed(struct supply *s, bool urgent, struct err *err)
{
	for (size_t i = 0; i < s->packs.n; i++) {
		struct pack *p = &s->packs.packs[i];

		if (!p->wanted)
			continue;
		p->wanted = false;
		for (uint32_t f = 0; f < p->n_frames; f++) {
			struct frame *one = &s->frames[i].list[f];

			if (!p->missed[f])
				continue;
			p->missed[f] = 0;
			if (!urgent || one->state != FRAME_ABSENT)
				continue;
			if (!VEC_ROOM(s->wants, s->n_wants, s->cap_wants))
				return err_nomem(err);
			s->wants[s->n_wants++] = (struct want){ (uint32_t)i, f };
			one->state = FRAME_WANTED;
		}
	}
	pthread_cond_broadcast(&s->changed);
	return -EAGAIN;
}

/* lock held; it comes again, the second time after a while */
static int take_wrong_frame(struct supply *s, size_t pack, uint32_t frame, const struct err *why)
{
	struct frame *one = &s->frames[pack].list[frame];
	char name[PACK_NAME_SIZE], hex[SHA256_HEX_SIZE];
	struct pack *p = &s->packs.packs[pack];
	AUTO_CLOSE int fd = -1;

	p->wrong[frame] = 0;
	s->frames[pack].here--;
	hex_encode(p->digest.b, sizeof(p->digest.b), hex);
	fd = openat(s->dir, pack_file_name(hex, "have", name), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		IGNORE_RESULT(fdio_pwrite(fd, "\0", 1, (off_t)frame),
			      "it would be found wrong again");
	one->state = FRAME_ABSENT;
	if (s->next_pack > pack)
		s->next_pack = pack;
	if (one->strikes < SUPPLY_STRIKES && ++one->strikes < SUPPLY_STRIKES)
		return -EAGAIN;
	one->bad_until_ms = engine_clock_ms() + SUPPLY_BAD_MS;
	s->n_bad++;
	s->bad = *why;
	return -EBADMSG;
}

/* lock held; somebody else who read the same frame may have taken it already */
static int take_wrong(struct supply *s, const struct err *why)
{
	int r = -EAGAIN;

	for (size_t i = 0; i < s->packs.n; i++)
		for (uint32_t f = 0; f < s->packs.packs[i].n_frames; f++)
			if (s->packs.packs[i].wrong[f] &&
			    take_wrong_frame(s, i, f, why) == -EBADMSG)
				r = -EBADMSG;
	return r;
}

static int judge(struct supply *s, int r, bool urgent, struct err *err)
{
	LOCKED(&s->lock);

	if (r == -ENODATA)
		return take_missed(s, urgent, err);
	if (r == -EILSEQ)
		return take_wrong(s, err);
	return r == -EBADMSG ? -EPROTO : r;
}

int supply_content(struct supply *s, struct batch *b, struct digests *known,
		   const struct supply_file *what, bool urgent, struct content *ret,
		   struct err *err)
{
	const struct inbound_options o = { .packs = &s->packs, .known = known };

	return judge(s, inbound_content(b, &o, what->kind, &what->digest, what->size, ret, err),
		     urgent, err);
}

bool supply_has(struct supply *s, const struct supply_file *what, bool urgent)
{
	struct err ignored = { 0 };
	int r = inbound_is_here(&s->packs, what->kind, &what->digest, what->size, urgent, &ignored);

	if (r == -EILSEQ) {
		IGNORE_RESULT(judge(s, r, urgent, &ignored), "it comes again");
		return false;
	}
	/* What is wrong with it is found out when it is read. */
	if (r != 0)
		return true;
	if (urgent)
		IGNORE_RESULT(judge(s, -ENODATA, true, &ignored), "it comes in its turn, then");
	return false;
}

ssize_t supply_read(struct supply *s, const struct supply_file *what, uint64_t off, void *data,
		    size_t len, struct err *err)
{
	const struct supply_since since = supply_begin_wait(s);

	for (;;) {
		ssize_t n = inbound_read(&s->packs, &what->digest, what->size, off, data, len, err);
		int r;

		if (n >= 0)
			return n;
		r = judge(s, (int)n, true, err);
		if (r != -EAGAIN)
			return r;
		r = supply_check_wait(s, &since, what, err);
		if (r < 0)
			return r;
		supply_await(s, SUPPLY_LOOK_MS);
	}
}
