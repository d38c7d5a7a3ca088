/*
 * Making a script from a seed.
 *
 * So that operations mostly succeed, the maker keeps a guess of what is there.  It is only a
 * guess: it knows nothing of symlinks on the way or of states that were rolled back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/model/script.h"

#define GUESSES 64

enum guess_kind { GUESS_FILE = 1, GUESS_DIR = 2, GUESS_OTHER = 4, GUESS_ANY = 7 };

struct guess {
	enum guess_kind kind;
	char path[600];
};

struct maker {
	uint64_t rng;
	const struct script_plan *plan;
	struct guess guesses[GUESSES];
	unsigned n_guesses, snapshots;
	bool open[OP_SLOTS];
	struct script *script;
};

static uint64_t next(struct maker *m)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return m->rng * 0x2545f4914f6cdd1du >> 11;
}

static int64_t below(struct maker *m, int64_t n)
{
	return (int64_t)(next(m) % (uint64_t)n);
}

static const char *some_name(struct maker *m)
{
	static char longest[256];

	switch (below(m, 40)) {
	case 0:
		memset(longest, 'L', 255);
		return longest;
	case 1:
		return "\xff\xfe non-utf8";
	case 2:
		return ".hidden";
	default:
		return (const char *[]){ "a", "b", "c", "d", "e", "f", "g" }[below(m, 7)];
	}
}

static unsigned depth(const char *path)
{
	unsigned n = 1;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static struct guess *find_guess(struct maker *m, const char *path)
{
	unsigned i;

	for (i = 0; i < m->n_guesses; i++)
		if (strcmp(m->guesses[i].path, path) == 0)
			return &m->guesses[i];
	return NULL;
}

static struct guess *some_guess(struct maker *m, unsigned kinds_wanted)
{
	unsigned i, n = 0;
	struct guess *found = NULL;

	for (i = 0; i < m->n_guesses; i++)
		if ((m->guesses[i].kind & kinds_wanted) && below(m, ++n) == 0)
			found = &m->guesses[i];
	return found;
}

static void guess_there(struct maker *m, const char *path, enum guess_kind kind)
{
	struct guess *g = find_guess(m, path);

	if (!g && strlen(path) < 300)
		g = &m->guesses[m->n_guesses < GUESSES ? m->n_guesses++
						       : (unsigned)below(m, GUESSES)];
	if (!g)
		return;
	g->kind = kind;
	snprintf(g->path, sizeof(g->path), "%s", path);
}

static void guess_gone(struct maker *m, const char *path)
{
	unsigned i = 0;

	while (i < m->n_guesses)
		if (is_below(m->guesses[i].path, path))
			m->guesses[i] = m->guesses[--m->n_guesses];
		else
			i++;
}

static void guess_moved(struct maker *m, const char *from, const char *to)
{
	char path[2 * sizeof(m->guesses[0].path)];
	unsigned i;

	if (is_below(to, from))
		return;
	guess_gone(m, to);
	for (i = 0; i < m->n_guesses; i++) {
		struct guess *g = &m->guesses[i];

		if (!is_below(g->path, from))
			continue;
		snprintf(path, sizeof(path), "%s%s", to, g->path + strlen(from));
		if (strlen(path) < sizeof(g->path))
			memcpy(g->path, path, strlen(path) + 1);
	}
}

/* What the maker thinks of the world after an operation. */
static void guess_after(struct maker *m, const struct op *op)
{
	const struct guess *g;

	switch (op->kind) {
	case OP_CREATE:
	case OP_NAME:
		if (!find_guess(m, op->path[0]))
			guess_there(m, op->path[0], GUESS_FILE);
		break;
	case OP_MKDIR:
		if (!find_guess(m, op->path[0]))
			guess_there(m, op->path[0], GUESS_DIR);
		break;
	case OP_MKFIFO:
	case OP_SYMLINK:
		if (!find_guess(m, op->path[0]))
			guess_there(m, op->path[0], GUESS_OTHER);
		break;
	case OP_LINK:
		g = find_guess(m, op->path[0]);
		if (g && g->kind != GUESS_DIR && !find_guess(m, op->path[1]))
			guess_there(m, op->path[1], g->kind);
		break;
	case OP_UNLINK:
		g = find_guess(m, op->path[0]);
		if (g && g->kind != GUESS_DIR)
			guess_gone(m, op->path[0]);
		break;
	case OP_RMDIR:
		guess_gone(m, op->path[0]);
		break;
	case OP_RENAME:
		if (op->n[0] == 0 || !find_guess(m, op->path[1]))
			guess_moved(m, op->path[0], op->path[1]);
		break;
	case OP_OPEN:
	case OP_TMPFILE:
		m->open[op->n[0]] = true;
		break;
	case OP_CLOSE:
		m->open[op->n[0]] = false;
		break;
	case OP_SYNC:
	case OP_ROLLBACK:
	case OP_REMOUNT:
	case OP_KILL:
		memset(m->open, 0, sizeof(m->open));
		break;
	default:
		break;
	}
}

/* A path that may be new: a name in a directory that may be there. */
static void new_path(struct maker *m, char *path, size_t size)
{
	struct guess *dir = some_guess(m, below(m, 20) ? GUESS_DIR : GUESS_ANY);

	if (!dir || below(m, 3) == 0 || depth(dir->path) > 4 || strlen(dir->path) > 300)
		snprintf(path, size, "%s", some_name(m));
	else
		snprintf(path, size, "%s/%s", dir->path, some_name(m));
}

static void old_path(struct maker *m, unsigned kinds_wanted, char *path, size_t size)
{
	struct guess *g = some_guess(m, below(m, 12) ? kinds_wanted : GUESS_ANY);

	if (!g || below(m, 25) == 0)
		new_path(m, path, size);
	else
		snprintf(path, size, "%s", g->path);
}

static int64_t some_slot(struct maker *m)
{
	int64_t slot = below(m, OP_SLOTS), i;

	for (i = 0; i < OP_SLOTS && !m->open[slot] && below(m, 20); i++)
		slot = (slot + 1) % OP_SLOTS;
	return slot;
}

static int64_t some_offset(struct maker *m)
{
	static const int64_t edges[] = { 0, 1, 4095, 4096, 65535, 65536, 65537, 131072, 196608 };

	switch (below(m, 8)) {
	case 0:
		return (5 << 20) + below(m, 1 << 20);
	case 1:
	case 2:
		return edges[below(m, sizeof(edges) / sizeof(edges[0]))];
	default:
		return below(m, 200000);
	}
}

static int64_t some_length(struct maker *m)
{
	static const int64_t edges[] = { 1, 4096, 65535, 65536, 65537, 131072 };

	switch (below(m, 6)) {
	case 0:
		return edges[below(m, sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return 1 + below(m, 200000);
	default:
		return 1 + below(m, 5000);
	}
}

static int64_t some_mode(struct maker *m)
{
	/* The owner may do everything, so that an ordinary user sees the same as root. */
	return 0700 | below(m, 0100);
}

static void fill_slot(struct maker *m, struct op *op)
{
	static const int64_t modes[] = { 0,
					 FALLOC_FL_KEEP_SIZE,
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					 FALLOC_FL_ZERO_RANGE,
					 FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };

	op->n[0] = some_slot(m);
	switch (op->kind) {
	case OP_PAUSE:
		op->n[0] = 1 << below(m, 11);
		break;
	case OP_PWRITE:
	case OP_MMAP_WRITE:
		op->n[1] = some_offset(m), op->n[2] = some_length(m), op->n[3] = below(m, 250);
		break;
	case OP_PREAD:
		op->n[1] = some_offset(m), op->n[2] = some_length(m);
		break;
	case OP_FTRUNCATE:
	case OP_SEEK:
		op->n[1] = some_offset(m);
		break;
	case OP_FALLOCATE:
		op->n[1] = modes[below(m, 6)], op->n[2] = some_offset(m),
		op->n[3] = some_length(m) * (1 + below(m, 20));
		break;
	case OP_COPY:
		op->n[1] = some_slot(m), op->n[2] = some_offset(m), op->n[3] = some_offset(m),
		op->n[4] = some_length(m);
		break;
	default:
		break;
	}
}

static void fill_numbers(struct maker *m, struct op *op)
{
	static const int64_t flags[] = { O_RDONLY,         O_RDWR,           O_RDWR,
					 O_RDWR | O_CREAT, O_RDWR | O_TRUNC, O_WRONLY | O_APPEND };

	switch (op->kind) {
	case OP_CREATE:
	case OP_MKDIR:
	case OP_MKFIFO:
	case OP_CHMOD:
		op->n[0] = some_mode(m);
		break;
	case OP_RENAME:
		/* RENAME_NOREPLACE is 1, RENAME_EXCHANGE 2. */
		op->n[0] = below(m, 3) ? 0 : 1 + below(m, 2);
		break;
	case OP_TRUNCATE:
		op->n[0] = some_offset(m);
		break;
	case OP_WRITE:
		op->n[0] = some_offset(m), op->n[1] = some_length(m), op->n[2] = below(m, 250);
		break;
	case OP_APPEND:
		op->n[0] = some_length(m), op->n[1] = below(m, 250);
		break;
	case OP_CHOWN:
		op->n[0] = below(m, 3), op->n[1] = below(m, 3);
		break;
	case OP_UTIMENS:
		op->n[0] = below(m, 900000000), op->n[1] = below(m, 1000000000);
		op->n[2] = below(m, 900000000), op->n[3] = below(m, 1000000000);
		break;
	case OP_SETXATTR:
		op->n[0] = below(m, 100), op->n[1] = below(m, 250),
		op->n[2] = below(m, 3) ? 0 : 1 + below(m, 2);
		break;
	case OP_OPEN:
		op->n[0] = below(m, OP_SLOTS), op->n[1] = flags[below(m, 6)];
		break;
	case OP_TMPFILE:
		op->n[0] = below(m, OP_SLOTS);
		break;
	case OP_NAME:
		op->n[0] = some_slot(m);
		break;
	default:
		break;
	}
}

static void fill_paths(struct maker *m, struct op *op)
{
	char *a = op->path[0], *b = op->path[1];
	size_t size = sizeof(op->path[0]);
	const struct guess *g;

	switch (op->kind) {
	case OP_CREATE:
	case OP_MKDIR:
	case OP_MKFIFO:
	case OP_NAME:
		new_path(m, a, size);
		break;
	case OP_SYMLINK:
		new_path(m, a, size);
		g = below(m, 2) ? some_guess(m, GUESS_ANY) : NULL;
		snprintf(b, size, "%s", g ? g->path : some_name(m));
		break;
	case OP_LINK:
	case OP_RENAME:
		old_path(m, op->kind == OP_LINK ? GUESS_FILE : GUESS_ANY, a, size);
		if (below(m, 3))
			new_path(m, b, size);
		else
			old_path(m, GUESS_ANY, b, size);
		break;
	case OP_UNLINK:
		old_path(m, GUESS_FILE | GUESS_OTHER, a, size);
		break;
	case OP_RMDIR:
	case OP_READDIR:
	case OP_TMPFILE:
		old_path(m, GUESS_DIR, a, size);
		break;
	case OP_READLINK:
		old_path(m, GUESS_OTHER, a, size);
		break;
	case OP_STAT:
	case OP_CHMOD:
	case OP_CHOWN:
	case OP_UTIMENS:
		old_path(m, GUESS_ANY, a, size);
		break;
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_RMXATTR:
		old_path(m, GUESS_FILE | GUESS_DIR, a, size);
		snprintf(b, size, "user.%c", (char)('a' + below(m, 5)));
		break;
	case OP_SNAPSHOT:
		snprintf(a, size, "s%u", m->snapshots++);
		break;
	case OP_ROLLBACK:
		snprintf(a, size, "s%u", (unsigned)below(m, m->snapshots));
		break;
	default:
		old_path(m, GUESS_FILE, a, size);
	}
}

static void fill(struct maker *m, struct op *op)
{
	if (op_shapes[op->kind].paths) {
		fill_paths(m, op);
		fill_numbers(m, op);
	} else if (op_shapes[op->kind].numbers) {
		fill_slot(m, op);
	}
}

static enum op_kind some_kind(struct maker *m)
{
	int64_t all = 0, at;
	unsigned k;

	for (k = 0; k < OP_KINDS; k++)
		all += op_shapes[k].weight;
	at = below(m, all);
	for (k = 0; at >= op_shapes[k].weight; k++)
		at -= op_shapes[k].weight;
	return (enum op_kind)k;
}

static int add(struct maker *m, enum op_kind kind)
{
	struct op op = { .kind = kind };

	fill(m, &op);
	guess_after(m, &op);
	return script_add(m->script, &op);
}

static int add_usual(struct maker *m, bool atomic)
{
	struct op op;

	do {
		op = (struct op){ .kind = some_kind(m) };
		fill(m, &op);
	} while ((op.kind == OP_CHOWN && !m->plan->owners) || (atomic && !op_is_atomic(&op)));
	guess_after(m, &op);
	return script_add(m->script, &op);
}

/* Save, go on, and perhaps lose what came after. */
static int add_kill(struct maker *m)
{
	int64_t n = 1 + below(m, 12);
	int r = add(m, OP_SYNC);

	while (r == 0 && n--)
		r = below(m, 8) ? add_usual(m, true) : add(m, OP_PAUSE);
	return r < 0 ? r : add(m, OP_KILL);
}

static int add_state(struct maker *m)
{
	bool restart = m->plan->restarts && (!m->plan->snapshots || below(m, 4) == 0);

	if (restart)
		return below(m, 2) ? add_kill(m) : add(m, OP_REMOUNT);
	return add(m, m->snapshots && below(m, 2) ? OP_ROLLBACK : OP_SNAPSHOT);
}

int script_make(const struct script_plan *plan, struct script *ret)
{
	AUTO_FREE struct maker *m = calloc(1, sizeof(*m));
	unsigned i;
	int r = 0;

	if (!m)
		return -ENOMEM;
	m->plan = plan;
	m->script = ret;
	m->rng = plan->seed * 0x9e3779b97f4a7c15u + 1;
	for (i = 0; i < 8; i++)
		next(m);
	while (r == 0 && ret->n < plan->ops)
		r = (plan->snapshots || plan->restarts) && below(m, 40) == 0 ? add_state(m)
									     : add_usual(m, false);
	return r;
}
