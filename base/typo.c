#include "base/typo.h"

#include <string.h>

#define WORD_MAX 40

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: three rows are enough, as a swap looks back two. */
static unsigned distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned row[3][WORD_MAX + 1];
	unsigned *older = row[0], *prev = row[1], *cur = row[2], *t;
	size_t i, j;

	for (j = 0; j <= blen; j++)
		prev[j] = (unsigned)j;
	for (i = 1; i <= alen; i++) {
		cur[0] = (unsigned)i;
		for (j = 1; j <= blen; j++) {
			cur[j] = prev[j - 1] + (a[i - 1] != b[j - 1]);
			cur[j] = least(cur[j], least(prev[j], cur[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cur[j] = least(cur[j], older[j - 2] + 1);
		}
		t = older;
		older = prev;
		prev = cur;
		cur = t;
	}
	return prev[blen];
}

void typo_offer(struct typo *t, const char *candidate)
{
	const size_t clen = strlen(candidate);
	unsigned d;

	if (t->len < 2 || t->len > WORD_MAX || clen > WORD_MAX)
		return;
	if (clen > t->len && strncmp(candidate, t->typed, t->len) == 0)
		d = 0;
	else
		d = distance(t->typed, t->len, candidate, clen);
	if (d > (t->len + 1) / 3 || (t->best && d >= t->distance))
		return;
	t->best = candidate;
	t->distance = d;
}
