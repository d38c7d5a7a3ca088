/*
 * A star first matches nothing, and one byte more each time that the rest fails; a `**` one
 * directory more. Only the last of each kind need be tried again: a later one can match everything
 * that an earlier one could. So no pattern takes for ever.
 */
#include "snapshot/text/ignore.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct rule {
	char *pattern; /* owned; without `!` and slashes at its ends */
	bool negated;
	bool dirs_only;
	bool anywhere; /* it has no slash: any name in any directory below */
};

struct ignore {
	struct rule *rules; /* owned; the last that matches counts */
	size_t n;
};

void ignore_free(struct ignore *ig)
{
	if (!ig)
		return;
	VEC_FREE(it, ig->rules, ig->n, free(it->pattern));
	free(ig);
}

/* --- single bytes ----------------------------------------------------------------------- */

static bool in_named_class(const char *name, size_t len, unsigned char c)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {
		{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
		{ "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
		{ "lower", islower }, { "print", isprint }, { "punct", ispunct },
		{ "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strlen(classes[i].name) == len && memcmp(name, classes[i].name, len) == 0)
			return c < 0x80 && classes[i].is(c);
	return false;
}

static bool known_class(const char *name, size_t len)
{
	for (unsigned c = 1; c < 0x80; c++)
		if (in_named_class(name, len, (unsigned char)c))
			return true;
	return false;
}

/* One byte of a set, with its backslash; NULL if the pattern ends there. */
static const char *set_byte(const char *p, const char *end, unsigned char *ret)
{
	if (p < end && *p == '\\')
		p++;
	if (p == end)
		return NULL;
	*ret = (unsigned char)*p;
	return p + 1;
}

/* The end of "[:name:]" at `p`, or NULL if there is none. */
static const char *match_class(const char *p, const char *end, unsigned char c, bool *found)
{
	const char *close = memchr(p + 2, ']', (size_t)(end - p - 2));

	if (!close || close[-1] != ':' || close - 1 < p + 2)
		return NULL;
	if (!known_class(p + 2, (size_t)(close - 1 - (p + 2))))
		return NULL;
	*found |= in_named_class(p + 2, (size_t)(close - 1 - (p + 2)), c);
	return close + 1;
}

/* The end of the set that begins after its bracket at `p`; NULL if it is no set or lacks `c`. */
static const char *match_set(const char *p, const char *end, unsigned char c)
{
	bool negated = p < end && (*p == '!' || *p == '^'), found = false, first = true;

	p += negated;
	for (; p && p < end && (*p != ']' || first); first = false) {
		unsigned char low, high;

		if (end - p > 2 && p[0] == '[' && p[1] == ':') {
			p = match_class(p, end, c, &found);
			continue;
		}
		p = set_byte(p, end, &low);
		high = low;
		if (p && end - p > 1 && p[0] == '-' && p[1] != ']')
			p = set_byte(p + 1, end, &high);
		found |= p && low <= c && c <= high;
	}
	return p && p < end && found != negated ? p + 1 : NULL;
}

/* One element of a pattern other than a star against one byte: where the next begins, or NULL. */
static const char *match_one(const char *p, const char *end, unsigned char c)
{
	switch (*p) {
	case '?':
		return c != '/' ? p + 1 : NULL;
	case '[':
		return c != '/' ? match_set(p + 1, end, c) : NULL;
	case '\\':
		return p + 1 < end && (unsigned char)p[1] == c ? p + 2 : NULL;
	default:
		return (unsigned char)*p == c ? p + 1 : NULL;
	}
}

/* --- paths ------------------------------------------------------------------------------ */

/* `**` alone between slashes. */
static bool is_any_depth(const char *pattern, const char *p)
{
	return p[0] == '*' && p[1] == '*' && (p == pattern || p[-1] == '/') &&
	       (p[2] == '/' || p[2] == '\0');
}

static const char *next_part(const char *s)
{
	s += strcspn(s, "/");
	return *s == '/' ? s + 1 : NULL;
}

/* Where the last star and the last `**` were met, and how far they reach so far. */
struct retry {
	const char *star, *star_to;
	const char *deep, *deep_to;
};

/* Let one of them reach further, and go on behind it; false: neither can. */
static bool reach_further(struct retry *t, const char **p, const char **s)
{
	if (t->star && *t->star_to != '/') {
		*p = t->star;
		*s = ++t->star_to;
		return true;
	}
	t->star = NULL;
	t->deep_to = t->deep ? next_part(t->deep_to) : NULL;
	if (!t->deep_to)
		return false;
	*p = t->deep;
	*s = t->deep_to;
	return true;
}

static bool match(const char *pattern, const char *s)
{
	const char *p = pattern, *end = pattern + strlen(pattern), *next;
	struct retry retry = { 0 };

	while (*s != '\0') {
		if (is_any_depth(pattern, p)) {
			if (p[2] == '\0')
				return true;
			p += 3;
			retry = (struct retry){ .deep = p, .deep_to = s };
			continue;
		}
		if (*p == '*') {
			retry.star = ++p;
			retry.star_to = s;
			continue;
		}
		next = p < end ? match_one(p, end, (unsigned char)*s) : NULL;
		if (next) {
			p = next;
			s++;
		} else if (!reach_further(&retry, &p, &s)) {
			return false;
		}
	}
	return p + strspn(p, "*") == end;
}

enum ignore_verdict ignore_match(const struct ignore *ig, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = ig->n; i-- > 0;) {
		const struct rule *r = &ig->rules[i];

		if (r->dirs_only && !is_dir)
			continue;
		if (match(r->pattern, r->anywhere ? name : path))
			return r->negated ? IGNORE_IN : IGNORE_OUT;
	}
	return IGNORE_SILENT;
}

/* --- reading ---------------------------------------------------------------------------- */

/* Spaces at the end do not count, unless a backslash stands before them. */
static size_t trim(const char *line, size_t len)
{
	size_t kept = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\\' && i + 1 < len)
			kept = ++i + 1;
		else if (line[i] != ' ')
			kept = i + 1;
	}
	return kept;
}

static int add_rule(struct ignore *ig, const char *line, size_t len, struct err *err)
{
	struct rule r = { 0 };

	len = trim(line, len);
	if (len == 0 || line[0] == '#')
		return 0;
	r.negated = line[0] == '!';
	line += r.negated;
	len -= r.negated;
	if (len > 0 && line[len - 1] == '/') {
		r.dirs_only = true;
		len--;
	}
	r.anywhere = !memchr(line, '/', len);
	if (len > 0 && line[0] == '/') {
		line++;
		len--;
	}
	if (len == 0)
		return 0;
	r.pattern = strndup(line, len);
	if (!r.pattern)
		return err_nomem(err);
	ig->rules[ig->n++] = r;
	return 0;
}

int ignore_parse(const void *text, size_t len, struct ignore **ret, struct err *err)
{
	CLEANUP(ignore_free_p) struct ignore *ig = calloc(1, sizeof(*ig));
	const char *p = text, *end = p + len;
	size_t lines = 1;
	int r = 0;

	if (!ig)
		return err_nomem(err);
	for (size_t i = 0; i < len; i++)
		lines += p[i] == '\n';
	ig->rules = calloc(lines, sizeof(*ig->rules));
	if (!ig->rules)
		return err_nomem(err);
	if (len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	while (r >= 0 && p < end) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		const char *line_end = stop ? stop : end;

		if (stop && line_end > p && line_end[-1] == '\r')
			line_end--;
		r = add_rule(ig, p, strnlen(p, (size_t)(line_end - p)), err);
		p = stop ? stop + 1 : end;
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ig);
	return r;
}

bool ignore_covers(const struct ignore *ig, const char *path)
{
	AUTO_FREE char *above = strdup(path);

	if (!above)
		return false;
	/* From the top, because a match there saves looking at the rest of a deep path. */
	for (char *slash = strchr(above, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (ignore_match(ig, above, true) == IGNORE_OUT)
			return true;
		*slash = '/';
	}
	return ignore_match(ig, path, false) == IGNORE_OUT;
}
