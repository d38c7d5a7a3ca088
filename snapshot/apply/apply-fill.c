/*
 * Several threads write the new regular files of the stage; each takes the next free step.
 * Everything else in the stage refers to files that exist by then, and one thread is enough for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crew.h"
#include "base/fdio.h"
#include "base/sha256.h"
#include "snapshot/apply/apply-i.h"

#define COPY_SIZE (4 * CHUNK_SIZE_MAX)

/* One writing thread. */
struct pen {
	struct acting *acting;
	uint8_t *block; /* COPY_SIZE bytes, owned; allocated at first use */
	bool sums_wanted;
	bool sums;         /* of the file at hand */
	struct sha256 sum; /* of the file at hand, if `sums` */
};

/* --- one file --------------------------------------------------------------------------- */

static void sum_up(struct pen *pen, const void *data, size_t len)
{
	if (pen->sums)
		sha256_add(&pen->sum, data, len);
}

static void sum_up_hole(struct pen *pen, uint64_t len)
{
	static const uint8_t zeros[4096];

	for (; pen->sums && len > 0; len -= len < sizeof(zeros) ? len : sizeof(zeros))
		sum_up(pen, zeros, len < sizeof(zeros) ? (size_t)len : sizeof(zeros));
}

/* Copy the bytes from `at` to `end`. */
static int copy_range(struct pen *pen, struct content_reader *rd, int fd, uint64_t at, uint64_t end,
		      struct err *err)
{
	ssize_t n;
	int r;

	while (at < end) {
		const size_t want = end - at < COPY_SIZE ? (size_t)(end - at) : COPY_SIZE;

		n = content_reader_read(rd, at, pen->block, want, err);
		if (n <= 0)
			return n < 0 ? (int)n
				     : err_set(err, -EBADMSG, "its content ends too early");
		r = fdio_pwrite(fd, pen->block, (size_t)n, (off_t)at);
		if (r < 0)
			return err_wrap(err, r, "writing it");
		sum_up(pen, pen->block, (size_t)n);
		at += (uint64_t)n;
	}
	return 0;
}

static int copy_content(struct pen *pen, int fd, const struct tree_entry *e, struct err *err)
{
	const struct content c = tree_entry_content(e);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	uint64_t data, hole = 0;
	int r = content_reader_new(pen->acting->store, &c, &rd, err);

	if (r < 0)
		return r;
	while (hole < e->size) {
		r = content_reader_seek_data(rd, hole, &data, err);
		if (r == -ENXIO)
			break;
		if (r < 0)
			return r;
		sum_up_hole(pen, data - hole);
		r = content_reader_seek_hole(rd, data, &hole, err);
		if (r < 0)
			return r;
		r = copy_range(pen, rd, fd, data, hole, err);
		if (r < 0)
			return r;
	}
	if (hole == e->size)
		return 0;
	sum_up_hole(pen, e->size - hole);
	return ftruncate(fd, (off_t)e->size) < 0 ? err_sys(err, "writing it") : 0;
}

static int write_file(struct pen *pen, int fd, struct plan_step *s, struct err *err)
{
	struct acting *a = pen->acting;
	const struct content c = tree_entry_content(&s->after);
	struct stat st;
	int r;

	/* The checksum covers the content without its holes. */
	pen->sums = pen->sums_wanted && !content_is_sparse(&c);
	if (pen->sums)
		sha256_begin(&pen->sum);
	r = copy_content(pen, fd, &s->after, err);
	if (r < 0)
		return r;
	r = attr_set(a, fd, &s->after, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "looking at it");
	if (a->sync_each && fsync(fd) < 0)
		return err_sys(err, "syncing it");
	s->new_ino = st.st_ino;
	s->summed = pen->sums;
	if (pen->sums)
		sha256_end(&pen->sum, s->sha256);
	return 0;
}

static int make_file(struct pen *pen, size_t i, struct err *err)
{
	struct plan_step *s = &pen->acting->plan->files[i];
	char slot[SLOT_SIZE];
	/* The umask may change the mode; attr_set() corrects it. */
	AUTO_CLOSE int fd = openat(pen->acting->stage_fd, slot_name('n', i, slot),
				   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				   (s->after.mode & 0777) | 0600);
	int r = fd < 0 ? err_sys(err, "making it") : write_file(pen, fd, s, err);

	return r < 0 ? err_wrap(err, r, "'%s'", s->path) : 0;
}

/* --- all of them ------------------------------------------------------------------------ */

bool fill_makes(const struct plan_step *s, size_t i)
{
	return (s->act == PLAN_CREATE || s->act == PLAN_REPLACE) && s->first == i && !s->anchor &&
	       S_ISREG(s->after.mode);
}

static int fill_step(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct pen *pen = (struct pen *)ctx + member;
	struct acting *a = pen->acting;
	int r;

	if (!fill_makes(&a->plan->files[i], i))
		return 0;
	if (!pen->block)
		pen->block = malloc(COPY_SIZE);
	r = pen->block ? make_file(pen, i, err) : err_nomem(err);
	a->done++;
	/* Only the caller's own thread reports progress, for all threads. */
	if (member == 0)
		acting_tell(a);
	return r;
}

int fill_all(struct acting *a, struct err *err)
{
	const size_t n = a->plan->n_files;
	struct pen pens[CREW_MAX];
	int r;

	for (unsigned i = 0; i < CREW_MAX; i++)
		pens[i] =
		    (struct pen){ .acting = a, .sums_wanted = a->options && a->options->sums };
	r = crew_each(a->sync_each ? 1 : crew_size(n), n, fill_step, pens, err);
	for (unsigned i = 0; i < CREW_MAX; i++)
		free(pens[i].block);
	return r;
}
