#include "base/cquote.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

static bool is_plain(const char *name)
{
	const char *end = name + strlen(name);
	size_t n = 1;

	for (; name < end && n > 0; name += n)
		n = *name == '"' || *name == '\\' ? 0 : utf8_printable(name, (size_t)(end - name));
	return n > 0;
}

/* The letter that stands for a byte behind a backslash; 0 if none does. */
static char letter_of(char c)
{
	static const char bytes[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
	const char *at = strchr(bytes, c);

	return at ? letters[at - bytes] : '\0';
}

static int append_escaped(struct buf *out, const char *name)
{
	const char *end = name + strlen(name);
	size_t n;
	int r = 0;

	for (; name < end && r >= 0; name += n) {
		const char letter = letter_of(*name);

		n = letter != '\0' ? 0 : utf8_printable(name, (size_t)(end - name));
		if (n > 0)
			r = buf_append(out, name, n);
		else if (letter != '\0')
			r = buf_printf(out, "\\%c", letter);
		else
			r = buf_printf(out, "\\%03o", (unsigned)(unsigned char)*name);
		n = n > 0 ? n : 1;
	}
	return r;
}

int cquote_append(struct buf *out, const char *prefix, const char *name)
{
	if (is_plain(name))
		return buf_append_str(out, prefix) < 0 ? -ENOMEM : buf_append_str(out, name);
	if (buf_append_u8(out, '"') < 0 || buf_append_str(out, prefix) < 0 ||
	    append_escaped(out, name) < 0)
		return -ENOMEM;
	return buf_append_u8(out, '"');
}
