/*
 * worlds-fixture.h - three random trees, a base and two that changed it, as lists of files.
 */
#pragma once

#include "tests/unit/snapshot/merge/merge-fixture.h"

#define FILES_MAX 40
#define LINES     12

struct file {
	char path[64];
	uint32_t mode;
	char text[LINES * 40];
};

struct world {
	struct file files[FILES_MAX];
	size_t n;
};

enum { BASE, OURS, THEIRS, WORLDS };

static inline size_t below(struct test_rng *rng, size_t n)
{
	return (size_t)(test_rand(rng) % n);
}

/* --- making them --------------------------------------------------------------------------- */

static inline bool in_the_way(const char *a, const char *b)
{
	const size_t n = strlen(a);

	return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/');
}

static inline bool is_free(const struct world *w, const char *path)
{
	for (size_t i = 0; i < w->n; i++)
		if (in_the_way(w->files[i].path, path) || in_the_way(path, w->files[i].path))
			return false;
	return w->n < FILES_MAX;
}

/* Lines of no other file, so that nobody takes one for another that was renamed. */
static inline void fill(struct test_rng *rng, struct file *f)
{
	const unsigned long long id = test_rand(rng);
	size_t n = 0;

	for (int i = 0; i < LINES; i++)
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, "%llx line %d\n", id, i);
	f->mode = below(rng, 6) == 0 ? 0100755 : 0100644;
	/* Of symlinks git would follow a rename, too. */
	if (below(rng, 8) == 0 && strncmp(f->path, "d/", 2) != 0) {
		f->mode = 0120000;
		snprintf(f->text, sizeof(f->text), "target/%llx", id);
	}
}

static inline struct file *add(struct world *w, const char *path)
{
	if (!is_free(w, path))
		return NULL;
	w->files[w->n] = (struct file){ .mode = 0100644 };
	snprintf(w->files[w->n].path, sizeof(w->files[w->n].path), "%s", path);
	return &w->files[w->n++];
}

static inline void add_random(struct test_rng *rng, struct world *w, const char *prefix,
			      size_t names)
{
	static const char *const dirs[] = { "", "d/", "e/", "d/s/" };
	char path[64];
	struct file *f;

	CHECK((size_t)snprintf(path, sizeof(path), "%s%s%u", dirs[below(rng, ARRAY_LEN(dirs))],
			       prefix, (unsigned)below(rng, names)) < sizeof(path));
	f = add(w, path);
	if (f)
		fill(rng, f);
}

/* One line becomes another; each line has one length, so the text keeps its own. */
static inline void edit(struct test_rng *rng, struct file *f)
{
	char *line = f->text;

	if (f->mode == 0120000) {
		snprintf(f->text, sizeof(f->text), "other/%u", (unsigned)below(rng, 3));
		return;
	}
	for (size_t i = below(rng, LINES); i > 0; i--)
		line = strchr(line, '\n') + 1;
	line[0] = (char)('A' + below(rng, 3));
}

static inline void rename_file(struct test_rng *rng, struct world *w, struct file *f)
{
	static const char *const dirs[] = { "", "d/", "e/", "r/" };
	char path[64];

	CHECK((size_t)snprintf(path, sizeof(path), "%smoved%u", dirs[below(rng, ARRAY_LEN(dirs))],
			       (unsigned)below(rng, 6)) < sizeof(path));
	if (f->mode != 0120000 && is_free(w, path))
		strcpy(f->path, path);
}

static inline void replace_by_dir(struct test_rng *rng, struct world *w, struct file *f)
{
	char path[64];

	CHECK((size_t)snprintf(path, sizeof(path), "%.40s/in", f->path) < sizeof(path));
	strcpy(f->path, path);
	(void)w;
	fill(rng, f);
}

static inline void change_file(struct test_rng *rng, struct world *w, size_t i)
{
	struct file *f = &w->files[i];

	switch (below(rng, 24)) {
	case 0:
	case 1:
		*f = w->files[--w->n];
		break;
	case 2:
	case 3:
		rename_file(rng, w, f);
		break;
	case 4:
		rename_file(rng, w, f);
		edit(rng, f);
		break;
	case 5:
		if (f->mode != 0120000)
			f->mode ^= 0111;
		break;
	case 6:
		if (below(rng, 4) == 0)
			replace_by_dir(rng, w, f);
		break;
	case 7:
		if (below(rng, 3) == 0)
			fill(rng, f);
		break;
	case 8:
	case 9:
	case 10:
	case 11:
	case 12:
		edit(rng, f);
		break;
	default:
		break;
	}
}

static inline void rename_dir(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->files[i].path, "d/", 2) == 0)
			w->files[i].path[0] = 'q';
}

static inline void change(struct test_rng *rng, struct world *w)
{
	for (size_t i = w->n; i > 0; i--)
		change_file(rng, w, i - 1);
	for (size_t i = below(rng, 3); i > 0; i--)
		add_random(rng, w, "new", 5);
	if (below(rng, 8) == 0)
		rename_dir(w);
}

static inline void make_worlds(uint64_t seed, struct world w[WORLDS])
{
	struct test_rng rng = { seed };

	w[BASE].n = 0;
	for (size_t i = 3 + below(&rng, 10); i > 0; i--)
		add_random(&rng, &w[BASE], "f", 100);
	w[OURS] = w[THEIRS] = w[BASE];
	change(&rng, &w[OURS]);
	change(&rng, &w[THEIRS]);
}
