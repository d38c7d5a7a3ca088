/*
 * Files of equal content are paired first, by id, in n log n and without reading.  Then each
 * remaining removed file is compared with each added one by a signature of its lines: at most
 * PAIR_MAX files on either side, files of at most BYTES_MAX, and BYTES_SUM_MAX read in all.  Beyond
 * that a guess is not worth the wait.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "snapshot/diff/delta-i.h"
#include "snapshot/text/git-i.h"
#include "snapshot/text/text-i.h"

#define PAIR_MAX       200
#define BYTES_MAX      ((uint64_t)1 << 20)
#define BYTES_SUM_MAX  ((uint64_t)32 << 20)
#define SIMILARITY_MIN 50 /* per cent, as git has it */

struct candidate {
	struct delta_file *file;
	git_hashsig *sig; /* owned; NULL: not made */
	size_t pair;      /* the one that it became or was, counted from 1; 0: none yet */
};

struct renames {
	struct delta *delta;
	struct candidate *gone, *come; /* owned; in the order of the walk, `gone` then by content */
	size_t n_gone, n_come;
	const struct git *git; /* NULL until a signature was wanted */
};

static void renames_done(struct renames *r)
{
	for (size_t i = 0; r->git && i < r->n_gone; i++)
		r->git->hashsig_free(r->gone[i].sig);
	for (size_t i = 0; r->git && i < r->n_come; i++)
		r->git->hashsig_free(r->come[i].sig);
	free(r->gone);
	free(r->come);
}

static const struct content *old_content(const struct candidate *c)
{
	return &c->file->before.content;
}

static const struct content *new_content(const struct candidate *c)
{
	return &c->file->after.content;
}

/* An empty file is like every other empty file, so it says nothing of where it was. */
static bool is_candidate(const struct delta_file *f)
{
	const struct delta_side *side = f->status == DELTA_ADDED ? &f->after : &f->before;

	return (f->status == DELTA_ADDED || f->status == DELTA_DELETED) && S_ISREG(side->mode) &&
	       side->content.size > 0 && !f->refused;
}

static int collect(struct renames *r, struct err *err)
{
	const size_t n = r->delta->n_files;

	r->gone = calloc(n + 1, sizeof(*r->gone));
	r->come = calloc(n + 1, sizeof(*r->come));
	if (!r->gone || !r->come)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		struct delta_file *f = &r->delta->files[i];

		if (is_candidate(f) && f->status == DELTA_DELETED)
			r->gone[r->n_gone++].file = f;
		else if (is_candidate(f))
			r->come[r->n_come++].file = f;
	}
	return 0;
}

static void join(struct renames *r, size_t gone, size_t come, unsigned similarity)
{
	r->gone[gone].pair = come + 1;
	r->come[come].pair = gone + 1;
	r->come[come].file->similarity = similarity;
}

static bool same_name(const struct candidate *a, const struct candidate *b)
{
	return strcmp(path_base(a->file->path), path_base(b->file->path)) == 0;
}

/* --- the same content ------------------------------------------------------------------- */

static int compare_content(const struct content *x, const struct content *y)
{
	const int order = memcmp(x->id.b, y->id.b, sizeof(x->id.b));

	return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static int by_content(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const int order = compare_content(old_content(x), old_content(y));

	return order != 0 ? order : strcmp(x->file->path, y->file->path);
}

/* The first of the sorted `gone` whose content is not below that. */
static size_t first_of(const struct renames *r, const struct content *c)
{
	size_t low = 0, high = r->n_gone;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (compare_content(old_content(&r->gone[mid]), c) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#define SAME_MAX 64 /* copies of one content that are looked at for a name */

static void find_exact(struct renames *r)
{
	VEC_SORT(r->gone, r->n_gone, by_content);
	for (size_t i = 0; i < r->n_come; i++) {
		const struct content *c = new_content(&r->come[i]);
		const size_t first = first_of(r, c);
		size_t best = r->n_gone;

		for (size_t g = first; g < r->n_gone && g < first + SAME_MAX; g++) {
			if (!content_equal(old_content(&r->gone[g]), c))
				break;
			if (r->gone[g].pair != 0)
				continue;
			if (best == r->n_gone || same_name(&r->gone[g], &r->come[i]))
				best = g;
			if (same_name(&r->gone[best], &r->come[i]))
				break;
		}
		if (best < r->n_gone)
			join(r, best, i, 100);
	}
}

/* --- similar content -------------------------------------------------------------------- */

struct score {
	unsigned similarity;
	bool same_name;
	size_t gone, come;
};

static int best_first(const void *a, const void *b)
{
	const struct score *x = a, *y = b;

	if (x->similarity != y->similarity)
		return x->similarity < y->similarity ? 1 : -1;
	if (x->same_name != y->same_name)
		return x->same_name ? -1 : 1;
	if (x->come != y->come)
		return x->come < y->come ? -1 : 1;
	return (x->gone > y->gone) - (x->gone < y->gone);
}

/* Those that may be compared, and whether they are few enough. */
static bool are_few(const struct candidate *list, size_t n, bool old, uint64_t *sum)
{
	size_t open = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t size =
		    old ? old_content(&list[i])->size : new_content(&list[i])->size;

		if (list[i].pair != 0 || size > BYTES_MAX)
			continue;
		open++;
		*sum += size;
	}
	return open > 0 && open <= PAIR_MAX;
}

static int sign(struct renames *r, struct store *s, struct candidate *c, bool old, struct err *err)
{
	const struct content *content = old ? old_content(c) : new_content(c);
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	int rc;

	if (c->pair != 0 || content->size > BYTES_MAX || content->form == CONTENT_LAZY)
		return 0;
	rc = text_load(s, content, &text, err);
	if (rc < 0)
		return err_wrap(err, rc, "'%s'", c->file->path);
	rc = r->git->hashsig_create(&c->sig, (const char *)text.data, text.len,
				    GIT_HASHSIG_NORMAL | GIT_HASHSIG_ALLOW_SMALL_FILES);
	/* A file without lines resembles nothing. */
	if (rc == GIT_EBUFS)
		return 0;
	return rc < 0 ? git_failed(r->git, rc, "comparing files", err) : 0;
}

static int sign_all(struct renames *r, struct store *s, struct err *err)
{
	int rc = git_load(&r->git, err);

	for (size_t i = 0; i < r->n_gone && rc >= 0; i++)
		rc = sign(r, s, &r->gone[i], true, err);
	for (size_t i = 0; i < r->n_come && rc >= 0; i++)
		rc = sign(r, s, &r->come[i], false, err);
	return rc;
}

/* Files of which one is more than twice the other have less than half in common. */
static bool may_be_similar(const struct candidate *gone, const struct candidate *come)
{
	const uint64_t a = old_content(gone)->size, b = new_content(come)->size;

	return gone->sig && come->sig && a <= 2 * b && b <= 2 * a;
}

static void join_best(struct renames *r, struct score *scores, size_t n)
{
	qsort(scores, n, sizeof(*scores), best_first);
	for (size_t i = 0; i < n; i++) {
		const struct score *sc = &scores[i];

		if (r->gone[sc->gone].pair == 0 && r->come[sc->come].pair == 0)
			join(r, sc->gone, sc->come, sc->similarity);
	}
}

static int find_similar(struct renames *r, struct store *s, struct err *err)
{
	AUTO_FREE struct score *scores = NULL;
	uint64_t sum = 0;
	size_t n = 0;
	int rc;

	if (!are_few(r->gone, r->n_gone, true, &sum) || !are_few(r->come, r->n_come, false, &sum) ||
	    sum > BYTES_SUM_MAX)
		return 0;
	rc = sign_all(r, s, err);
	if (rc < 0)
		return rc;
	scores = calloc((size_t)PAIR_MAX * PAIR_MAX, sizeof(*scores));
	if (!scores)
		return err_nomem(err);
	for (size_t g = 0; g < r->n_gone; g++) {
		for (size_t c = 0; c < r->n_come; c++) {
			if (!may_be_similar(&r->gone[g], &r->come[c]))
				continue;
			rc = r->git->hashsig_compare(r->gone[g].sig, r->come[c].sig);
			if (rc < SIMILARITY_MIN)
				continue;
			scores[n++] = (struct score){
				/* All of it would be the same content, which was looked for. */
				.similarity = rc > 99 ? 99 : (unsigned)rc,
				.same_name = same_name(&r->gone[g], &r->come[c]),
				.gone = g,
				.come = c,
			};
		}
	}
	if (n > 0)
		join_best(r, scores, n);
	return 0;
}

/* --- both ------------------------------------------------------------------------------- */

/* The added file replaces both. */
static void join_pairs(struct renames *r)
{
	struct delta *d = r->delta;
	size_t kept = 0;

	for (size_t i = 0; i < r->n_come; i++) {
		struct delta_file *to = r->come[i].file, *from;

		if (r->come[i].pair == 0)
			continue;
		from = r->gone[r->come[i].pair - 1].file;
		to->status = DELTA_RENAMED;
		to->old_path = TAKE_PTR(from->path);
		to->before = from->before;
		to->content = !content_equal(&to->before.content, &to->after.content);
	}
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i].path)
			d->files[kept++] = d->files[i];
	d->n_files = kept;
}

int delta_find_renames(struct store *s, struct delta *d, struct err *err)
{
	CLEANUP(renames_done) struct renames r = { .delta = d };
	int rc = collect(&r, err);

	if (rc < 0)
		return rc;
	find_exact(&r);
	rc = find_similar(&r, s, err);
	if (rc >= 0)
		join_pairs(&r);
	return rc;
}
