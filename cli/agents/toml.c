#include "cli/agents/toml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct place {
	size_t from, to; /* of the section; both at the end of the text if there is none */
	bool has;
};

static size_t line_end(const char *text, size_t len, size_t at)
{
	const char *end = memchr(text + at, '\n', len - at);

	return end ? (size_t)(end - text) + 1 : len;
}

/* Does a line begin a section, and is it this one? */
static bool is_header(const char *line, size_t n, const char *section, bool *ret_same)
{
	const size_t want = strlen(section);

	while (n > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		n--;
	}
	*ret_same = n > want + 1 && memcmp(line + 1, section, want) == 0 && line[want + 1] == ']';
	return n > 0 && *line == '[';
}

/* Of the lines behind the last one that says something, those belong to what follows. */
static size_t trim(const char *text, size_t from, size_t to)
{
	size_t end = to;

	while (end > from && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	return end < to ? end + 1 : end;
}

static struct place find_section(const char *text, size_t len, const char *section)
{
	struct place p = { .from = len, .to = len };

	for (size_t at = 0; at < len;) {
		const size_t end = line_end(text, len, at);
		bool same;

		if (is_header(text + at, end - at, section, &same)) {
			if (p.has) {
				p.to = trim(text, p.from, at);
				return p;
			}
			if (same)
				p = (struct place){ .from = at, .to = len, .has = true };
		}
		at = end;
	}
	return p;
}

bool toml_has(const char *text, size_t len, const char *section)
{
	return find_section(text, len, section).has;
}

static int put(struct buf *to, const char *text, size_t len, struct err *err)
{
	return buf_append(to, text, len) < 0 ? err_nomem(err) : 0;
}

int toml_set(const char *text, size_t len, const char *section, const char *lines, struct buf *ret,
	     struct err *err)
{
	const struct place p = find_section(text, len, section);
	const char *const gap = p.has || len == 0 ? "" : text[len - 1] == '\n' ? "\n" : "\n\n";
	const char *const parts[] = { gap, "[", section, "]\n", lines };
	int r = put(ret, text, p.from, err);

	for (size_t i = 0; i < 5 && r >= 0; i++)
		r = put(ret, parts[i], strlen(parts[i]), err);
	return r < 0 ? r : put(ret, text + p.to, len - p.to, err);
}

int toml_remove(const char *text, size_t len, const char *section, struct buf *ret, struct err *err)
{
	const struct place p = find_section(text, len, section);
	size_t from = p.from, to = p.to;
	int r;

	if (!p.has)
		return -ENOENT;
	/* The empty line before it goes too. */
	if (from > 1 && text[from - 1] == '\n' && text[from - 2] == '\n')
		from--;
	r = put(ret, text, from, err);
	return r < 0 ? r : put(ret, text + to, len - to, err);
}
