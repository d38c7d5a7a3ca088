/*
 * Two random trees and the patch between them: what git apply makes of the first is the
 * second, and -R (for every fourth pair) makes the first of it again.  A tree is a list of files in memory; the
 * directory that git was let loose on is compared with that list.  SNAP_TEST_SEED repeats a run;
 * SNAP_TEST_PAIRS says how many (500).
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"
#include "tests/unit/snapshot/patch/patch-fixture.h"

#define FILES_MAX 24

struct file {
	char path[256];
	bool link, exec;
	struct buf content;
};

struct world {
	struct file files[FILES_MAX];
	size_t n;
};

static void world_done(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		buf_done(&w->files[i].content);
	w->n = 0;
}

/* --- contents --------------------------------------------------------------------------- */

static size_t below(struct test_rng *rng, size_t n)
{
	return (size_t)(test_rand(rng) % n);
}

static void add_line(struct test_rng *rng, struct buf *b)
{
	static const char *const lines[] = {
		"alpha\n",
		"beta beta\n",
		"\n",
		"\tindent\n",
		"crlf line\r\n",
		"lone\rreturn\n",
		"trailing   \n",
		"--- a/a\n",
		"+++ b/b\n",
		"@@ -1 +1 @@\n",
		"diff --git a/a b/a\n",
		"\\ No newline at end of file\n",
		"-- \n",
		"# comment\n",
		"gr\xc3\xbc\xc3\x9f\x65\n",
		"\xff\xfe latin\n",
		"GIT binary patch\n",
		"literal 5\n",
	};

	if (below(rng, 4) == 0)
		CHECK_EQ(buf_append_str(b, lines[below(rng, ARRAY_LEN(lines))]), 0);
	else
		CHECK_EQ(buf_printf(b, "line %zu of some text\n", below(rng, 40)), 0);
}

static void add_noise(struct test_rng *rng, struct buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(buf_append_u8(b, (uint8_t)test_rand(rng)), 0);
}

static void fill(struct test_rng *rng, struct buf *b)
{
	const size_t kind = below(rng, 12);
	const size_t lines = kind == 0 ? 0 : kind < 3 ? 1 : kind < 10 ? 3 + below(rng, 30) : 300;

	buf_reset(b);
	if (kind == 11) {
		add_noise(rng, b, 1 + below(rng, 3000));
		CHECK_EQ(buf_append_u8(b, '\0'), 0);
		return;
	}
	for (size_t i = 0; i < lines; i++)
		add_line(rng, b);
	if (b->len > 0 && below(rng, 4) == 0)
		b->len--; /* the last line has no end */
}

/* A few pieces taken out and put in. */
static void edit(struct test_rng *rng, struct buf *b)
{
	CLEANUP(buf_done) struct buf to = BUF_INIT;
	size_t at = 0, n;

	while (at < b->len) {
		const unsigned char *end = memchr(b->data + at, '\n', b->len - at);

		n = end ? (size_t)(end - b->data) + 1 - at : b->len - at;
		if (below(rng, 8) != 0)
			CHECK_EQ(buf_append(&to, b->data + at, n), 0);
		if (below(rng, 12) == 0)
			add_line(rng, &to);
		at += n;
	}
	if (below(rng, 5) == 0)
		add_line(rng, &to);
	buf_swap(b, &to);
}

/* --- trees ------------------------------------------------------------------------------ */

static void make_path(struct test_rng *rng, char path[256])
{
	static const char *const names[] = {
		"a",          "b",         "c.txt",   "a.c",         "with blank",
		"tab\there",  "new\nline", "quo\"te", "back\\slash", "gr\xc3\xbc\xc3\x9f\x65",
		"\xff\xfe",   "-dash",     "trail ",  " b",          "b b",
		".gitignore", "dev",       "null",
	};
	const size_t depth = 1 + below(rng, 3);

	path[0] = '\0';
	for (size_t i = 0; i < depth; i++)
		snprintf(path + strlen(path), 256 - strlen(path), "%s%s", i > 0 ? "/" : "",
			 names[below(rng, i + 1 < depth ? 6 : ARRAY_LEN(names))]);
}

static bool in_the_way(const char *a, const char *b)
{
	const size_t n = strlen(a);

	return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/');
}

static bool is_free(const struct world *w, const char *path, size_t but)
{
	for (size_t i = 0; i < w->n; i++)
		if (i != but &&
		    (in_the_way(w->files[i].path, path) || in_the_way(path, w->files[i].path)))
			return false;
	return true;
}

/* A link that leads to itself would keep git from looking at what is to take its place. */
static void make_kind(struct test_rng *rng, struct file *f)
{
	f->link = below(rng, 8) == 0;
	f->exec = !f->link && below(rng, 5) == 0;
	buf_reset(&f->content);
	if (f->link)
		CHECK_EQ(buf_printf(&f->content, "%s%zu", below(rng, 2) ? "no\nwhere/" : "../no/",
				    below(rng, 5)),
			 0);
	else
		fill(rng, &f->content);
}

static void add_file(struct test_rng *rng, struct world *w)
{
	char path[256];

	make_path(rng, path);
	if (w->n == FILES_MAX || !is_free(w, path, FILES_MAX))
		return;
	w->files[w->n] = (struct file){ 0 };
	strcpy(w->files[w->n].path, path);
	make_kind(rng, &w->files[w->n++]);
}

static void copy(const struct world *from, struct world *to)
{
	for (size_t i = 0; i < from->n; i++) {
		to->files[i] = from->files[i];
		to->files[i].content = BUF_INIT;
		CHECK_EQ(buf_append(&to->files[i].content, from->files[i].content.data,
				    from->files[i].content.len),
			 0);
	}
	to->n = from->n;
}

static void change(struct test_rng *rng, struct world *w)
{
	char path[256];

	for (size_t i = 0; i < w->n; i++) {
		struct file *f = &w->files[i];

		switch (below(rng, 10)) {
		case 0: /* it goes */
			buf_done(&f->content);
			*f = w->files[--w->n];
			i--;
			break;
		case 1: /* it is something else */
			make_kind(rng, f);
			break;
		case 2:
		case 3: /* it moves, and maybe changes a little */
			make_path(rng, path);
			if (is_free(w, path, i))
				strcpy(f->path, path);
			if (!f->link && below(rng, 2))
				edit(rng, &f->content);
			break;
		case 4:
			f->exec = !f->link && !f->exec;
			break;
		case 5:
			if (!f->link)
				edit(rng, &f->content);
			break;
		default:
			break;
		}
	}
	for (size_t i = below(rng, 5); i > 0; i--)
		add_file(rng, w);
}

/* --- on the disk ------------------------------------------------------------------------ */

static void write_file(int dir, const struct file *f)
{
	char path[256];

	strcpy(path, f->path);
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		CHECK(mkdirat(dir, path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	if (f->link) {
		CLEANUP(buf_done) struct buf target = BUF_INIT;

		CHECK_EQ(buf_append(&target, f->content.data, f->content.len), 0);
		CHECK_EQ(symlinkat(buf_str(&target), dir, path), 0);
	} else {
		AUTO_CLOSE int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
					   f->exec ? 0755 : 0644);

		CHECK(fd >= 0);
		CHECK_EQ(fdio_write(fd, f->content.data, f->content.len), 0);
	}
}

static size_t found;

static int count_or_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	if (at->level == 0)
		return 0;
	found += type != FTW_DP && type != FTW_D;
	return remove(path);
}

/* The number of files that were in it. */
static size_t empty(const char *dir)
{
	found = 0;
	CHECK_EQ(nftw(dir, count_or_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
	return found;
}

static void check_file(int dir, const struct file *f)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	struct err err = { 0 };
	struct stat st;

	CHECK_EQ(fstatat(dir, f->path, &st, AT_SYMLINK_NOFOLLOW), 0);
	if (f->link) {
		char target[PATH_MAX];
		ssize_t n = readlinkat(dir, f->path, target, sizeof(target));

		CHECK(n >= 0);
		CHECK_MEM(target, (size_t)n, f->content.data, f->content.len);
		return;
	}
	CHECK(S_ISREG(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, f->exec ? 0755 : 0644);
	CHECK_OK(fdio_read_file(dir, f->path, SIZE_MAX, &got, &err), &err);
	CHECK_MEM(got.data, got.len, f->content.data, f->content.len);
}

static void apply(const char *dir, const struct buf *text, bool back)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT;
	const char *patch = test_path("patch"), *log = test_path("log");
	const char *const args[] = { "apply", "--whitespace=nowarn", patch, back ? "-R" : NULL,
				     NULL };
	struct err err = { 0 };

	patch_save(patch, text);
	if (patch_git(dir, log, args) == 0)
		return;
	CHECK_OK(fdio_read_file(AT_FDCWD, log, SIZE_MAX, &said, &err), &err);
	printf("# git says: %s\n", buf_str(&said));
	CHECK(!"git apply took the patch");
}

static struct object_id capture_world(struct scene *sc, const struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		write_file(sc->fd, &w->files[i]);
	scene_capture(sc);
	return sc->id;
}

/* --- pairs ------------------------------------------------------------------------------ */

static unsigned long renamed, binary, retyped;

static void play(struct scene *sc, uint64_t seed, size_t n, bool renames)
{
	CLEANUP(world_done) struct world before = { 0 }, after = { 0 };
	CLEANUP(delta_done) struct delta delta = { 0 };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct test_rng rng = { seed + n };
	struct object_id from, to;

	for (size_t i = 1 + below(&rng, FILES_MAX); i > 0; i--)
		add_file(&rng, &before);
	copy(&before, &after);
	change(&rng, &after);

	from = capture_world(sc, &before);
	empty(sc->path);
	to = capture_world(sc, &after);
	patch_between(sc->s, &from, &to, renames, &delta, &text);
	for (size_t i = 0; i < delta.n_files; i++) {
		renamed += delta.files[i].status == DELTA_RENAMED;
		retyped += delta.files[i].status == DELTA_TYPE;
	}
	if (text.len == 0)
		return;
	binary += memmem(text.data, text.len, "\nGIT binary patch\nliteral", 25) != NULL;

	if (n % 4 == 0) {
		apply(sc->path, &text, true);
	} else {
		empty(sc->path);
		for (size_t i = 0; i < before.n; i++)
			write_file(sc->fd, &before.files[i]);
	}
	for (size_t i = 0; i < before.n; i++)
		check_file(sc->fd, &before.files[i]);
	apply(sc->path, &text, false);
	for (size_t i = 0; i < after.n; i++)
		check_file(sc->fd, &after.files[i]);
	CHECK_EQ(empty(sc->path), after.n);
}

TEST(git_apply_makes_the_new_tree_of_the_old_for_random_pairs)
{
	CLEANUP(scene_done) struct scene sc = scene_new("pairs");
	const char *wanted = getenv("SNAP_TEST_PAIRS");
	const size_t pairs = wanted ? strtoul(wanted, NULL, 10) : 500;
	const uint64_t seed = test_seed();

	umask(022);
	for (size_t i = 0; i < pairs; i++) {
		empty(sc.path);
		/* Tells which pair failed, to whoever repeats it. */
		if (wanted)
			printf("# pair %zu\n", i);
		play(&sc, seed, i, i % 5 != 0);
	}
	printf("# %lu renamed, %lu with binary files, %lu of another type\n", renamed, binary,
	       retyped);
	CHECK(pairs < 500 || (renamed > 100 && binary > 50 && retyped > 20));
}

TEST_MAIN("patch-pairs")
