#include "engine/policy/gate-i.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/size.h"
#include "base/vec.h"

enum op { OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT };

/* The longer ones first, so that `<=` is not taken for `<`. */
static const struct {
	const char *text;
	enum op op;
} ops[] = {
	{ "==", OP_EQ }, { "!=", OP_NE }, { "<=", OP_LE },
	{ ">=", OP_GE }, { "<", OP_LT },  { ">", OP_GT },
};

static const char *const risks[] = { "low", "medium", "high", NULL };
static const char *const kinds[] = {
	"none", "docs", "test", "lock", "secret", "code", "mixed", NULL
};
static const char *const experiments[] = { "none", "lost", "tie", "won", NULL };
static const char *const tests[] = { "unknown", "pass", "fail", NULL };

/* A name that can be asked for: a number in the facts, or one of some words. */
struct term {
	const char *name;
	size_t at;                /* of a number: where in struct engine_facts */
	const char *const *words; /* NULL: it is a number */
	bool ordered;
};

#define SCORE (SIZE_MAX - 1) /* a decimal number, which a change need not have */

#define NUMBER(name)                                                   \
	{                                                              \
#name, offsetof(struct engine_facts, name), NULL, true \
	}

static const struct term terms[] = {
	NUMBER(files),
	NUMBER(added),
	NUMBER(deleted),
	NUMBER(lines_added),
	NUMBER(lines_removed),
	NUMBER(bytes),
	NUMBER(binaries),
	NUMBER(executables),
	NUMBER(tests_deleted),
	NUMBER(held),
	NUMBER(warned),
	NUMBER(conflicts),
	NUMBER(refusals),
	{ "lines", SIZE_MAX, NULL, true },
	{ "risk", 0, risks, true },
	{ "kind", 0, kinds, false },
	{ "tests", 0, tests, false },
	{ "experiment", 0, experiments, false },
	{ "score", SCORE, NULL, true },
};

struct gate {
	const struct term *term;
	enum op op;
	uint64_t value; /* or the index of a word */
	double score;   /* of SCORE */
};

static int index_of(const char *const *words, const char *word, size_t len)
{
	for (int i = 0; words[i]; i++)
		if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
			return i;
	return -1;
}

static size_t trimmed(const char **text, size_t len)
{
	while (len > 0 && (*text)[0] == ' ') {
		(*text)++;
		len--;
	}
	while (len > 0 && (*text)[len - 1] == ' ')
		len--;
	return len;
}

static int parse_value(struct gate *g, const char *value, size_t len, const char *text,
		       struct err *err)
{
	char digits[24];
	int at;

	if (g->term->words) {
		at = index_of(g->term->words, value, len);
		if (at < 0)
			return err_set(err, -EINVAL, "'%.60s': '%.*s' is no value of '%s'", text,
				       (int)len, value, g->term->name);
		g->value = (uint64_t)at;
		return 0;
	}
	if (len == 0 || len >= sizeof(digits))
		return err_set(err, -EINVAL, "'%.60s': a number is needed", text);
	memcpy(digits, value, len);
	digits[len] = '\0';
	if (g->term->at == SCORE && !g->term->words) {
		char *end;

		g->score = strtod(digits, &end);
		return *end == '\0' && isfinite(g->score)
			   ? 0
			   : err_set(err, -EINVAL, "'%.60s': '%s' is no number", text, digits);
	}
	if (size_parse_u64(digits, &g->value) < 0)
		return err_set(err, -EINVAL, "'%.60s': '%s' is no number", text, digits);
	return 0;
}

static int parse(const char *text, struct gate *ret, struct err *err)
{
	const size_t name_len = strcspn(text, "=!<>");
	const char *name = text, *value;
	size_t len = trimmed(&name, name_len), i = 0;

	ret->term = VEC_FIND(it, terms, ARRAY_LEN(terms),
			     strlen(it->name) == len && memcmp(it->name, name, len) == 0);
	if (!ret->term)
		return err_set(err, -EINVAL, "'%.60s': '%.*s' is no fact of a change", text,
			       (int)(len < 60 ? len : 60), name);
	while (i < ARRAY_LEN(ops) &&
	       strncmp(text + name_len, ops[i].text, strlen(ops[i].text)) != 0)
		i++;
	if (i == ARRAY_LEN(ops))
		return err_set(err, -EINVAL, "'%.60s': one of == != < <= > >= is needed", text);
	ret->op = ops[i].op;
	if (!ret->term->ordered && ret->op != OP_EQ && ret->op != OP_NE)
		return err_set(err, -EINVAL, "'%.60s': '%s' has no order, only == and != fit", text,
			       ret->term->name);
	value = text + name_len + strlen(ops[i].text);
	len = trimmed(&value, strlen(value));
	return parse_value(ret, value, len, text, err);
}

static uint64_t value_of(const struct term *t, const struct gate_facts *f)
{
	const struct engine_facts *x = f->facts;

	if (t->words == risks)
		return (uint64_t)x->risk;
	if (t->words) {
		const char *word = t->words == kinds         ? x->kind
				   : t->words == experiments ? x->experiment
							     : f->tests;
		const int at = index_of(t->words, word, strlen(word));

		assert(at >= 0); /* both are ours: words that a person gave were checked */
		return (uint64_t)at;
	}
	if (t->at == SIZE_MAX)
		return x->lines_added + x->lines_removed;
	return *(const uint64_t *)((const char *)x + t->at);
}

static bool compare(uint64_t a, enum op op, uint64_t b)
{
	switch (op) {
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_LE:
		return a <= b;
	case OP_GE:
		return a >= b;
	case OP_LT:
		return a < b;
	default:
		return a > b;
	}
}

int gate_check(const char *text, struct err *err)
{
	struct gate g;

	return parse(text, &g, err);
}

/* A change without a score passes no gate for it. */
static bool score_holds(const struct gate *g, const struct engine_facts *f)
{
	const double a = f->score, b = g->score;

	/* Two numbers as one that is less, equal or more. */
	return f->scored && compare(a < b ? 0 : a > b ? 2 : 1, g->op, 1);
}

int gate_holds(const char *text, const struct gate_facts *f, struct err *err)
{
	struct gate g;
	int r = parse(text, &g, err);

	if (r >= 0 && g.term->at == SCORE)
		return score_holds(&g, f->facts);
	return r < 0 ? r : compare(value_of(g.term, f), g.op, g.value);
}

void gate_tell(const char *text, const struct gate_facts *f, char out[GATE_TEXT_MAX])
{
	struct err ignored = { 0 };
	struct gate g;
	uint64_t value;

	out[0] = '\0';
	if (parse(text, &g, &ignored) < 0)
		return;
	if (g.term->at == SCORE) {
		if (f->facts->scored)
			snprintf(out, GATE_TEXT_MAX, "score is %g", f->facts->score);
		else
			snprintf(out, GATE_TEXT_MAX, "it has no score");
		return;
	}
	value = value_of(g.term, f);
	if (g.term->words)
		snprintf(out, GATE_TEXT_MAX, "%s is %s", g.term->name, g.term->words[value]);
	else
		snprintf(out, GATE_TEXT_MAX, "%s is %" PRIu64, g.term->name, value);
}
