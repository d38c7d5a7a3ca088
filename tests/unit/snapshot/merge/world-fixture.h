/*
 * world-fixture.h - small trees in which few files have many names, changed at random.
 *
 * A world is a fixed set of paths, each of which is nothing, a directory or a name of a file.
 * Numbers are few, so a file that was removed leaves its own to another, and two worlds that
 * come of one give the same number to different files.
 */
#pragma once

#include <unistd.h>

#include "tests/unit/snapshot/merge/merge-fixture.h"

#define WORLD_PATHS ARRAY_LEN(world_paths)
#define WORLD_FILES 64
#define WORLD_INOS  24
#define WORLD_HIGH  ((uint64_t)1 << 62) /* where a clone's own numbers begin */

/* Those that may be directories have the same names below them in the same order. */
static const char *const world_paths[] = {
	"a",     "b", "c",   "d",   "d/a", "d/b",   "d/s",   "d/s/a",
	"d/s/b", "e", "e/a", "e/b", "e/s", "e/s/a", "e/s/b",
};

/* Each may become each that stands in its row. */
static const size_t world_dirs[][2] = { { 3, 9 }, { 6, 12 } };

static const char *const world_texts[] = {
	"",
	"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
	"1\n2a\n3\n4\n5\n6\n7\n8\n9\n",
	"1\n2\n3\n4\n5\n6\n7\n8b\n9\n",
	"k\nl\nm\nn\no\np\nq\n",
	"0123456789",
};

enum { WORLD_NOTHING = -1, WORLD_DIR = -2 };

struct world_file {
	uint64_t ino;
	uint32_t mode;
	unsigned text;
	int64_t mtime;
	bool stays_linked; /* it stands among the links, also with one name */
};

struct world {
	int at[WORLD_PATHS]; /* a file, or one of the above */
	struct world_file files[WORLD_FILES];
	int n_files;
	uint64_t high; /* 0: numbers are given again; else the next of its own */
};

static inline size_t world_below(struct test_rng *rng, size_t n)
{
	return test_rand(rng) % n;
}

static inline bool world_is_in(size_t path, size_t dir)
{
	const size_t n = strlen(world_paths[dir]);

	return strncmp(world_paths[path], world_paths[dir], n) == 0 && world_paths[path][n] == '/';
}

static inline unsigned world_names(const struct world *w, int file)
{
	unsigned n = 0;

	for (size_t i = 0; i < WORLD_PATHS; i++)
		n += w->at[i] == file;
	return n;
}

static inline uint64_t world_ino(struct world *w, struct test_rng *rng)
{
	uint64_t ino;
	bool taken;

	if (w->high)
		return w->high++;
	do {
		ino = 1 + world_below(rng, WORLD_INOS);
		taken = false;
		for (size_t i = 0; i < WORLD_PATHS; i++)
			taken |= w->at[i] >= 0 && w->files[w->at[i]].ino == ino;
	} while (taken);
	return ino;
}

static inline void world_remove(struct world *w, size_t path)
{
	for (size_t i = 0; i < WORLD_PATHS; i++)
		if (i == path || world_is_in(i, path))
			w->at[i] = WORLD_NOTHING;
}

/* The place of a name, empty, with the directories above it. */
static inline int *world_place(struct world *w, size_t path)
{
	for (size_t i = 0; i < WORLD_PATHS; i++)
		if (world_is_in(path, i))
			w->at[i] = WORLD_DIR;
	world_remove(w, path);
	return &w->at[path];
}

static inline void world_make(struct world *w, struct test_rng *rng, size_t path)
{
	struct world_file *f = &w->files[w->n_files];
	int *at = world_place(w, path);

	if (w->n_files == WORLD_FILES)
		return;
	*f = (struct world_file){
		.ino = world_ino(w, rng),
		.mode = S_IFREG | 0644,
		.text =
		    world_below(rng, 2) ? 1 : (unsigned)world_below(rng, ARRAY_LEN(world_texts)),
		.mtime = 100 + w->n_files, /* so that it is not taken for the one before */
	};
	if (world_below(rng, 6) == 0) {
		f->mode = S_IFLNK | 0777;
		f->text = 5;
	} else if (world_below(rng, 8) == 0) {
		f->mode = S_IFIFO | 0644;
	}
	*at = w->n_files++;
}

/*
 * All of its names get a file that is the same but for its number, or each gets one.  Of one that
 * has a single name a number alone is no difference, so that gets another time.
 */
static inline void world_write_anew(struct world *w, struct test_rng *rng, int file, bool part)
{
	int to = w->n_files;

	w->files[file].mtime += world_names(w, file) == 1;
	for (size_t i = 0; i < WORLD_PATHS && w->n_files < WORLD_FILES; i++) {
		if (w->at[i] != file)
			continue;
		if (part || to == w->n_files) {
			to = w->n_files;
			w->files[to] = w->files[file];
			w->files[to].ino = world_ino(w, rng);
			w->n_files++;
		}
		w->at[i] = to;
	}
}

static inline void world_move_dir(struct world *w, struct test_rng *rng)
{
	const size_t *row = world_dirs[world_below(rng, ARRAY_LEN(world_dirs))];
	const size_t way = world_below(rng, 2), from = row[way], to = row[!way];
	const struct world was = *w;

	if (w->at[from] != WORLD_DIR)
		return;
	*world_place(w, to) = WORLD_DIR;
	for (size_t i = 0; i < WORLD_PATHS; i++)
		if (world_is_in(i, from))
			w->at[i - from + to] = was.at[i];
	world_remove(w, from);
}

static inline void world_change_file(struct world *w, struct test_rng *rng, size_t path)
{
	const int file = w->at[path];
	struct world_file *f = &w->files[file];

	switch (world_below(rng, 8)) {
	case 0:
		f->mode ^= S_ISLNK(f->mode) ? 0 : 0100;
		break;
	case 1:
		f->mtime++;
		break;
	case 2:
		world_write_anew(w, rng, file, false);
		break;
	case 3:
		world_write_anew(w, rng, file, true);
		break;
	case 4:
		f->stays_linked = true;
		break;
	default:
		if (!S_ISREG(f->mode))
			break;
		f->text = (unsigned)world_below(rng, ARRAY_LEN(world_texts));
		f->mtime++;
	}
}

/* One random change. */
static inline void world_change(struct world *w, struct test_rng *rng)
{
	const size_t path = world_below(rng, WORLD_PATHS), other = world_below(rng, WORLD_PATHS);
	const int file = w->at[other];

	switch (world_below(rng, 16)) {
	case 0:
	case 1:
		world_remove(w, path);
		break;
	case 2:
	case 3:
		world_make(w, rng, path);
		break;
	case 4:
		world_move_dir(w, rng);
		break;
	case 5:
		*world_place(w, path) = WORLD_DIR;
		break;
	case 6:
	case 7:
		if (file >= 0 && !world_is_in(other, path) && path != other) {
			world_remove(w, other);
			*world_place(w, path) = file;
		}
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		if (file >= 0 && path != other)
			*world_place(w, path) = file;
		break;
	default:
		if (file >= 0)
			world_change_file(w, rng, other);
	}
}

static inline struct world world_new(struct test_rng *rng)
{
	struct world w = { .n_files = 0 };

	for (size_t i = 0; i < WORLD_PATHS; i++)
		w.at[i] = WORLD_NOTHING;
	for (unsigned i = 0; i < 20; i++)
		if (i < 5)
			world_make(&w, rng, world_below(rng, WORLD_PATHS));
		else
			world_change(&w, rng);
	return w;
}

static inline struct world world_changed(const struct world *base, struct test_rng *rng, bool high)
{
	struct world w = *base;
	const size_t changes = world_below(rng, 7);

	w.high = high ? WORLD_HIGH : 0;
	for (size_t i = 0; i < changes; i++)
		world_change(&w, rng);
	return w;
}

#define WORLD_LEAVES (WORLD_PATHS + 2)

/* As leaves for leaf_root(); whoever is not root can make them, too. */
static inline void world_leaves(const struct world *w, struct leaf list[WORLD_LEAVES])
{
	const struct leaf dir = { .mode = S_IFDIR | 0755, .uid = geteuid(), .gid = getegid() };
	size_t n = 0;

	list[n] = dir;
	list[n++].path = "";
	for (size_t i = 0; i < WORLD_PATHS; i++) {
		struct leaf l = dir;

		l.path = world_paths[i];

		if (w->at[i] >= 0) {
			const struct world_file *f = &w->files[w->at[i]];
			const bool linked = world_names(w, w->at[i]) > 1 || f->stays_linked;

			l.mode = f->mode;
			l.text = world_texts[f->text];
			l.mtime = f->mtime;
			l.link = linked ? f->ino : 0;
			l.ino = f->ino;
		}
		if (w->at[i] != WORLD_NOTHING)
			list[n++] = l;
	}
	list[n] = (struct leaf){ 0 };
}
