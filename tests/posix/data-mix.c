/*
 * Writes, truncations, holes and mappings of one file in any order, against memory.
 */
#include <sys/mman.h>

#include "tests/posix/posix.h"

enum { MIX_MAX = 400000 };

struct mix {
	uint8_t model[MIX_MAX];
	size_t size;
	int fd;
	struct rng rng;
};

static void mix_write(struct mix *m, unsigned seed)
{
	size_t off = rng_below(&m->rng, MIX_MAX), len = 1 + rng_below(&m->rng, 80000);

	if (len > MIX_MAX - off)
		len = MIX_MAX - off;
	pattern(m->model + off, len, off, seed);
	if (off + len > m->size)
		m->size = off + len;
	IS(pwrite(m->fd, m->model + off, len, (off_t)off), len);
}

static void mix_truncate(struct mix *m)
{
	size_t size = rng_below(&m->rng, MIX_MAX);

	if (size < m->size)
		memset(m->model + size, 0, m->size - size);
	m->size = size;
	OK(ftruncate(m->fd, (off_t)size));
}

static void mix_punch(struct mix *m)
{
	size_t off = rng_below(&m->rng, MIX_MAX), len = 1 + rng_below(&m->rng, 150000);
	size_t end = off + len < m->size ? off + len : m->size;

	if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) !=
	    0) {
		SAY_IF(errno != EOPNOTSUPP, "punching failed with %s", strerrorname_np(errno));
		return;
	}
	if (off < end)
		memset(m->model + off, 0, end - off);
}

static void mix_map(struct mix *m, unsigned seed)
{
	size_t off, len;
	uint8_t *map;

	if (!m->size)
		return;
	off = rng_below(&m->rng, m->size);
	len = 1 + rng_below(&m->rng, m->size - off);
	map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	NEED(map == MAP_FAILED ? -1 : 0);
	IS(memcmp(map, m->model, m->size), 0);
	pattern(map + off, len, off, seed);
	memcpy(m->model + off, map + off, len);
	if (seed % 2)
		OK(msync(map, m->size, MS_SYNC));
	munmap(map, m->size);
}

static bool mix_verify(struct mix *m, unsigned step)
{
	static uint8_t have[MIX_MAX + 1];
	ssize_t n = pread(m->fd, have, sizeof(have), 0);
	size_t i;

	if (SAY_IF(n != (ssize_t)m->size, "after step %u there are %zd bytes, want %zu", step, n,
		   m->size))
		return false;
	for (i = 0; i < m->size && have[i] == m->model[i];)
		i++;
	if (i == m->size)
		return true;
	return !SAY_IF(true, "after step %u byte %zu is %#x, want %#x", step, i, have[i],
		       m->model[i]);
}

CASE(data, a_random_mix_of_everything_agrees_with_memory)
{
	static struct mix m;
	unsigned round, i;

	for (round = 1; round <= 4; round++) {
		memset(&m, 0, sizeof(m));
		m.rng.s = round * 7919;
		m.fd = open_new("f");
		for (i = 0; i < 150; i++) {
			trying("seed %u", round * 7919);
			switch (rng_below(&m.rng, 8)) {
			case 0:
				mix_truncate(&m);
				break;
			case 1:
				mix_punch(&m);
				break;
			case 2:
				mix_map(&m, i);
				break;
			case 3:
				close(m.fd);
				m.fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
				break;
			default:
				mix_write(&m, i);
			}
			if (!mix_verify(&m, i))
				return;
		}
		close(m.fd);
		OK(unlink("f"));
	}
}
