/*
 * Which frames come next, and how long a reader waits for one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/lock.h"
#include "base/sys.h"
#include "engine/find/engine-i.h"
#include "engine/host/supplying-i.h"

#define POLL_MS  1000
#define GONE_MS  10000               /* without a question: no process brings anything */
#define WANT_MAX ((uint64_t)1 << 20) /* bytes that come along with what is wanted */

void supply_await(struct supply *s, unsigned ms)
{
	LOCKED(&s->lock);

	sys_cond_wait_ms(&s->changed, &s->lock, ms);
}

/* --- readers that wait -------------------------------------------------------------------- */

/* lock held */
static void note_failure(struct supply *s, const struct err *why)
{
	s->failures++;
	s->why = *why;
	if (s->away_ms == 0)
		s->away_ms = engine_clock_ms();
	pthread_cond_broadcast(&s->changed);
}

struct supply_since supply_begin_wait(struct supply *s)
{
	LOCKED(&s->lock);

	return (struct supply_since){ engine_clock_ms(), s->failures };
}

/* lock held */
static bool is_away(const struct supply *s)
{
	return s->away_ms > 0 && engine_clock_ms() - s->away_ms >= SUPPLY_AWAY_MS;
}

/* lock held */
static bool is_alone(const struct supply *s, unsigned ms)
{
	const uint64_t last = s->heard_ms > s->opened_ms ? s->heard_ms : s->opened_ms;

	return engine_clock_ms() - last >= ms;
}

/* lock held */
static int say_away(const struct supply *s, struct err *err)
{
	return err_set(err, -EIO, "it cannot be fetched: %s", s->why.msg);
}

static int say_alone(struct err *err)
{
	return err_set(err, -EIO, "nobody fetches it now; any snap command starts that again");
}

static int say_bad(const struct supply *s, struct err *err)
{
	return err_set(err, -EIO, "it cannot be fetched: %s", s->bad.msg);
}

/* lock held; of a large file any frame may be the one */
static bool is_bad(const struct supply *s, const struct supply_since *since,
		   const struct supply_file *what)
{
	if (s->n_bad == 0)
		return false;
	return what->kind == OBJECT_CHUNK
		   ? s->frames[what->pack].list[what->frame].bad_until_ms > engine_clock_ms()
		   : engine_clock_ms() - since->ms >= SUPPLY_AWAY_MS;
}

int supply_check_wait(struct supply *s, const struct supply_since *since,
		      const struct supply_file *what, struct err *err)
{
	const uint64_t now = engine_clock_ms();
	uint64_t last;
	LOCKED(&s->lock);

	if (s->ending)
		return err_set(err, -EIO, "cowfsd ends before it is fetched");
	if (is_bad(s, since, what))
		return say_bad(s, err);
	if (s->failures > since->failures && is_away(s))
		return say_away(s, err);
	last = s->news_ms > since->ms ? s->news_ms : since->ms;
	if (now - last < SUPPLY_SILENT_MS)
		return 0;
	if (s->away_ms > 0)
		return say_away(s, err);
	return is_alone(s, GONE_MS)
		   ? say_alone(err)
		   : err_set(err, -EIO, "no data has arrived for %d s", SUPPLY_SILENT_MS / 1000);
}

void supply_end(struct supply *s)
{
	LOCKED(&s->lock);

	s->ending = true;
	pthread_cond_broadcast(&s->changed);
}

int supply_check(struct supply *s, struct err *err)
{
	LOCKED(&s->lock);

	if (s->n_bad > 0)
		return say_bad(s, err);
	if (is_away(s))
		return say_away(s, err);
	return is_alone(s, GONE_MS) ? say_alone(err) : 0;
}

/* --- the process that brings frames ------------------------------------------------------- */

/* lock held; -1: there is no such pack */
static ssize_t find_pack(const struct supply *s, const char *hex)
{
	struct digest d;

	if (strlen(hex) != 64 || hex_decode(hex, 64, d.b, sizeof(d.b)) < 0)
		return -1;
	for (size_t i = 0; i < s->packs.n; i++)
		if (digest_equal(&s->packs.packs[i].digest, &d))
			return (ssize_t)i;
	return -1;
}

/* lock held */
static int take_report(struct supply *s, const struct engine_supply_options *o, struct err *err)
{
	const struct engine_range *done = &o->done;
	const ssize_t at = done->pack[0] ? find_pack(s, done->pack) : -1;
	struct pack *p = at < 0 ? NULL : &s->packs.packs[at];
	struct err why = { 0 };

	if (!done->pack[0])
		return 0;
	if (!p || done->frame > p->n_frames || done->frames > p->n_frames - done->frame)
		return err_set(err, -EINVAL, "a report of frames that no pack has");
	for (uint64_t f = done->frame; f < done->frame + done->frames; f++) {
		s->frames[at].list[f].state = FRAME_ABSENT;
		if (o->why || p->here[f])
			continue;
		p->here[f] = 1;
		s->completed += ++s->frames[at].here == p->n_frames;
		if (s->frames[at].list[f].bad_until_ms > 0)
			s->n_bad--;
		s->frames[at].list[f].bad_until_ms = 0;
	}
	if (o->why) {
		if ((size_t)at < s->next_pack)
			s->next_pack = (size_t)at;
		err_set(&why, -EIO, "%s", o->why);
		note_failure(s, &why);
		return 0;
	}
	s->news_ms = engine_clock_ms();
	s->away_ms = 0;
	pthread_cond_broadcast(&s->changed);
	return 0;
}

/* lock held; a process died with these in hand */
static void take_back(struct supply *s)
{
	for (size_t i = 0; i < s->packs.n; i++)
		for (uint32_t f = 0; f < s->packs.packs[i].n_frames; f++)
			if (s->frames[i].list[f].state == FRAME_COMING)
				s->frames[i].list[f].state = FRAME_ABSENT;
	s->next_pack = 0;
	pthread_cond_broadcast(&s->changed);
}

/* lock held */
static bool is_absent(const struct supply *s, size_t pack, uint32_t frame)
{
	const struct frame *one = &s->frames[pack].list[frame];

	return one->state != FRAME_COMING && !s->packs.packs[pack].here[frame] &&
	       (one->bad_until_ms == 0 || engine_clock_ms() >= one->bad_until_ms);
}

/* lock held; this one and those behind it that are absent too, up to so many bytes */
static struct engine_range take_from(struct supply *s, size_t pack, uint32_t frame, uint64_t most)
{
	const struct pack *p = &s->packs.packs[pack];
	uint64_t bytes = p->frames[frame].packed;
	uint32_t n = 1;

	while (frame + n < p->n_frames && is_absent(s, pack, frame + n) &&
	       bytes + p->frames[frame + n].packed <= most)
		bytes += p->frames[frame + n++].packed;
	for (uint32_t i = 0; i < n; i++)
		s->frames[pack].list[frame + i].state = FRAME_COMING;
	return supply_range(s, pack, frame, n);
}

/* lock held */
static bool take_wanted(struct supply *s, struct engine_range *ret)
{
	while (s->n_wants > 0) {
		const struct want w = s->wants[0];

		memmove(s->wants, s->wants + 1, --s->n_wants * sizeof(*s->wants));
		if (s->frames[w.pack].list[w.frame].state != FRAME_WANTED ||
		    s->packs.packs[w.pack].here[w.frame])
			continue;
		if (!is_absent(s, w.pack, w.frame)) {
			s->frames[w.pack].list[w.frame].state = FRAME_ABSENT;
			continue;
		}
		*ret = take_from(s, w.pack, w.frame, WANT_MAX);
		return true;
	}
	return false;
}

/* For tests: nothing comes unasked while the file that SNAPCOW_FETCH_PAUSE names is there. */
static bool is_paused(void)
{
	const char *path = getenv("SNAPCOW_FETCH_PAUSE");

	return path && access(path, F_OK) == 0;
}

/* lock held */
static bool take_rest(struct supply *s, uint64_t most, struct engine_range *ret)
{
	bool later = false;

	/* One that was wrong, and comes again in a while, keeps no other from coming. */
	for (size_t i = s->next_pack; i < s->packs.n; i++) {
		const struct pack *p = &s->packs.packs[i];

		for (uint32_t f = 0; f < p->n_frames; f++) {
			if (is_absent(s, i, f)) {
				*ret = take_from(s, i, f, most);
				return true;
			}
			later |= s->frames[i].list[f].bad_until_ms > 0 && !p->here[f];
		}
		if (!later)
			s->next_pack = i + 1;
	}
	return false;
}

int supply_report(struct supply *s, const struct engine_supply_options *o, struct err *err)
{
	LOCKED(&s->lock);

	s->heard_ms = engine_clock_ms();
	if (o->first || s->process == 0)
		s->process = o->process;
	if (o->first)
		take_back(s);
	return take_report(s, o, err);
}

bool supply_next(struct supply *s, const struct engine_supply_options *o, struct engine_range *ret)
{
	const uint64_t until = engine_clock_ms() + POLL_MS;
	const bool paused = is_paused();
	uint64_t now;
	LOCKED(&s->lock);

	/* One that was killed may still seem to ask. */
	while (o->process == s->process) {
		if (take_wanted(s, ret) ||
		    (!o->wanted_only && !paused && take_rest(s, o->most, ret)))
			return true;
		now = engine_clock_ms();
		if (now >= until)
			break;
		sys_cond_wait_ms(&s->changed, &s->lock, until - now);
	}
	return false;
}
